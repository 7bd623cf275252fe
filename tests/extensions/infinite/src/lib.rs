//! Figure 2's handlers that build: InfiniteHandler never returns, and is cut off.
#![no_std]

use spine::{
    Argument, Context, Durable, Ephemeral, HandlerNumber, Message, Verdict, Word, add_handler,
};

/// How far the endless handler came, in its own region.
static TURNS: Word = Word::new(0);

/// Installs both.
pub fn init(durable: &mut Durable) {
    add_handler(durable, good_handler, HandlerNumber(6), Argument::NIL);
    add_handler(durable, infinite_handler, HandlerNumber(7), Argument::NIL);
}

fn good_handler(_: Ephemeral<'_>, _: &Message, context: &Context) -> Verdict {
    let _ = context.count(6);
    Verdict::Consume
}

fn infinite_handler(_: Ephemeral<'_>, _: &Message, context: &Context) -> Verdict {
    // What it asks for must not happen.
    let _ = context.transmit();
    let _ = context.count(7);
    loop {
        TURNS.add(1);
    }
}
