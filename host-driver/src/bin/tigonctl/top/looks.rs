//! What part of its CPU's time each handler takes, by looks at the program counters.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use host_driver::profile::{Owner, Profile};
use tigon2_chip::{Cpu, Register};

use crate::log::attached_build;
use crate::look::Source;

/// The code of the firmware on the card, from its ELF file.
pub fn read_profile(source: &mut Source, path: &Path) -> Result<Profile> {
    let elf = std::fs::read(path).with_context(|| format!("ELF file {}", path.display()))?;
    let named = || format!("ELF file {}", path.display());
    let profile = Profile::parse(&elf).with_context(named)?;
    let build = attached_build(source)?.context("the firmware on this card has no build id")?;
    profile.check(build).with_context(named)?;
    Ok(profile)
}

/// Between two looks at the program counters, which are several reads each.
pub const LOOK: Duration = Duration::from_millis(25);
/// Reads of both program counters in a look.
const READS: usize = 4;
/// Rows of the handlers' table.
const MOST_HANDLERS: usize = 40;

/// How often each CPU was seen working for whom, since the last sample.
#[derive(Debug, Default)]
pub struct Looks {
    seen: [BTreeMap<Owner, u32>; 2],
}

impl Looks {
    /// Looks at both CPUs.
    pub fn take(&mut self, source: &mut Source, profile: &Profile) -> Result<()> {
        let pcs = [Cpu::A, Cpu::B].map(|cpu| Register::cpu_pc(cpu).offset());
        let words = source.registers(&pcs.repeat(READS))?;
        for pair in words.chunks_exact(2) {
            for (cpu, pc) in [Cpu::A, Cpu::B].into_iter().zip(pair) {
                if let Some(owner) = profile.owner(cpu, *pc) {
                    self.note(cpu, owner.clone());
                }
            }
        }
        Ok(())
    }

    pub fn note(&mut self, cpu: Cpu, owner: Owner) {
        *self.seen[cpu.index()].entry(owner).or_default() += 1;
    }

    /// The parts of their CPU's time, and a new beginning.
    pub fn finish(&mut self) -> Vec<Share> {
        let mut shares = Vec::new();
        for (cpu, seen) in [Cpu::A, Cpu::B].into_iter().zip(&mut self.seen) {
            let all: u32 = seen.values().sum();
            for (owner, count) in std::mem::take(seen) {
                let part = f64::from(count) / f64::from(all);
                shares.push(Share { cpu, owner, part });
            }
        }
        shares
    }
}

/// What part of its time a CPU worked for somebody.
#[derive(Clone, Debug, PartialEq)]
pub struct Share {
    /// The CPU.
    pub cpu: Cpu,
    /// For whom.
    pub owner: Owner,
    /// From 0 to 1.
    pub part: f64,
}

/// A row of the handlers' table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Activity {
    /// The handler, or a function that several call.
    pub name: String,
    /// Runs a second; functions are not counted.
    pub runs: Option<f64>,
    /// The CPU that was seen in it, and for what part of its time.
    pub load: Option<(Cpu, f64)>,
}

/// The table's rows, by load where it is known, then by runs.
pub fn activities(runs: impl Iterator<Item = (String, f64)>, shares: &[Share]) -> Vec<Activity> {
    let mut rows: Vec<Activity> = runs
        .map(|(name, rate)| Activity {
            name,
            runs: Some(rate),
            load: None,
        })
        .collect();
    for share in shares {
        let load = Some((share.cpu, share.part));
        let (name, runs) = match &share.owner {
            Owner::Idle => continue,
            Owner::Handler(name) => (name, Some(0.0)),
            Owner::Function(name) => (name, None),
        };
        let known = |row: &&mut Activity| row.name == *name && row.load.is_none();
        match rows.iter_mut().find(known) {
            Some(row) => row.load = load,
            None => rows.push(Activity {
                name: name.clone(),
                runs,
                load,
            }),
        }
    }
    rows.retain(|row| row.runs.is_some_and(|rate| rate > 0.0) || row.load.is_some());
    let key = |row: &Activity| {
        (
            row.load.map_or(0.0, |(_, part)| part),
            row.runs.unwrap_or(0.0),
        )
    };
    rows.sort_by(|a, b| {
        let (a, b) = (key(a), key(b));
        b.0.total_cmp(&a.0).then(b.1.total_cmp(&a.1))
    });
    rows.truncate(MOST_HANDLERS);
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handler(name: &str) -> Owner {
        Owner::Handler(name.to_owned())
    }

    #[test]
    fn looks_become_parts_of_each_cpus_time() {
        let mut looks = Looks::default();
        for _ in 0..3 {
            looks.note(Cpu::A, Owner::Idle);
        }
        looks.note(Cpu::A, handler("ReceiveComplete"));
        let share = |owner, part| Share {
            cpu: Cpu::A,
            owner,
            part,
        };
        assert_eq!(
            looks.finish(),
            [
                share(Owner::Idle, 0.75),
                share(handler("ReceiveComplete"), 0.25)
            ]
        );
        assert_eq!(looks.finish(), [], "a new beginning");
    }

    #[test]
    fn rows_are_handlers_with_runs_and_functions_without() {
        let runs = [("Timer", 1000.0), ("Mailbox", 5.0), ("Led", 0.0)];
        let runs = runs.map(|(name, rate)| (name.to_owned(), rate));
        let function = Owner::Function("dma::queue".to_owned());
        let shares = [
            (Cpu::A, Owner::Idle, 0.6),
            (Cpu::A, handler("Mailbox"), 0.3),
            (Cpu::A, function.clone(), 0.1),
            (Cpu::B, function, 0.2),
        ];
        let shares = shares.map(|(cpu, owner, part)| Share { cpu, owner, part });
        let rows = activities(runs.into_iter(), &shares);
        let shown: Vec<_> = rows
            .iter()
            .map(|r| (r.name.as_str(), r.runs, r.load))
            .collect();
        assert_eq!(
            shown,
            [
                ("Mailbox", Some(5.0), Some((Cpu::A, 0.3))),
                ("dma::queue", None, Some((Cpu::B, 0.2))),
                ("dma::queue", None, Some((Cpu::A, 0.1))),
                ("Timer", Some(1000.0), None),
            ]
        );
    }
}
