//! Code spans of the firmware's ELF file: jump tables, functions and calls.

use super::{Owner, Profile, Span};
use crate::log::{BuildId, LogError};
use object::{Object, ObjectSection, ObjectSymbol, SectionIndex, SymbolKind};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use tigon2_chip::Cpu;
use tigon2_chip::events::EventBit;

/// The prefix of the symbols of the tables and of the loop. A symbol with the suffix `_b` is CPU
/// B's.
const TABLE: &str = "dispatch_table";
const LOOP: &str = "dispatch_";
/// Entries of a table: none pending, then one an event bit. Bytes of an entry.
const ENTRIES: u32 = 33;
const ENTRY: u32 = 8;
/// Opcodes of `j` and `jal`, and their target's bits.
const J: u32 = 2;
const JAL: u32 = 3;
const TARGET: u32 = 0x03FF_FFFF;

/// A function, by its section and address: both scratch pads have the same addresses.
type Place = (usize, u32);

/// The functions that each function calls.
type Calls = BTreeMap<Place, Vec<Place>>;

struct Code<'a> {
    file: object::File<'a>,
    functions: BTreeMap<Place, (u32, String)>,
}

/// See [`Profile::parse`].
pub(super) fn parse(bytes: &[u8]) -> Result<Profile, LogError> {
    let file = object::File::parse(bytes).map_err(|error| LogError::NotElf(error.to_string()))?;
    let build = BuildId::of_elf(&file)?;
    let functions = functions(&file);
    let code = Code { file, functions };
    Ok(Profile {
        spans: [Cpu::A, Cpu::B].map(|cpu| code.spans(cpu)),
        build,
    })
}

fn functions(file: &object::File<'_>) -> BTreeMap<Place, (u32, String)> {
    let functions = file.symbols().filter(|symbol| {
        symbol.kind() == SymbolKind::Text && symbol.size() > 0 && symbol.address() > 0
    });
    functions
        .filter_map(|symbol| {
            let place = (symbol.section_index()?.0, symbol.address() as u32);
            let name = format!("{:#}", rustc_demangle::demangle(symbol.name().ok()?));
            // The last two parts of the path, without generic arguments.
            let plain = name.split('<').find(|part| !part.is_empty())?;
            let plain = plain.trim_end_matches("::");
            let parts: Vec<&str> = plain.rsplitn(3, "::").take(2).collect();
            let name = parts.into_iter().rev().collect::<Vec<_>>().join("::");
            Some((place, (symbol.size() as u32, name)))
        })
        .collect()
}

