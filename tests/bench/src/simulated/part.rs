//! A part of the bench: one experiment, one size, all firmwares side by side.
//!
//! For whoever has changed a handler: seconds instead of minutes, and a report of its own,
//! so that the whole bench's stays what it is.

use super::page::Page;
use super::plan::{QUICK_SIZES, Task, one_bd, paper};
use super::point::Point;
use super::tables::framed;
use crate::linux::Arguments;
use anyhow::Result;
use comfy_table::Table;
use testbed::conditions::Conditions;

/// Whether not all of the bench is asked for.
pub fn is_asked(arguments: &Arguments) -> bool {
    arguments.experiment.is_some() || arguments.datagram.is_some()
}

/// What of the bench is asked for.
pub fn tasks(arguments: &Arguments) -> Vec<Task> {
    let asked = arguments.datagram.map(|bytes| [bytes]);
    let sizes = asked.as_ref().map_or(&QUICK_SIZES[..], |bytes| bytes);
    let mut tasks = [paper(sizes), one_bd(sizes)].concat();
    if let Some(way) = arguments.experiment {
        tasks.retain(|task| task.experiment == way.experiment());
    }
    tasks
}

/// Prints the points and writes them to `target/reports/bench-part.json`.
///
/// # Errors
/// If the file cannot be written.
pub fn report(points: &[Point], conditions: Conditions) -> Result<()> {
    let mut page = Page::new(conditions);
    page.table("what was asked for", &table(points));
    page.write("bench-part", points)
}

/// One row a point; what is to be compared stands below each other.
fn table(points: &[Point]) -> Table {
    let mut points: Vec<&Point> = points.iter().collect();
    points.sort_by_key(|point| (point.experiment.name(), point.datagram, point.bds));
    let mut table = framed(&[
        "firmware",
        "experiment",
        "bytes",
        "BDs",
        "tx k/s",
        "rx k/s",
        "Mb/s",
        "cycles A",
        "cycles B",
        "by",
    ]);
    for point in points {
        table.add_row([
            point.firmware.clone(),
            point.experiment.name().to_owned(),
            point.datagram.to_string(),
            point.bds.to_string(),
            format!("{:.1}", point.frames_per_s_tx / 1e3),
            format!("{:.1}", point.frames_per_s_rx / 1e3),
            format!("{:.1}", point.mbps),
            format!("{:.1}", point.cpu_a.cycles),
            format!("{:.1}", point.cpu_b.cycles),
            point.bottleneck.to_owned(),
        ]);
    }
    table
}
