//! Checks that hot code lies where its CPU can execute it.
//!
//! Where code takes the place of other code of the same CPU, neither calls the other. On CPU B cold
//! code, which runs beside either, calls none of what may be away; on CPU A that is one function,
//! which the jump table alone leads to.
//!
//! Both scratch pads have the same addresses, so a call from one CPU's hot code to the other's
//! links without an error and fails at run time: the address holds something else there. Functions
//! that are marked hot must lie in a scratch pad where the placement wants them there. Only one
//! CPU has hot code at an address, because a debugger distinguishes the CPUs by it; boards with
//! larger pads are exempt, and [`OVER`], whose names are [elsewhere](super::names).

use anyhow::{Context, Result};
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};
use std::collections::BTreeSet;
use tigon2_chip::Cpu;
use tigon2_chip::memory::{SCRATCH_BASE, scratch_bytes};

/// The sections of hot code.
const HOT: [&str; 8] = [
    ".scratch_a.low",
    ".scratch_a.low_ahead",
    OVER,
    ".scratch_a.text",
    OVERLAID_A[0],
    OVERLAID_A[1],
    HOST,
    ENDPOINTS,
];
/// CPU A's code of the host's frames, and what takes its place while extensions are loaded or
/// endpoints are open.
const OVERLAID_A: [&str; 2] = [".scratch_a.host", ".scratch_a.system"];
/// Hot code of CPU B, and what takes its place while endpoints are open.
pub(super) const HOST: &str = ".scratch_b.text";
const ENDPOINTS: &str = ".scratch_b.endpoints";
/// Cold code.
const COLD: &str = ".text";
/// Hot code of CPU A where CPU B has some, which is [hidden](super::overlaps) from debuggers.
pub(super) const OVER: &str = ".scratch_a.over";
/// Opcode of `jal`, and its target's bits.
const JAL: u32 = 3;
const TARGET: u32 = 0x03FF_FFFF;

/// Whose pad a section is for: `.scratch_a` of `.scratch_a.text`.
fn pad_of(section: &str) -> Option<&str> {
    let (pad, _) = section.rsplit_once('.')?;
    Some(pad)
}

/// What is wrong with the hot code of an ELF, one line each; `in_pads` says whether it
/// belongs into the scratch pads.
///
/// # Errors
/// When the bytes are no ELF.
pub fn check(elf: &[u8], in_pads: bool) -> Result<Vec<String>> {
    let file = object::File::parse(elf).context("not an ELF")?;
    let pad = u64::from(SCRATCH_BASE)..u64::from(SCRATCH_BASE + scratch_bytes(Cpu::A));
    let mut faults = Vec::new();
    for section in file.sections() {
        let name = section.name().unwrap_or_default();
        if !HOT.contains(&name) || section.size() == 0 {
            continue;
        }
        if pad.contains(&section.address()) != in_pads {
            faults.push(format!("{name} is at {:#x}", section.address()));
        }
        let functions: BTreeSet<u64> = file
            .symbols()
            .filter(|symbol| symbol.kind() == SymbolKind::Text)
            .filter(|symbol| {
                let of = symbol
                    .section_index()
                    .and_then(|at| file.section_by_index(at).ok());
                of.is_some_and(|of| sees(name, of.name().unwrap_or_default()))
            })
            .map(|symbol| symbol.address())
            .collect();
        let bytes = section.data().context("a section without bytes")?;
        for (at, bytes) in (section.address()..).step_by(4).zip(bytes.chunks_exact(4)) {
            let word = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            let target = u64::from((word & TARGET) << 2);
            if word >> 26 == JAL && pad.contains(&target) && !functions.contains(&target) {
                faults.push(format!(
                    "{name} calls {target:#x} of the other CPU at {at:#x}"
                ));
            }
        }
    }
    faults.extend(calls_away(&file)?);
    let larger_pads = file
        .symbols()
        .any(|symbol| symbol.name() == Ok("_scratch_b_bytes"));
    if in_pads && !larger_pads {
        faults.extend(shared_addresses(&file));
    }
    Ok(faults)
}

/// Whether code of one section finds that of another.
fn sees(name: &str, other: &str) -> bool {
    let both = |pair: [&str; 2]| pair.contains(&name) && pair.contains(&other);
    let is_away = other != name && (both([HOST, ENDPOINTS]) || both(OVERLAID_A));
    pad_of(other) == pad_of(name) && !is_away
}

/// Calls of cold code to the host's hot code on CPU B, where that may be away.
fn calls_away(file: &object::File<'_>) -> Result<Vec<String>> {
    let functions = |wanted: &dyn Fn(&str) -> bool| -> BTreeSet<u64> {
        file.symbols()
            .filter(|symbol| symbol.kind() == SymbolKind::Text)
            .filter(|symbol| {
                let of = symbol
                    .section_index()
                    .and_then(|at| file.section_by_index(at).ok());
                of.is_some_and(|of| wanted(of.name().unwrap_or_default()))
            })
            .map(|symbol| symbol.address())
            .collect()
    };
    let overlaid = file.section_by_name(ENDPOINTS);
    let Some(cold) = file.section_by_name(COLD) else {
        return Ok(Vec::new());
    };
    if overlaid.is_none_or(|overlaid| overlaid.size() == 0) {
        return Ok(Vec::new());
    }
    let host = functions(&|name| name == HOST);
    let others = functions(&|name| HOT.contains(&name) && name != HOST);
    let bytes = cold.data().context("a section without bytes")?;
    let words = (cold.address()..).step_by(4).zip(bytes.chunks_exact(4));
    Ok(words
        .map(|(at, bytes)| {
            (
                at,
                u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
            )
        })
        .filter(|(_, word)| word >> 26 == JAL)
        .map(|(at, word)| (at, u64::from((word & TARGET) << 2)))
        .filter(|(_, target)| host.contains(target) && !others.contains(target))
        .map(|(at, target)| format!("{COLD} calls {target:#x} of {HOST} at {at:#x}"))
        .collect())
}

