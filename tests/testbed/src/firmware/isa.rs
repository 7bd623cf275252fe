//! Refuses instructions that the chip is not known to support.
//!
//! Hardware reference, section 3.1: no multiplier, no divider, no LL/SC, no unaligned access, no
//! coprocessor. The compiler's target allows some of them, so this checks every word of every
//! executable section of every firmware.

use anyhow::{Context, Result};
use object::{Endianness, Object, ObjectSection, ObjectSymbol, SectionFlags, SymbolKind};
use std::collections::BTreeMap;
use std::fmt;
use tigon2_chip::instruction::{Class, classify};

/// A forbidden instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Its address as linked.
    pub address: u64,
    /// Its encoding.
    pub word: u32,
    /// Its mnemonic.
    pub mnemonic: &'static str,
    /// Why it is forbidden.
    pub reason: String,
    /// The function that it is in, demangled.
    pub function: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fault {
            address,
            word,
            mnemonic,
            reason,
            function,
        } = self;
        write!(
            f,
            "{address:08x} {word:08x} {mnemonic} ({reason}) in {function}"
        )
    }
}

/// The forbidden instructions of an ELF, by address.
///
/// # Errors
/// When the bytes are no big-endian ELF with readable sections.
pub fn check(elf: &[u8]) -> Result<Vec<Fault>> {
    let file = parse(elf)?;
    let functions = functions(&file);
    let mut faults = Vec::new();
    for (address, word) in instructions(&file)? {
        if let Class::Forbidden(reason, mnemonic) = classify(word) {
            faults.push(Fault {
                address,
                word,
                mnemonic,
                reason: reason.to_string(),
                function: function_at(&functions, address),
            });
        }
    }
    faults.sort_by_key(|fault| fault.address);
    Ok(faults)
}

/// The mnemonics of the instructions in an ELF, and how often each occurs.
///
/// # Errors
/// As of [`check`].
pub fn mnemonics(elf: &[u8]) -> Result<BTreeMap<&'static str, usize>> {
    let mut counts = BTreeMap::new();
    for (_, word) in instructions(&parse(elf)?)? {
        *counts.entry(classify(word).name()).or_default() += 1;
    }
    Ok(counts)
}

fn parse(elf: &[u8]) -> Result<object::File<'_>> {
    let file = object::File::parse(elf).context("not an ELF")?;
    anyhow::ensure!(file.endianness() == Endianness::Big, "not a big-endian ELF");
    Ok(file)
}

/// Address and word of every instruction.
fn instructions(file: &object::File<'_>) -> Result<Vec<(u64, u32)>> {
    let mut instructions = Vec::new();
    for section in file.sections().filter(is_executable) {
        let data = section.data().context("a section without its bytes")?;
        let words = data
            .chunks_exact(4)
            .map(|bytes| u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
        let addresses = (section.address()..).step_by(4);
        instructions.extend(addresses.zip(words));
    }
    Ok(instructions)
}

fn is_executable<'data>(section: &impl ObjectSection<'data>) -> bool {
    let SectionFlags::Elf { sh_flags, .. } = section.flags() else {
        return false;
    };
    sh_flags.contains(object::elf::SHF_EXECINSTR)
}

/// Address and demangled name of every function, by address.
fn functions(file: &object::File<'_>) -> Vec<(u64, String)> {
    let mut functions: Vec<(u64, String)> = file
        .symbols()
        .filter(|symbol| symbol.kind() == SymbolKind::Text || symbol.is_definition())
        .filter_map(|symbol| {
            let name = symbol.name().ok().filter(|name| !name.is_empty())?;
            Some((
                symbol.address(),
                format!("{:#}", rustc_demangle::demangle(name)),
            ))
        })
        .collect();
    functions.sort();
    functions
}

fn function_at(functions: &[(u64, String)], address: u64) -> String {
    let after = functions.partition_point(|(start, _)| *start <= address);
    match after.checked_sub(1).and_then(|last| functions.get(last)) {
        Some((_, name)) => name.clone(),
        None => "no function".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::write::{Object as Writer, Symbol, SymbolSection};
    use object::{Architecture, BinaryFormat, SectionKind, SymbolFlags, SymbolScope};

    /// An ELF with one function after the other in `.text`.
    fn elf(functions: &[(&str, &[u32])]) -> Vec<u8> {
        let mut file = Writer::new(BinaryFormat::Elf, Architecture::Mips, Endianness::Big);
        let text = file.add_section(Vec::new(), b".text".to_vec(), SectionKind::Text);
        let data = file.add_section(Vec::new(), b".rodata".to_vec(), SectionKind::ReadOnlyData);
        // The word of `mult`, as data: not an instruction.
        file.append_section_data(data, &0x0085_0018_u32.to_be_bytes(), 4);
        for (name, words) in functions {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
            let value = file.append_section_data(text, &bytes, 4);
            file.add_symbol(Symbol {
                name: name.as_bytes().to_vec(),
                value,
                size: bytes.len() as u64,
                kind: SymbolKind::Text,
                scope: SymbolScope::Linkage,
                weak: false,
                section: SymbolSection::Section(text),
                flags: SymbolFlags::None,
            });
        }
        file.write().expect("an ELF")
    }

    /// addiu, lw, jr, nop.
    const GOOD: &[u32] = &[0x2442_0001, 0x8C42_0000, 0x03E0_0008, 0];

    #[test]
    fn a_clean_firmware_passes() {
        let elf = elf(&[("start", GOOD), ("dispatch", GOOD)]);
        assert_eq!(check(&elf).expect("an ELF"), []);
        let counts = mnemonics(&elf).expect("an ELF").into_iter();
        let expected = [("addiu", 2), ("jr", 2), ("lw", 2), ("sll", 2)];
        assert_eq!(counts.collect::<Vec<_>>(), expected);
    }

    /// Reference 3.1: no multiplier.
    #[test]
    fn a_multiply_is_refused_and_its_function_named() {
        let mangled = "_RNvNtCs1234_14tigon_firmware4send5scale";
        let bad = [0x2442_0001, 0x0085_0018, 0x0000_1012];
        let faults = check(&elf(&[("start", GOOD), (mangled, &bad), ("after", GOOD)]));
        let faults = faults.expect("an ELF");
        let seen: Vec<_> = faults.iter().map(|f| (f.address, f.mnemonic)).collect();
        assert_eq!(seen, [(0x14, "mult"), (0x18, "mflo")]);
        assert_eq!(faults[0].function, "tigon_firmware::send::scale");
        assert_eq!(
            faults[0].to_string(),
            "00000014 00850018 mult (multiply) in tigon_firmware::send::scale"
        );
    }

    /// Reference 3.1: divide, LL/SC, unaligned and coprocessor instructions.
    #[test]
    fn the_other_kinds_are_refused_too() {
        let bad = [
            0x0085_001A,
            0xC082_0000,
            0xE082_0000,
            0x8882_0000,
            0xB882_0000,
            0x4002_6000,
            0x0000_000F,
        ];
        let faults = check(&elf(&[("bad", &bad)])).expect("an ELF");
        let seen: Vec<_> = faults.iter().map(|fault| fault.mnemonic).collect();
        assert_eq!(seen, ["div", "ll", "sc", "lwl", "swr", "cop", "sync"]);
    }

    #[test]
    fn something_else_than_a_big_endian_elf_is_an_error() {
        assert!(check(b"#!/bin/sh").is_err());
        let little = Writer::new(BinaryFormat::Elf, Architecture::Mips, Endianness::Little);
        assert!(check(&little.write().expect("an ELF")).is_err());
    }
}
