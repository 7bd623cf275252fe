//! Each handler's share of its CPU's time, from samples of the program counters.
//!
//! Each read of a program counter is a sample. The shares of a CPU's time come from its last
//! samples, some ten seconds of them; together with idle time they add up to 100 %. Too few
//! samples give no shares.

use std::collections::{BTreeMap, VecDeque};
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

/// Interval between two rounds of samples, each of several reads.
pub const LOOK: Duration = Duration::from_millis(25);
/// Reads of both program counters in a round.
const READS: usize = 4;
/// Samples of a CPU that give shares: a half is then accurate to a fortieth.
pub const ENOUGH: u32 = 400;
/// Samples of a CPU that are kept.
const KEPT: u32 = 1600;
/// All of a CPU's time.
pub const ALL: u32 = 1000;

/// How often a CPU was seen working for each owner; None where there is no code.
type Counts = BTreeMap<Option<Owner>, u32>;

/// How often each CPU was seen working for each owner.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen([Counts; 2]);

impl Seen {
    fn note(&mut self, cpu: Cpu, owner: Option<Owner>) {
        *self.0[cpu.index()].entry(owner).or_default() += 1;
    }

    pub fn add(&mut self, other: &Seen) {
        for (counts, other) in self.0.iter_mut().zip(&other.0) {
            for (owner, count) in other {
                *counts.entry(owner.clone()).or_default() += count;
            }
        }
    }

    /// Samples of each CPU.
    pub fn samples(&self) -> [u32; 2] {
        [0, 1].map(|cpu| self.0[cpu].values().sum())
    }

    /// Whether there are enough samples of a CPU.
    pub fn is_enough(&self, cpu: usize) -> bool {
        self.samples()[cpu] >= ENOUGH && self.is_running(cpu)
    }

    /// Whether a CPU was seen in any code.
    pub fn is_running(&self, cpu: usize) -> bool {
        self.0[cpu].keys().any(Option::is_some)
    }

    /// The busy share of a CPU's time, of [`ALL`]; None if there are too few samples.
    pub fn busy(&self, cpu: usize) -> Option<u32> {
        let parts = self.parts(cpu);
        let idle = |part: &&(&Option<Owner>, u32)| part.0.as_ref() == Some(&Owner::Idle);
        let idle = parts.iter().find(idle).map_or(0, |(_, part)| *part);
        self.is_enough(cpu).then_some(ALL - idle)
    }

    /// The shares of a CPU's time, which add up to [`ALL`]; empty if there are too few samples.
    fn parts(&self, cpu: usize) -> Vec<(&Option<Owner>, u32)> {
        let all = self.samples()[cpu];
        if !self.is_enough(cpu) {
            return Vec::new();
        }
        // The rest from rounding down goes to the shares that lost most by it.
        let counts = self.0[cpu].iter();
        let mut parts: Vec<_> = counts
            .map(|(owner, count)| (owner, count * ALL / all, count * ALL % all))
            .collect();
        let shown: u32 = parts.iter().map(|(_, part, _)| part).sum();
        parts.sort_by_key(|(_, _, lost)| std::cmp::Reverse(*lost));
        let left = parts.iter_mut().take((ALL - shown) as usize);
        left.for_each(|(_, part, _)| *part += 1);
        parts
            .into_iter()
            .map(|(owner, part, _)| (owner, part))
            .collect()
    }
}

/// The last samples, by interval.
#[derive(Debug, Default)]
pub struct Looks {
    now: Seen,
    before: VecDeque<Seen>,
}

impl Looks {
    /// Samples both CPUs.
    pub fn take(&mut self, source: &mut Source, profile: &Profile) -> Result<()> {
        let pcs = [Cpu::A, Cpu::B].map(|cpu| Register::cpu_pc(cpu).offset());
        let words = source.registers(&pcs.repeat(READS))?;
        for pair in words.chunks_exact(2) {
            for (cpu, pc) in [Cpu::A, Cpu::B].into_iter().zip(pair) {
                self.now.note(cpu, profile.owner(cpu, *pc).cloned());
            }
        }
        Ok(())
    }

