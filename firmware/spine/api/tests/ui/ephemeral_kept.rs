//! The proof of one run that is kept for another.

use spine::{Context, Ephemeral, Message, Verdict};
use std::cell::RefCell;

thread_local! {
    static KEPT: RefCell<Option<Ephemeral<'static>>> = RefCell::new(None);
}

fn handler(proof: Ephemeral<'_>, _: &Message, _: &Context) -> Verdict {
    KEPT.with(|kept| *kept.borrow_mut() = Some(proof));
    Verdict::Consume
}

fn main() {}
