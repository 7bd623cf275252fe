//! Tests queue mode under random schedules of both CPUs, DMA and MAC, with 1 to 8 queues: each
//! frame once, whole, in order, in the queue and with the hash that the reference names.
//! `cargo xtask explore --queues` runs thousands of them.

use integration_tests::stage;
use tigon2_sim::explore::queues;

/// Seeds of this test; 1..=1000 and more are those of the command.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=48;
/// Schedules that found a fault once:
///
/// | seed | schedule | fault |
/// | --- | --- | --- |
/// | 54 | write descriptors are so scarce that many return BDs wait | a status line named BDs that were not on their way |
/// | 1515 | frames of the slow path among a burst, a long time of the queue | return BDs were left for later until others took their slots |
/// | 830 | CPU B leaves a frame to CPU A, which has just classified it | its hash became 0 |
const FOUND: [u64; 3] = [54, 830, 1515];

#[test]
fn every_frame_comes_in_its_queue_under_every_schedule() {
    let firmware = stage::firmware();
    let mut frames = 0;
    for seed in SEEDS.chain(FOUND) {
        match queues::run(&firmware, seed, None).0 {
            Ok(outcome) => frames += outcome.frames,
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
    assert!(frames > 400 * 51, "{frames} frames");
}
