//! Handlers that keep frames, send them again and give them back.
#![no_std]

use spine::{
    Argument, Context, Durable, Ephemeral, Full, HandlerNumber, Message, Verdict, add_handler,
};

/// Installs them.
pub fn init(durable: &mut Durable) {
    add_handler(durable, renews, HandlerNumber(0), Argument::NIL);
    add_handler(durable, repeats, HandlerNumber(1), Argument::NIL);
    add_handler(durable, hoards, HandlerNumber(2), Argument::NIL);
    add_handler(durable, compares, HandlerNumber(3), Argument::NIL);
    add_handler(durable, takes_what_it_does_not_keep, HandlerNumber(4), Argument::NIL);
    add_handler(durable, hoards_without_end, HandlerNumber(7), Argument::NIL);
}

/// Keeps this frame instead of those before it, and sends it.
fn renews(_: Ephemeral<'_>, _: &Message, context: &Context) -> Verdict {
    for kept in context.kept() {
        let _ = context.release(kept);
    }
    let _ = context.patch(3, 0x88B5_4B45);
    match context.keep().and(context.transmit()) {
        Ok(()) => Verdict::Consume,
        Err(Full) => Verdict::Host,
    }
}

/// Sends all that is kept once more.
fn repeats(_: Ephemeral<'_>, _: &Message, context: &Context) -> Verdict {
    for kept in context.kept() {
        if context.transmit_kept(kept).is_err() {
            let _ = context.count(1);
        }
    }
    Verdict::Consume
}

/// Keeps as many as it gets.
fn hoards(_: Ephemeral<'_>, _: &Message, context: &Context) -> Verdict {
    let _ = context.count(u32::from(context.keep().is_err()));
    Verdict::Consume
}

/// Counts the kept frames that are as long as this one and have the same last word.
fn compares(_: Ephemeral<'_>, message: &Message, context: &Context) -> Verdict {
    let frame = message.buffer();
    for kept in context.kept() {
        if let Some(kept) = context.buffer(kept)
            && kept.len() == frame.len()
            && kept.words().last() == frame.words().last()
        {
            let _ = context.count(2);
        }
    }
    Verdict::Consume
}

/// Names frames that others keep, or nobody.
fn takes_what_it_does_not_keep(_: Ephemeral<'_>, _: &Message, context: &Context) -> Verdict {
    // Shortly: the watchdog's time is 10 microseconds.
    for number in [0, 1, 2, 11, 12, 31, 32, u32::MAX] {
        let kept = spine::KeptNumber(number);
        let refused = context.transmit_kept(kept).is_err()
            && context.release(kept).is_err()
            && context.buffer(kept).is_none();
        if !refused {
            return Verdict::Drop;
        }
    }
    Verdict::Consume
}

fn hoards_without_end(_: Ephemeral<'_>, _: &Message, context: &Context) -> Verdict {
    loop {
        let _ = context.keep();
    }
}
