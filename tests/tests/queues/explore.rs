//! Tests queue mode under random schedules of both CPUs, DMA and MAC, with 1 to 8 queues: each
//! frame once, whole, in order, in the queue and with the hash that the reference names.
//! `cargo xtask explore --queues` runs thousands of them.

use integration_tests::stage;
use tigon2_sim::explore::queues;

/// Seeds of this test; 1..=1000 and more are those of the command.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=48;
/// Write descriptors are so scarce that many return BDs wait: a status line once named BDs that
/// were not on their way.
const SCARCE_DESCRIPTORS: [u64; 1] = [54];

#[test]
fn every_frame_comes_in_its_queue_under_every_schedule() {
    let firmware = stage::firmware();
    let mut frames = 0;
    for seed in SEEDS.chain(SCARCE_DESCRIPTORS) {
        match queues::run(&firmware, seed, None).0 {
            Ok(outcome) => frames += outcome.frames,
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
    assert!(frames > 400 * 49, "{frames} frames");
}
