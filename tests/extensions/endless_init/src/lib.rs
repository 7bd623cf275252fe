//! Its `init` never ends.
#![no_std]

use spine::{
    Argument, Context, Durable, Ephemeral, HandlerNumber, Message, Verdict, Word, add_handler,
};

static TURNS: Word = Word::new(0);

/// Does not end.
pub fn init(durable: &mut Durable) {
    add_handler(durable, handler, HandlerNumber(0), Argument::NIL);
    while TURNS.get() != u32::MAX {
        TURNS.add(1);
    }
}

fn handler(_: Ephemeral<'_>, _: &Message, _: &Context) -> Verdict {
    Verdict::Host
}
