//! A handler that does nothing: what a call costs.
#![no_std]

use spine::{Argument, Context, Durable, Ephemeral, HandlerNumber, Message, Verdict, add_handler};

/// Installs it.
pub fn init(durable: &mut Durable) {
    add_handler(durable, handler, HandlerNumber(0), Argument::NIL);
}

fn handler(_: Ephemeral<'_>, _: &Message, _: &Context) -> Verdict {
    Verdict::Consume
}
