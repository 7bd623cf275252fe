//! Runs the firmware under thousands of random schedules.
//!
//! Every schedule is a separate simulation with a separate card, so they run in parallel. A seed
//! identifies a failure; [`replay`] runs it again and writes its timeline.

use crate::report::write_json;
use crate::spine::card::Kit;
use crate::spine::explored;
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
use tigon2_sim::explore::endpoints::EndpointOutcome as Carried;
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
    /// Datagrams of endpoints, both ways.
    Endpoints,
    /// Frames both ways, while extensions come, run, are cut off and go.
    Extensions,
}

impl Workload {
    fn run(
        self,
        kit: Option<&Kit>,
        image: &[u8],
        seed: u64,
        recorder: Option<Recorder>,
    ) -> (Result<Carried, ExploreError>, Option<Timeline>) {
        let carried = |outcome| Carried {
            outcome,
            rows: [0; 4],
            steps: 0,
            left: None,
        };
        match (self, kit) {
            (Workload::Extensions, Some(kit)) => match explored::run(kit, seed, recorder) {
                Ok((result, timeline)) => (result.map(|(outcome, _)| carried(outcome)), timeline),
                Err(error) => (Err(ExploreError::Aside(error.to_string())), None),
            },
            (Workload::Queues, _) => {
                let (result, timeline) = explore::queues::run(image, seed, recorder);
                (result.map(carried), timeline)
            }
            (Workload::Endpoints, _) => explore::endpoints::run(image, seed, recorder),
            (Workload::Classic | Workload::Extensions, _) => {
                let (result, timeline) = explore::run(image, seed, recorder);
                (result.map(carried), timeline)
            }
        }
    }

    /// What extensions need.
    fn kit(self) -> Result<Option<Kit>> {
        match self {
            Workload::Extensions => Ok(Some(Kit::build()?)),
            Workload::Classic | Workload::Queues | Workload::Endpoints => Ok(None),
        }
    }

    /// The image that carries it, if the user gives none.
    fn image(self, given: Option<&PathBuf>) -> Result<(String, Vec<u8>)> {
        if self == Workload::Endpoints && given.is_none() {
            return Ok(("eudp".to_owned(), crate::eudp::image()?));
        }
        if self == Workload::Extensions {
            // Its kit has the image.
            return Ok(("spine".to_owned(), Vec::new()));
        }
        let Given { name, image, .. } = given_or_built(given, true)?;
        Ok((name, image))
    }

    /// The name of its report, and the option that selects it.
    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Workload::Classic => ("explore", ""),
            Workload::Queues => ("explore-queues", " --queues"),
            Workload::Endpoints => ("explore-eudp", " --eudp"),
            Workload::Extensions => ("explore-extensions", " --extensions"),
        }
    }
}

/// `target/reports/explore.json`, `explore-queues.json` or `explore-extensions.json`.
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
    /// Transitions of the endpoints' machines, and rows of SDMA and SEND that none of them took.
    transitions: u64,
    untaken: Vec<String>,
    /// Nanoseconds that a frame had left on the wire when it was cut off, at the least.
    least_left: Option<u64>,
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
    let (name, image) = workload.image(firmware)?;
    let kit = workload.kit()?;
    println!("explore: {schedules} schedules from seed {first} on, firmware {name}");
    let start = Instant::now();
    let bar = ProgressBar::new(schedules);
    let style = "{bar:40} {pos}/{len}, {per_sec}, {eta} left {msg}";
    bar.set_style(ProgressStyle::with_template(style)?);
    let failed = AtomicU64::new(0);
    let results: Vec<(u64, Result<Carried, String>)> = (first..first.saturating_add(schedules))
        .into_par_iter()
        .filter_map(|seed| {
            if failed.load(Ordering::Relaxed) >= ENOUGH || interrupt::check().is_err() {
                return None;
            }
            let result = workload.run(kit.as_ref(), &image, seed, None).0;
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
    let sum = |of: fn(&Outcome) -> u64| good().map(|it| of(&it.outcome)).sum::<u64>();
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
        transitions: good().map(|it| it.steps).sum(),
        untaken: if workload == Workload::Endpoints {
            untaken(good().fold([0; 4], |all, it| [0, 1, 2, 3].map(|n| all[n] | it.rows[n])))
        } else {
            Vec::new()
        },
        least_left: good().filter_map(|it| it.left).min(),
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
    if workload == Workload::Endpoints {
        println!(
            "{} transitions of the firmware, all of them the tables'",
            report.transitions
        );
        if let Some(left) = report.least_left {
            println!(
                "a frame that was cut off had {:.1} us left on the wire, at the least",
                left as f64 / 1000.0
            );
        }
        for row in &report.untaken {
            println!("not taken: {row}");
        }
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

/// Rows of the sending machines that are not among `taken`, by what they are for.
pub fn untaken(taken: [u64; 4]) -> Vec<String> {
    let mut rows = Vec::new();
    for (table, taken) in frame_pipeline::TABLES[..2].iter().zip(taken) {
        for (number, row) in table.rows.iter().enumerate() {
            if taken >> number & 1 == 0 {
                let state = table.states[usize::from(row.from)].name;
                let event = table.events[usize::from(row.event)].name;
                rows.push(format!("{} {state} {event} {number}", table.name));
            }
        }
    }
    rows
}

/// Runs the schedule of one seed and writes its timeline.
///
/// # Errors
/// If the firmware cannot be built or read, or the schedule goes wrong.
pub fn replay(firmware: Option<&PathBuf>, workload: Workload, seed: u64) -> Result<()> {
    let (name, image) = workload.image(firmware)?;
    let disturbance = Disturbance::new(seed);
    println!("explore: seed {seed}, firmware {name}");
    for cpu in Cpu::ALL {
        println!("  CPU {cpu:?}: {}", disturbance.pace(cpu));
    }
    let [read, write, transmit] = disturbance.engines();
    println!("  DMA up to {read} cycles (read), {write} (write), MAC up to {transmit}");
    let kit = workload.kit()?;
    let (result, timeline) = workload.run(kit.as_ref(), &image, seed, Some(files::recorder()));
    if let Some(timeline) = timeline {
        let folder = paths::reports().join(workload.names().0);
        std::fs::create_dir_all(&folder)?;
        let file = folder.join(format!("seed-{seed}.trace.json"));
        files::write_beside(&file, &format!("seed {seed}, {name}"), &timeline)?;
    }
    let outcome = result?.outcome;
    println!(
        "seed {seed}: {} frames, each exactly once, in order, whole, in {} cycles",
        outcome.frames, outcome.cycles
    );
    Ok(())
}
