//! Compares peak throughputs with each other, as the paper's figures 5 to 8 do.

use super::{Bench, percent, rounded, signed};
use crate::simulated::tables::framed;
use anyhow::Result;
use comfy_table::Table;
use serde::Serialize;
use tigon2_sim::hosts::account::Activity;
use tigon2_sim::workload::knet::figures::{Comparison, Runs, comparisons, point_seeds};
use tigon2_sim::workload::knet::web::Point;

/// Seeds of each point, but those with several ports.
const SEEDS: u64 = 4;

/// A comparison.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// What is compared.
    pub name: &'static str,
    /// Mb/s of files of the first and of the second.
    pub mbps: [f64; 2],
    /// By how much the first is above the second, as a share.
    pub change: f64,
    /// The same in the paper.
    pub paper: Option<f64>,
    /// Where ours should lie.
    pub band: (f64, f64),
    /// Whether it does.
    pub within: bool,
    /// Whether the host's profile was set by the paper's figure.
    pub calibrated: bool,
    /// The application's time over the network's, of the first.
    pub ta_te: f64,
    /// Idle share of the host's CPUs, of each.
    pub idle: [f64; 2],
    /// Load of the card's busier CPU, at most, of each.
    pub card: [f64; 2],
    /// Load of the wire from the card, at most, of each.
    pub wire: [f64; 2],
}

fn row(comparison: &Comparison, of: &Runs, with: &Runs) -> Row {
    let change = of.mbps() / with.mbps() - 1.0;
    let (low, high) = comparison.band;
    let both = |figure: &dyn Fn(&Runs) -> f64| [of, with].map(|runs| rounded(figure(runs), 1e3));
    Row {
        name: comparison.name,
        mbps: [of, with].map(|runs| rounded(runs.mbps(), 10.0)),
        change: rounded(change, 1e4),
        paper: comparison.paper,
        band: comparison.band,
        within: (low..=high).contains(&change),
        calibrated: comparison.calibrated,
        ta_te: rounded(of.mean(|run| run.window.ratio()), 1e3),
        idle: both(&|runs| runs.mean(|run| run.window.share(Activity::Idle))),
        card: both(&|runs| runs.most(|run| run.window.busiest())),
        wire: both(&|runs| runs.most(|run| run.window.wire)),
    }
}

/// Measures all comparisons; a point of several is measured once.
pub(super) fn measure(bench: Bench<'_>) -> Result<Vec<Row>> {
    let comparisons = comparisons();
    let mut points: Vec<Point> = Vec::new();
    for point in comparisons.iter().flat_map(|it| [&it.point, &it.with]) {
        if !points.contains(point) {
            points.push(point.clone());
        }
    }
    let runs = bench.each("peaks", &points, |point| {
        let Bench {
            setup,
            profile,
            duration,
            ..
        } = bench;
        let seeds = point_seeds(point, SEEDS);
        Ok(Runs::measure(setup, profile, point, duration, seeds)?)
    })?;
    let of = |point: &Point| points.iter().position(|it| it == point).map(|at| &runs[at]);
    let rows = comparisons
        .iter()
        .filter_map(|it| Some(row(it, of(&it.point)?, of(&it.with)?)));
    Ok(rows.collect())
}

/// The comparisons for people.
pub(super) fn table(rows: &[Row]) -> Table {
    let mut table = framed(&[
        "comparison",
        "Mb/s",
        "against",
        "ours",
        "paper",
        "band",
        "",
        "Ta/Te",
        "idle",
        "card",
        "wire",
    ]);
    for row in rows {
        let paper = row.paper.map_or_else(|| "-".to_owned(), signed_whole);
        let (low, high) = row.band;
        let verdict = match (row.within, row.calibrated) {
            (false, _) => "outside",
            (true, true) => "calibrated",
            (true, false) => "within",
        };
        let pair = |values: [f64; 2]| values.map(percent).join(", ");
        table.add_row([
            row.name.to_owned(),
            format!("{:.1}", row.mbps[0]),
            format!("{:.1}", row.mbps[1]),
            signed(row.change),
            paper,
            format!("{} to {}", signed_whole(low), signed_whole(high)),
            verdict.to_owned(),
            format!("{:.2}", row.ta_te),
            pair(row.idle),
            pair(row.card),
            pair(row.wire),
        ]);
    }
    table
}

fn signed_whole(share: f64) -> String {
    format!("{:+.0} %", 100.0 * share)
}
