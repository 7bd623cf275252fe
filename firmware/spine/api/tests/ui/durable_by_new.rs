//! A durable right by the runtime's own constructor.

use spine::{Context, Durable, Ephemeral, Lock, Message, Verdict};

static LOCK: Lock = Lock::new();

fn handler(_: Ephemeral<'_>, _: &Message, _: &Context) -> Verdict {
    LOCK.hold(&mut Durable::new(), |_| ());
    Verdict::Consume
}

fn main() {}
