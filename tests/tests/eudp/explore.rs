//! Random schedules: each datagram once, whole, in order; each transition one of the tables'.

use crate::card::{image, recording_image};
use tigon_bench::explore::Rows;
use tigon2_sim::explore::endpoints;

/// A slice of what `cargo xtask explore --eudp` runs by the thousands.
#[test]
fn every_transition_under_a_schedule_is_one_of_the_tables() {
    let (image, recording) = (image(), recording_image());
    let (mut steps, mut taken) = (0, Vec::new());
    // In 18 endpoint and driver waited for each other. In the others frames ended with old bytes and a
    // good CRC before CPU B came to cut them off.
    for seed in (1..=16).chain([18, 75, 101, 40803]) {
        let is_recorded = endpoints::is_recorded(seed);
        let image = if is_recorded { &recording } else { &image };
        let (result, _) = endpoints::run(image, seed, None);
        let outcome = result.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(outcome.is_recorded, is_recorded, "seed {seed}");
        let [.., recv, rdma] = outcome.rows;
        assert_eq!(recv != 0 && rdma != 0, is_recorded, "seed {seed}");
        steps += outcome.steps;
        taken.push(outcome.rows);
    }
    let missing = taken.into_iter().collect::<Rows>().missing();
    println!("{steps} transitions; not taken: {missing:?}");
    assert!(steps > 4000, "{steps}");
    assert!(missing.len() < 30, "{missing:?}");
}
