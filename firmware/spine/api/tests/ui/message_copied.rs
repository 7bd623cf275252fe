//! A message that is copied, to be read when its buffer is another's.

use spine::{Context, Ephemeral, Message, Verdict};

fn handler(_: Ephemeral<'_>, message: &Message, _: &Context) -> Verdict {
    let copy: Message = *message;
    let _ = copy;
    Verdict::Host
}

fn main() {}
