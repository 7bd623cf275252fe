//! Which function each CPU is in while a message goes from an application to a handler and back.

use super::Ends;
use crate::functions::{EXTENSION, LOOK_NS, Looks, Run, listing};
use crate::spine::card::Kit;
use crate::spine::cost::parameters;
use anyhow::{Context, Result, ensure};
use std::path::Path;
use testbed::paths;
use tigon2_chip::Cpu;

/// Nanoseconds within which the answer is there.
const PATIENCE: u64 = 1_000_000;

/// The way of one message.
#[derive(Clone, Debug)]
pub struct Way {
    /// When the doorbell has reached the card, in nanoseconds.
    pub begin: u64,
    /// When the answer is in the application's memory.
    pub end: u64,
    /// Which function each CPU was in, to two cycles.
    pub runs: Vec<Run>,
}

impl Way {
    /// Microseconds from the doorbell to the handler's first instruction, and until the answer is
    /// there.
    ///
    /// # Errors
    /// If no handler has run.
    pub fn times(&self) -> Result<[f64; 2]> {
        let is_handler = |run: &&Run| run.of.1 == Cpu::A && run.function == EXTENSION;
        let handler = self.runs.iter().find(is_handler);
        let begins = handler.context("no handler has run")?.time.start;
        Ok([begins, self.end].map(|at| (at - self.begin) as f64 / 1e3))
    }
}

/// Has an application send a message that is answered.
///
/// # Errors
/// If the card does not start, or the message is not answered.
pub fn record(kit: &Kit) -> Result<Way> {
    let mut ends = Ends::open(kit, &parameters()?, 1)?;
    // The first one finds nothing where it will be.
    ends.once(0)?;
    let machine = ends.card.machine.clone();
    let mut looks = Looks::new(kit.elf(), &ends.card.text().0)?;
    let answer = ends.ask(0)?;
    let begin = machine.lock().now();
    ends.ring(0)?;
    loop {
        looks.take(std::slice::from_ref(&machine));
        let now = machine.lock().now();
        if answer.is_there() {
            let runs = looks.runs();
            return Ok(Way {
                begin,
                end: now,
                runs,
            });
        }
        ensure!(now - begin < PATIENCE, "the message is not answered");
        machine.pass(LOOK_NS);
    }
}

/// Records it, and writes the functions to the folder, or to `target/reports/trace`.
///
/// # Errors
/// As of [`record`], and if the file cannot be written.
pub fn run(folder: Option<&Path>) -> Result<()> {
    let way = record(&Kit::build()?)?;
    let [there, back] = way.times()?;
    let folder = folder.map_or_else(|| paths::reports().join("trace"), Path::to_path_buf);
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make {}", folder.display()))?;
    let path = folder.join("message-functions.txt");
    std::fs::write(&path, listing(&way.runs, way.begin))
        .with_context(|| format!("cannot write {}", path.display()))?;
    println!("A message: doorbell to handler {there:.1} us, there and back {back:.1} us");
    println!("  functions: {}", path.display());
    Ok(())
}
