//! Posts to itself for ever, once a frame has come.
#![no_std]

use spine::{
    Argument, Callers, Context, Durable, Ephemeral, HandlerNumber, Message, Verdict, accept,
    add_handler,
};

const AGAIN: HandlerNumber = HandlerNumber(1);

/// Installs the handlers.
pub fn init(durable: &mut Durable) {
    add_handler(durable, begins, HandlerNumber(0), Argument::NIL);
    add_handler(durable, goes_on, AGAIN, Argument::NIL);
    accept(durable, AGAIN, Callers::ITSELF);
}

/// Takes all posts that there are.
fn begins(_: Ephemeral<'_>, _: &Message, context: &Context) -> Verdict {
    while context.post(AGAIN, &[]).is_ok() {}
    Verdict::Consume
}

fn goes_on(_: Ephemeral<'_>, _: &Message, context: &Context) -> Verdict {
    let _ = context.post(AGAIN, &[]);
    Verdict::Consume
}
