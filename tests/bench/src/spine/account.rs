//! Where CPU A's time goes: samples of its program counter, by function.

use super::card::{Kit, SpineCard, Text};
use super::cost::CLOCK;
use super::stores::pc;
use crate::simulated::tables::framed;
use anyhow::Result;
use comfy_table::Table;
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};
use serde::Serialize;
use std::collections::BTreeMap;

/// Nanoseconds between two samples: a prime, so that nothing repeats with it.
pub const INTERVAL: u64 = 1009;
/// What the text of extensions is called.
pub const EXTENSION: &str = "the extension's own text";
/// What has no function.
const ELSEWHERE: &str = "elsewhere";
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
    /// Functions of the firmware by their first address: end and name.
    functions: BTreeMap<u32, (u32, String)>,
    text: Text,
    counts: BTreeMap<String, u64>,
}

impl Samples {
    /// None yet.
    ///
    /// # Errors
    /// If the firmware's ELF is none.
    pub fn new(kit: &Kit, card: &SpineCard) -> Result<Samples> {
        let file = object::File::parse(kit.elf())?;
        // The pads of both CPUs have the same addresses, and where the host's frames have their code
        // is other code while a domain is loaded.
        let is_elsewhere = |index| {
            let section = file.section_by_index(index).ok();
            let name = section.as_ref().and_then(|section| section.name().ok());
            let away = |name: &str| name.starts_with(".scratch_b") || name == ".scratch_a.host";
            name.is_some_and(away)
        };
        let text = file.symbols().filter(|symbol| {
            symbol.kind() == SymbolKind::Text && !symbol.section_index().is_some_and(is_elsewhere)
        });
        let named = text.filter_map(|symbol| {
            let name = format!("{:#}", rustc_demangle::demangle(symbol.name().ok()?));
            let (start, bytes) = (symbol.address() as u32, symbol.size() as u32);
            Some((start, (start + bytes, name)))
        });
        Ok(Samples {
            functions: named.collect(),
            text: card.text(),
            counts: BTreeMap::new(),
        })
    }

    /// Takes one.
    pub fn take(&mut self, card: &SpineCard) {
        let at = pc(&card.machine.lock());
        let found = self.functions.range(..=at).next_back();
        let found = found.filter(|(_, (end, _))| at < *end);
        let name = match found {
            _ if self.text.contains(at) => EXTENSION,
            Some((_, (_, name))) => name,
            None => ELSEWHERE,
        };
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
