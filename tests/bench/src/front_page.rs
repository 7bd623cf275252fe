//! The figures and pictures of the README, and the test that keeps them fresh.
//!
//! ```text
//!   docs/qemu-run.json     a stored report of qemu-run ─────────┐
//!   tests/golden/*.bin ──► the simulator ──► figures ───────────┼─► README.md, between marks
//!                              ├──► docs/bench-bidirectional.svg
//!                              └──► docs/event-graph.svg
//! ```
//!
//! The simulator is deterministic, so a test regenerates everything and compares exactly. QEMU's
//! figures depend on the computer and the day: the report is stored as data, and the test compares
//! the README's rendering of it.

use crate::report::Report;
use crate::simulated::golden;
use crate::simulated::papers::Compared;
use crate::simulated::plan::Plan;
use crate::simulated::plot;
use crate::simulated::point::{Point, Subject};
use crate::simulated::task::{SIZES, paper};
use anyhow::{Context, Result, ensure};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use testbed::conditions::Conditions;
use testbed::paths::{self, board_file};
use tigon2_model::Board;
use tigon2_sim::timeline::capture::{self, Window};
use tigon2_sim::timeline::{packets, picture};
use tigon2_sim::timing::Parameters;
use tigon2_sim::workload::experiment::{Duration, Experiment};
use tigon2_sim::workload::testbench::Setup;

/// The stored report of `cargo xtask qemu-run`.
pub const STORED_REPORT: &str = "docs/qemu-run.json";
/// The plot of datagrams both ways beside the paper's figures.
pub const PLOT: &str = "docs/bench-bidirectional.svg";
/// The event graph of a ping.
pub const EVENT_GRAPH: &str = "docs/event-graph.svg";

/// The firmwares of the plot, as `tests/golden` names them; the event graph has the second.
const FIRMWARES: [&str; 2] = ["uniprocessor", "parallel"];
/// Bytes of the datagrams in the event graph and in the figures of the text: a full frame.
const FULL: usize = 1472;
/// Nanoseconds after the start of the load: one request and its reply.
const SHOWN: Window = Window {
    from: 4_000_000,
    to: 4_070_000,
};

/// A file of the checkout and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its path below the root.
    pub name: &'static str,
    /// Its text.
    pub text: String,
}

/// Makes the README and its pictures; `README.md` and the stored report are read.
///
/// # Errors
/// A point that fails, a file that cannot be read, or a README without its marks.
pub fn make() -> Result<Vec<File>> {
    let board = board_file()?;
    let points = points(&board)?;
    let plot = plot::chart(Experiment::Bidirectional, &points).context("no points to plot")?;
    let readme = read("README.md")?;
    let report: Report = serde_json::from_str(&read(STORED_REPORT)?).context(STORED_REPORT)?;
    let readme = fill(&readme, "qemu-run", &qemu_run(&report))?;
    let readme = fill(&readme, "figures", &figures(&points)?)?;
    Ok(vec![
        File {
            name: PLOT,
            text: plot.svg()?,
        },
        File {
            name: EVENT_GRAPH,
            text: event_graph(&board)?,
        },
        File {
            name: "README.md",
            text: readme,
        },
    ])
}

/// Writes the README and its pictures; a new report of `qemu-run` replaces the stored one.
///
/// # Errors
/// As [`make`], a file that is no report of `qemu-run`, or one that cannot be written.
pub fn write(report: Option<&Path>) -> Result<()> {
    if let Some(path) = report {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let report: Report =
            serde_json::from_str(&text).with_context(|| path.display().to_string())?;
        put(
            STORED_REPORT,
            &(serde_json::to_string_pretty(&report)? + "\n"),
        )?;
    }
    for file in make()? {
        put(file.name, &file.text)?;
    }
    Ok(())
}

/// Replaces what stands between the marks of a name.
///
/// # Errors
/// If the text lacks a mark.
pub fn fill(text: &str, name: &str, content: &str) -> Result<String> {
    fill_made_by(text, (name, "cargo xtask doc --readme"), content)
}

