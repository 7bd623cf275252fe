//! Measures the cost of sorting frames into queues, as a quick check after a change:
//! `sorting IMAGE [classic|single|source-address|toeplitz|folded|round-robin] [QUEUES] [BYTES] [4|6] [in|both|full] [FLOWS]`;
//! `sorting IMAGE latency [CASE]` that of a frame which arrives alone, or the events of one.

use tigon2_model::Board;
use tigon2_sim::timing::Parameters;
use tigon2_sim::timing::counts::{Activity, Cause};
use tigon2_sim::workload::knet::cost::{LOOK, Sorter};
use tigon2_sim::workload::knet::flows::Version;
use tigon2_sim::workload::knet::latency;
use tigon2_sim::workload::knet::sorting::{Outbound, Traffic, measure};
use tigon2_sim::workload::testbench::Setup;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let word = |place: usize, default: &str| {
        arguments
            .get(place)
            .cloned()
            .unwrap_or_else(|| default.to_owned())
    };
    let image = std::fs::read(word(0, "")).expect("a readable image");
    let setup = Setup::new(Board::default(), Parameters::default(), &image);
    if let Ok(case) = word(2, "").parse::<usize>()
        && word(1, "") == "latency"
    {
        let timeline = latency::record(&setup, &latency::CASES[case]).expect("it runs");
        for event in &timeline.events {
            let us = timeline.clock.nanoseconds(event.end() - timeline.from) as f64 / 1000.0;
            println!("{us:8.3} {event:?}");
        }
        return;
    }
    if word(1, "") == "latency" {
        for case in &latency::CASES {
            let found = latency::latency(&setup, case).expect("it runs");
            println!("{:40} {found:.2} us", case.cells().join(" "));
        }
        return;
    }
    let traffic = Traffic {
        version: if word(4, "4") == "6" {
            Version::Six
        } else {
            Version::Four
        },
        datagram: word(3, "18").parse().expect("bytes"),
        out: match word(5, "").as_str() {
            "both" => Outbound::Equal,
            "full" => Outbound::Most,
            _ => Outbound::Nothing,
        },
        flows: word(6, "64").parse().expect("flows"),
    };
    let queues: u8 = word(2, "4").parse().expect("queues");
    for kind in word(1, "classic,single,source-address,toeplitz,folded").split(',') {
        let sorter = Sorter::ALL.into_iter().find(|sorter| sorter.name() == kind);
        let settings = sorter.map(|sorter| sorter.settings(queues));
        match measure(&setup, settings.as_ref(), traffic, LOOK) {
            Ok(sorted) => {
                let frames: u64 = sorted.queues.iter().sum();
                for (cpu, counts) in sorted.counts.iter().enumerate() {
                    for (activity, tally) in counts.iter() {
                        let each = |cycles| cycles as f64 / frames as f64;
                        if each(tally.total()) < 1.0 || activity == Activity::Idle {
                            continue;
                        }
                        print!(
                            "  {cpu} {activity:?} {:.3} runs {:.1} instructions {:.1} cycles:",
                            each(tally.runs),
                            each(tally.instructions),
                            each(tally.total())
                        );
                        for cause in Cause::ALL {
                            print!(" {} {:.1}", cause.name(), each(tally.of(cause)));
                        }
                        println!();
                    }
                }
                println!(
                    "{kind:15} {:7.0} frames/s {:5.1} % of the wire, cycles {:5.0} {:5.0}, busy {:.2} {:.2}, interrupts {:.4}, dropped {}, {:?}",
                    sorted.rate,
                    100.0 * sorted.of_wire,
                    sorted.cycles[0],
                    sorted.cycles[1],
                    sorted.busy[0],
                    sorted.busy[1],
                    sorted.interrupts,
                    sorted.dropped,
                    sorted.queues
                )
            }
            Err(error) => println!("{kind:15} {error}"),
        }
    }
}