/// Hot code of the two CPUs at the same addresses.
fn shared_addresses(file: &object::File<'_>) -> Vec<String> {
    let hot: Vec<_> = file
        .sections()
        .filter_map(|section| {
            let name = section.name().ok()?.to_owned();
            let range = section.address()..section.address() + section.size();
            let is_seen = HOT.contains(&name.as_str()) && name != OVER && !range.is_empty();
            is_seen.then_some((name, range))
        })
        .collect();
    let mut faults = Vec::new();
    for (at, (name, range)) in hot.iter().enumerate() {
        for (other, beside) in hot.get(at + 1..).unwrap_or_default() {
            let apart = range.end <= beside.start || beside.end <= range.start;
            if pad_of(name) != pad_of(other) && !apart {
                let shared = range.start.max(beside.start)..range.end.min(beside.end);
                faults.push(format!(
                    "{name} and {other} share {} bytes at {:#x}",
                    shared.end - shared.start,
                    shared.start
                ));
            }
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::write::{Object, Symbol, SymbolSection};
    use object::{Architecture, BinaryFormat, Endianness, SectionKind, SymbolFlags, SymbolScope};

    /// Hot code of CPU B, as a relocatable file: its section begins at 0.
    fn hot(words: &[u32]) -> Vec<u8> {
        let mut object = Object::new(BinaryFormat::Elf, Architecture::Mips, Endianness::Big);
        let section = object.add_section(vec![], b".scratch_b.text".to_vec(), SectionKind::Text);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        object.append_section_data(section, &bytes, 4);
        object.add_symbol(Symbol {
            name: b"handler".to_vec(),
            value: 0,
            size: 4,
            kind: SymbolKind::Text,
            scope: SymbolScope::Linkage,
            weak: false,
            section: SymbolSection::Section(section),
            flags: SymbolFlags::None,
        });
        object.write().expect("an ELF")
    }

    #[test]
    fn calls_into_the_other_pad_and_code_outside_of_the_pads_are_found() {
        let call = |address: u32| JAL << 26 | address >> 2;
        let cold = check(&hot(&[call(0x4000), 0]), false).expect("an ELF");
        assert_eq!(cold, Vec::<String>::new());
        let astray = check(&hot(&[call(0x00C0_0800), 0]), false).expect("an ELF");
        assert_eq!(astray.len(), 1, "{astray:?}");
        assert!(astray[0].contains("calls 0xc00800"), "{astray:?}");
        let fallen = check(&hot(&[0]), true).expect("an ELF");
        assert!(
            fallen[0].contains(".scratch_b.text is at 0x0"),
            "{fallen:?}"
        );
        assert!(check(b"no ELF", true).is_err());
    }

    /// Cold code that calls what endpoints' code may have replaced.
    #[test]
    fn calls_to_code_that_may_be_away_are_found() {
        let file = |cold_calls: u64, endpoints: &[u8]| {
            let mut object = Object::new(BinaryFormat::Elf, Architecture::Mips, Endianness::Big);
            let call = (JAL << 26 | (cold_calls >> 2) as u32).to_be_bytes();
            for (name, bytes, function) in [
                (COLD, &call[..], 0x20),
                (HOST, &[0; 16][..], 8),
                (ENDPOINTS, endpoints, 12),
            ] {
                let section = object.add_section(vec![], name.into(), SectionKind::Text);
                object.append_section_data(section, bytes, 4);
                object.add_symbol(Symbol {
                    name: name.into(),
                    value: function,
                    size: 4,
                    kind: SymbolKind::Text,
                    scope: SymbolScope::Linkage,
                    weak: false,
                    section: SymbolSection::Section(section),
                    flags: SymbolFlags::None,
                });
            }
            check(&object.write().expect("an ELF"), false).expect("an ELF")
        };
        assert_eq!(file(12, &[0; 16]), Vec::<String>::new());
        assert_eq!(file(8, &[]), Vec::<String>::new());
        let faults = file(8, &[0; 16]);
        assert!(
            faults[0].contains(".text calls 0x8 of .scratch_b.text"),
            "{faults:?}"
        );
        assert!(sees(HOST, HOST) && !sees(HOST, ENDPOINTS) && !sees(ENDPOINTS, HOST));
        let [host, system] = OVERLAID_A;
        assert!(sees(system, system) && !sees(host, system) && !sees(system, host));
        assert!(sees(system, ".scratch_a.text") && sees(OVER, system));
    }

    /// Sections of a relocatable file all begin at 0.
    #[test]
    fn hot_code_of_both_cpus_at_one_address_is_found() {
        let mut object = Object::new(BinaryFormat::Elf, Architecture::Mips, Endianness::Big);
        for name in [".scratch_a.low", OVER, ".scratch_b.text", ".scratch_b.data"] {
            let section = object.add_section(vec![], name.into(), SectionKind::Text);
            object.append_section_data(section, &[0; 8], 4);
        }
        let faults = check(&object.write().expect("an ELF"), true).expect("an ELF");
        let shared = ".scratch_a.low and .scratch_b.text share 8 bytes at 0x0".to_owned();
        assert!(faults.contains(&shared), "{faults:?}");
        assert_eq!(
            faults
                .iter()
                .filter(|fault| fault.contains("share"))
                .count(),
            1
        );
    }
}
