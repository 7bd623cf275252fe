//! Runs tasks of one firmware on one board in parallel.

use super::point::{Point, Subject};
use super::task::{CONSTANT, Task};
use anyhow::{Context, Result};
use rayon::prelude::*;
use testbed::conditions::Conditions;
use testbed::interrupt;
use tigon2_model::Board;
use tigon2_sim::timing::Parameters;
use tigon2_sim::workload::bound::{self, Demand};
use tigon2_sim::workload::experiment::{self, Duration, Experiment, Measured};
use tigon2_sim::workload::testbench::Setup;

/// Nanoseconds of a measurement of the engines' bound.
const BOUND_NS: u64 = 10_000_000;

/// Return BDs of a transfer when the firmware has as much to do as it can.
const RETURN_BDS: u32 = 8;

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
    /// How long to measure each point.
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
