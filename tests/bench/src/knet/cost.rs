//! Measures what classification costs: the frame rate of queue mode as a share of classic mode's.

use super::{Bench, percent, rounded};
use crate::simulated::tables::framed;
use anyhow::Result;
use comfy_table::Table;
use serde::Serialize;
use tigon2_sim::workload::knet::cost::{CASES, cost};

/// A row.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    case: [String; 6],
    /// Frames a second that the host got.
    rate: f64,
    of_classic: f64,
    of_wire: f64,
    /// The share that the design asks for.
    least: Option<f64>,
}

pub(super) fn measure(bench: Bench<'_>) -> Result<Vec<Row>> {
    bench.each("cost", &CASES, |case| {
        let found = cost(bench.setup, case)?;
        Ok(Row {
            case: case.cells(),
            rate: rounded(found.sorted.rate, 1.0),
            of_classic: rounded(found.of_classic, 1e3),
            of_wire: rounded(found.sorted.of_wire, 1e3),
            least: case.least,
        })
    })
}

pub(super) fn table(rows: &[Row]) -> Table {
    let mut table = framed(&[
        "classifier",
        "IP",
        "bytes",
        "queues",
        "flows",
        "way",
        "frames/s",
        "of classic",
        "of the wire",
        "at least",
    ]);
    for row in rows {
        let figures = [
            format!("{:.0}", row.rate),
            percent(row.of_classic),
            percent(row.of_wire),
            row.least.map(percent).unwrap_or_default(),
        ];
        table.add_row(row.case.iter().chain(&figures));
    }
    table
}
