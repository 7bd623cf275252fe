//! `cargo xtask bench --placements`: the gain from the scratch pads, and from the second CPU.
//!
//! Figures 7, 9, 11 and 13 of the PPoPP 2003 paper: both firmwares with hot code and state in the
//! scratch pads, in SRAM, and one of the two in SRAM. The paper's figures are plots, so the report
//! compares with the numbers in its text.

use super::page::Page;
use super::point::rounded;
use super::tables::framed;
use super::task::paper;
use super::{Candidate, Series};
use anyhow::Result;
use clap::ValueEnum;
use comfy_table::Table;
use indicatif::ProgressBar;
use serde::Serialize;
use testbed::conditions::Conditions;
use testbed::firmware::{FirmwareOptions, Placement, Variant};
use testbed::setup::{self, Need};
use tigon2_sim::workload::experiment::{Duration, Experiment};

/// The sizes of which the paper's text has numbers, in bytes.
const SIZES: [usize; 3] = [18, 800, 1472];

/// A figure of the paper, and what its text says of it.
struct Figure {
    number: u32,
    experiment: Experiment,
    /// PARALLEL(SRAM-BOTH) beside RELEASE(SRAM-BOTH).
    parallelism: &'static str,
    /// PARALLEL beside PARALLEL(SRAM-BOTH).
    pads: &'static str,
}

const FIGURES: [Figure; 4] = [
    Figure {
        number: 7,
        experiment: Experiment::Send,
        parallelism: "at most +13 %",
        pads: "up to +89 % (800 B)",
    },
    Figure {
        number: 9,
        experiment: Experiment::Receive,
        parallelism: "about +18 %",
        pads: "up to +66 %",
    },
    Figure {
        number: 11,
        experiment: Experiment::Bidirectional,
        parallelism: "+37 to +95 %",
        pads: "up to +70 %",
    },
    Figure {
        number: 13,
        experiment: Experiment::Ping,
        parallelism: "-10 % on average",
        pads: "-8 % on average",
    },
];

/// A measurement.
#[derive(Clone, Debug, Serialize)]
struct Row {
    firmware: &'static str,
    placement: &'static str,
    experiment: Experiment,
    /// Bytes of a datagram.
    datagram: usize,
    /// Mb/s of datagrams both ways; of a ping, microseconds there and back.
    figure: f64,
    /// Share of its time in which each CPU did not idle.
    busy: [f64; 2],
}

/// Builds the eight firmwares, measures them, prints the figures as tables and writes
/// `target/reports/bench-placements.json`.
///
/// # Errors
/// If a firmware cannot be built, or a point fails.
pub fn run(board: &str, conditions: Conditions) -> Result<()> {
    setup::ensure(&[Need::Firmware])?;
    let series = Series::usual(paper(&SIZES), Duration::QUICK);
    let variants: Vec<Variant> = Variant::for_chip().collect();
    let placements = Placement::value_variants();
    let points = series.tasks.len() * variants.len() * placements.len();
    let bar = ProgressBar::new(points as u64);
    let mut rows = Vec::new();
    for variant in variants.iter().copied() {
        for placement in placements {
            let candidate = Candidate::build(FirmwareOptions {
                variant,
                placement: *placement,
                quiet: true,
            })?;
            let plan = candidate.plan(&series, "default", board, conditions);
            let measured = plan.looks(|| bar.inc(1))?;
            for (task, measured) in series.tasks.iter().zip(measured) {
                let figure = measured.latency_us.unwrap_or_else(|| measured.mbps());
                rows.push(Row {
                    firmware: variant.name(),
                    placement: placement.name(),
                    experiment: task.experiment,
                    datagram: task.traffic.mix.largest(),
                    figure: rounded(figure, 100.0),
                    busy: [0, 1].map(|cpu| rounded(measured.busy(cpu), 1e4)),
                });
            }
        }
    }
    bar.finish_and_clear();
    let mut page = Page::new(conditions);
    for figure in &FIGURES {
        let unit = match figure.experiment {
            Experiment::Ping => "us",
            _ => "Mb/s",
        };
        let name = figure.experiment.name();
        let what = format!("Figure {}: {name}, {unit}, and busy CPUs", figure.number);
        page.table(&what, &table(figure, &rows));
    }
    page.write("bench-placements", &rows)
}

fn find(rows: &[Row], of: (Variant, Placement, Experiment, usize)) -> Option<&Row> {
    rows.iter().find(|row| {
        (row.firmware, row.placement) == (of.0.name(), of.1.name())
            && (row.experiment, row.datagram) == (of.2, of.3)
    })
}

/// One figure: a line for each firmware, and what the second CPU and the pads give.
fn table(figure: &Figure, rows: &[Row]) -> Table {
    let sizes = SIZES.map(|size| format!("{size} B"));
    let mut header = vec!["firmware", "placement"];
    header.extend(sizes.iter().map(String::as_str));
    header.push("paper");
    let mut table = framed(&header);
    for variant in Variant::for_chip() {
        for placement in Placement::value_variants() {
            let mut line = vec![variant.name().to_owned(), placement.name().to_owned()];
            line.extend(SIZES.map(|size| {
                let row = find(rows, (variant, *placement, figure.experiment, size));
                row.map_or_else(String::new, |row| {
                    let [a, b] = row.busy.map(|busy| busy * 100.0);
                    format!("{:.1} ({a:.0}, {b:.0} %)", row.figure)
                })
            }));
            line.push(String::new());
            table.add_row(line);
        }
    }
    use Placement::{Scratch, SramBoth};
    let (one, two) = (Variant::Uniprocessor, Variant::Parallel);
    for (what, more, less, paper) in [
        (
            "second CPU alone",
            (two, SramBoth),
            (one, SramBoth),
            figure.parallelism,
        ),
        ("scratch pads", (two, Scratch), (two, SramBoth), figure.pads),
        (
            "second CPU, in the pads",
            (two, Scratch),
            (one, Scratch),
            "",
        ),
    ] {
        let mut line = vec![what.to_owned(), String::new()];
        line.extend(SIZES.map(|size| {
            let of = |(variant, placement)| {
                find(rows, (variant, placement, figure.experiment, size)).map(|row| row.figure)
            };
            let ratio = of(more).zip(of(less)).map(|(more, less)| more / less);
            ratio.map_or_else(String::new, |ratio| {
                format!("{:+.0} %", (ratio - 1.0) * 100.0)
            })
        }));
        line.push(paper.to_owned());
        table.add_row(line);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the second CPU gives is told from the firmwares in SRAM, as in the paper.
    #[test]
    fn a_figure_compares_as_the_paper_does() {
        let row = |variant: Variant, placement: Placement, figure| Row {
            firmware: variant.name(),
            placement: placement.name(),
            experiment: Experiment::Send,
            datagram: 800,
            figure,
            busy: [0.5, 0.25],
        };
        let rows = [
            row(Variant::Uniprocessor, Placement::SramBoth, 400.0),
            row(Variant::Parallel, Placement::SramBoth, 440.0),
            row(Variant::Parallel, Placement::Scratch, 880.0),
        ];
        let text = table(&FIGURES[0], &rows).to_string();
        let line = |words: &str| {
            let found = text.lines().find(|line| line.contains(words));
            found.unwrap_or_else(|| panic!("no {words}: {text}"))
        };
        assert!(line("second CPU alone").contains("+10 %"), "{text}");
        assert!(line("scratch pads").contains("+100 %"), "{text}");
        assert!(line("scratch pads").contains("up to +89 %"), "{text}");
        assert!(text.contains("880.0 (50, 25 %)"), "{text}");
    }
}
