//! Sums up the arguments of messages.
#![no_std]

use spine::{
    Argument, Context, Durable, Ephemeral, HandlerNumber, Message, Verdict, Words, add_handler,
};

/// The sum, where the last message came from, and how many arguments it had.
static REGION: Words<3> = Words::new();

/// Installs the handlers.
pub fn init(durable: &mut Durable) {
    add_handler(durable, sums, HandlerNumber(0), Argument::NIL);
    add_handler(durable, never_returns, HandlerNumber(1), Argument::NIL);
}

fn sums(_: Ephemeral<'_>, message: &Message, context: &Context) -> Verdict {
    let mut sum = 0u32;
    for word in message.arguments() {
        sum = sum.wrapping_add(*word);
    }
    let count = message.arguments().len() as u32;
    for (index, value) in [sum, message.source(), count].into_iter().enumerate() {
        if let Some(word) = REGION.at(index) {
            word.report(value);
        }
    }
    let _ = context.count(0);
    Verdict::Consume
}

fn never_returns(_: Ephemeral<'_>, _: &Message, context: &Context) -> Verdict {
    loop {
        let _ = context.count(1);
    }
}
