//! What is measured, and the measuring.

use super::point::{CONSTANT, Point, Subject};
use anyhow::{Context, Result};
use rayon::prelude::*;
use testbed::conditions::Conditions;
use testbed::interrupt;
use tigon2_model::Board;
use tigon2_sim::timing::Parameters;
use tigon2_sim::workload::arrivals::{IMIX, Mix, Pattern};
use tigon2_sim::workload::bound::{self, Demand};
use tigon2_sim::workload::experiment::{self, Duration, Experiment, Measured, Traffic};
use tigon2_sim::workload::testbench::Setup;

/// The paper's datagram sizes, in bytes.
pub const SIZES: [usize; 10] = [18, 100, 200, 400, 600, 800, 1000, 1200, 1400, 1472];
/// Those of a quick look.
pub const QUICK_SIZES: [usize; 4] = [18, 400, 800, 1472];

/// Frames of a burst.
const BURST: u32 = 32;
/// Nanoseconds of a look at the engines' bound.
const BOUND_NS: u64 = 10_000_000;

/// Return BDs of a transfer when the firmware has as much to do as it can.
const RETURN_BDS: u32 = 8;

/// One thing to measure.
#[derive(Clone, Debug)]
pub struct Task {
    /// Which way.
    pub experiment: Experiment,
    /// The traffic's name in the report.
    pub name: String,
    /// The traffic.
    pub traffic: Traffic,
    /// BDs of a sent frame: 2 with the headers in a buffer of their own, as the paper's
    /// driver sends, or 1.
    pub fragments: u32,
}

impl Task {
    fn paper(experiment: Experiment, datagram: usize) -> Task {
        Task {
            experiment,
            name: CONSTANT.to_owned(),
            traffic: Traffic::of(datagram),
            fragments: 2,
        }
    }
}

/// The paper's experiments at every size.
pub fn paper(sizes: &[usize]) -> Vec<Task> {
    Experiment::ALL
        .into_iter()
        .flat_map(|experiment| sizes.iter().map(move |size| Task::paper(experiment, *size)))
        .collect()
}

/// The paper's experiments with one BD for a sent frame, where frames are sent.
pub fn one_bd(sizes: &[usize]) -> Vec<Task> {
    let sends = |task: &Task| task.experiment != Experiment::Receive;
    let tasks = paper(sizes).into_iter().filter(sends);
    tasks
        .map(|task| Task {
            fragments: 1,
            ..task
        })
        .collect()
}

/// What the paper has not: a mix of sizes, bursts, Poisson arrivals.
pub fn beyond(sizes: &[usize]) -> Vec<Task> {
    let imix = [
        Experiment::Send,
        Experiment::Receive,
        Experiment::Bidirectional,
    ];
    let mut tasks: Vec<Task> = imix
        .into_iter()
        .map(|experiment| Task {
            experiment,
            name: "IMIX".to_owned(),
            traffic: Traffic {
                mix: Mix::new(&IMIX),
                pattern: Pattern::Constant,
            },
            fragments: 2,
        })
        .collect();
    for (name, pattern) in [
        (format!("bursts of {BURST}"), Pattern::Bursts(BURST)),
        ("Poisson".to_owned(), Pattern::Poisson),
    ] {
        tasks.extend(sizes.iter().map(|size| Task {
            experiment: Experiment::Receive,
            name: name.clone(),
            traffic: Traffic {
                mix: Mix::only(*size),
                pattern,
            },
            fragments: 2,
        }));
    }
    tasks
}

/// What to measure, and on what.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    /// The firmware in the drivers' load format.
    pub image: &'a [u8],
    /// What the points are of.
    pub subject: Subject,
    /// The board file's text.
    pub board: &'a str,
    /// What to measure.
    pub tasks: Vec<Task>,
    /// How long to look at each point.
    pub duration: Duration,
    /// DMA channels and host.
    pub conditions: Conditions,
}

impl Plan<'_> {
    /// Measures everything, in the order of the tasks.
    ///
    /// # Errors
    /// The first point that fails, named.
    pub fn measure(&self, progress: impl Fn() + Sync) -> Result<Vec<Point>> {
        let setup = self.setup()?;
        self.tasks
            .par_iter()
            .map(|task| {
                interrupt::check()?;
                let point = self.point(&setup, task).with_context(|| {
                    let size = task.traffic.datagram();
                    format!("{}, {}, {size:.0} bytes", task.experiment.name(), task.name)
                })?;
                progress();
                Ok(point)
            })
            .collect()
    }

    /// Measures everything in the order of the tasks, but no bounds.
    ///
    /// # Errors
    /// The first point that fails.
    pub fn looks(&self, progress: impl Fn() + Sync) -> Result<Vec<Measured>> {
        let setup = self.setup()?;
        self.tasks
            .par_iter()
            .map(|task| {
                interrupt::check()?;
                let measured = measure(&setup, task, self.duration)?;
                progress();
                Ok(measured)
            })
            .collect()
    }

    /// Measures nothing but the headline figure of each task: Mb/s, microseconds of a ping.
    ///
    /// # Errors
    /// The first point that fails.
    pub fn figures(&self) -> Result<Vec<f64>> {
        let setup = self.setup()?;
        self.tasks
            .iter()
            .map(|task| {
                interrupt::check()?;
                let setup = Setup {
                    fragments: task.fragments,
                    ..setup.clone()
                };
                let measured = measure(&setup, task, self.duration)?;
                Ok(measured.latency_us.unwrap_or_else(|| measured.mbps()))
            })
            .collect()
    }

    /// The board, its timing profile and the firmware.
    fn setup(&self) -> Result<Setup<'_>> {
        let board = Board::from_toml(self.board)?;
        let parameters = Parameters::from_toml(self.board, &self.subject.profile)?;
        let setup = Setup::new(board, parameters, self.image);
        Ok(self.conditions.of(setup))
    }

    fn point(&self, setup: &Setup<'_>, task: &Task) -> Result<Point> {
        let setup = &Setup {
            fragments: task.fragments,
            ..setup.clone()
        };
        let measured = measure(setup, task, self.duration)?;
        let unlimited = Setup {
            unlimited: true,
            ..setup.clone()
        };
        let bound = measure(&unlimited, task, self.duration)?;
        let engines = match task.experiment {
            Experiment::Bidirectional if task.name == CONSTANT => {
                Some(engines(setup, task.traffic.mix.largest())?)
            }
            _ => None,
        };
        Ok(Point::new(&self.subject, task, &measured, &bound, engines))
    }
}

fn measure(setup: &Setup<'_>, task: &Task, duration: Duration) -> Result<Measured> {
    let measured = match task.experiment {
        Experiment::Ping => {
            let datagram = task.traffic.mix.largest();
            experiment::run(setup, Experiment::Ping, datagram, duration)?
        }
        experiment => experiment::carry(setup, experiment, &task.traffic, duration)?,
    };
    Ok(measured)
}

/// What the engines allow both ways, in Mb/s.
fn engines(setup: &Setup<'_>, datagram: usize) -> Result<f64> {
    let demand = Demand {
        datagram,
        fragments: setup.fragments,
        return_bds: RETURN_BDS,
        one_at_a_time: setup.one_dma,
    };
    let (board, parameters) = (setup.board.clone(), setup.parameters.clone());
    let bound = bound::run(board, parameters, demand, BOUND_NS, setup.seed)?;
    Ok(bound.mbps(datagram))
}
