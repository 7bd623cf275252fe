//! More than two CPUs: section 7 of the paper, on the boards beyond the chip.
//!
//! Both directions at equal rates with one BD for each frame, for one to six CPUs: each handler on
//! a separate CPU, or several frames of a handler at once; docs/beyond.md describes both.

use super::Candidate;
use super::page::Page;
use super::tables::framed;
use anyhow::{Context, Result};
use comfy_table::Table;
use indicatif::ProgressBar;
use rayon::prelude::*;
use serde::Serialize;
use testbed::conditions::Conditions;
use testbed::firmware::{FirmwareOptions, Placement, Variant, own};
use testbed::setup::{self, Need};
use testbed::{interrupt, paths};
use tigon2_model::Board;
use tigon2_sim::timing::Parameters;
use tigon2_sim::workload::experiment::{self, Duration, Experiment, Measured};
use tigon2_sim::workload::testbench::Setup;

/// Bytes of a datagram.
const SIZES: [usize; 3] = [18, 400, 1472];
/// Firmware, partition, CPUs that it uses, CPUs of the board.
const CASES: [(&str, &str, usize, u32); 5] = [
    ("uniprocessor", "all on one", 1, 4),
    ("parallel", "by handler", 2, 4),
    ("by-handler", "by handler", 4, 4),
    ("by-packet", "by packet", 4, 4),
    ("by-packet", "by packet", 6, 6),
];

/// A measurement.
#[derive(Clone, Debug, Serialize)]
struct Row {
    cpus: usize,
    partition: &'static str,
    datagram: usize,
    /// Frames a second, each way.
    frames_per_s: f64,
    /// Mb/s of datagrams, both ways.
    mbps: f64,
    /// What Ethernet allows.
    limit_mbps: f64,
    /// The same firmware on CPUs that take no time.
    bound_mbps: f64,
    /// Share of its time in which each CPU did not idle.
    busy: Vec<f64>,
    sram_utilisation: f64,
    pci_utilisation: f64,
    bottleneck: &'static str,
}

/// Builds the firmwares, measures them, prints a table and writes
/// `target/reports/bench-beyond.json`.
///
/// # Errors
/// If a firmware cannot be built, or a point fails.
pub fn run(conditions: Conditions) -> Result<()> {
    setup::ensure(&[Need::Firmware])?;
    let cases: Vec<_> = CASES
        .into_iter()
        .map(|case| Ok((case, image(case.0)?, board(case.3)?)))
        .collect::<Result<_>>()?;
    let tasks: Vec<_> = cases
        .iter()
        .flat_map(|case| SIZES.map(|size| (case, size)))
        .collect();
    let bar = ProgressBar::new(tasks.len() as u64);
    let rows: Vec<Row> = tasks
        .par_iter()
        .map(
            |(((_, partition, cpus, _), image, (board, parameters)), size)| {
                interrupt::check()?;
                let setup = Setup {
                    fragments: 1,
                    ..conditions.of(Setup::new(board.clone(), parameters.clone(), image))
                };
                let look = |setup: &Setup<'_>| {
                    experiment::run(setup, Experiment::Bidirectional, *size, Duration::QUICK)
                };
                let measured = look(&setup)?;
                let bound = look(&Setup {
                    unlimited: true,
                    ..setup.clone()
                })?;
                bar.inc(1);
                Ok(row(*cpus, partition, *size, &measured, &bound))
            },
        )
        .collect::<Result<_>>()?;
    bar.finish_and_clear();
    let what = "both ways, one BD a frame, 10 Gb/s; busy CPUs are A, B, ...";
    let mut page = Page::new(conditions);
    page.table(what, &table(&rows));
    page.write("bench-beyond", &rows)
}

fn row(
    cpus: usize,
    partition: &'static str,
    datagram: usize,
    measured: &Measured,
    bound: &Measured,
) -> Row {
    let rounded = |value: f64, unit: f64| (value * unit).round() / unit;
    Row {
        cpus,
        partition,
        datagram,
        frames_per_s: rounded(measured.sent as f64 / measured.seconds, 1.0),
        mbps: rounded(measured.mbps(), 10.0),
        limit_mbps: rounded(measured.limit_mbps(), 10.0),
        bound_mbps: rounded(bound.mbps().max(measured.mbps()), 10.0),
        busy: (0..cpus)
            .map(|cpu| rounded(measured.busy(cpu), 1e3))
            .collect(),
        sram_utilisation: rounded(measured.sram(), 1e3),
        pci_utilisation: rounded(measured.pci(), 1e3),
        bottleneck: measured.bottleneck(bound),
    }
}

/// Builds a firmware of these and reads its image.
///
/// # Errors
/// If there is no firmware of that name, or it cannot be built or read.
pub fn image(name: &str) -> Result<Vec<u8>> {
    let variant = match name {
        "uniprocessor" => Variant::Uniprocessor,
        "parallel" => Variant::Parallel,
        other => {
            let own = own::beyond().iter().find(|own| own.name == other);
            Variant::Own(own.with_context(|| format!("no firmware {other}"))?)
        }
    };
    let built = Candidate::build(FirmwareOptions {
        variant,
        placement: Placement::Scratch,
        quiet: true,
    })?;
    Ok(built.image)
}

/// The board with so many CPUs, and its default timing.
///
/// # Errors
/// If there is no good board file for it.
pub fn board(cpus: u32) -> Result<(Board, Parameters)> {
    let path = paths::root().join(format!("boards/tigon2/beyond-{cpus}.toml"));
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read {}", path.display()))?;
    Ok((
        Board::from_toml(&text)?,
        Parameters::from_toml(&text, "default")?,
    ))
}

fn table(rows: &[Row]) -> Table {
    let mut table = framed(&[
        "CPUs",
        "partition",
        "bytes",
        "k/s",
        "Mb/s",
        "Ethernet",
        "bound",
        "of it",
        "busy %",
        "SRAM",
        "PCI",
        "by",
    ]);
    for row in rows {
        let percent = |share: f64| format!("{:.0}", share * 100.0);
        let busy: Vec<String> = row.busy.iter().map(|share| percent(*share)).collect();
        table.add_row([
            row.cpus.to_string(),
            row.partition.to_owned(),
            row.datagram.to_string(),
            format!("2 x {:.0}", row.frames_per_s / 1e3),
            format!("{:.0}", row.mbps),
            format!("{:.0}", row.limit_mbps),
            format!("{:.0}", row.bound_mbps),
            format!("{} %", percent(row.mbps / row.bound_mbps)),
            busy.join(" "),
            percent(row.sram_utilisation),
            percent(row.pci_utilisation),
            row.bottleneck.to_owned(),
        ]);
    }
    table
}
