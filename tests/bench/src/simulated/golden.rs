//! The golden tables: stored results of the model and of a firmware.
//!
//! ```text
//!   sim/golden/model.txt     the cycle model without firmware, all timing profiles
//!   tests/golden/*.tg2.bin   firmware images
//!   tests/golden/bench.json  a few short points with each of them
//! ```
//!
//! The second table is of the images beside it, so it depends only on the model, not on a compiler
//! or on the current firmware. `cargo xtask bench --golden` takes the current firmware and
//! regenerates all three.

use super::plan::Plan;
use super::point::{Point, Subject};
use super::task::{Task, paper};
use anyhow::{Context, Result};
use serde::Serialize;
use std::path::{Path, PathBuf};
use testbed::conditions::Conditions;
use testbed::paths;
use tigon2_sim::workload::experiment::Duration;
use tigon2_sim::workload::model_table;

/// Sizes of the points.
const SIZES: [usize; 2] = [18, 1472];
/// Short: what is compared is each digit, not the card's speed. Two images are not compared by it:
/// a frame of 1472 bytes more or less in a window is 7.85 Mb/s, and the buffers of the card take
/// what it does not keep up with for longer than that. [`Duration::FULL`] is for that.
const LOOK: Duration = Duration {
    warm_up: 1_500_000,
    window: 1_500_000,
    // Enough to get near a loss-free rate from far off.
    steps: 6,
    nearness: 0.02,
};

/// What is compared of an image.
#[derive(Debug, Serialize)]
pub struct GoldenImage {
    /// The firmware.
    pub firmware: String,
    /// Its points.
    pub points: Vec<Point>,
}

/// The folder of the images and their table.
pub fn folder() -> PathBuf {
    paths::root().join("tests/golden")
}

/// The file of an image.
pub fn image_file(firmware: &str) -> PathBuf {
    folder().join(format!("{firmware}.tg2.bin"))
}

/// The golden points of an image.
///
/// # Errors
/// If a point fails.
pub fn points(board: &str, firmware: &str, image: &[u8]) -> Result<GoldenImage> {
    let tasks: Vec<Task> = paper(&SIZES);
    let plan = Plan {
        image,
        subject: Subject::usual(firmware),
        board,
        tasks,
        duration: LOOK,
        conditions: Conditions::default(),
    };
    Ok(GoldenImage {
        firmware: firmware.to_owned(),
        points: plan.measure(|| ())?,
    })
}

/// The table of some images as it is checked in.
///
/// # Errors
/// If it cannot be made.
pub fn text(images: &[GoldenImage]) -> Result<String> {
    Ok(serde_json::to_string_pretty(images)? + "\n")
}

/// Writes the golden tables and the images anew.
///
/// # Errors
/// If a point fails or a file cannot be written.
pub fn write<'a>(board: &str, images: impl Iterator<Item = (&'a str, &'a [u8])>) -> Result<()> {
    put(
        &paths::root().join("sim/golden/model.txt"),
        model_table::golden_text(board)?.as_bytes(),
    )?;
    let mut table = Vec::new();
    for (firmware, image) in images {
        put(&image_file(firmware), image)?;
        table.push(points(board, firmware, image)?);
    }
    put(&folder().join("bench.json"), text(&table)?.as_bytes())
}

fn put(path: &Path, bytes: &[u8]) -> Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
    }
    std::fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
    println!("written: {}", path.display());
    Ok(())
}
