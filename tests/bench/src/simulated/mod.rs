//! `cargo xtask bench --engine sim`: the paper's microbenchmarks in simulated time.
//!
//! Every point is a simulation of its own, so points run in parallel; the result is the
//! same on every machine and in every run.

pub mod cpus;
pub mod golden;
mod page;
pub mod papers;
mod part;
mod placements;
pub mod plan;
pub mod plot;
pub mod point;
mod remarks;
pub mod sensitivity;
mod tables;

use self::page::Page;
use self::plan::{Plan, QUICK_SIZES, SIZES, Task, beyond, one_bd, paper};
use self::point::{Point, Subject};
use crate::linux::Arguments;
use anyhow::{Context, Result};
use clap::ValueEnum;
use indicatif::ProgressBar;
use std::path::Path;
use std::time::Instant;
use testbed::conditions::Conditions;
use testbed::firmware::{self, FirmwareOptions, Placement, Variant};
use testbed::paths::board_file;
use testbed::setup::{self, Need};
use testbed::{judge, paths};
use tigon2_sim::timing::Parameters;
use tigon2_sim::workload::experiment::{Duration, Experiment};

/// The sizes of what the paper has not, but for a quick look.
const BEYOND_SIZES: [usize; 2] = [18, 1472];
/// That of a quick look.
const QUICK_BEYOND_SIZES: [usize; 1] = [18];
/// The name that stands for every timing profile of the board file.
const ALL_PROFILES: &str = "all";

/// A firmware to measure.
struct Candidate {
    name: String,
    placement: &'static str,
    image: Vec<u8>,
}

impl Candidate {
    /// Builds one of this project's.
    fn build(options: FirmwareOptions) -> Result<Candidate> {
        Ok(Candidate {
            name: options.variant.name().to_owned(),
            placement: options.placement.name(),
            image: read(&firmware::build(options)?.tg2)?,
        })
    }

    /// It, under a timing profile.
    fn plan<'a>(
        &'a self,
        series: &Series,
        profile: &str,
        board: &'a str,
        conditions: Conditions,
    ) -> Plan<'a> {
        Plan {
            image: &self.image,
            subject: Subject {
                firmware: self.name.clone(),
                placement: self.placement.to_owned(),
                profile: profile.to_owned(),
            },
            board,
            tasks: series.tasks.clone(),
            duration: series.duration,
            conditions,
        }
    }
}

/// What to measure of some firmwares.
struct Series {
    /// Where code and state of this project's variants lie; the candidates' place if none.
    placement: Option<Placement>,
    tasks: Vec<Task>,
    duration: Duration,
}

impl Series {
    /// Of the candidates.
    fn usual(tasks: Vec<Task>, duration: Duration) -> Series {
        Series {
            placement: None,
            tasks,
            duration,
        }
    }
}

/// The firmware that is asked for, or all variants of this project's.
fn candidates(arguments: &Arguments) -> Result<Vec<Candidate>> {
    if let Some(path) = &arguments.firmware {
        let name = path.file_name().unwrap_or(path.as_os_str());
        return Ok(vec![Candidate {
            name: name.to_string_lossy().into_owned(),
            placement: "its own",
            image: read(path)?,
        }]);
    }
    setup::ensure(&[Need::Firmware])?;
    variants(FirmwareOptions::default())
}

/// All variants of this project's firmware, otherwise as these options have it.
fn variants(options: FirmwareOptions) -> Result<Vec<Candidate>> {
    Variant::for_chip()
        .map(|variant| Candidate::build(FirmwareOptions { variant, ..options }))
        .collect()
}

