//! A durable right made of the proof that there is none.

use spine::{Context, Durable, Ephemeral, Message, Verdict};

fn handler(proof: Ephemeral<'_>, _: &Message, _: &Context) -> Verdict {
    let _: &mut Durable = proof.into();
    Verdict::Consume
}

fn main() {}