    /// Ends an interval; returns the last samples.
    pub fn finish(&mut self) -> Seen {
        self.before.push_back(std::mem::take(&mut self.now));
        let mut seen = Seen::default();
        let mut kept = 0;
        for interval in self.before.iter().rev() {
            if seen.samples()[0] >= KEPT {
                break;
            }
            seen.add(interval);
            kept += 1;
        }
        self.before.drain(..self.before.len() - kept);
        seen
    }
}

/// A row of the handlers' table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Activity {
    /// The handler, a shared function, or another activity of the CPU.
    pub name: String,
    /// Runs per second; only handlers are counted.
    pub runs: Option<f64>,
    /// Its share of each CPU's time, of [`ALL`], where it was seen.
    pub parts: [Option<u32>; 2],
}

impl Activity {
    fn part(&self) -> u32 {
        self.parts.iter().flatten().sum()
    }
}

/// The name of idle time.
const IDLE: &str = "idle";

/// The table's rows: idle, then by share where known, then by runs.
pub fn activities(runs: impl Iterator<Item = (String, f64)>, seen: Option<&Seen>) -> Vec<Activity> {
    let mut rows: Vec<Activity> = runs
        .map(|(name, rate)| Activity {
            name,
            runs: Some(rate),
            ..Activity::default()
        })
        .collect();
    for (seen, cpu) in seen.into_iter().flat_map(|seen| [(seen, 0), (seen, 1)]) {
        for (owner, part) in seen.parts(cpu) {
            let (name, runs) = match owner {
                None => ("unknown code", None),
                Some(Owner::Idle) => (IDLE, None),
                Some(Owner::Handler(name)) => (name.as_str(), Some(0.0)),
                Some(Owner::Function(name)) => (name.as_str(), None),
            };
            let at = rows.iter().position(|row| row.name == name);
            let at = at.unwrap_or_else(|| {
                rows.push(Activity {
                    name: name.to_owned(),
                    runs,
                    ..Activity::default()
                });
                rows.len() - 1
            });
            rows[at].parts[cpu] = Some(part);
        }
    }
    rows.retain(|row| row.runs.is_some_and(|rate| rate > 0.0) || row.parts != [None; 2]);
    rows.sort_by(|a, b| {
        let (a_idle, b_idle) = (a.name == IDLE, b.name == IDLE);
        let runs = |row: &Activity| row.runs.unwrap_or(0.0);
        b_idle
            .cmp(&a_idle)
            .then(b.part().cmp(&a.part()))
            .then(runs(b).total_cmp(&runs(a)))
    });
    rows
}

/// The same in this many rows: the rest is merged into one, so that the shares are complete.
pub fn folded(mut rows: Vec<Activity>, room: usize) -> Vec<Activity> {
    if rows.len() <= room || room == 0 {
        return rows;
    }
    let rest = rows.split_off(room - 1);
    let mut others = Activity {
        name: format!("{} others", rest.len()),
        ..Activity::default()
    };
    for row in &rest {
        for (sum, part) in others.parts.iter_mut().zip(row.parts) {
            *sum = sum.map_or(part, |sum| Some(sum + part.unwrap_or(0)));
        }
        others.runs = others
            .runs
            .map_or(row.runs, |sum| Some(sum + row.runs.unwrap_or(0.0)));
    }
    rows.push(others);
    rows
}

#[cfg(test)]
pub mod tests {
    use super::*;

    fn handler(name: &str) -> Option<Owner> {
        Some(Owner::Handler(name.to_owned()))
    }

    /// What was seen of CPU A, or of both.
    pub fn seen<const N: usize>(samples: [(Cpu, Option<Owner>, u32); N]) -> Seen {
        let mut seen = Seen::default();
        for (cpu, owner, count) in samples {
            for _ in 0..count {
                seen.note(cpu, owner.clone());
            }
        }
        seen
    }

