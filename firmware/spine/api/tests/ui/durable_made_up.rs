//! A durable right that was made up.

use spine::{Context, Durable, Ephemeral, Lock, Message, Verdict};
use std::marker::PhantomData;

static LOCK: Lock = Lock::new();

fn handler(_: Ephemeral<'_>, _: &Message, _: &Context) -> Verdict {
    LOCK.hold(&mut Durable(PhantomData), |_| ());
    Verdict::Consume
}

fn main() {}
