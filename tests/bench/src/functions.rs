//! Which function of the firmware an instruction is in, and which the CPUs of two cards are in over
//! time.

use anyhow::Result;
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;
use tigon2_chip::Cpu;
use tigon2_sim::transport::SharedMachine;

/// What the text of extensions is called.
pub const EXTENSION: &str = "the extension's own text";
/// Two cycles in nanoseconds: between two looks at the program counters.
pub const LOOK_NS: u64 = 23;
/// What has no function: pieces of assembly of the dispatch loop.
const ELSEWHERE: &str = "elsewhere";
/// What the dispatch loop is called in a [`Run`], with its idle turns.
const LOOP: &str = "the dispatch loop";

/// The functions of one CPU while a domain is loaded or an endpoint is open.
pub struct Functions {
    /// By their first address: end and name.
    named: BTreeMap<u32, (u32, String)>,
    extensions: Vec<Range<u32>>,
}

impl Functions {
    /// Those of a firmware's ELF file; the text of extensions is in these pieces of memory.
    ///
    /// # Errors
    /// If it is no such file.
    pub fn of(elf: &[u8], extensions: &[Range<u32>], cpu: Cpu) -> Result<Functions> {
        let file = object::File::parse(elf)?;
        // The pads of both CPUs have the same addresses, and where the host's frames have their code
        // is other code now.
        let endpoints = file.section_by_name(".scratch_b.endpoints");
        let has_endpoints = endpoints.is_some_and(|section| section.size() != 0);
        let is_away = |name: &str| match cpu {
            Cpu::A => name.starts_with(".scratch_b") || name == ".scratch_a.host",
            _ => name.starts_with(".scratch_a") || has_endpoints && name == ".scratch_b.text",
        };
        let is_elsewhere = |index| {
            let section = file.section_by_index(index).ok();
            let name = section.as_ref().and_then(|section| section.name().ok());
            name.is_some_and(is_away)
        };
        let text_symbols = file.symbols().filter(|symbol| {
            symbol.kind() == SymbolKind::Text && !symbol.section_index().is_some_and(is_elsewhere)
        });
        let named = text_symbols.filter_map(|symbol| {
            let name = format!("{:#}", rustc_demangle::demangle(symbol.name().ok()?));
            let (start, bytes) = (symbol.address() as u32, symbol.size() as u32);
            Some((start, (start + bytes, name)))
        });
        Ok(Functions {
            named: named.collect(),
            extensions: extensions.to_vec(),
        })
    }

    /// The name of the function that an instruction is in, without the path.
    pub fn at(&self, pc: u32) -> &str {
        let found = self.named.range(..=pc).next_back();
        match found.filter(|(_, (end, _))| pc < *end) {
            _ if self.extensions.iter().any(|text| text.contains(&pc)) => EXTENSION,
            Some((_, (_, name))) => name,
            None => ELSEWHERE,
        }
    }
}

/// A CPU that was in one function for some time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// From when to when, in nanoseconds.
    pub time: Range<u64>,
    /// The card, and its CPU.
    pub of: (usize, Cpu),
    /// The function.
    pub function: String,
}

/// Looks at the program counters of cards that run the same firmware.
pub struct Looks {
    /// The functions of each CPU.
    functions: [(Cpu, Functions); 2],
    done: Vec<Run>,
    in_work: BTreeMap<(usize, Cpu), Run>,
}

impl Looks {
    /// At a firmware's functions: see [`Functions::of`].
    ///
    /// # Errors
    /// As of [`Functions::of`].
    pub fn new(elf: &[u8], extensions: &[Range<u32>]) -> Result<Looks> {
        let of = |cpu| Ok::<_, anyhow::Error>((cpu, Functions::of(elf, extensions, cpu)?));
        Ok(Looks {
            functions: [of(Cpu::A)?, of(Cpu::B)?],
            done: Vec::new(),
            in_work: BTreeMap::new(),
        })
    }

    /// Looks once at each card's CPUs.
    pub fn take(&mut self, cards: &[SharedMachine]) {
        for (number, card) in cards.iter().enumerate() {
            let card = card.lock();
            for (cpu, functions) in &self.functions {
                let function = functions.at(card.cpus().core(*cpu).pc());
                let is_loop = function.starts_with("dispatch_") || function == ELSEWHERE;
                let function = if is_loop { LOOP } else { function };
                let (now, of) = (card.now(), (number, *cpu));
                if let Some(run) = self.in_work.get_mut(&of) {
                    run.time.end = now;
                    if run.function == function {
                        continue;
                    }
                }
                let next = Run {
                    time: now..now,
                    of,
                    function: function.to_owned(),
                };
                self.done.extend(self.in_work.insert(of, next));
            }
        }
    }

    /// All runs that they have shown, in the order of their beginning.
    pub fn runs(mut self) -> Vec<Run> {
        self.done.extend(self.in_work.into_values());
        self.done.sort_by_key(|run| (run.time.start, run.of));
        self.done
    }
}

/// A function's name without the type of the bus, which is the same everywhere.
fn short(function: &str) -> &str {
    function.split("::<").next().unwrap_or(function)
}

/// A line for each run: when it begins, behind a time, and how long it takes, in microseconds.
pub fn listing(runs: &[Run], begin: u64) -> String {
    let mut text = String::from("     begins       takes  card  CPU  function\n");
    for run in runs {
        let begins = run.time.start.saturating_sub(begin) as f64 / 1e3;
        let takes = (run.time.end - run.time.start) as f64 / 1e3;
        let (card, cpu) = run.of;
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{begins:8.3} us {takes:8.3} us     {card}    {cpu:?}  {}",
            short(&run.function)
        );
    }
    text
}