    /// Thirds and sevenths: each is rounded, and their sum is all the time there is.
    #[test]
    fn parts_of_a_cpus_time_add_up() {
        for others in [2, 6, 12] {
            let mut seen = Seen::default();
            for n in 0..=others {
                let owner = match n {
                    0 => Some(Owner::Idle),
                    n => handler(&format!("handler {n}")),
                };
                for _ in 0..ENOUGH + 11 * n {
                    seen.note(Cpu::A, owner.clone());
                }
            }
            seen.note(Cpu::A, None);
            let rows = activities(std::iter::empty(), Some(&seen));
            let sum: u32 = rows.iter().map(Activity::part).sum();
            assert_eq!((rows.len() as u32, sum), (others + 2, ALL));
            let idle = rows[0].parts[0].expect("seen");
            assert_eq!(
                seen.busy(0),
                Some(ALL - idle),
                "the load is what is not idle"
            );
            let few = folded(rows, 3);
            let sum: u32 = few.iter().map(Activity::part).sum();
            assert_eq!((few.len(), sum), (3, ALL));
        }
    }

    #[test]
    fn too_few_samples_tell_nothing() {
        let few = [
            (Cpu::A, Some(Owner::Idle), ENOUGH - 2),
            (Cpu::A, handler("Timer"), 1),
        ];
        let seen_few = seen(few);
        assert_eq!(seen_few.busy(0), None);
        let rows = || [("Timer".to_owned(), 1000.0)].into_iter();
        assert_eq!(activities(rows(), Some(&seen_few))[0].parts, [None; 2]);
        // A CPU that was never started is nowhere, however often one looks.
        let stopped = seen([(Cpu::B, None, 2 * ENOUGH)]);
        assert!(!stopped.is_running(1) && stopped.busy(1).is_none());
    }

    /// Each interval adds its samples, until as many are kept as the parts rest on.
    #[test]
    fn the_last_samples_are_kept() {
        let mut looks = Looks::default();
        let mut samples = Vec::new();
        for interval in 0..30 {
            let owner = if interval < 10 {
                Some(Owner::Idle)
            } else {
                handler("ReceiveComplete")
            };
            for _ in 0..160 {
                looks.now.note(Cpu::A, owner.clone());
            }
            let seen = looks.finish();
            samples.push(seen.samples()[0]);
            if interval == 4 {
                assert_eq!(seen.busy(0), Some(0));
            } else if interval == 14 {
                assert_eq!(seen.busy(0), Some(500));
            } else if interval == 29 {
                assert_eq!(seen.busy(0), Some(1000));
            }
        }
        assert_eq!(samples[..4], [160, 320, 480, 640]);
        assert!(samples[9..].iter().all(|samples| *samples == KEPT));
        assert!(looks.before.len() <= 11);
    }

    #[test]
    fn rows_are_handlers_with_runs_and_what_else_takes_time() {
        let runs = [("Timer", 1000.0), ("Mailbox", 5.0), ("Led", 0.0)];
        let runs = runs.map(|(name, rate)| (name.to_owned(), rate));
        let function = Some(Owner::Function("dma::queue".to_owned()));
        let seen = seen([
            (Cpu::A, Some(Owner::Idle), 600),
            (Cpu::A, handler("Mailbox"), 300),
            (Cpu::A, function.clone(), 100),
            (Cpu::B, Some(Owner::Idle), 800),
            (Cpu::B, function, 200),
        ]);
        let rows = activities(runs.into_iter(), Some(&seen));
        let shown: Vec<_> = rows
            .iter()
            .map(|row| (row.name.as_str(), row.runs, row.parts))
            .collect();
        assert_eq!(
            shown,
            [
                ("idle", None, [Some(600), Some(800)]),
                ("Mailbox", Some(5.0), [Some(300), None]),
                ("dma::queue", None, [Some(100), Some(200)]),
                ("Timer", Some(1000.0), [None, None]),
            ]
        );
    }
}
