//! An `init`, cut off at each of its instructions.

use super::super::card::{Kit, region};
use super::super::cuts::Row;
use super::super::window::{CardError, Window};
use super::run::{Cut, Places, Run, follow};
use super::{Bench, STACK, WATCHDOG};
use anyhow::{Result, bail, ensure};
use host_interface::spine::Outcome;
use spine_linker::load::{Card, LoadError};
use std::path::Path;

/// Cuts the `init` of the crate in a folder off at every instruction.
pub fn init(kit: &Kit, folder: &Path) -> Result<Row> {
    let container = kit.container(folder)?;
    let policy = kit.policy(WATCHDOG, 0)?;
    let mut bench = Bench::start(kit, None, 1)?;
    let mut row = Row::default();
    let free = bench.card.loader.free();
    for instructions in 0.. {
        bench.traffic.offer(&mut bench.card, None)?;
        let mut cutting = Cutting {
            window: bench.card.window.clone(),
            places: &bench.places,
            container: &container,
            instructions,
            cut: Ok(Cut::default()),
        };
        let loaded = bench
            .card
            .loader
            .load(&mut cutting, &container, &policy, &kit.build);
        let cut = cutting.cut?;
        row.stores += cut.stores;
        match loaded {
            Ok((domain, _)) => {
                ensure!(!cut.in_text, "{instructions}: it was cut off and is loaded");
                bench.card.unload(domain)?;
                row.too_late += u64::from(cut.was_cut);
            }
            Err(LoadError::Refused(Outcome::InitCut)) if cut.was_cut => {
                row.cuts += 1;
                row.in_text += u64::from(cut.in_text);
            }
            Err(error) => bail!("{instructions}: {error}"),
        }
        ensure!(bench.card.loader.free() == free, "memory is lost");
        bench.traffic.settle(&mut bench.card, 0)?;
        row.plain += bench.traffic.take_count();
        if !cut.was_cut {
            break;
        }
    }
    Ok(row)
}

/// A card on which the run that a mailbox begins is cut off.
struct Cutting<'a> {
    window: Window,
    places: &'a Places,
    container: &'a [u8],
    instructions: u32,
    cut: Result<Cut>,
}

impl Cutting<'_> {
    fn follow(&self) -> Result<Cut> {
        let card = &self.window;
        // Nothing else is loaded.
        let region = region(card, 0, self.container)?;
        let run = Run {
            region,
            stack: STACK,
            loads: Some(0),
        };
        follow(&card.machine, self.places, &run, Some(self.instructions))
    }
}

impl Card for Cutting<'_> {
    type Error = CardError;

    fn read(&mut self, address: u32, out: &mut [u32]) -> Result<(), Self::Error> {
        self.window.read(address, out)
    }

    fn write(&mut self, address: u32, words: &[u32]) -> Result<(), Self::Error> {
        self.window.write(address, words)
    }

    fn ring(&mut self, mailbox: u32) -> Result<(), Self::Error> {
        self.window.ring(mailbox)?;
        self.cut = self.follow();
        Ok(())
    }

    fn post(&mut self, mailbox: u32, high: u32, low: u32) -> Result<(), Self::Error> {
        self.window.post(mailbox, high, low)
    }

    fn wait(&mut self, turns: u32) -> bool {
        self.window.wait(turns)
    }

    fn lease_window(&mut self, address: u32) -> Result<(), Self::Error> {
        self.window.lease_window(address)
    }

    fn take_back_window(&mut self) {
        self.window.take_back_window();
    }
}
