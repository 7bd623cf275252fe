//! Figure 2: IllegalHandler is ephemeral and calls a procedure that is not.

use spine::{Argument, Context, Durable, Ephemeral, HandlerNumber, Lock, Message, Verdict};

static MY_EXTENSION_MUTEX: Lock = Lock::new();

fn non_ephemeral(_m: &Message, durable: &mut Durable) {
    MY_EXTENSION_MUTEX.hold(durable, |_| ());
}

fn illegal_handler(_: Ephemeral<'_>, m: &Message, _c: &Context) -> Verdict {
    non_ephemeral(m);
    Verdict::Consume
}

fn init(durable: &mut Durable) {
    spine::add_handler(durable, illegal_handler, HandlerNumber(5), Argument::NIL);
}

fn main() {}
