//! A durable right that is taken out of its loan.

use spine::Durable;

fn init(durable: &mut Durable) {
    let kept = std::mem::take(durable);
    let _ = kept;
}

fn main() {}
