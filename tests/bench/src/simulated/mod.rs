//! The paper's microbenchmarks in simulated time.
//!
//! Every point is a separate simulation, so points run in parallel; the result is the same on
//! every machine and in every run.

pub mod cpus;
pub mod golden;
pub(crate) mod page;
pub mod papers;
mod part;
mod placements;
pub mod plan;
pub mod plot;
pub mod point;
mod remarks;
pub mod sensitivity;
pub(crate) mod tables;
pub mod task;

pub use self::part::Part;

use self::page::Page;
use self::plan::Plan;
use self::point::{Point, Subject};
use self::task::{QUICK_SIZES, SIZES, Task, beyond, one_bd, paper};
use anyhow::{Context, Result};
use clap::ValueEnum;
use indicatif::ProgressBar;
use std::path::{Path, PathBuf};
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

/// What to measure, of which firmware and under which conditions.
#[derive(Clone, Debug)]
pub struct Request {
    /// What.
    pub what: What,
    /// A firmware image (drivers' load format) that replaces the project's.
    pub firmware: Option<PathBuf>,
    /// The timing profile of the board file, or `all` of them.
    pub profile: String,
    /// The host and the DMA channels.
    pub conditions: Conditions,
}

/// Which figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Each experiment of the paper at each size, and what the paper has not.
    Whole,
    /// Fewer sizes and shorter looks.
    Quick,
    /// One experiment or one size, with a row for each firmware.
    Part(Part),
    /// The golden tables, which are written anew.
    Golden,
    /// What a change of each timing parameter does to the headline figures.
    Sensitivity,
    /// Code and data in scratch pads and in SRAM.
    Placements,
    /// More CPUs than the chip has.
    Beyond,
}

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
fn candidates(request: &Request) -> Result<Vec<Candidate>> {
    if let Some(path) = &request.firmware {
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
fn series(request: &Request) -> Vec<Series> {
    if let What::Part(part) = request.what {
        return vec![Series::usual(part.tasks(), Duration::QUICK)];
    }
    let every = |sizes: &[usize], beyond_sizes: &[usize]| {
        [paper(sizes), one_bd(sizes), beyond(beyond_sizes)].concat()
    };
    if request.what == What::Quick {
        let tasks = every(&QUICK_SIZES, &QUICK_BEYOND_SIZES);
        return vec![Series::usual(tasks, Duration::QUICK)];
    }
    let mut series = vec![Series::usual(every(&SIZES, &BEYOND_SIZES), Duration::FULL)];
    if request.firmware.is_none() && request.profile != ALL_PROFILES {
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
fn profiles(request: &Request, board: &str) -> Result<Vec<String>> {
    if request.profile == ALL_PROFILES {
        return Ok(Parameters::profiles(board)?);
    }
    judge::profile(board, &request.profile)?;
    Ok(vec![request.profile.clone()])
}

/// Measures in simulated time, prints the figures and writes them to `target/reports`.
///
/// # Errors
/// If the firmware cannot be built or read, or a point fails.
pub fn run(request: &Request) -> Result<()> {
    let conditions = request.conditions;
    if request.what == What::Beyond {
        return cpus::run(conditions);
    }
    let board = board_file()?;
    if request.what == What::Placements {
        return placements::run(&board, conditions);
    }
    let profiles = profiles(request, &board)?;
    let candidates = candidates(request)?;
    let images = candidates.iter();
    let images = images.map(|it| (it.name.as_str(), &it.image[..]));
    if request.what == What::Golden {
        return golden::write(&board, images);
    }
    if request.what == What::Sensitivity {
        return sensitivity::run(&board, images, conditions);
    }
    let start = Instant::now();
    let series = series(request);
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
    if let What::Part(_) = request.what {
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

    fn asked(what: What) -> Request {
        Request {
            what,
            firmware: None,
            profile: "default".into(),
            conditions: Conditions::default(),
        }
    }

    /// The whole bench has each experiment of the paper at each size with code and state at
    /// each place; a quick look has one place, another's image has its own.
    #[test]
    fn the_whole_bench_has_every_placement() {
        let whole = series(&asked(What::Whole));
        assert_eq!(whole.len(), Placement::value_variants().len());
        for series in &whole {
            for experiment in Experiment::ALL {
                let sizes = |task: &&Task| task.experiment == experiment && task.fragments == 2;
                assert!(series.tasks.iter().filter(sizes).count() >= SIZES.len());
            }
        }
        let part = What::Part(Part {
            experiment: None,
            datagram: Some(18),
        });
        let whole = asked(What::Whole);
        for request in [
            asked(What::Quick),
            asked(part),
            Request {
                firmware: Some("x".into()),
                ..whole.clone()
            },
            Request {
                profile: ALL_PROFILES.into(),
                ..whole
            },
        ] {
            assert_eq!(series(&request).len(), 1, "{request:?}");
        }
    }
}
