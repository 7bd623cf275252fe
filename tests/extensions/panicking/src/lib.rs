//! Reads a word that its frame may not have: the bounds are checked, and that is a panic.
#![no_std]

use spine::{Argument, Context, Durable, Ephemeral, HandlerNumber, Message, Verdict, add_handler};

/// Installs it.
pub fn init(durable: &mut Durable) {
    add_handler(durable, handler, HandlerNumber(0), Argument::NIL);
}

fn handler(_: Ephemeral<'_>, message: &Message, context: &Context) -> Verdict {
    let _ = context.transmit();
    let words = message.buffer().words();
    let index = words[3] as u16 as usize;
    if words[index] == 0 {
        return Verdict::Drop;
    }
    Verdict::Consume
}
