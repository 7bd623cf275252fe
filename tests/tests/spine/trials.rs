//! Short slices of the trials that commands make at length: cuts everywhere, loads at full wire
//! load.

use crate::card::kit;
use crate::page::{cells, figures};
use integration_tests::engine::tools;
use tigon_bench::spine::router::Pace;
use tigon_bench::spine::{churn, contained, cost, cuts, emulated, guarded, profiles, router};

/// `cargo xtask extension cut`, for one frame of each kind.
#[test]
fn every_handler_and_every_init_can_be_cut_off_at_each_instruction() {
    let rows = cuts::run(kit(), 1, |_| ()).unwrap_or_else(|error| panic!("{error:#}"));
    println!("{}", cuts::table(&rows));
    assert_eq!(rows.len(), cuts::subjects().len() + 13, "each init once");
    for row in &rows {
        assert!(row.cuts > 0 && row.stores > 0, "{row:?}");
        assert!(row.in_text > 0, "{row:?}");
    }
    let echo = rows.first().expect("the first is echo");
    assert!(echo.cuts > 300 && echo.in_text > 100, "{echo:?}");
    let frames: u64 = rows.iter().map(|row| row.plain).sum();
    assert!(frames > 2000, "{frames} frames of the host's");
}

/// `cargo xtask extension cut --qemu`, for a moment.
#[test]
fn runs_are_cut_off_at_random_under_qemu() {
    let rows = emulated::run(&tools(), kit(), 32, |_| ());
    let rows = rows.unwrap_or_else(|error| panic!("{error:#}"));
    println!("{}", emulated::table(&rows));
    assert!(
        rows.len() == 4 && rows.iter().all(|row| row.cuts >= 8),
        "{rows:?}"
    );
    let [.., lasting] = rows.as_slice() else {
        return;
    };
    assert!(lasting.runs > lasting.cuts, "some return: {lasting:?}");
    let plain: u64 = rows.iter().map(|row| row.plain).sum();
    assert!(plain > 10, "{plain} frames of the host's");
}

/// Each packet goes where a table sends it that was in use, whatever the host has written of the
/// others: one table each millisecond, and one right behind the other.
#[test]
fn the_router_forwards_while_its_table_is_replaced() {
    for (pace, routes, packets) in [
        (Pace::EachMillisecond, 200, 6000),
        (Pace::AtOnce, 500, 8000),
    ] {
        let routed = router::run(kit(), routes, packets, pace);
        let routed = routed.unwrap_or_else(|error| panic!("{pace:?}: {error:#}"));
        println!("{pace:?}: {routed:?}");
        let forwarded: u32 = routed.forwarded.iter().sum();
        assert!(routed.forwarded.iter().all(|one| *one > 100), "{routed:?}");
        assert!(routed.of_host > 10, "{routed:?}");
        assert_eq!(forwarded + routed.of_host, routed.packets);
        assert!(routed.updates >= 100, "{routed:?}");
    }
}

/// `cargo xtask extension churn`, for a moment.
#[test]
fn extensions_come_and_go_at_full_wire_load() {
    let churned = churn::run(kit(), 40, 1472, |_| ()).unwrap_or_else(|error| panic!("{error:#}"));
    println!("{churned:?}");
    assert!(churned.runs > 100, "{churned:?}");
    // The one that never returns is cut off three times, each time that it is there.
    assert!(churned.overruns >= 3 * 7, "{churned:?}");
    assert!(churned.before.iter().all(|rate| *rate > 80_000.0));
    assert!(churned.during.iter().all(|rate| *rate > 10_000.0));
}

/// `cargo xtask extension contain`: hostile extensions that pass all walls but the last.
#[test]
fn hostile_handlers_are_contained_and_the_others_go_on() {
    let rows = contained::run(kit()).unwrap_or_else(|error| panic!("{error:#}"));
    println!("{}", contained::table(&rows));
    assert_eq!(rows.len(), 16);
    for row in &rows {
        // One runs by its own messages, too, as often as it has turns.
        let posts = row.name.contains("posts") && row.of_them >= 50 && row.runs > 1000;
        assert!(
            row.runs >= 3 && (row.of_them == row.runs || posts),
            "{row:?}"
        );
        assert!(row.loss() <= 0.05, "{row:?}");
        let floods = row.name.starts_with("floods");
        assert!(
            !floods || row.runs > 200 && row.rates[0] > 70_000.0,
            "{row:?}"
        );
        let is_cut = ["Overruns", "Panics", "Faults"].contains(&row.counted.as_str());
        assert_eq!(row.suspended, is_cut, "{row:?}");
    }
}

/// `cargo xtask bench --spine --quick`: what docs/spine.md promises.
#[test]
fn extensions_cost_what_the_page_says() {
    let costs = cost::measure(true).unwrap_or_else(|error| panic!("{error:#}"));
    for row in &costs.plain {
        assert!(row.loss() < 0.01, "slower without extensions: {row:?}");
    }
    let run = |name: &str| {
        let row = costs.handled.iter().find(|row| row.handler == name);
        row.unwrap_or_else(|| panic!("{name}")).run
    };
    assert!(run("empty") <= 60, "{}", run("empty"));
    assert_eq!(run("empty"), run("nothing, among 8 handlers"));
    assert!((40..=60).contains(&run("empty, in SRAM")));
    assert!(run("1 count") < run("8 counts"));
    // With the next hop.
    assert!(costs.lookup <= 120.0, "{}", costs.lookup);
    let [_, cell] = &cells("a lookup in them")[..] else {
        panic!("the page has no figure of a lookup");
    };
    let cycles = cell.split_whitespace().next().expect("a figure");
    let cycles: f64 = cycles.parse().expect("a number");
    assert!((costs.lookup - cycles).abs() < 3.0, "{}", costs.lookup);
    let rate = |guards: &str| {
        let of_size = |row: &&guarded::Guarded| row.guards == guards && row.datagram == 18;
        let row = costs.guarded.iter().find(of_size);
        row.unwrap_or_else(|| panic!("{guards}")).rate
    };
    let (none, one) = (rate("no extension"), rate("1 that no frame meets"));
    assert!(one >= 0.88 * none, "{one} of {none}");
    // The host takes frames by dozens: a window has some more or less.
    assert!(rate("none") >= 0.99 * one, "{} of {one}", rate("none"));
    assert!(rate("8") >= 0.99 * one, "{} of {one}", rate("8"));
    let [least, most] = costs.watchdog;
    assert!(least >= 10.0 && most <= 30.0, "{least} to {most} us");
}

/// `cargo xtask bench --spine`: the main figures under each timing profile.
#[test]
fn the_page_has_the_figures_of_each_profile() {
    let rows = profiles::measure(kit()).unwrap_or_else(|error| panic!("{error:#}"));
    assert_eq!(rows.len(), 4);
    for row in rows {
        let is = row.figures();
        let shown = figures(&row.profile);
        assert_eq!(shown.len(), is.len(), "{row:?}");
        for (shown, is) in shown.iter().zip(is) {
            // The page was made by one compiler's firmware.
            assert!((shown - is).abs() <= 0.05 * is, "{shown}: {row:?}");
        }
    }
}
