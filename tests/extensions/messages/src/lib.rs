//! Answers messages, posts to itself, passes messages on to the wire and from it.
#![no_std]

use spine::{
    Argument, Callers, Context, Durable, Endpoint, Ephemeral, HandlerNumber, Message, Verdict,
    WireAddress, Words, accept, add_handler,
};

/// The arguments of the message in work.
static REGION: Words<64> = Words::new();

/// Installs the handlers.
pub fn init(durable: &mut Durable) {
    let everybody = Callers::APPLICATIONS | Callers::DRIVER;
    add_handler(durable, answers, HandlerNumber(0), Argument::NIL);
    accept(durable, HandlerNumber(0), everybody);
    add_handler(durable, counts_down, HandlerNumber(1), Argument::NIL);
    accept(durable, HandlerNumber(1), everybody | Callers::ITSELF);
    add_handler(durable, to_wire, HandlerNumber(2), Argument::NIL);
    accept(durable, HandlerNumber(2), Callers::APPLICATIONS);
    add_handler(durable, from_wire, HandlerNumber(3), Argument::NIL);
    accept(durable, HandlerNumber(3), Callers::WIRE);
    add_handler(durable, sums, HandlerNumber(4), Argument::NIL);
    accept(durable, HandlerNumber(4), everybody);
    add_handler(durable, never_returns, HandlerNumber(5), Argument::NIL);
    accept(durable, HandlerNumber(5), everybody);
    add_handler(durable, of_the_driver, HandlerNumber(6), Argument::NIL);
    add_handler(durable, consumes, HandlerNumber(7), Argument::NIL);
    accept(durable, HandlerNumber(7), everybody);
}

/// The same arguments back.
fn answers(_: Ephemeral<'_>, message: &Message, context: &Context) -> Verdict {
    let to = Endpoint(message.source());
    if context.send(to, message.arguments()).is_err() {
        let _ = context.count(0);
    }
    Verdict::Consume
}

/// Posts to itself as often as the first argument says, then tells the endpoint in the second.
fn counts_down(_: Ephemeral<'_>, message: &Message, context: &Context) -> Verdict {
    let (left, to) = match *message.arguments() {
        [left, to, ..] => (left, to),
        [left] => (left, message.source()),
        [] => (0, message.source()),
    };
    let done = if left == 0 {
        context.send(Endpoint(to), &[context.now()])
    } else {
        context.post(HandlerNumber(1), &[left - 1, to])
    };
    if done.is_err() {
        let _ = context.count(1);
    }
    Verdict::Consume
}

/// Station, domain and handler of another card, then the arguments for it.
fn to_wire(_: Ephemeral<'_>, message: &Message, context: &Context) -> Verdict {
    let Some((&[high, low, domain, handler], rest)) = message.arguments().split_first_chunk()
    else {
        return Verdict::Drop;
    };
    let to = WireAddress {
        station: (high, low),
        domain: domain as u8,
        handler: HandlerNumber(handler as u8),
    };
    if context.send_wire(&to, rest).is_err() {
        let _ = context.count(2);
    }
    Verdict::Consume
}

/// To the endpoint that the first argument names.
fn from_wire(_: Ephemeral<'_>, message: &Message, context: &Context) -> Verdict {
    let Some((to, rest)) = message.arguments().split_first() else {
        return Verdict::Drop;
    };
    if context.send(Endpoint(*to), rest).is_err() {
        let _ = context.count(3);
    }
    Verdict::Consume
}

/// The length of a message's data, and the sum of each sixteenth of its words: all of them would
/// take longer than a run may.
fn sums(_: Ephemeral<'_>, message: &Message, context: &Context) -> Verdict {
    let mut sum = 0u32;
    for word in message.buffer().words().iter().step_by(16) {
        sum = sum.wrapping_add(*word);
    }
    let _ = context.send(Endpoint(message.source()), &[message.buffer().len(), sum]);
    Verdict::Consume
}

fn never_returns(_: Ephemeral<'_>, _: &Message, context: &Context) -> Verdict {
    loop {
        let _ = context.send(Endpoint::DRIVER, &[0xBAD]);
        let _ = context.post(HandlerNumber(1), &[3]);
    }
}

fn of_the_driver(_: Ephemeral<'_>, message: &Message, context: &Context) -> Verdict {
    answers_to(message, context)
}

fn answers_to(message: &Message, context: &Context) -> Verdict {
    let _ = context.send(Endpoint::DRIVER, message.arguments());
    Verdict::Consume
}

/// Keeps when it ran last.
fn consumes(_: Ephemeral<'_>, _: &Message, context: &Context) -> Verdict {
    if let Some(word) = REGION.at(0) {
        word.report(context.now());
    }
    Verdict::Consume
}
