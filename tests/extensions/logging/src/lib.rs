//! Logs lines: with words, without room, and in runs that are cut off.
#![no_std]

use spine::{
    Argument, Context, Durable, Ephemeral, HandlerNumber, Message, Verdict, add_handler, log,
};

/// Counter: lines for which there was no room.
const LOST: u32 = 0;

/// Installs the handlers.
pub fn init(durable: &mut Durable) {
    add_handler(durable, logs, HandlerNumber(0), Argument::NIL);
    add_handler(durable, logs_much, HandlerNumber(1), Argument::NIL);
    add_handler(durable, never_returns, HandlerNumber(2), Argument::NIL);
    add_handler(durable, panics, HandlerNumber(3), Argument::NIL);
}

/// One line, by how many arguments there are.
fn logs(_: Ephemeral<'_>, message: &Message, context: &Context) -> Verdict {
    let _ = match *message.arguments() {
        [] => log!(context, "nothing was said in {{braces}}"),
        [address, count] => spine::log!(context, "no route for {:x}, {} in all", address, count),
        [a, b, c, d, e, f, g, h] => {
            log!(
                context,
                "{} {} {} {} {} {} {:x} {:#x}",
                a,
                b,
                c,
                d,
                e,
                f,
                g,
                h
            )
        }
        ref words => log!(context, "{} words", words.len() as u32),
    };
    Verdict::Consume
}

/// So many lines; counts those for which there is no room.
fn logs_much(_: Ephemeral<'_>, message: &Message, context: &Context) -> Verdict {
    let lines = message.arguments().first().copied().unwrap_or(0);
    for number in 0..lines {
        if log!(context, "line {} of {}", number, lines).is_err() {
            let _ = context.count(LOST);
        }
    }
    Verdict::Consume
}

fn never_returns(_: Ephemeral<'_>, _: &Message, context: &Context) -> Verdict {
    loop {
        let _ = log!(context, "a run without end");
    }
}

fn panics(_: Ephemeral<'_>, _: &Message, context: &Context) -> Verdict {
    let _ = log!(context, "a run that panics");
    panic!()
}
