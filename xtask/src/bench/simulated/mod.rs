//! `cargo xtask bench --engine sim`: the paper's microbenchmarks in simulated time.
//!
//! Every point is a simulation of its own, so points run in parallel; the result is the
//! same on every machine and in every run.

pub mod papers;
mod plot;
pub mod point;
mod tables;

use self::point::{Point, Subject};
use crate::firmware::{self, FirmwareOptions};
use crate::paths;
use crate::qemu_run::report::write_json;
use crate::setup::{self, Need};
use anyhow::{Context, Result};
use host_driver::nic::Coalescing;
use indicatif::ProgressBar;
use rayon::prelude::*;
use std::path::Path;
use std::time::Instant;
use tigon2_model::Board;
use tigon2_sim::timing::Parameters;
use tigon2_sim::workload::bound::{self, Demand};
use tigon2_sim::workload::experiment::{self, Duration, Experiment};
use tigon2_sim::workload::rig::Setup;

/// The paper's datagram sizes, in bytes.
pub const SIZES: [usize; 10] = [18, 100, 200, 400, 600, 800, 1000, 1200, 1400, 1472];
/// Those of a quick look.
pub const QUICK_SIZES: [usize; 4] = [18, 400, 800, 1472];

/// The coalescing of the BSD driver of the time, as in the calibration of the model.
pub const COALESCING: Coalescing = Coalescing {
    receive_ticks: 170,
    transmit_ticks: 2000,
    statistics_ticks: 1_000_000,
    max_transmit_bds: 32,
    max_receive_bds: 64,
};
/// BDs of a sent frame: its headers and its payload, as that driver.
pub const FRAGMENTS: u32 = 2;
/// Nanoseconds of a look at the engines' bound.
const BOUND_NS: u64 = 10_000_000;

/// Seed of the PCI latencies' variation.
pub const SEED: u64 = 1;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    /// The firmware in the drivers' load format.
    pub image: &'a [u8],
    /// Its name in the report.
    pub firmware: String,
    /// Where its code and data lie.
    pub placement: String,
    /// The board file's text.
    pub board: String,
    /// The timing profile.
    pub profile: String,
    /// Datagram sizes.
    pub sizes: Vec<usize>,
    /// How long to look at each point.
    pub duration: Duration,
    /// Seed of what varies.
    pub seed: u64,
}

impl Plan<'_> {
    /// Measures every experiment at every size.
    ///
    /// # Errors
    /// The first point that fails, named.
    pub fn measure(&self, progress: impl Fn(&Point) + Sync) -> Result<Vec<Point>> {
        let board = Board::from_toml(&self.board)?;
        let parameters = Parameters::from_toml(&self.board, &self.profile)?;
        let subject = Subject {
            firmware: self.firmware.clone(),
            placement: self.placement.clone(),
            profile: self.profile.clone(),
        };
        let tasks: Vec<(Experiment, usize)> = Experiment::ALL
            .into_iter()
            .flat_map(|experiment| self.sizes.iter().map(move |size| (experiment, *size)))
            .collect();
        tasks
            .par_iter()
            .map(|(experiment, size)| {
                let setup = Setup {
                    board: board.clone(),
                    parameters: parameters.clone(),
                    firmware: self.image,
                    seed: self.seed,
                    fragments: FRAGMENTS,
                    coalescing: COALESCING,
                };
                let named = || format!("{}, {size} bytes", experiment.name());
                let measured = experiment::run(&setup, *experiment, *size, self.duration)
                    .with_context(named)?;
                let bound = match experiment {
                    Experiment::Bidirectional => Some(self.bound(&board, &parameters, *size)?),
                    _ => None,
                };
                let point = Point::new(&subject, &measured, bound);
                progress(&point);
                Ok(point)
            })
            .collect()
    }

    /// What the engines allow both ways, in Mb/s.
    fn bound(&self, board: &Board, parameters: &Parameters, datagram: usize) -> Result<f64> {
        let demand = Demand {
            datagram,
            fragments: FRAGMENTS,
            one_at_a_time: false,
        };
        let (board, parameters) = (board.clone(), parameters.clone());
        let bound = bound::run(board, parameters, demand, BOUND_NS, self.seed)?;
        Ok(bound.mbps(datagram))
    }
}

/// `cargo xtask bench`, in simulated time.
///
/// # Errors
/// If the firmware cannot be built or read, or a point fails.
pub fn run(arguments: &super::Arguments) -> Result<()> {
    let (firmware, path) = match &arguments.firmware {
        Some(path) => (path.display().to_string(), path.clone()),
        None => {
            setup::ensure(&[Need::Firmware])?;
            let built = firmware::build(FirmwareOptions::default())?;
            ("uniprocessor".to_owned(), built.tg2)
        }
    };
    let image = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let board = paths::root().join("boards/tigon2/tigon2.toml");
    let board = std::fs::read_to_string(&board)
        .with_context(|| format!("cannot read {}", board.display()))?;
    let plan = Plan {
        image: &image,
        firmware,
        placement: "scratch".to_owned(),
        board,
        profile: arguments.profile.clone(),
        sizes: if arguments.quick {
            QUICK_SIZES.to_vec()
        } else {
            SIZES.to_vec()
        },
        duration: if arguments.quick {
            Duration::QUICK
        } else {
            Duration::FULL
        },
        seed: SEED,
    };
    let start = Instant::now();
    let bar = ProgressBar::new((plan.sizes.len() * Experiment::ALL.len()) as u64);
    let points = plan.measure(|_| bar.inc(1))?;
    bar.finish_and_clear();
    report(&points)?;
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
    for experiment in Experiment::ALL {
        println!("\n{}", experiment.name());
        println!("{}", tables::points(experiment, points));
    }
    let largest = points
        .iter()
        .filter(|point| point.experiment == Experiment::Bidirectional)
        .max_by_key(|point| point.datagram);
    if let Some(point) = largest {
        println!("\nbidirectional, {} bytes: CPU A", point.datagram);
        println!("{}", tables::profile(&point.cpu_a));
        if point.cpu_b.instructions > 0.0 {
            println!("CPU B");
            println!("{}", tables::profile(&point.cpu_b));
        }
    }
    let path = write_json("bench", &points)?;
    let folder = path.parent().unwrap_or(Path::new("."));
    for experiment in Experiment::ALL {
        plot::write(folder, experiment, points)?;
    }
    println!("report: {}, plots beside it", path.display());
    Ok(())
}
