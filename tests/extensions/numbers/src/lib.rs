//! Exports procedures to other extensions: a sum, one that never returns, one that panics.
#![no_std]

use spine::{
    Argument, Called, Context, Durable, Ephemeral, HandlerNumber, Message, Verdict, Words,
    add_handler, export,
};

spine::export!(SUM = "numbers.sum");
spine::export!(ENDLESS = "numbers.endless");
spine::export!(PANIC = "numbers.panic");

/// How often the sum was asked for, by which domain last, and how far the endless one came.
static ASKED: Words<3> = Words::new();

/// Exports three, and has a handler of its own.
pub fn init(durable: &mut Durable) {
    add_handler(durable, consume, HandlerNumber(0), Argument::NIL);
    export(durable, &SUM, sum);
    export(durable, &ENDLESS, endless);
    export(durable, &PANIC, panics);
}

fn sum(called: &Called, first: u32, second: u32, third: u32) -> u32 {
    if let (Some(count), Some(by)) = (ASKED.at(0), ASKED.at(1)) {
        count.report(count.get().wrapping_add(1));
        by.report(called.domain());
    }
    first.wrapping_add(second).wrapping_add(third)
}

fn endless(_: &Called, _: u32, _: u32, _: u32) -> u32 {
    loop {
        if let Some(turns) = ASKED.at(2) {
            turns.add(1);
        }
    }
}

fn panics(_: &Called, index: u32, _: u32, _: u32) -> u32 {
    [1, 2, 3][index as usize]
}

fn consume(_: Ephemeral<'_>, _: &Message, context: &Context) -> Verdict {
    let _ = context.count(0);
    Verdict::Consume
}
