//! Says what becomes of the frames and messages of runs that are cut off.
#![no_std]

use spine::{
    Argument, Callers, Context, Durable, Endpoint, Ephemeral, HandlerNumber, Message, Verdict,
    WhenCut, accept, add_handler, when_cut,
};

/// Installs the handlers.
pub fn init(durable: &mut Durable) {
    when_cut(durable, WhenCut::DROP_FRAME | WhenCut::PASS_MESSAGE);
    let everybody = Callers::APPLICATIONS | Callers::DRIVER | Callers::ITSELF;
    add_handler(durable, never_returns, HandlerNumber(0), Argument::NIL);
    accept(durable, HandlerNumber(0), everybody);
    add_handler(durable, posts, HandlerNumber(1), Argument::NIL);
    accept(durable, HandlerNumber(1), everybody);
}

/// What it asks for must not happen.
fn never_returns(_: Ephemeral<'_>, _: &Message, context: &Context) -> Verdict {
    let _ = context.transmit();
    let _ = context.count(0);
    loop {
        let _ = context.send(Endpoint::DRIVER, &[0xBAD]);
    }
}

/// The same arguments to the handler that never returns.
fn posts(_: Ephemeral<'_>, message: &Message, context: &Context) -> Verdict {
    let _ = context.post(HandlerNumber(0), message.arguments());
    Verdict::Consume
}
