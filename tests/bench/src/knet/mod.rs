//! The experiments of "Packet classification in the NIC for improved SMP-based Internet
//! servers" (KNET) on the simulated host with several CPUs.
//!
//! ```text
//!   cost       frames a second by classifier, protocol, size and number of queues
//!   latency    of a frame that arrives alone, by classifier
//!   peaks      throughput against throughput, the paper's figures beside ours
//!   curves     throughput over connections, as tables and plots
//!   model      the paper's model of the speed-up, on a host that has nothing but Te and Ta
//!   livelock   datagrams from 10 to 300 % of the loss-free rate, and one queue overloaded
//! ```
//!
//! Every point is a simulation of its own, as those of [`crate::simulated`].

mod cost;
mod curves;
mod latency;
mod livelock;
mod model;
mod peaks;

use crate::simulated::page::Page;
use anyhow::{Context, Result};
use indicatif::ProgressBar;
use rayon::prelude::*;
use serde::Serialize;
use std::time::Instant;
use testbed::conditions::Conditions;
use testbed::firmware::{self, FirmwareOptions};
use testbed::paths::board_file;
use testbed::setup::{self, Need};
use testbed::{interrupt, paths};
use tigon2_model::Board;
use tigon2_sim::hosts::profile::HostProfile;
use tigon2_sim::timing::Parameters;
use tigon2_sim::workload::knet::web::Duration;
use tigon2_sim::workload::testbench::Setup;

/// The timing profile of the card.
const TIMING: &str = "default";

/// All that is measured.
#[derive(Debug, Serialize)]
struct Report {
    /// The published figures that the host's profile was set by.
    calibrated: Vec<String>,
    cost: Vec<cost::Row>,
    latency: Vec<latency::Row>,
    peaks: Vec<peaks::Row>,
    curves: Vec<curves::Row>,
    model: Vec<model::Row>,
    livelock: Vec<livelock::Row>,
    floods: Vec<livelock::FloodRow>,
}

/// What a point is measured with.
#[derive(Clone, Copy)]
struct Bench<'a> {
    setup: &'a Setup<'a>,
    profile: &'a HostProfile,
    duration: Duration,
    quick: bool,
}

impl Bench<'_> {
    /// Does a measurement for each of some tasks, side by side, in their order.
    fn each<T: Sync, R: Send>(
        &self,
        what: &str,
        tasks: &[T],
        measure: impl Fn(&T) -> Result<R> + Sync,
    ) -> Result<Vec<R>> {
        let bar = ProgressBar::new(tasks.len() as u64).with_prefix(what.to_owned());
        let rows = tasks.par_iter().map(|task| {
            interrupt::check()?;
            let row = measure(task)?;
            bar.inc(1);
            Ok(row)
        });
        let rows = rows.collect();
        bar.finish_and_clear();
        rows
    }
}

/// Measures, prints the tables and writes `target/reports/bench-knet.json`, tables and plots
/// beside it. `quick`: fewer points and shorter looks.
///
/// # Errors
/// If the firmware cannot be built, a point fails, or a file cannot be written.
pub fn run(quick: bool) -> Result<()> {
    setup::ensure(&[Need::Firmware])?;
    let image = firmware::build(FirmwareOptions::default())?.image()?;
    let text = board_file()?;
    let board = Board::from_toml(&text).context("the board file")?;
    let parameters = Parameters::from_toml(&text, TIMING).context("the board file")?;
    let conditions = Conditions::default();
    let setup = conditions.of(Setup::new(board, parameters, &image));
    let profile = HostProfile::default();
    let bench = Bench {
        setup: &setup,
        profile: &profile,
        duration: if quick {
            Duration::QUICK
        } else {
            Duration::FULL
        },
        quick,
    };
    let start = Instant::now();
    let (livelock, floods) = livelock::measure(bench)?;
    let report = Report {
        calibrated: profile.calibrated.iter().map(calibrated).collect(),
        cost: cost::measure(bench)?,
        latency: latency::measure(bench)?,
        peaks: peaks::measure(bench)?,
        curves: curves::measure(bench)?,
        model: model::measure(bench)?,
        livelock,
        floods,
    };
    let mut page = Page::new(conditions);
    page.title("KNET: the paper's experiments on a simulated host with 4 CPUs");
    page.sentences(&report.calibrated);
    page.table(
        "the cost of classification on the card",
        &cost::table(&report.cost),
    );
    page.table(
        "a frame that arrives alone: from the wire to the driver",
        &latency::table(&report.latency),
    );
    page.table(
        "peak throughput, Mb/s of files",
        &peaks::table(&report.peaks),
    );
    for (case, table) in curves::tables(&report.curves) {
        page.table(&format!("{case}: Mb/s over connections"), &table);
    }
    page.table(
        "without locks, misses and latencies, against the model",
        &model::table(&report.model),
    );
    page.table(
        "datagrams beyond the loss-free rate, PAUSE off",
        &livelock::table(&report.livelock),
    );
    page.table(
        "one sender at 300 % of its share, the others at 90 %",
        &livelock::flood_table(&report.floods),
    );
    page.write("bench-knet", std::slice::from_ref(&report))?;
    curves::plot(&paths::reports(), &report.curves)?;
    println!(
        "plots: bench-knet-*.svg and .png beside it; {} s",
        start.elapsed().as_secs()
    );
    Ok(())
}

fn calibrated(figure: &tigon2_sim::hosts::profile::Calibrated) -> String {
    format!("{} sets {}", figure.figure, figure.sets)
}

/// A figure with so many digits after the point as `unit` has zeros.
fn rounded(value: f64, unit: f64) -> f64 {
    (value * unit).round() / unit
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

fn signed(share: f64) -> String {
    format!("{:+.1} %", 100.0 * share)
}
