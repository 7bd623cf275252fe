//! A durable right of which a copy is kept.

use spine::Durable;

fn init(durable: &mut Durable) {
    let kept: Durable = *durable;
    let _ = kept;
}

fn main() {}
