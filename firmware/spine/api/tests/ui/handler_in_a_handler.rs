//! A handler that installs another one.

use spine::{Argument, Context, Ephemeral, HandlerNumber, Message, Verdict, add_handler};

fn handler(proof: Ephemeral<'_>, _: &Message, _: &Context) -> Verdict {
    add_handler(&mut proof, handler, HandlerNumber(2), Argument::NIL);
    Verdict::Consume
}

fn main() {}