/// As [`fill`], for what another command makes.
///
/// # Errors
/// If the text lacks a mark.
pub fn fill_made_by(text: &str, (name, maker): (&str, &str), content: &str) -> Result<String> {
    let begin = format!("<!-- {name}: made by {maker} -->\n");
    let end = format!("<!-- end of {name} -->");
    let (before, rest) = text
        .split_once(&begin)
        .with_context(|| format!("no mark {}", begin.trim_end()))?;
    let (_, after) = rest
        .split_once(&end)
        .with_context(|| format!("no mark {end}"))?;
    Ok(format!("{before}{begin}{content}{end}{after}"))
}

/// Datagrams both ways, the golden firmwares at the paper's sizes.
fn points(board: &str) -> Result<Vec<Point>> {
    let mut points = Vec::new();
    for firmware in FIRMWARES {
        let image = image(firmware)?;
        let mut tasks = paper(&SIZES);
        tasks.retain(|task| task.experiment == Experiment::Bidirectional);
        let plan = Plan {
            image: &image,
            subject: Subject::usual(firmware),
            board,
            tasks,
            duration: Duration::QUICK,
            conditions: Conditions::default(),
        };
        points.extend(plan.measure(|| ())?);
    }
    Ok(points)
}

/// What the card does with an echo request and its reply.
fn event_graph(board: &str) -> Result<String> {
    let parameters = Parameters::from_toml(board, "default")?;
    let image = image(FIRMWARES[1])?;
    let setup = Setup::new(Board::from_toml(board)?, parameters, &image);
    let subject = capture::Subject::new(Experiment::Ping, FULL);
    let timeline = capture::capture(&setup, subject, SHOWN)?;
    let packets = packets::on_wire_in(packets::follow(&timeline), timeline.shown);
    let title = format!(
        "A ping of {FULL} bytes through the {} firmware",
        FIRMWARES[1]
    );
    Ok(picture::write(&timeline, &packets, &title))
}

/// The console with the report of `qemu-run`.
fn qemu_run(report: &Report) -> String {
    format!(
        "```console\n$ cargo xtask qemu-run\n{}\nreport: target/reports/qemu-run.json\n```\n",
        report.table()
    )
}

/// The figures of full frames both ways, beside the paper's.
fn figures(points: &[Point]) -> Result<String> {
    let mut rows = String::from(
        "| UDP both ways, 1472 bytes | Mb/s | of what infinitely fast CPUs reach | the paper's cards |\n\
         | --- | --- | --- | --- |\n",
    );
    let full = || points.iter().filter(|point| point.datagram == FULL);
    ensure!(
        full().count() == FIRMWARES.len(),
        "a point of each firmware"
    );
    for (point, cards) in full().zip([&["RELEASE", "BSD"][..], &["PARALLEL"]]) {
        let shown = |card: &&str| {
            let figure = |it: &&Compared| it.figure.of == *card;
            let found = point.paper.iter().find(figure);
            found.map(|it| {
                let derived = if it.figure.derived { " (derived)" } else { "" };
                format!("{card} {:.0}{derived}", it.figure.mbps)
            })
        };
        let papers: Vec<String> = cards.iter().filter_map(shown).collect();
        writeln!(
            rows,
            "| `{}` | {:.0} | {:.0} % | {} |",
            point.firmware,
            point.mbps,
            100.0 * point.share_of_bound,
            papers.join(", ")
        )?;
    }
    Ok(rows)
}

fn image(firmware: &str) -> Result<Vec<u8>> {
    let path = golden::image_file(firmware);
    std::fs::read(&path).with_context(|| format!("read {}", path.display()))
}

fn at(name: &str) -> PathBuf {
    paths::root().join(name)
}

fn read(name: &str) -> Result<String> {
    std::fs::read_to_string(at(name)).with_context(|| format!("read {name}"))
}

fn put(name: &str, text: &str) -> Result<()> {
    let path = at(name);
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    println!("written: {}", path.display());
    Ok(())
}
