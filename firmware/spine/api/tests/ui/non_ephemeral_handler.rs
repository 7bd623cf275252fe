//! Figure 2: a procedure that is not ephemeral is no handler.

use spine::{Argument, Durable, HandlerNumber, Message, Verdict};

fn non_ephemeral(_: &mut Durable, _m: &Message, _c: &spine::Context) -> Verdict {
    Verdict::Consume
}

fn init(durable: &mut Durable) {
    spine::add_handler(durable, non_ephemeral, HandlerNumber(6), Argument::NIL);
}

fn main() {}
