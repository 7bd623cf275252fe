//! Calls the procedures of the extension `numbers`; the message says which, and with what.
#![no_std]

use spine::{
    Argument, Context, Durable, Ephemeral, HandlerNumber, Message, NotCalled, Verdict, Words,
    add_handler,
};

spine::import!(SUM = "numbers.sum");
spine::import!(ENDLESS = "numbers.endless");
spine::import!(PANIC = "numbers.panic");

/// The answer of the last call: the word, and whether it is one, or why not.
static ANSWER: Words<2> = Words::new();

/// One handler for each procedure, one that calls for ever, and one that takes long to call.
pub fn init(durable: &mut Durable) {
    add_handler(durable, asks_sum, HandlerNumber(0), Argument::NIL);
    add_handler(durable, asks_endless, HandlerNumber(1), Argument::NIL);
    add_handler(durable, asks_panic, HandlerNumber(2), Argument::NIL);
    add_handler(durable, asks_again, HandlerNumber(3), Argument::NIL);
    add_handler(durable, asks_late, HandlerNumber(4), Argument::NIL);
}

fn argument(message: &Message, index: usize) -> u32 {
    message.arguments().get(index).copied().unwrap_or(0)
}

fn note(answer: Result<u32, NotCalled>) {
    let (word, why) = match answer {
        Ok(word) => (word, 0),
        Err(NotCalled::Absent) => (0, 1),
        Err(NotCalled::Full) => (0, 2),
    };
    for (index, value) in [word, why].into_iter().enumerate() {
        if let Some(place) = ANSWER.at(index) {
            place.report(value);
        }
    }
}

fn asks_sum(_: Ephemeral<'_>, message: &Message, context: &Context) -> Verdict {
    let _ = context.count(0);
    let arguments = [0, 1, 2].map(|index| argument(message, index));
    note(context.call(&SUM, arguments));
    Verdict::Consume
}

fn asks_endless(_: Ephemeral<'_>, _: &Message, context: &Context) -> Verdict {
    // What it asks for must not happen.
    let _ = context.count(1);
    note(context.call(&ENDLESS, [0; 3]));
    Verdict::Consume
}

fn asks_panic(_: Ephemeral<'_>, message: &Message, context: &Context) -> Verdict {
    note(context.call(&PANIC, [argument(message, 0), 0, 0]));
    Verdict::Consume
}

/// Calls as often as the first argument says.
fn asks_again(_: Ephemeral<'_>, message: &Message, context: &Context) -> Verdict {
    for number in 0..argument(message, 0) {
        note(context.call(&SUM, [number, 0, 0]));
    }
    Verdict::Consume
}

/// Calls, takes as many microseconds as the first argument says, and calls one that never returns.
fn asks_late(_: Ephemeral<'_>, message: &Message, context: &Context) -> Verdict {
    note(context.call(&SUM, [0; 3]));
    let start = context.now();
    while context.now().wrapping_sub(start) < argument(message, 0) {}
    note(context.call(&ENDLESS, [0; 3]));
    Verdict::Consume
}
