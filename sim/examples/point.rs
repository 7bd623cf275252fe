//! Measures one point of the experiments and prints how its cycles were spent, as a quick check
//! after a change:
//! `point IMAGE EXPERIMENT BDS SIZE[,SIZE...] [PROFILE]`, where EXPERIMENT is `send`, `receive`,
//! `both` or `ping` and BDS is the number of BDs of a sent frame. `POINT_BOUND=1` adds the bound,
//! `POINT_CAUSES=1` the causes of each handler's cycles, `POINT_BOARD=FILE` selects another board,
//! `POINT_FULL=1` measures as long as `cargo xtask bench` does.

use tigon2_chip::events::EventBit;
use tigon2_model::Board;
use tigon2_sim::timing::Parameters;
use tigon2_sim::timing::counts::{Activity, Cause};
use tigon2_sim::workload::experiment::{self, Duration, Experiment, Measured};
use tigon2_sim::workload::testbench::Setup;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [image, experiment, fragments, sizes, rest @ ..] = &arguments[..] else {
        panic!("point IMAGE EXPERIMENT BDS SIZES [PROFILE]");
    };
    let image = std::fs::read(image).expect("a readable image");
    let experiment = match experiment.as_str() {
        "send" => Experiment::Send,
        "receive" => Experiment::Receive,
        "both" => Experiment::Bidirectional,
        _ => Experiment::Ping,
    };
    let board = std::env::var("POINT_BOARD");
    let board = board.as_deref().unwrap_or("boards/tigon2/tigon2.toml");
    let board = std::fs::read_to_string(board).expect("the board file");
    let profile = rest.first().map_or("default", String::as_str);
    let parameters = Parameters::from_toml(&board, profile).expect("a timing profile");
    let board = Board::from_toml(&board).expect("a board");
    let setup = Setup {
        fragments: fragments.parse().expect("a number"),
        ..Setup::new(board, parameters, &image)
    };
    let has = |name| std::env::var_os(name).is_some();
    let duration = if has("POINT_FULL") {
        Duration::FULL
    } else {
        Duration::QUICK
    };
    for size in sizes.split(',') {
        let size = size.parse().expect("a size");
        let measure = |setup: &Setup<'_>| {
            experiment::run(setup, experiment, size, duration).expect("it runs")
        };
        let measured = measure(&setup);
        let bound = has("POINT_BOUND").then(|| {
            measure(&Setup {
                unlimited: true,
                ..setup.clone()
            })
        });
        report(size, &measured, bound.as_ref(), has("POINT_CAUSES"));
    }
}

fn report(size: usize, measured: &Measured, bound: Option<&Measured>, causes: bool) {
    let per_s = |frames: u64| frames as f64 / measured.seconds / 1e3;
    print!(
        "{size} B: {:.1} Mb/s, limit {:.1}, tx {:.1} k/s, rx {:.1} k/s, \
         A {:.3}, B {:.3}, SRAM {:.3}, PCI {:.3}, dropped {}",
        measured.mbps(),
        measured.limit_mbps(),
        per_s(measured.sent),
        per_s(measured.received),
        measured.busy(0),
        measured.busy(1),
        measured.sram(),
        measured.pci(),
        measured.dropped,
    );
    let [before, after] = &measured.readings;
    for (before, after) in before.counts.iter().zip(&after.counts) {
        let counts = after.since(before);
        for (name, count) in [
            ("overtakes", counts.overtakes()),
            ("stale fetches", counts.stale_fetches()),
        ] {
            if count != 0 {
                print!(", {name} {count}");
            }
        }
    }
    if let Some(us) = measured.latency_us {
        print!(", {us:.2} us");
    }
    if let Some(bound) = bound {
        print!(", bound {:.1} Mb/s", bound.mbps());
        match (measured.latency_us, bound.latency_us) {
            (Some(us), Some(at_least)) => print!(", {at_least:.2} us ({:.3})", at_least / us),
            _ => print!(" ({:.3})", measured.mbps() / bound.mbps()),
        }
    }
    println!();
    let [before, after] = &measured.readings;
    let frames = ((after.sent - before.sent) + (after.received - before.received)) as f64 / 2.0;
    for cpu in 0..after.counts.len() {
        let counts = after.counts[cpu].since(&before.counts[cpu]);
        for (activity, tally) in counts.iter() {
            let name = match activity {
                Activity::Handler(bit) => EventBit::from_number(u32::from(bit))
                    .map_or_else(|| bit.to_string(), |event| event.name().to_owned()),
                other => format!("{other:?}"),
            };
            if tally.total() == 0 {
                continue;
            }
            print!(
                "  {} {name:32} runs {:8.3} instr {:7.1} cycles {:7.1}",
                ["A", "B", "C", "D", "E", "F"][cpu],
                tally.runs as f64 / frames,
                tally.instructions as f64 / frames,
                tally.total() as f64 / frames
            );
            if causes {
                for cause in Cause::ALL.into_iter().skip(1) {
                    print!(" {} {:.1}", cause.name(), tally.of(cause) as f64 / frames);
                }
            }
            println!();
        }
    }
}
