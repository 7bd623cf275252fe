//! The latency of a frame that arrives alone, beside classic mode.

use super::{Bench, rounded};
use crate::simulated::tables::framed;
use anyhow::Result;
use comfy_table::Table;
use serde::Serialize;
use tigon2_sim::workload::knet::latency::{CASES, Case, latency};

/// A row.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    case: [String; 3],
    /// From the first byte on the wire until the driver has the frame.
    us: f64,
    /// What that is above classic mode.
    added_us: f64,
}

pub(super) fn measure(bench: Bench<'_>) -> Result<Vec<Row>> {
    let found = bench.each("latency", &CASES, |case| Ok(latency(bench.setup, case)?))?;
    let classic = |case: &Case| {
        let at = CASES.iter().position(|other| *other == case.classic());
        at.map_or(f64::NAN, |at| found[at])
    };
    let rows = CASES.iter().zip(&found).map(|(case, us)| Row {
        case: case.cells(),
        us: rounded(*us, 100.0),
        added_us: rounded(us - classic(case), 100.0),
    });
    Ok(rows.collect())
}

pub(super) fn table(rows: &[Row]) -> Table {
    let mut table = framed(&["classifier", "IP", "bytes", "us", "above classic mode"]);
    for row in rows {
        let figures = [format!("{:.2}", row.us), format!("{:+.2}", row.added_us)];
        table.add_row(row.case.iter().chain(&figures));
    }
    table
}
