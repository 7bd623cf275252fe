//! Where CPU A's time goes: samples of its program counter, by function.

use super::card::{Kit, SpineCard};
use super::cost::CLOCK;
use super::stores::pc;
use crate::functions::Functions;
use crate::simulated::tables::framed;
use anyhow::Result;
use comfy_table::Table;
use serde::Serialize;
use std::collections::BTreeMap;
use tigon2_chip::Cpu;

/// Nanoseconds between two samples: a prime, so that nothing repeats with it.
pub const INTERVAL: u64 = 1009;
/// Rows of a table.
const ROWS: usize = 16;

/// A function, and the cycles of CPU A that it took.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Share {
    /// Its name, without the path.
    pub function: String,
    /// Cycles for each frame.
    pub cycles: f64,
}

/// Samples of a card's CPU A.
pub struct Samples {
    functions: Functions,
    counts: BTreeMap<String, u64>,
}

impl Samples {
    /// None yet.
    ///
    /// # Errors
    /// If the firmware's ELF is none.
    pub fn new(kit: &Kit, card: &SpineCard) -> Result<Samples> {
        Ok(Samples {
            functions: Functions::of(kit.elf(), &card.text().0, Cpu::A)?,
            counts: BTreeMap::new(),
        })
    }

    /// Takes one.
    pub fn take(&mut self, card: &SpineCard) {
        let name = self.functions.at(pc(&card.machine.lock()));
        *self.counts.entry(name.to_owned()).or_default() += 1;
    }

    /// The account for each of so many frames that came meanwhile, the largest share first.
    pub fn shares(&self, frames: u64) -> Vec<Share> {
        let cycles = INTERVAL as f64 * CLOCK / 1000.0 / frames.max(1) as f64;
        let mut shares: Vec<Share> = self
            .counts
            .iter()
            .map(|(function, count)| Share {
                function: function.clone(),
                cycles: *count as f64 * cycles,
            })
            .collect();
        shares.sort_by(|a, b| b.cycles.total_cmp(&a.cycles));
        shares
    }
}

/// The table of an account: its largest shares.
pub fn table(shares: &[Share]) -> Table {
    let mut table = framed(&["function", "cycles of CPU A for a frame"]);
    for share in shares.iter().take(ROWS) {
        table.add_row([share.function.clone(), format!("{:.0}", share.cycles)]);
    }
    let rest: f64 = shares.iter().skip(ROWS).map(|share| share.cycles).sum();
    table.add_row(["all others".to_owned(), format!("{rest:.0}")]);
    table
}