impl Code<'_> {
    /// Whether a CPU can run code of a section.
    fn sees(&self, cpu: Cpu, section: usize) -> bool {
        let section = self.file.section_by_index(SectionIndex(section));
        let name = section.as_ref().ok().and_then(|found| found.name().ok());
        let pad = name.and_then(|name| name.strip_prefix(".scratch_"));
        let mine = cpu.to_string().to_lowercase();
        name.is_some() && pad.is_none_or(|pad| pad.starts_with(&mine))
    }

    /// The function that a CPU runs at an address, if one begins there.
    fn function(&self, cpu: Cpu, address: u32) -> Option<Place> {
        let places = self.functions.keys();
        let mut found = places.filter(|place| place.1 == address && self.sees(cpu, place.0));
        found.next().copied()
    }

    /// The word at an address of a section.
    fn word(&self, section: usize, at: u32) -> Option<u32> {
        let section = self.file.section_by_index(SectionIndex(section)).ok()?;
        let bytes = section.data_range(u64::from(at), 4).ok()??;
        Some(u32::from_be_bytes(bytes.try_into().ok()?))
    }

    /// The target of an instruction, if it is one of these jumps.
    fn jump(&self, section: usize, at: u32, opcodes: &[u32]) -> Option<u32> {
        let word = self.word(section, at)?;
        let target = at & 0xF000_0000 | (word & TARGET) << 2;
        opcodes.contains(&(word >> 26)).then_some(target)
    }

    fn spans(&self, cpu: Cpu) -> Vec<Span> {
        let mut spans = Vec::new();
        let mut handlers = BTreeMap::new();
        for table in self.file.symbols() {
            let name = table.name().unwrap_or_default();
            let of_b = name.ends_with("_b");
            let Some(section) = table.section_index().filter(|_| name.starts_with(TABLE)) else {
                continue;
            };
            let section = section.0;
            if of_b != (cpu == Cpu::B) {
                continue;
            }
            for entry in 0..ENTRIES {
                let at = table.address() as u32 + entry * ENTRY;
                let handler = self.handler(cpu, section, at);
                let event = entry.checked_sub(1).and_then(EventBit::from_number);
                let owner = match (handler, event) {
                    (Some((place, through)), Some(event)) => {
                        let owner = Owner::Handler(name_of(event, cpu));
                        handlers.insert(place, owner.clone());
                        spans.extend(through.map(|at| Span {
                            code: at..at + ENTRY,
                            owner: owner.clone(),
                        }));
                        owner
                    }
                    _ => Owner::Idle,
                };
                spans.push(Span {
                    code: at..at + ENTRY,
                    owner,
                });
            }
        }
        spans.extend(self.of_functions(cpu, &handlers));
        spans.sort_by_key(|span| span.code.start);
        spans
    }

    /// The handler behind an entry of a table, and the address of an intermediate jump, if there is
    /// one.
    fn handler(&self, cpu: Cpu, section: usize, at: u32) -> Option<(Place, Option<u32>)> {
        let target = self.jump(section, at, &[J])?;
        let further = || {
            let place = self.function(cpu, self.jump(section, target, &[J])?)?;
            Some((place, Some(target)))
        };
        let direct = self.function(cpu, target).map(|place| (place, None));
        let found = direct.or_else(further)?;
        (!self.functions.get(&found.0)?.1.starts_with(LOOP)).then_some(found)
    }

    fn of_functions(&self, cpu: Cpu, handlers: &BTreeMap<Place, Owner>) -> Vec<Span> {
        let mine = self.functions.iter();
        let mine = mine.filter(|(place, _)| self.sees(cpu, place.0));
        let calls: Calls = mine
            .clone()
            .map(|(place, _)| (*place, self.calls(cpu, *place)))
            .collect();
        let mut callers: BTreeMap<Place, BTreeSet<&Owner>> = BTreeMap::new();
        for (handler, owner) in handlers {
            for place in reached(&calls, *handler) {
                callers.entry(place).or_default().insert(owner);
            }
        }
        mine.map(|(place, (bytes, name))| {
            let only = callers.get(place).filter(|callers| callers.len() == 1);
            let only = only.and_then(|callers| callers.first()).copied();
            let owner = match handlers.get(place).or(only) {
                Some(owner) => owner.clone(),
                None if name.starts_with(LOOP) => Owner::Idle,
                None => Owner::Function(name.clone()),
            };
            Span {
                code: place.1..place.1 + bytes,
                owner,
            }
        })
        .collect()
    }

    fn calls(&self, cpu: Cpu, place: Place) -> Vec<Place> {
        let (section, start) = place;
        let bytes = self.functions.get(&place).map_or(0, |(bytes, _)| *bytes);
        let code: Range<u32> = start..start + bytes;
        let jumps = code.clone().step_by(4);
        let targets = jumps.filter_map(|at| self.jump(section, at, &[J, JAL]));
        let outside = targets.filter(|target| !code.contains(target));
        outside
            .filter_map(|target| self.function(cpu, target))
            .collect()
    }
}

/// All functions that a handler calls, directly or not, and itself.
fn reached(calls: &Calls, from: Place) -> BTreeSet<Place> {
    let mut reached = BTreeSet::new();
    let mut left = vec![from];
    while let Some(place) = left.pop() {
        if reached.insert(place) {
            left.extend(calls.get(&place).into_iter().flatten());
        }
    }
    reached
}

/// The name under which its runs are counted: each side has its own timer handler.
fn name_of(event: EventBit, cpu: Cpu) -> String {
    match (event, cpu) {
        (EventBit::Timer, Cpu::B) => "SendTimer".to_owned(),
        _ => event.name().to_owned(),
    }
}
