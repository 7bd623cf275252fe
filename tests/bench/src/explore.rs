//! Runs the firmware under thousands of random schedules.
//!
//! Every schedule is a separate simulation with a separate card, so they run in parallel. A seed
//! identifies a failure; [`replay`] runs it again and writes its timeline.

use crate::report::write_json;
use crate::trace::files;
use anyhow::{Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use rayon::prelude::*;
use serde::Serialize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use testbed::tools::{Given, given_or_built};
use testbed::{interrupt, paths};
use tigon2_chip::Cpu;
use tigon2_sim::explore::{self, Disturbance, ExploreError, Outcome};
use tigon2_sim::timeline::{Recorder, Timeline};

/// Failures that are kept; with so many the search ends.
const ENOUGH: u64 = 10;

/// What the card carries under each schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Frames both ways in classic mode.
    Classic,
    /// Frames into 1 to 8 receive queues, while others leave.
    Queues,
}

impl Workload {
    fn run(
        self,
        image: &[u8],
        seed: u64,
        recorder: Option<Recorder>,
    ) -> (Result<Outcome, ExploreError>, Option<Timeline>) {
        match self {
            Workload::Classic => explore::run(image, seed, recorder),
            Workload::Queues => explore::queues::run(image, seed, recorder),
        }
    }

    /// The name of its report, and the option that selects it.
    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Workload::Classic => ("explore", ""),
            Workload::Queues => ("explore-queues", " --queues"),
        }
    }
}

/// `target/reports/explore.json`, or `explore-queues.json`.
#[derive(Debug, Serialize)]
struct Report {
    firmware: String,
    first: u64,
    schedules: u64,
    /// Frames that came out exactly once, in order and whole, of the good schedules.
    frames: u64,
    instructions_a: u64,
    instructions_b: u64,
    cycles: u64,
    failures: Vec<Failure>,
}

/// A schedule that went wrong.
#[derive(Debug, Serialize)]
struct Failure {
    seed: u64,
    error: String,
}

/// Runs `schedules` from the seed `first` on and reports, with the user's image if there is one.
///
/// # Errors
/// If the firmware cannot be built or read, or a schedule goes wrong.
pub fn search(
    firmware: Option<&PathBuf>,
    workload: Workload,
    first: u64,
    schedules: u64,
) -> Result<()> {
    let Given { name, image, .. } = given_or_built(firmware, true)?;
    println!("explore: {schedules} schedules from seed {first} on, firmware {name}");
    let start = Instant::now();
    let bar = ProgressBar::new(schedules);
    let style = "{bar:40} {pos}/{len}, {per_sec}, {eta} left {msg}";
    bar.set_style(ProgressStyle::with_template(style)?);
    let failed = AtomicU64::new(0);
    let results: Vec<(u64, Result<Outcome, String>)> = (first..first.saturating_add(schedules))
        .into_par_iter()
        .filter_map(|seed| {
            if failed.load(Ordering::Relaxed) >= ENOUGH || interrupt::check().is_err() {
                return None;
            }
            let result = workload.run(&image, seed, None).0;
            if result.is_err() {
                failed.fetch_add(1, Ordering::Relaxed);
                bar.set_message(format!("{} failed", failed.load(Ordering::Relaxed)));
            }
            bar.inc(1);
            Some((seed, result.map_err(|error| error.to_string())))
        })
        .collect();
    bar.finish_and_clear();
    interrupt::check()?;
    let good = || {
        results
            .iter()
            .filter_map(|(_, result)| result.as_ref().ok())
    };
    let sum = |of: fn(&Outcome) -> u64| good().map(of).sum::<u64>();
    let failures = results.iter().filter_map(|(seed, result)| {
        let error = result.as_ref().err()?.clone();
        Some(Failure { seed: *seed, error })
    });
    let report = Report {
        firmware: name,
        first,
        schedules: results.len() as u64,
        frames: sum(|outcome| outcome.frames),
        instructions_a: sum(|outcome| outcome.instructions[0]),
        instructions_b: sum(|outcome| outcome.instructions[1]),
        cycles: sum(|outcome| outcome.cycles),
        failures: failures.collect(),
    };
    println!(
        "{} schedules in {:.0} s: {} frames, each exactly once, in order, whole; \
         {:.0} M instructions on CPU A, {:.0} M on CPU B",
        report.schedules,
        start.elapsed().as_secs_f64(),
        report.frames,
        report.instructions_a as f64 / 1e6,
        report.instructions_b as f64 / 1e6,
    );
    for failure in &report.failures {
        println!("seed {}: {}", failure.seed, failure.error);
    }
    let (report_name, option) = workload.names();
    println!("report: {}", write_json(report_name, &report)?.display());
    match report.failures.first() {
        None => Ok(()),
        Some(failure) => bail!(
            "{} schedules failed; see one: cargo xtask explore{option} --seed {}",
            report.failures.len(),
            failure.seed
        ),
    }
}

/// Runs the schedule of one seed and writes its timeline.
///
/// # Errors
/// If the firmware cannot be built or read, or the schedule goes wrong.
pub fn replay(firmware: Option<&PathBuf>, workload: Workload, seed: u64) -> Result<()> {
    let Given { name, image, .. } = given_or_built(firmware, true)?;
    let disturbance = Disturbance::new(seed);
    println!("explore: seed {seed}, firmware {name}");
    for cpu in Cpu::ALL {
        println!("  CPU {cpu:?}: {}", disturbance.pace(cpu));
    }
    let [read, write, transmit] = disturbance.engines();
    println!("  DMA up to {read} cycles (read), {write} (write), MAC up to {transmit}");
    let (result, timeline) = workload.run(&image, seed, Some(files::recorder()));
    if let Some(timeline) = timeline {
        let folder = paths::reports().join(workload.names().0);
        std::fs::create_dir_all(&folder)?;
        let file = folder.join(format!("seed-{seed}.trace.json"));
        files::write_beside(&file, &format!("seed {seed}, {name}"), &timeline)?;
    }
    let outcome = result?;
    println!(
        "seed {seed}: {} frames, each exactly once, in order, whole, in {} cycles",
        outcome.frames, outcome.cycles
    );
    Ok(())
}
