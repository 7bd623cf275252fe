//! The host may stop the simulated card whenever it likes: what the card does is the same.

use crate::arriving::send;
use crate::card::{Card, PORT, bytes};
use eudp::{Checksum, CutThrough};
use integration_tests::Engine;
use std::time::Duration;
use tigon2_chip::Cpu;

/// Nanoseconds from the first frame on.
const TIME: u64 = 2_000_000;

/// Where both CPUs are, and how many instructions they have executed, after [`TIME`] in steps of so
/// many nanoseconds: datagrams come in two fragments, and one leaves.
fn after(step: u64) -> [(u32, u64); 2] {
    let mut card = Card::timed(CutThrough::OfBus, Checksum::None, 9000);
    card.send(32_768, &bytes(2, 8000), 1);
    for number in 0..10 {
        card.post(0, 32_768, number.into());
        for frame in card.fragments((number, PORT), &bytes(1, 17_000), 8976) {
            send(&mut card, &frame);
        }
    }
    for _ in 0..TIME / step {
        card.stage.engine.pass(Duration::from_nanos(step));
    }
    let machine = card.stage.engine.machine().lock();
    Cpu::ALL.map(|cpu| {
        let core = machine.cpus().core(cpu);
        (core.pc(), core.retired())
    })
}

#[test]
fn a_card_that_is_stopped_does_the_same() {
    let once = after(TIME);
    // Whole numbers of cycles.
    for step in [500, 1000, 20_000] {
        assert_eq!(after(step), once, "stopped each {step} ns");
    }
}
