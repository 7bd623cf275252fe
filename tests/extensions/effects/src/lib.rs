//! A handler for each kind of effect: what each costs.
#![no_std]

use spine::{
    Argument, Context, Durable, Ephemeral, Full, HandlerNumber, Message, Verdict, add_handler,
};

/// Installs them.
pub fn init(durable: &mut Durable) {
    add_handler(durable, nothing, HandlerNumber(0), Argument::NIL);
    add_handler(durable, one_count, HandlerNumber(1), Argument::NIL);
    add_handler(durable, eight_counts, HandlerNumber(2), Argument::NIL);
    add_handler(durable, transmits, HandlerNumber(3), Argument::NIL);
    add_handler(durable, one_patch, HandlerNumber(4), Argument::NIL);
    add_handler(durable, eight_patches, HandlerNumber(5), Argument::NIL);
    add_handler(durable, leaves, HandlerNumber(6), Argument::NIL);
    add_handler(durable, floods, HandlerNumber(7), Argument::NIL);
}

fn nothing(_: Ephemeral<'_>, _: &Message, _: &Context) -> Verdict {
    Verdict::Consume
}

fn leaves(_: Ephemeral<'_>, _: &Message, _: &Context) -> Verdict {
    Verdict::Host
}

fn verdict(done: Result<(), Full>) -> Verdict {
    match done {
        Ok(()) => Verdict::Consume,
        Err(Full) => Verdict::Drop,
    }
}

fn one_count(_: Ephemeral<'_>, _: &Message, context: &Context) -> Verdict {
    verdict(context.count(0))
}

fn eight_counts(_: Ephemeral<'_>, _: &Message, context: &Context) -> Verdict {
    for counter in 0..8 {
        if context.count(counter).is_err() {
            return Verdict::Drop;
        }
    }
    Verdict::Consume
}

fn transmits(_: Ephemeral<'_>, _: &Message, context: &Context) -> Verdict {
    verdict(context.transmit())
}

fn one_patch(_: Ephemeral<'_>, _: &Message, context: &Context) -> Verdict {
    let _ = context.patch(4, 1);
    verdict(context.transmit())
}

fn eight_patches(_: Ephemeral<'_>, _: &Message, context: &Context) -> Verdict {
    for index in 0..8 {
        let _ = context.patch(4 + index, index);
    }
    verdict(context.transmit())
}

/// Asks for more than there is, and takes all that it gets.
fn floods(_: Ephemeral<'_>, _: &Message, context: &Context) -> Verdict {
    for index in 0..96 {
        let _ = context.patch(index, index);
        let _ = context.count(index);
        let _ = context.transmit();
    }
    Verdict::Drop
}
