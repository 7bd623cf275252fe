//! `cargo xtask bench --sensitivity`: how the headline figures depend on each parameter.
//!
//! Each parameter of the board file's default timing profile is changed by a fifth in both
//! directions, or by one where that is less, and the headline points are measured again.

use super::page::Page;
use super::plan::Plan;
use super::point::Subject;
use super::tables::framed;
use super::task::{Task, paper};
use anyhow::Result;
use comfy_table::Table;
use indicatif::ProgressBar;
use rayon::prelude::*;
use serde::Serialize;
use testbed::conditions::Conditions;
use tigon2_sim::timing::variation::variations;
use tigon2_sim::workload::experiment::{Duration, Experiment};

/// The headline points: the timing model's T1 to T4, and a ping.
const HEADLINES: [(Experiment, usize, &str); 5] = [
    (Experiment::Bidirectional, 1472, "both 1472 B"),
    (Experiment::Bidirectional, 18, "both 18 B"),
    (Experiment::Send, 800, "send 800 B"),
    (Experiment::Receive, 1000, "receive 1000 B"),
    (Experiment::Ping, 1472, "ping 1472 B"),
];
const LOOK: Duration = Duration {
    warm_up: 4_000_000,
    window: 10_000_000,
    steps: 10,
    nearness: 0.005,
};

/// What one change does, in percent of each headline figure.
#[derive(Debug, Serialize)]
struct Effect {
    firmware: String,
    key: String,
    from: String,
    to: String,
    percent: Vec<f64>,
}

/// Measures and prints, and writes `target/reports/sensitivity.json`, for images and their
/// names.
///
/// # Errors
/// If a point fails.
pub fn run<'a>(
    board: &str,
    images: impl Iterator<Item = (&'a str, &'a [u8])>,
    conditions: Conditions,
) -> Result<()> {
    let mut all = Vec::new();
    let mut page = Page::new(conditions);
    for (firmware, image) in images {
        let effects = effects(board, firmware, image, conditions)?;
        let what = format!("{firmware}: change of the headline figures, in percent");
        page.table(&what, &table(&effects));
        all.extend(effects);
    }
    page.write("sensitivity", &all)
}

/// What each figure's change does to a firmware.
fn effects(
    board: &str,
    firmware: &str,
    image: &[u8],
    conditions: Conditions,
) -> Result<Vec<Effect>> {
    let reference = headlines(board, firmware, image, conditions)?;
    let varied = variations(board);
    let bar = ProgressBar::new(varied.len() as u64);
    let effects = varied
        .par_iter()
        .map(|variation| {
            let changed = headlines(&variation.board, firmware, image, conditions)?;
            bar.inc(1);
            let percent = reference.iter().zip(&changed);
            Ok(Effect {
                firmware: firmware.to_owned(),
                key: variation.key.replace("timing.default.", ""),
                from: variation.from.clone(),
                to: variation.to.clone(),
                percent: percent
                    .map(|(was, is)| super::point::rounded((is / was - 1.0) * 100.0, 10.0))
                    .collect(),
            })
        })
        .collect();
    bar.finish_and_clear();
    effects
}

fn table(effects: &[Effect]) -> Table {
    let mut header = vec!["parameter", "from", "to"];
    header.extend(HEADLINES.map(|(_, _, name)| name));
    let mut table = framed(&header);
    for effect in effects {
        let mut row = vec![effect.key.clone(), effect.from.clone(), effect.to.clone()];
        row.extend(
            effect
                .percent
                .iter()
                .map(|percent| format!("{percent:+.1}")),
        );
        table.add_row(row);
    }
    table
}

/// The headline figures: Mb/s, and microseconds of the ping.
fn headlines(
    board: &str,
    firmware: &str,
    image: &[u8],
    conditions: Conditions,
) -> Result<Vec<f64>> {
    let tasks: Vec<Task> = HEADLINES
        .iter()
        .flat_map(|(experiment, size, _)| {
            paper(&[*size])
                .into_iter()
                .filter(|task| task.experiment == *experiment)
        })
        .collect();
    let plan = Plan {
        image,
        subject: Subject::usual(firmware),
        board,
        tasks,
        duration: LOOK,
        conditions,
    };
    plan.figures()
}
