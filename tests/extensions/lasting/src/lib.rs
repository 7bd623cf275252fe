//! Lasts as long as its frame says, in its own text and in the runtime, and sends the frame back.
#![no_std]

use spine::{
    Argument, Context, Durable, Ephemeral, HandlerNumber, Message, Verdict, Word, add_handler,
};

/// Word of a frame that says how many turns its run takes.
const TURNS: usize = 5;
/// Word of the frame that the answer has another value in.
const MARK: u32 = 6;

/// How far it came, in its own region.
static DONE: Word = Word::new(0);

/// Installs it.
pub fn init(durable: &mut Durable) {
    add_handler(durable, handler, HandlerNumber(0), Argument::NIL);
}

fn handler(_: Ephemeral<'_>, message: &Message, context: &Context) -> Verdict {
    let frame = message.buffer();
    let turns = frame.words().get(TURNS).copied().unwrap_or_default();
    // Asked for before the end, so a run that is cut off has something not to do.
    let asked = context.patch(MARK, 0x4C41_5354).and(context.transmit());
    for turn in 0..turns {
        DONE.set(turn);
        context.now();
    }
    match asked {
        Ok(()) => Verdict::Consume,
        Err(_) => Verdict::Host,
    }
}
