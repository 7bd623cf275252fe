//! Runs the firmware under thousands of random schedules.
//!
//! Every schedule is a separate simulation with a separate card, so they run in parallel. A seed
//! identifies a failure; [`replay`] runs it again and writes its timeline.

mod rows;

use crate::report::write_json;
use crate::spine::card::Kit;
use crate::spine::explored;
use crate::trace::files;
use anyhow::{Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use rayon::prelude::*;
pub use rows::Rows;
use serde::Serialize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use testbed::tools::{Given, given_or_built};
use testbed::{interrupt, paths};
use tigon2_chip::Cpu;
use tigon2_sim::explore::endpoints::{self, EndpointOutcome as Carried};
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
            is_recorded: false,
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
            (Workload::Endpoints, _) => endpoints::run(image, seed, recorder),
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

    /// The images that carry it, if the user gives none.
    fn images(self, given: Option<&PathBuf>) -> Result<(String, Images)> {
        if self == Workload::Endpoints && given.is_none() {
            let images = Images {
                usual: crate::eudp::image()?,
                recorded: Some(crate::eudp::image_with_transitions()?),
            };
            return Ok(("eudp".to_owned(), images));
        }
        if self == Workload::Extensions {
            // Its kit has the image.
            return Ok(("spine".to_owned(), Images::default()));
        }
        let Given { name, image, .. } = given_or_built(given, true)?;
        let images = Images {
            usual: image,
            recorded: None,
        };
        Ok((name, images))
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

/// What runs under the schedules.
#[derive(Debug, Default)]
struct Images {
    usual: Vec<u8>,
    /// The same whose CPU A records its transitions, too.
    recorded: Option<Vec<u8>>,
}

impl Images {
    /// The image for a seed's schedule.
    fn of(&self, seed: u64) -> &[u8] {
        match &self.recorded {
            Some(recorded) if endpoints::is_recorded(seed) => recorded,
            _ => &self.usual,
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
    /// Transitions of the endpoints' machines.
    transitions: u64,
    /// Schedules of which those of CPU A are known, too.
    recorded: u64,
    /// In how many schedules each row of the machines' tables was taken.
    rows: Option<Rows>,
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
    let (name, images) = workload.images(firmware)?;
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
            let result = workload.run(kit.as_ref(), images.of(seed), seed, None).0;
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
        recorded: good().filter(|it| it.is_recorded).count() as u64,
        rows: (workload == Workload::Endpoints).then(|| good().map(|it| it.rows).collect()),
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
        println!(
            "in {} schedules CPU A recorded its own, too",
            report.recorded
        );
        if let Some(rows) = &report.rows {
            rows.print();
        }
    }
    let (report_name, option) = workload.names();
    println!("report: {}", write_json(report_name, &report)?.display());
    match report.failures.first() {
        None => match &report.rows {
            Some(rows) => rows.check(report.recorded),
            None => Ok(()),
        },
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
    let (name, images) = workload.images(firmware)?;
    let disturbance = Disturbance::new(seed);
    println!("explore: seed {seed}, firmware {name}");
    for cpu in Cpu::ALL {
        println!("  CPU {cpu:?}: {}", disturbance.pace(cpu));
    }
    let [read, write, transmit] = disturbance.engines();
    println!("  DMA up to {read} cycles (read), {write} (write), MAC up to {transmit}");
    let kit = workload.kit()?;
    let (result, timeline) =
        workload.run(kit.as_ref(), images.of(seed), seed, Some(files::recorder()));
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
