//! Sends messages to the other card on the bus, and takes its.
#![no_std]

use spine::{
    Argument, Callers, Context, Durable, Endpoint, Ephemeral, HandlerNumber, Message, PeerHandler,
    Verdict, Words, accept, add_handler,
};

/// The arguments of the last message from the peer; how many there were is counter 0.
static REGION: Words<64> = Words::new();

/// Words of a frame in front of its arguments: the Ethernet header, domain and handler, how many.
const HEAD: usize = 6;

/// Installs the handlers.
pub fn init(durable: &mut Durable) {
    add_handler(durable, of_frame, HandlerNumber(0), Argument::NIL);
    add_handler(durable, keeps, HandlerNumber(1), Argument::NIL);
    accept(durable, HandlerNumber(1), Callers::PEER);
    add_handler(durable, answers, HandlerNumber(2), Argument::NIL);
    accept(durable, HandlerNumber(2), Callers::PEER);
    add_handler(durable, to_application, HandlerNumber(3), Argument::NIL);
    accept(durable, HandlerNumber(3), Callers::PEER);
    add_handler(durable, floods, HandlerNumber(4), Argument::NIL);
    accept(durable, HandlerNumber(4), Callers::PEER | Callers::ITSELF);
    add_handler(durable, counts, HandlerNumber(5), Argument::NIL);
    accept(durable, HandlerNumber(5), Callers::PEER);
    add_handler(durable, never_returns, HandlerNumber(6), Argument::NIL);
    accept(durable, HandlerNumber(6), Callers::PEER);
}

/// Sends the arguments in the frame to the handler that it names.
fn of_frame(_: Ephemeral<'_>, message: &Message, context: &Context) -> Verdict {
    let words = message.buffer().words();
    let Some((&[_, _, _, _, to, count], rest)) = words.split_first_chunk::<HEAD>() else {
        return Verdict::Drop;
    };
    let to = PeerHandler {
        domain: (to >> 8) as u8,
        handler: HandlerNumber(to as u8),
    };
    let arguments = rest.get(..count as usize).unwrap_or_default();
    match context.send_peer(to, arguments) {
        Ok(()) => Verdict::Consume,
        Err(_) => Verdict::Drop,
    }
}

fn keeps(_: Ephemeral<'_>, message: &Message, context: &Context) -> Verdict {
    let mut index = 0;
    for argument in message.arguments() {
        if let Some(word) = REGION.at(index) {
            word.report(*argument);
        }
        index += 1;
    }
    let _ = context.count(0);
    Verdict::Consume
}

/// The same arguments back, to the handler that keeps them.
fn answers(_: Ephemeral<'_>, message: &Message, context: &Context) -> Verdict {
    let to = PeerHandler {
        domain: context.domain() as u8,
        handler: HandlerNumber(1),
    };
    if context.send_peer(to, message.arguments()).is_err() {
        let _ = context.count(1);
    }
    Verdict::Consume
}

/// To the application whose endpoint the first argument names.
fn to_application(_: Ephemeral<'_>, message: &Message, context: &Context) -> Verdict {
    let Some((to, rest)) = message.arguments().split_first() else {
        return Verdict::Drop;
    };
    if context.send(Endpoint(*to), rest).is_err() {
        let _ = context.count(1);
    }
    Verdict::Consume
}

/// Messages of a run that sends for ever: its time is not enough for four.
const AT_ONCE: u32 = 2;

/// Sends as long as there is room, and again in its next turn, for ever; once if it gets an argument.
fn floods(_: Ephemeral<'_>, message: &Message, context: &Context) -> Verdict {
    let to = PeerHandler {
        domain: context.domain() as u8,
        handler: HandlerNumber(5),
    };
    let mut left = AT_ONCE;
    while left != 0 && context.send_peer(to, &[1, 2, 3, 4]).is_ok() {
        left -= 1;
    }
    if message.arguments().is_empty() {
        let _ = context.post(HandlerNumber(4), &[]);
    }
    Verdict::Consume
}

fn counts(_: Ephemeral<'_>, _: &Message, context: &Context) -> Verdict {
    let _ = context.count(2);
    Verdict::Consume
}

fn never_returns(_: Ephemeral<'_>, _: &Message, context: &Context) -> Verdict {
    loop {
        let _ = context.now();
    }
}
