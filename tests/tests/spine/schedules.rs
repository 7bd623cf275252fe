//! Random schedules with the variant `spine`: without extensions, and while they come, run, are cut
//! off and go. `cargo xtask explore --extensions` runs thousands of them.

use tigon_bench::spine::card::Kit;
use tigon_bench::spine::explored;
use tigon2_sim::explore;

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
    }
    assert!(
        all.unloads > 20 && all.messages > 20 && all.guards > 20,
        "{all:?}"
    );
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
