//! Tests the firmware under random schedules of both CPUs, DMA and MAC: every frame exactly once,
//! in order, every byte. `cargo xtask explore` runs thousands of them.

use integration_tests::stage;
use tigon2_sim::explore;
use tigon2_sim::timeline::{LIMIT, Recorder, number, packets};

/// Seeds of this test; 1..=1000 and more are those of the command.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=36;

#[test]
fn every_frame_comes_out_once_and_in_order_under_every_schedule() {
    let firmware = stage::firmware();
    let mut frames = 0;
    for seed in SEEDS {
        let outcome = match explore::run(&firmware, seed, None).0 {
            Ok(outcome) => outcome,
            Err(error) => panic!("seed {seed}: {error}"),
        };
        assert!(outcome.instructions[0] > 0, "seed {seed}");
        frames += outcome.frames;
    }
    assert!(frames > 500 * 36, "{frames} frames");
}

/// A failure is named by its seed: the same seed is the same run, to the cycle, also with a
/// recorder, which sees every frame.
#[test]
fn a_seed_is_a_run() {
    let firmware = stage::firmware();
    for seed in [5, 11] {
        let (first, none) = explore::run(&firmware, seed, None);
        let (again, timeline) = explore::run(
            &firmware,
            seed,
            Some(Recorder::new(LIMIT, number::of_datagram)),
        );
        let [first, again] = [first, again].map(|result| result.expect("a good run"));
        assert_eq!(first, again, "seed {seed}");
        assert!(none.is_none());
        let timeline = timeline.expect("a recording");
        assert_eq!(timeline.left_out, 0);
        let all = packets::follow(&timeline);
        assert_eq!(all.len() as u64, first.frames, "seed {seed}");
    }
}