/// What is asked for. The whole bench has the other places of code and state as well, in the
/// paper's experiments.
fn series(arguments: &Arguments) -> Vec<Series> {
    if part::is_asked(arguments) {
        return vec![Series::usual(part::tasks(arguments), Duration::QUICK)];
    }
    let every = |sizes: &[usize], beyond_sizes: &[usize]| {
        [paper(sizes), one_bd(sizes), beyond(beyond_sizes)].concat()
    };
    if arguments.quick {
        let tasks = every(&QUICK_SIZES, &QUICK_BEYOND_SIZES);
        return vec![Series::usual(tasks, Duration::QUICK)];
    }
    let mut series = vec![Series::usual(every(&SIZES, &BEYOND_SIZES), Duration::FULL)];
    if arguments.firmware.is_none() && arguments.profile != ALL_PROFILES {
        let usual = FirmwareOptions::default().placement;
        let placements = Placement::value_variants().iter().copied();
        let others = placements.filter(|placement| *placement != usual);
        series.extend(others.map(|placement| Series {
            placement: Some(placement),
            tasks: paper(&SIZES),
            duration: Duration::QUICK,
        }));
    }
    series
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// The timing profiles that are asked for, each of which is there.
fn profiles(arguments: &Arguments, board: &str) -> Result<Vec<String>> {
    if arguments.profile == ALL_PROFILES {
        return Ok(Parameters::profiles(board)?);
    }
    judge::profile(board, &arguments.profile)?;
    Ok(vec![arguments.profile.clone()])
}

/// `cargo xtask bench`, in simulated time.
///
/// # Errors
/// If the firmware cannot be built or read, or a point fails.
pub fn run(arguments: &Arguments) -> Result<()> {
    let conditions = arguments.conditions();
    if arguments.beyond {
        return cpus::run(conditions);
    }
    let board = board_file()?;
    if arguments.placements {
        return placements::run(&board, conditions);
    }
    let profiles = profiles(arguments, &board)?;
    let candidates = candidates(arguments)?;
    let images = candidates.iter();
    let images = images.map(|it| (it.name.as_str(), &it.image[..]));
    if arguments.golden {
        return golden::write(&board, images);
    }
    if arguments.sensitivity {
        return sensitivity::run(&board, images, conditions);
    }
    let start = Instant::now();
    let series = series(arguments);
    let tasks = series.iter().map(|it| it.tasks.len()).sum::<usize>();
    let bar = ProgressBar::new((tasks * profiles.len() * candidates.len()) as u64);
    let mut points = Vec::new();
    for series in &series {
        let elsewhere = series.placement.map(|placement| {
            variants(FirmwareOptions {
                placement,
                quiet: true,
                ..FirmwareOptions::default()
            })
        });
        let elsewhere = elsewhere.transpose()?;
        for candidate in elsewhere.as_ref().unwrap_or(&candidates) {
            for profile in &profiles {
                let plan = candidate.plan(series, profile, &board, conditions);
                points.extend(plan.measure(|| bar.inc(1))?);
            }
        }
    }
    bar.finish_and_clear();
    if part::is_asked(arguments) {
        part::report(&points, conditions)?;
    } else {
        report(&points, conditions)?;
    }
    println!(
        "bench: {} points in {} s",
        points.len(),
        start.elapsed().as_secs()
    );
    Ok(())
}

/// Prints the tables and writes them, `bench.json` and the plots to `target/reports`.
///
/// # Errors
/// If a file cannot be written.
pub fn report(points: &[Point], conditions: Conditions) -> Result<()> {
    let mut page = Page::new(conditions);
    for group in points.chunk_by(Point::same_subject) {
        let first = &group[0];
        page.title(&format!(
            "{}, placement {}, timing profile {}",
            first.firmware, first.placement, first.profile
        ));
        for experiment in Experiment::ALL {
            page.table(experiment.name(), &tables::points(experiment, group));
        }
        page.table("cycles of a frame, both CPUs", &tables::causes(group));
        for (bds, name) in [(2, "2 BDs; beside Figure 5 of the paper"), (1, "1 BD")] {
            let what = format!("profile, bidirectional, 64-byte frames of {name}");
            page.table(&what, &tables::profile(group, bds));
        }
        page.sentences(&remarks::sentences(group));
    }
    if points.iter().any(|point| !point.same_subject(&points[0])) {
        page.table("how it holds", &tables::subjects(points));
    }
    page.write("bench", points)?;
    let folder = paths::reports();
    let usual = points
        .iter()
        .take_while(|point| point.placement == points[0].placement);
    let (usual, elsewhere) = points.split_at(usual.count());
    for experiment in Experiment::ALL {
        plot::write(&folder, "bench", experiment, usual)?;
        if !elsewhere.is_empty() {
            plot::write(&folder, "bench-placements", experiment, points)?;
        }
    }
    println!("plots: bench-*.svg and .png beside it");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        bench: Arguments,
    }

    fn asked(line: &[&str]) -> Vec<Series> {
        series(&Line::parse_from([&["bench"], line].concat()).bench)
    }

    /// The whole bench has each experiment of the paper at each size with code and state at
    /// each place; a quick look has one place, another's image has its own.
    #[test]
    fn the_whole_bench_has_every_placement() {
        let whole = asked(&[]);
        assert_eq!(whole.len(), Placement::value_variants().len());
        for series in &whole {
            for experiment in Experiment::ALL {
                let sizes = |task: &&Task| task.experiment == experiment && task.fragments == 2;
                assert!(series.tasks.iter().filter(sizes).count() >= SIZES.len());
            }
        }
        for line in [
            &["--quick"][..],
            &["--firmware", "x"],
            &["--datagram", "18"],
            &["--profile", "all"],
        ] {
            assert_eq!(asked(line).len(), 1, "{line:?}");
        }
    }
}
