//! Random schedules with the variant `spine`: without extensions, and while they come, run, are cut
//! off and go. `cargo xtask explore --extensions` runs thousands of them.

use tigon_bench::spine::card::Kit;
use tigon_bench::spine::explored;
use tigon2_chip::Cpu;
use tigon2_sim::explore::{self, Disturbance, Pace};

#[test]
fn frames_come_out_once_and_in_order_while_extensions_come_and_go() {
    let kit = Kit::build().unwrap_or_else(|error| panic!("{error:#}"));
    let mut all = explored::Deeds::default();
    for seed in 1..=10 {
        let (result, _) =
            explored::run(&kit, seed, None).unwrap_or_else(|error| panic!("{error:#}"));
        let (outcome, deeds) = result.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert!(outcome.frames > 500, "seed {seed}: {outcome:?}");
        assert!(deeds.loads > 0 && deeds.cut > 0, "seed {seed}: {deeds:?}");
        all.unloads += deeds.unloads;
        all.messages += deeds.messages;
        all.guards += deeds.guards;
        all.talked.opened += deeds.talked.opened;
        all.talked.answered += deeds.talked.answered;
    }
    let talked = all.talked;
    assert!(talked.opened > 50 && talked.answered > 200, "{all:?}");
    assert!(
        all.unloads > 20 && all.messages > 20 && all.guards > 20,
        "{all:?}"
    );
}

/// CPU B executes an instruction in some thirteen cycles, and a look of the watchdog takes longer
/// than the ten microseconds to the next one. Its timer goes before all that CPU B does for the
/// host's frames: without a turn for these between two looks none of them leaves.
#[test]
fn a_slow_cpu_b_sends_frames_between_the_looks_of_the_watchdog() {
    const SEEDS: [u64; 3] = [39, 301, 372];
    for seed in SEEDS {
        let pace = Disturbance::new(seed).pace(Cpu::B);
        assert!(matches!(pace, Pace::Jitter { most: 24.. }), "{pace}");
    }
    run_all(&SEEDS);
}

/// Runs the schedules of these seeds.
fn run_all(seeds: &[u64]) {
    let kit = Kit::build().unwrap_or_else(|error| panic!("{error:#}"));
    for seed in seeds {
        let run = explored::run(&kit, *seed, None);
        let (result, _) = run.unwrap_or_else(|error| panic!("{error:#}"));
        result.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}

/// A schedule holds CPU A up for as long as 350 us, and `init` may take 200: it is cut off, nothing
/// of it is loaded, and the next load goes well. Which schedules do that goes by the firmware's
/// layout; the search ends at the first one of them.
#[test]
fn an_init_is_cut_off_while_cpu_a_is_held_up() {
    let kit = Kit::build().unwrap_or_else(|error| panic!("{error:#}"));
    let first = [258, 717, 1418, 1765];
    let seeds = first
        .into_iter()
        .chain(1..)
        .filter(|seed| explored::holds_init(*seed));
    for seed in seeds.take(400) {
        let (result, _) =
            explored::run(&kit, seed, None).unwrap_or_else(|error| panic!("{error:#}"));
        let (outcome, deeds) = result.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert!(outcome.frames > 500, "seed {seed}: {outcome:?}");
        if deeds.inits_cut > 0 {
            println!("seed {seed}: {deeds:?}");
            return assert!(deeds.loads > 0, "seed {seed}: {deeds:?}");
        }
    }
    panic!("no `init` was cut off");
}

/// Writes take up to 6000 cycles, and the host's frames take each descriptor that gets free: what tells
/// an endpoint that its messages were fetched has one, too, or none of its messages are fetched any
/// more.
#[test]
fn frames_leave_a_descriptor_to_who_waits_for_it() {
    run_all(&[467_386]);
}

/// CPU B is held up for 300 us between its looks at the clock and at the run in work: that is not taken
/// off the time of an `init` that begins meanwhile.
#[test]
fn a_run_has_its_time_from_when_it_is_seen() {
    assert!(!explored::holds_init(460_942));
    run_all(&[460_942]);
}

#[test]
fn frames_come_out_once_and_in_order_without_extensions() {
    let kit = Kit::build().unwrap_or_else(|error| panic!("{error:#}"));
    for seed in 1..=8 {
        let outcome = explore::run(&kit.image, seed, None).0;
        let outcome = outcome.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert!(outcome.frames > 500, "seed {seed}: {outcome:?}");
    }
}
