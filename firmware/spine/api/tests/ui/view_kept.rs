//! A header that outlives the message.

use spine::headers::Ipv4;
use spine::{Context, Ephemeral, Message, Verdict};
use std::cell::Cell;

thread_local! {
    static KEPT: Cell<Option<Ipv4<'static>>> = const { Cell::new(None) };
}

fn handler(_: Ephemeral<'_>, message: &Message, _: &Context) -> Verdict {
    KEPT.set(message.buffer().view::<Ipv4>(14));
    Verdict::Host
}

fn main() {}
