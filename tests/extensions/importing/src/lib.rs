//! Never returns, and is in the runtime's text nearly all the time.
#![no_std]

use spine::{Argument, Context, Durable, Ephemeral, HandlerNumber, Message, Verdict, add_handler};

/// Installs it.
pub fn init(durable: &mut Durable) {
    add_handler(durable, handler, HandlerNumber(0), Argument::NIL);
}

fn handler(_: Ephemeral<'_>, _: &Message, context: &Context) -> Verdict {
    loop {
        context.now();
        context.now();
        context.now();
        context.now();
    }
}
