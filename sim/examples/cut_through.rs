//! Cuts frames through on a bus that stalls at random, in front of transactions or within them, by
//! machines whose CPU takes no time.
//!
//! ```text
//! cargo run --release -p tigon2-sim --example cut_through -- 1000000
//! ```
//!
//! No frame may end with an old byte and a good CRC: the last column but one is 0.

use std::process::ExitCode;
use tigon2_model::Board;
use tigon2_sim::timing::{BusStalls, Parameters};
use tigon2_sim::workload::WorkloadError;
use tigon2_sim::workload::cut_through::{Cut, run};

/// Means of what a bus transaction waits for, in clocks: each waits for 0 to twice of it.
const STALLS: [u64; 8] = [20, 60, 80, 100, 150, 300, 1000, 20_000];
/// The longest stalls within transactions, in core cycles; the shortest take 5. One transaction in
/// [`EVERY`] has one.
const WITHIN: [u64; 4] = [50, 500, 5000, 50_000];
const EVERY: u32 = 6;
/// The lengths of frames.
const LENGTHS: [usize; 4] = [600, 1514, 4100, 9014];

fn main() -> ExitCode {
    let frames = std::env::args().nth(1).and_then(|word| word.parse().ok());
    match search(frames.unwrap_or(10_000)) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(wrong) => {
            eprintln!("error: {wrong} wrong frames");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The buses: what their table calls them, and how they stall.
fn buses() -> Vec<(String, Parameters)> {
    let usual = Parameters::default();
    let in_front = STALLS.map(|stall| {
        let parameters = Parameters {
            pci_rd: stall,
            jit: 1.0,
            ..usual.clone()
        };
        (format!("{stall} clocks in front"), parameters)
    });
    let within = WITHIN.map(|most| {
        let stalls = BusStalls {
            every: EVERY,
            least: 5,
            most,
        };
        let parameters = Parameters {
            stalls,
            ..usual.clone()
        };
        (format!("5 to {most} cycles within"), parameters)
    });
    in_front.into_iter().chain(within).collect()
}

/// Sends about so many frames in all; returns how many were wrong.
fn search(frames: u32) -> Result<u64, WorkloadError> {
    let buses = buses();
    let count = frames.div_ceil((buses.len() * LENGTHS.len()) as u32);
    let mut total = 0;
    println!("bytes  stalls                    frames  aborted  wrong  mean us");
    for length in LENGTHS {
        for (seed, (name, parameters)) in (1..).zip(&buses) {
            let parameters = parameters.clone();
            let report = run(Board::default(), parameters, Cut::FINE, length, count, seed)?;
            let mean = report.latencies.iter().sum::<u64>() as f64 / f64::from(count) / 1000.0;
            println!(
                "{length:5}  {name:24}  {count:6}  {:7}  {:5}  {mean:7.1}",
                report.aborted, report.wrong
            );
            total += report.wrong;
        }
    }
    println!(
        "{} frames, {total} wrong",
        count * (buses.len() * LENGTHS.len()) as u32
    );
    Ok(total)
}
