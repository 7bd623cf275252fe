//! Random schedules: each datagram once, whole, in order; each transition one of the tables'.

use crate::card::image;
use tigon2_sim::explore::endpoints;

/// A slice of what `cargo xtask explore --eudp` runs by the thousands.
#[test]
fn every_transition_under_a_schedule_is_one_of_the_tables() {
    let image = image();
    let (mut steps, mut taken) = (0, [0; 4]);
    // In the last ones frames ended with old bytes and a good CRC before CPU B came to cut them off.
    for seed in (1..=16).chain([75, 101]) {
        let (result, _) = endpoints::run(&image, seed, None);
        let outcome = result.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        steps += outcome.steps;
        taken = [0, 1, 2, 3].map(|machine| taken[machine] | outcome.rows[machine]);
    }
    println!("{steps} transitions, rows {taken:x?}");
    assert!(steps > 2000, "{steps}");
    let untaken = tigon_bench::explore::untaken(taken);
    assert!(untaken.len() < 14, "{untaken:?}");
}
