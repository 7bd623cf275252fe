//! Tests that every story passes and that the checker finds every seeded fault.
//!
//! This test runs the same schedules each time. A longer run with other schedules:
//! `RACES_SECONDS=600 cargo test --release -p tigon2-qemu-races -- --ignored --nocapture`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tigon2_qemu_races::check;
use tigon2_qemu_races::seeds::{SEEDS, Seed};
use tigon2_qemu_races::stories::STORIES;

/// What chooses the schedules of the short slice.
const START: u64 = 1;
/// Schedules of each story.
const SCHEDULES: usize = 1_000;
/// Schedules in which a seed must be found.
const MOST: usize = 10_000;

fn finds(seed: &Seed, start: u64) -> bool {
    let run = || check(Some(seed.name), seed.story, start, MOST);
    catch_unwind(AssertUnwindSafe(run)).is_err()
}

#[test]
fn every_story_holds() {
    for (story, _) in STORIES {
        check(None, story, START, SCHEDULES);
    }
}

/// A checker that finds nothing of this would also find nothing else.
#[test]
fn every_seeded_fault_is_found() {
    let missed = SEEDS.iter().filter(|seed| !finds(seed, START));
    let missed: Vec<_> = missed.map(|seed| (seed.name, seed.what)).collect();
    assert!(missed.is_empty(), "{missed:#?}");
}

/// New schedules for as long as `RACES_SECONDS` says, the faults first.
#[test]
#[ignore = "takes RACES_SECONDS"]
fn stories_hold_in_many_schedules() {
    let seconds = std::env::var("RACES_SECONDS").ok();
    let seconds = seconds.and_then(|text| text.parse().ok()).unwrap_or(600);
    let end = Instant::now() + Duration::from_secs(seconds);
    let epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    let first = epoch.expect("after 1970").as_secs();
    for seed in &SEEDS {
        println!("{}: start {first}", seed.name);
        assert!(finds(seed, first), "{}: {}", seed.name, seed.what);
    }
    let mut rounds = 0;
    while Instant::now() < end {
        for (story, _) in STORIES {
            // Printed, so that a failure can be had again.
            println!("{story}: start {}", first + rounds);
            check(None, story, first + rounds, SCHEDULES);
        }
        rounds += 1;
    }
    println!("{} schedules of each story", rounds as usize * SCHEDULES);
}
