//! A part of the bench: one experiment, one size, all firmwares side by side.
//!
//! This is a quick check after a change of a handler: it takes seconds instead of minutes and has
//! a separate report, so the report of the whole bench stays unchanged.

use super::page::Page;
use super::point::Point;
use super::tables::framed;
use super::task::{QUICK_SIZES, Task, one_bd, paper};
use anyhow::Result;
use comfy_table::Table;
use testbed::conditions::Conditions;
use tigon2_sim::workload::experiment::Experiment;

/// What of the bench is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Only this experiment.
    pub experiment: Option<Experiment>,
    /// Only datagrams of so many bytes.
    pub datagram: Option<usize>,
}

impl Part {
    /// Its points.
    pub fn tasks(self) -> Vec<Task> {
        let asked = self.datagram.map(|bytes| [bytes]);
        let sizes = asked.as_ref().map_or(&QUICK_SIZES[..], |bytes| bytes);
        let mut tasks = [paper(sizes), one_bd(sizes)].concat();
        if let Some(experiment) = self.experiment {
            tasks.retain(|task| task.experiment == experiment);
        }
        tasks
    }
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
