//! A durable right that a closure takes along.

use spine::{Argument, Durable, HandlerNumber, Lock, Verdict};

static LOCK: Lock = Lock::new();

fn init(durable: &mut Durable, other: &mut Durable) {
    let handler = |_: spine::Ephemeral<'_>, _: &spine::Message, _: &spine::Context| {
        LOCK.hold(other, |_| ());
        Verdict::Consume
    };
    spine::add_handler(durable, handler, HandlerNumber(1), Argument::NIL);
}

fn main() {}
