//! The frame pipeline's tables on the timed card: shorter latency, never a wrong byte.

use frame_pipeline::{Step, send};
use tigon2_model::Board;
use tigon2_sim::timing::{BusStalls, Parameters};
use tigon2_sim::workload::WorkloadError;
use tigon2_sim::workload::cut_through::{Cut, Report, run};

fn frames(board: Board, cut: Cut, length: usize, count: u32, seed: u64) -> Report {
    run(board, Parameters::default(), cut, length, count, seed).expect("all frames leave")
}

fn mean(report: &Report) -> f64 {
    report.latencies.iter().sum::<u64>() as f64 / report.latencies.len() as f64 / 1000.0
}

/// The design's arithmetic: bus and wire of a frame of 1514 bytes take 19 us one after the other,
/// and nearly 15 with the bus behind the wire; 9014 bytes 110 and 75.
#[test]
fn a_frame_leaves_earlier_if_it_is_cut_through() {
    for (length, most) in [(600, 1.0), (1514, 0.82), (9014, 0.70)] {
        let coarse = frames(Board::default(), Cut::COARSE, length, 50, 1);
        let fine = frames(Board::default(), Cut::FINE, length, 50, 1);
        for report in [&coarse, &fine] {
            assert_eq!((report.wrong, report.aborted), (0, 0), "{length}");
        }
        let part = mean(&fine) / mean(&coarse);
        eprintln!("{length}: {:.2} of {:.2} us", mean(&fine), mean(&coarse));
        assert!(part < most, "{length}: {part}");
    }
}

/// The wrong and the aborted frames on buses that are slower than the wire, or nearly.
fn on_slow_buses(watched: bool) -> (u64, u64) {
    let (mut wrong, mut aborted) = (0, 0);
    for (bits, mhz) in [(32, 20), (32, 33), (64, 25), (32, 66)] {
        for lead in [128, 512, 1024] {
            let cut = Cut {
                lead,
                watched,
                ..Cut::FINE
            };
            let report = run(
                Board::with_bus(bits, mhz),
                Parameters::default(),
                cut,
                1514,
                40,
                lead.into(),
            );
            let report = match report {
                // The frame has left before it was there: SEND's table knows no such thing.
                Err(WorkloadError::Pipeline(Step::Impossible)) if !watched => {
                    wrong += 1;
                    continue;
                }
                report => report.expect("all frames leave"),
            };
            assert_eq!(u64::from(report.underruns), report.aborted);
            wrong += report.wrong;
            aborted += report.aborted;
        }
    }
    (wrong, aborted)
}

/// The watch cuts what it cannot certify, and all of it arrives in the end; without the watch old
/// bytes leave with a good CRC, and nobody is told.
#[test]
fn what_overtakes_the_bus_is_cut_and_sent_again() {
    let (wrong, aborted) = on_slow_buses(true);
    assert_eq!(wrong, 0);
    assert!(aborted > 100, "{aborted}");
    let (wrong, aborted) = on_slow_buses(false);
    assert!(wrong > 20, "{wrong}");
    assert_eq!(aborted, 0);
}

/// Each bus transaction waits for up to so many clocks, at random: on a bus that is fast enough
/// otherwise, some frames are cut, and none is wrong.
#[test]
fn random_stalls_of_the_bus_make_no_wrong_frame() {
    let mut rows = 0;
    for (seed, clocks) in (1..).zip([20, 60, 100, 150, 300, 1000]) {
        let parameters = Parameters {
            pci_rd: clocks,
            jit: 1.0,
            ..Parameters::default()
        };
        let report = run(Board::default(), parameters, Cut::FINE, 1514, 400, seed);
        let report = report.expect("all frames leave");
        assert_eq!(report.wrong, 0, "{clocks} clocks");
        assert_eq!(u64::from(report.underruns), report.aborted);
        eprintln!("{clocks} clocks: {} of 400 aborted", report.aborted);
        rows |= report.rows[1];
    }
    // A CPU that takes no time serves a deadline before the part that misses it, so what comes too
    // late is not seen as late.
    let watched = send::TABLE.rows.iter().enumerate();
    let watched = watched.filter(|(_, row)| row.from == send::State::Watched as u8);
    let taken = watched.filter(|(number, _)| rows >> number & 1 == 1);
    let mut events: Vec<u8> = taken.map(|(_, row)| row.event).collect();
    events.sort_unstable();
    events.dedup();
    let all = [
        send::Event::PartArrived,
        send::Event::LastArrived,
        send::Event::Deadline,
    ];
    assert_eq!(events, all.map(|event| event as u8));
}

/// What became of frames on buses that stall within transactions, at random beats and for up to so many
/// cycles: how many were wrong, how many aborted.
fn on_buses_that_stall_within(watched: bool, most: u64) -> (u64, u64) {
    let (mut wrong, mut aborted) = (0, 0);
    for (seed, length) in (1..).zip([600, 1514, 4100, 9014]) {
        let stalls = BusStalls {
            every: 6,
            least: 5,
            most,
        };
        let parameters = Parameters {
            stalls,
            ..Parameters::default()
        };
        let cut = Cut {
            watched,
            ..Cut::FINE
        };
        match run(Board::default(), parameters, cut, length, 100, seed) {
            // The frame has left before it was there: SEND's table knows no such thing.
            Err(WorkloadError::Pipeline(Step::Impossible)) if !watched => wrong += 1,
            report => {
                let report = report.expect("all frames leave");
                assert_eq!(u64::from(report.underruns), report.aborted);
                wrong += report.wrong;
                aborted += report.aborted;
            }
        }
    }
    eprintln!("up to {most} cycles: {aborted} of 400 aborted, {wrong} wrong");
    (wrong, aborted)
}

/// A stall in the middle of a part leaves half of it old. It is cut like a part that has not begun, and
/// short stalls cost nothing; nobody but the watch sees it.
#[test]
fn stalls_within_transactions_make_no_wrong_frame() {
    for (most, expected) in [
        (50, 0..1),
        (500, 1..200),
        (5000, 100..400),
        (50_000, 150..400),
    ] {
        let (wrong, aborted) = on_buses_that_stall_within(true, most);
        assert_eq!(wrong, 0, "{most} cycles");
        assert!(expected.contains(&aborted), "{most} cycles: {aborted}");
    }
    let (wrong, _) = on_buses_that_stall_within(false, 500);
    assert!(wrong > 8, "without the watch: {wrong}");
}
