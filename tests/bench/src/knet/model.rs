//! The paper's model of the speed-up (section 2.2) against a host that has nothing but Te and
//! Ta.

use super::{Bench, percent, rounded, signed};
use crate::simulated::tables::framed;
use anyhow::Result;
use comfy_table::Table;
use serde::Serialize;
use tigon2_sim::workload::knet::check::check;

/// CPUs, and Ta / Te.
const CPUS: [usize; 4] = [1, 2, 4, 8];
const RATIOS: [f64; 5] = [0.25, 0.5, 1.0, 2.0, 4.0];
/// Those of a quick look.
const QUICK: [(usize, f64); 3] = [(2, 0.5), (4, 0.25), (4, 2.0)];

/// A point.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    cpus: usize,
    /// Ta / Te, as measured.
    ratio: f64,
    /// Mb/s of files of one poller, and of a queue per CPU.
    mbps: [f64; 2],
    speed_up: f64,
    /// The model's.
    alpha: f64,
    /// By how much the first is above the second, as a share.
    deviation: f64,
    card: f64,
    wire: f64,
}

pub(super) fn measure(bench: Bench<'_>) -> Result<Vec<Row>> {
    let all = CPUS
        .iter()
        .flat_map(|cpus| RATIOS.map(|ratio| (*cpus, ratio)));
    let tasks = if bench.quick {
        QUICK.to_vec()
    } else {
        all.collect()
    };
    bench.each("model", &tasks, |(cpus, ratio)| {
        let found = check(bench.setup, bench.profile, *cpus, *ratio)?;
        Ok(Row {
            cpus: *cpus,
            ratio: rounded(found.ratio, 1e3),
            mbps: [&found.one, &found.all].map(|one| rounded(one.mbps(), 10.0)),
            speed_up: rounded(found.speed_up(), 1e3),
            alpha: rounded(found.alpha(), 1e3),
            deviation: rounded(found.deviation(), 1e4),
            card: rounded(found.all.window.busiest(), 1e3),
            wire: rounded(found.all.window.wire, 1e3),
        })
    })
}

pub(super) fn table(rows: &[Row]) -> Table {
    let mut table = framed(&[
        "CPUs",
        "Ta/Te",
        "napi Mb/s",
        "knet Mb/s",
        "speed-up",
        "model",
        "beside it",
        "card",
        "wire",
    ]);
    for row in rows {
        table.add_row([
            row.cpus.to_string(),
            format!("{:.2}", row.ratio),
            format!("{:.1}", row.mbps[0]),
            format!("{:.1}", row.mbps[1]),
            format!("{:.3}", row.speed_up),
            format!("{:.3}", row.alpha),
            signed(row.deviation),
            percent(row.card),
            percent(row.wire),
        ]);
    }
    table
}
