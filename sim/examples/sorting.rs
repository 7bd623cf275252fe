//! Measures the cost of sorting frames into queues, as a quick check after a change:
//! `sorting IMAGE [classic|single|source-address|toeplitz|folded|round-robin] [QUEUES] [BYTES] [4|6] [both|in] [FLOWS]`

use host_driver::nic::QueueSettings;
use host_driver::rss::{ClassifierKind, HashTypes, Key};
use tigon2_model::Board;
use tigon2_sim::timing::Parameters;
use tigon2_sim::timing::counts::{Activity, Cause};
use tigon2_sim::workload::experiment::Duration;
use tigon2_sim::workload::knet::flows::Version;
use tigon2_sim::workload::knet::sorting::{Traffic, measure};
use tigon2_sim::workload::testbench::{BSD, Setup};

/// The host takes frames by dozens, so a shorter window counts too many or too few.
const LOOK: Duration = Duration {
    window: 60_000_000,
    ..Duration::QUICK
};

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
    let traffic = Traffic {
        version: if word(4, "4") == "6" {
            Version::Six
        } else {
            Version::Four
        },
        datagram: word(3, "18").parse().expect("bytes"),
        both_ways: word(5, "") == "both",
        flows: word(6, "64").parse().expect("flows"),
    };
    let mut settings = QueueSettings::new(word(2, "4").parse().expect("queues"));
    settings.entries = 512;
    settings.coalescing_ticks = BSD.receive_ticks * u32::from(settings.queues);
    settings.coalescing_frames = BSD.max_receive_bds;
    settings.classification.hash_types = HashTypes::ALL;
    for kind in word(1, "classic,single,source-address,toeplitz,folded").split(',') {
        settings.classification.key = if kind == "folded" {
            Key::SYMMETRIC
        } else {
            Key::PUBLISHED
        };
        settings.classification.kind = match kind {
            "single" => ClassifierKind::Single,
            "source-address" => ClassifierKind::SourceAddress,
            "round-robin" => ClassifierKind::RoundRobin,
            _ => ClassifierKind::Toeplitz,
        };
        let queues = (kind != "classic").then_some(&settings);
        match measure(&setup, queues, traffic, LOOK) {
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
