//! A reference to a message that outlives the run.

use spine::{Argument, Context, Durable, Ephemeral, HandlerNumber, Message, Verdict};

fn handler(_: Ephemeral<'_>, message: &'static Message, _: &Context) -> Verdict {
    let _: &'static [u32] = message.arguments();
    Verdict::Consume
}

fn init(durable: &mut Durable) {
    spine::add_handler(durable, handler, HandlerNumber(1), Argument::NIL);
}

fn main() {}
