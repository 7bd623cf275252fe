//! Compares the cost of classification in `docs/knet.md` with the card's, and what it says of a run
//! between two Linux hosts with that run's report.

use integration_tests::stage;
use testbed::paths;
use tigon2_chip::Cpu;
use tigon2_chip::events::EventBit;
use tigon2_model::Board;
use tigon2_sim::timeline::event::Event;
use tigon2_sim::timing::Parameters;
use tigon2_sim::timing::counts::{Cause, Tally};
use tigon2_sim::workload::knet::cost::{CASES, cost};
use tigon2_sim::workload::knet::latency;
use tigon2_sim::workload::testbench::Setup;

/// Rows of the smallest frames towards the card, which the tests measure again.
const ROWS: usize = 9;
/// A change of the firmware may move a figure a bit, and of eight queues the host gets five hundred
/// frames together.
const PAGE_IS_OFF_BY: f64 = 0.04;

/// Cells of figures in a row of each table.
const COST: usize = 4;
const LATENCY: usize = 2;

/// The figure that the page has behind the first cells of a row, which has so many more cells.
fn printed(cells: &[String], more: usize) -> Option<f64> {
    let page = std::fs::read_to_string(paths::root().join("docs/knet.md")).expect("the page");
    let start = format!("| {} | ", cells.join(" | "));
    let bars = cells.len() + more + 1;
    let mut rows = page
        .lines()
        .filter(|line| line.matches('|').count() == bars);
    let rest = rows.find_map(|line| line.strip_prefix(&start))?;
    rest.split_whitespace().next()?.parse().ok()
}

#[test]
fn the_page_has_what_sorting_costs() {
    for case in &CASES {
        assert!(
            printed(&case.cells(), COST).is_some(),
            "docs/knet.md: {:?}",
            case.cells()
        );
    }
    let firmware = stage::firmware();
    let setup = Setup::new(Board::default(), Parameters::default(), &firmware);
    for case in CASES.iter().take(ROWS) {
        let found = cost(&setup, case).unwrap_or_else(|error| panic!("{error}"));
        let rate = found.sorted.rate;
        let printed = printed(&case.cells(), COST).unwrap_or_default();
        let off = (rate / printed - 1.0).abs();
        assert!(off < PAGE_IS_OFF_BY, "{:?}: {rate:.0}", case.cells());
    }
}

#[test]
fn the_page_has_what_sorting_adds_to_a_frame_alone() {
    let firmware = stage::firmware();
    let setup = Setup::new(Board::default(), Parameters::default(), &firmware);
    for case in &latency::CASES {
        let found = latency::latency(&setup, case).unwrap_or_else(|error| panic!("{error}"));
        let printed = printed(&case.cells(), LATENCY).unwrap_or_default();
        let off = (found / printed - 1.0).abs();
        assert!(off < PAGE_IS_OFF_BY, "{:?}: {found:.2} us", case.cells());
    }
}

/// What a frame alone takes CPU A until its report is queued, in the table's order.
fn taken(setup: &Setup<'_>, case: &latency::Case) -> Tally {
    let timeline = latency::record(setup, case).unwrap_or_else(|error| panic!("{error}"));
    let reports = [
        EventBit::ReceiveComplete,
        EventBit::UpdateReceiveReturnProducer,
    ];
    let handlers = reports.map(|event| event.number() as u8);
    let until_interrupt = timeline
        .events
        .iter()
        .take_while(|event| !matches!(event, Event::Interrupt { asserted: true, .. }));
    let runs = until_interrupt.filter_map(|event| match event {
        Event::Run(run) if run.cpu == Cpu::A && handlers.contains(&run.bit) => Some(run.tally),
        _ => None,
    });
    runs.fold(Tally::default(), |mut sum, run| {
        sum.instructions += run.instructions;
        for (sum, cycles) in sum.cycles.iter_mut().zip(run.cycles) {
            *sum += cycles;
        }
        sum
    })
}

#[test]
fn the_page_has_what_a_frame_alone_takes_of_cpu_a() {
    /// A cause's cycles in a table of this size may be off by so many.
    const OFF_BY: u64 = 8;
    let firmware = stage::firmware();
    let setup = Setup::new(Board::default(), Parameters::default(), &firmware);
    let [classic, source, toeplitz, ..] = latency::CASES;
    let found = [classic, source, toeplitz].map(|case| taken(&setup, &case));
    let page = std::fs::read_to_string(paths::root().join("docs/knet.md")).expect("the page");
    let row = |name: &str| -> Vec<u64> {
        let start = format!("| CPU A: {name} | ");
        let mut lines = page.lines();
        let cells = lines.find_map(|line| line.strip_prefix(&start));
        let cells = cells.unwrap_or_else(|| panic!("docs/knet.md: {name}"));
        let figures = cells.split('|').filter(|cell| !cell.is_empty());
        figures
            .map(|cell| cell.trim().parse().expect(name))
            .collect()
    };
    let holds = |name: &str, of: &dyn Fn(&Tally) -> u64| {
        let measured = found.each_ref().map(of);
        let printed = row(name);
        let near = measured
            .iter()
            .zip(&printed)
            .all(|(one, other)| one.abs_diff(*other) <= OFF_BY);
        assert!(
            near && printed.len() == measured.len(),
            "{name}: {measured:?}, page {printed:?}"
        );
    };
    holds("all cycles", &Tally::total);
    for cause in Cause::ALL {
        if found.iter().any(|tally| tally.of(cause) != 0) {
            holds(cause.name(), &|tally: &Tally| tally.of(cause));
        }
    }
}

#[test]
fn the_page_has_what_two_hosts_have_exchanged() {
    let read = |name: &str| std::fs::read_to_string(paths::root().join(name)).expect(name);
    let page = read("docs/knet.md");
    let report: serde_json::Value =
        serde_json::from_str(&read("docs/qemu-run-queues.json")).expect("a report");
    let count = |path: &str| {
        let count = report.pointer(path).and_then(serde_json::Value::as_u64);
        count.unwrap_or_else(|| panic!("{path} in the report"))
    };
    let has = |row: String| assert!(page.contains(&row), "{row}");
    assert_eq!(count("/seconds"), 60);
    let packets = [0, 1].map(|queue| count(&format!("/queues/{queue}/packets")));
    let [share, other] = packets.map(|queue| {
        let share = 100.0 * queue as f64 / packets.iter().sum::<u64>() as f64;
        assert!((40.0..=60.0).contains(&share), "{share}");
        share
    });
    has(format!("| packets | {} | {} |", packets[0], packets[1]));
    has(format!("| {share:.1} % | {other:.1} % |"));
    let dropped = [0, 1].map(|queue| count(&format!("/queues/{queue}/drops")));
    has(format!("| dropped | {} | {} |", dropped[0], dropped[1]));
    for (name, path, arrived) in [
        ("frames in", "/inward", "arrived"),
        ("frames out", "/outward", "arrived"),
        ("TCP messages", "/tcp", "received"),
        ("UDP messages", "/udp", "received"),
    ] {
        let sent = count(&format!("{path}/sent"));
        assert_eq!(count(&format!("{path}/{arrived}")), sent, "{name}");
        has(format!("| {name} | {sent} | {sent} | 0 |"));
    }
    assert_eq!(count("/out_of_order"), 0);
    for path in ["/tcp", "/udp"] {
        for fault in ["reordered", "duplicated", "corrupt"] {
            assert_eq!(count(&format!("{path}/{fault}")), 0, "{path} {fault}");
        }
    }
}
