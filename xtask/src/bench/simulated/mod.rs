//! `cargo xtask bench --engine sim`: the paper's microbenchmarks in simulated time.
//!
//! Every point is a simulation of its own, so points run in parallel; the result is the
//! same on every machine and in every run.

pub mod cpus;
pub mod golden;
pub mod papers;
mod part;
mod placements;
pub mod plan;
mod plot;
pub mod point;
mod remarks;
pub mod sensitivity;
mod tables;

use self::plan::{Plan, QUICK_SIZES, SIZES, beyond, one_bd, paper};
use self::point::{Point, Subject};
use crate::firmware::{self, FirmwareOptions, Variant};
use crate::paths;
use crate::qemu_run::report::write_json;
use crate::setup::{self, Need};
use anyhow::{Context, Result};
use clap::ValueEnum;
use indicatif::ProgressBar;
use std::path::Path;
use std::time::Instant;
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

/// The firmware that is asked for, or all variants of this project's.
fn candidates(arguments: &super::Arguments) -> Result<Vec<Candidate>> {
    if let Some(path) = &arguments.firmware {
        let name = path.file_name().unwrap_or(path.as_os_str());
        return Ok(vec![Candidate {
            name: name.to_string_lossy().into_owned(),
            placement: "its own",
            image: read(path)?,
        }]);
    }
    setup::ensure(&[Need::Firmware])?;
    let variants = Variant::value_variants().iter();
    let placement = FirmwareOptions::default().placement;
    variants
        .map(|variant| {
            let options = FirmwareOptions {
                variant: *variant,
                ..FirmwareOptions::default()
            };
            Ok(Candidate {
                name: variant.name().to_owned(),
                placement: placement.name(),
                image: read(&firmware::build(options)?.tg2)?,
            })
        })
        .collect()
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// The text of this project's board file.
///
/// # Errors
/// If it cannot be read.
pub fn board_file() -> Result<String> {
    let board = paths::root().join("boards/tigon2/tigon2.toml");
    std::fs::read_to_string(&board).with_context(|| format!("cannot read {}", board.display()))
}

/// `cargo xtask bench`, in simulated time.
///
/// # Errors
/// If the firmware cannot be built or read, or a point fails.
pub fn run(arguments: &super::Arguments) -> Result<()> {
    if arguments.beyond {
        return cpus::run();
    }
    let board = board_file()?;
    if arguments.placements {
        return placements::run(&board);
    }
    let candidates = candidates(arguments)?;
    let images = candidates.iter();
    let images = images.map(|it| (it.name.as_str(), &it.image[..]));
    if arguments.golden {
        return golden::write(&board, images);
    }
    if arguments.sensitivity {
        return sensitivity::run(&board, images);
    }
    let profiles = if arguments.profile == ALL_PROFILES {
        Parameters::profiles(&board)?
    } else {
        vec![arguments.profile.clone()]
    };
    let part = part::tasks(arguments);
    let is_part = part.is_some();
    let (tasks, duration) = if let Some(part) = part {
        (part, Duration::QUICK)
    } else if arguments.quick {
        let tasks = [
            paper(&QUICK_SIZES),
            one_bd(&QUICK_SIZES),
            beyond(&QUICK_BEYOND_SIZES),
        ]
        .concat();
        (tasks, Duration::QUICK)
    } else {
        let tasks = [paper(&SIZES), one_bd(&SIZES), beyond(&BEYOND_SIZES)].concat();
        (tasks, Duration::FULL)
    };
    let start = Instant::now();
    let bar = ProgressBar::new((tasks.len() * profiles.len() * candidates.len()) as u64);
    let mut points = Vec::new();
    for candidate in &candidates {
        for profile in &profiles {
            let plan = Plan {
                image: &candidate.image,
                subject: Subject {
                    firmware: candidate.name.clone(),
                    placement: candidate.placement.to_owned(),
                    profile: profile.clone(),
                },
                board: &board,
                tasks: tasks.clone(),
                duration,
            };
            points.extend(plan.measure(|| bar.inc(1))?);
        }
    }
    bar.finish_and_clear();
    if is_part {
        part::report(&points)?;
    } else {
        report(&points)?;
    }
    println!(
        "bench: {} points in {} s",
        points.len(),
        start.elapsed().as_secs()
    );
    Ok(())
}

/// Prints the tables and writes `bench.json` and the plots to `target/reports`.
///
/// # Errors
/// If a file cannot be written.
pub fn report(points: &[Point]) -> Result<()> {
    for group in points.chunk_by(Point::same_subject) {
        let first = &group[0];
        println!(
            "\n{}, placement {}, timing profile {}",
            first.firmware, first.placement, first.profile
        );
        for experiment in Experiment::ALL {
            println!("\n{}", experiment.name());
            println!("{}", tables::points(experiment, group));
        }
        println!("\ncycles of a frame, both CPUs");
        println!("{}", tables::causes(group));
        for (bds, beside) in [(2, "; beside Figure 5 of the paper"), (1, "")] {
            println!("\nprofile, bidirectional, 64-byte frames of {bds} BDs{beside}");
            println!("{}", tables::profile(group, bds));
        }
        for sentence in remarks::sentences(group) {
            println!("{sentence}");
        }
    }
    if points.iter().any(|point| !point.same_subject(&points[0])) {
        println!("\nhow it holds");
        println!("{}", tables::subjects(points));
    }
    let path = write_json("bench", &points)?;
    let folder = path.parent().unwrap_or(Path::new("."));
    for experiment in Experiment::ALL {
        plot::write(folder, experiment, points)?;
    }
    println!("report: {}, plots beside it", path.display());
    Ok(())
}
