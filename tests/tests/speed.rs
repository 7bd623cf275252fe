//! Tests `bench --speed`: both engines carry its loads with every byte right. The speed itself is
//! not tested.

use integration_tests::engine::tools;
use integration_tests::stage::firmware;
use tigon_bench::speed::through_qemu;
use tigon2_sim::workload::speed::{LOADS, measure};

/// The simulator sees nothing of the clock that times it.
#[test]
fn the_simulation_does_not_depend_on_the_clock_that_times_it() {
    let image = firmware();
    for load in LOADS {
        let run = |factor: f64| {
            let ticks = std::cell::Cell::new(0.0);
            let clock = || {
                ticks.set(ticks.get() + factor);
                ticks.get()
            };
            measure(&image, &load, 3_000_000, clock).unwrap_or_else(|error| panic!("{error}"))
        };
        let (first, second) = (run(1.0), run(3.0));
        assert_eq!(first.digest, second.digest, "{}", load.name);
        assert_eq!(first.cycles, second.cycles, "{}", load.name);
        assert_eq!((first.seconds, second.seconds), (1.0, 3.0));
        // 3 ms of 88 MHz.
        assert!(first.cycles.abs_diff(264_000) < 2_000, "{}", first.cycles);
        assert_eq!(first.sent > 0, load.send, "{}", load.name);
        assert_eq!(first.received > 0, load.arrivals > 0.0, "{}", load.name);
        let ratio = first.of_real_time() / second.of_real_time();
        assert!((ratio - 3.0).abs() < 0.05, "{ratio}");
    }
}

#[test]
fn qemu_carries_the_loads() {
    for load in LOADS.iter().filter(|load| load.send || load.arrivals > 0.0) {
        let frames = through_qemu(&tools(), load, 1).unwrap_or_else(|error| panic!("{error:#}"));
        assert!(frames > 0.0, "{}", load.name);
    }
}
