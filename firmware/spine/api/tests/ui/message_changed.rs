//! A frame that is changed where it lies.

use spine::{Context, Ephemeral, Message, Verdict};

fn handler(_: Ephemeral<'_>, message: &Message, _: &Context) -> Verdict {
    message.buffer().words()[0] = 0;
    Verdict::Host
}

fn main() {}
