//! Our figures beside the paper's comparisons (section 5.2, figures 5 to 8).

use super::web::{Duration, Measured, Point, measure};
use crate::hosts::policy::PolicyKind;
use crate::hosts::profile::HostProfile;
use crate::hosts::web::SendCall;
use crate::workload::WorkloadError;
use crate::workload::testbench::Setup;
use rayon::prelude::*;

/// Numbers of connections for curves: the paper's go from 4 to 80.
pub const CONNECTIONS: [usize; 9] = [4, 8, 12, 16, 24, 32, 48, 64, 80];

/// Two points that the paper compares, by their peak throughput.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// What is compared.
    pub name: &'static str,
    /// The point.
    pub point: Point,
    /// What it is compared with.
    pub with: Point,
    /// By how much the point is above that in the paper, as a share; none where the paper
    /// says it without a figure.
    pub paper: Option<f64>,
    /// Ours should lie between these.
    pub band: (f64, f64),
    /// The profile was set by it: no prediction.
    pub calibrated: bool,
}

fn comparison(
    name: &'static str,
    point: Point,
    with: Point,
    paper: Option<f64>,
    band: (f64, f64),
) -> Comparison {
    Comparison {
        name,
        point,
        with,
        paper,
        band,
        calibrated: false,
    }
}

/// The paper's comparisons, all with 4 CPUs and 4 client machines.
pub fn comparisons() -> Vec<Comparison> {
    use PolicyKind::{Knet, KnetRr, Napi};
    let point = Point::new;
    let jumbo = |policy| Point {
        mtu: 9000,
        ..point(policy)
    };
    let copied = |policy| Point {
        call: SendCall::Sendmsg,
        ..point(policy)
    };
    let small = |policy| Point {
        file_bytes: 5 * 1024,
        ..point(policy)
    };
    let four = |policy| Point {
        ports: 4,
        ..point(policy)
    };
    let few = |policy| Point {
        connections: 4,
        ..point(policy)
    };
    let same = (-0.03, 0.03);
    vec![
        comparison(
            "MTU 9000, 20 KB, sendfile: KNET over NAPI",
            jumbo(Knet),
            jumbo(Napi),
            Some(0.03),
            (0.0, 0.08),
        ),
        Comparison {
            calibrated: true,
            ..comparison(
                "MTU 9000, 20 KB, sendfile: KNET-RR over KNET",
                jumbo(KnetRr),
                jumbo(Knet),
                Some(-0.20),
                (-0.26, -0.14),
            )
        },
        Comparison {
            calibrated: true,
            ..comparison(
                "MTU 1500, 20 KB, sendfile: KNET over NAPI",
                point(Knet),
                point(Napi),
                Some(0.34),
                (0.28, 0.40),
            )
        },
        comparison(
            "MTU 1500, 20 KB, sendmsg: KNET over NAPI",
            copied(Knet),
            copied(Napi),
            Some(0.17),
            (0.11, 0.23),
        ),
        comparison(
            "MTU 1500, 20 KB, NAPI: sendmsg over sendfile",
            copied(Napi),
            point(Napi),
            Some(0.0),
            same,
        ),
        comparison(
            "MTU 1500, 5 KB, sendfile: KNET over NAPI",
            small(Knet),
            small(Napi),
            Some(0.06),
            (0.02, 0.11),
        ),
        comparison(
            "MTU 1500, 20 KB, KNET: four ports over one",
            four(Knet),
            point(Knet),
            Some(0.10),
            (0.05, 0.15),
        ),
        comparison(
            "MTU 1500, 20 KB, NAPI: four ports over one",
            four(Napi),
            point(Napi),
            Some(0.0),
            same,
        ),
        comparison(
            "MTU 1500, 20 KB, 4 connections: KNET over NAPI",
            few(Knet),
            few(Napi),
            None,
            (-1.0, 0.0),
        ),
    ]
}

/// What a point has found, with one seed after another: where threads settle on the CPUs
/// depends on the first milliseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Runs(Vec<Measured>);

impl Runs {
    /// Measures a point with so many seeds, from the setup's on; at least one. Runs go side by side.
    ///
    /// # Errors
    /// What the driver reports.
    pub fn measure(
        setup: &Setup<'_>,
        profile: &HostProfile,
        point: &Point,
        duration: Duration,
        seeds: u64,
    ) -> Result<Runs, WorkloadError> {
        let seeds = setup.seed..setup.seed + seeds.max(1);
        let runs = seeds.into_par_iter().map(|seed| {
            let setup = Setup {
                seed,
                ..setup.clone()
            };
            measure(&setup, profile, point, duration)
        });
        Ok(Runs(runs.collect::<Result<_, _>>()?))
    }

    /// Each of them.
    pub fn all(&self) -> &[Measured] {
        &self.0
    }

    /// The mean of something.
    pub fn mean(&self, of: impl Fn(&Measured) -> f64) -> f64 {
        self.0.iter().map(of).sum::<f64>() / self.0.len() as f64
    }

    /// The greatest of something.
    pub fn most(&self, of: impl Fn(&Measured) -> f64) -> f64 {
        self.0.iter().map(of).fold(0.0, f64::max)
    }

    /// What the clients get, in Mb/s of files.
    pub fn mbps(&self) -> f64 {
        self.mean(Measured::mbps)
    }
}

/// A comparison and what both points have found.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// The comparison.
    pub comparison: Comparison,
    /// Of its point.
    pub found: Runs,
    /// Of what it is compared with.
    pub with: Runs,
}

impl Compared {
    /// By how much the point is above the other, as a share.
    pub fn change(&self) -> f64 {
        self.found.mbps() / self.with.mbps() - 1.0
    }

    /// Whether that lies within the band.
    pub fn is_within(&self) -> bool {
        let (low, high) = self.comparison.band;
        (low..=high).contains(&self.change())
    }
}

/// How many seeds a point takes where others take `seeds`: with several ports it matters most
/// on which CPU each thread settles.
pub fn point_seeds(point: &Point, seeds: u64) -> u64 {
    if point.ports > 1 { 3 * seeds } else { seeds }
}

/// Measures all comparisons, each point with so many seeds; one that occurs in several is
/// measured once.
///
/// # Errors
/// What the driver reports.
pub fn compare(
    setup: &Setup<'_>,
    profile: &HostProfile,
    duration: Duration,
    seeds: u64,
) -> Result<Vec<Compared>, WorkloadError> {
    let mut known: Vec<(Point, Runs)> = Vec::new();
    let mut look = |point: &Point| -> Result<Runs, WorkloadError> {
        if let Some((_, found)) = known.iter().find(|(other, _)| other == point) {
            return Ok(found.clone());
        }
        let found = Runs::measure(setup, profile, point, duration, point_seeds(point, seeds))?;
        known.push((point.clone(), found.clone()));
        Ok(found)
    };
    let comparisons = comparisons().into_iter();
    comparisons
        .map(|comparison| {
            Ok(Compared {
                found: look(&comparison.point)?,
                with: look(&comparison.with)?,
                comparison,
            })
        })
        .collect()
}
