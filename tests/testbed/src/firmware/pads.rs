//! Whether hot code is where its CPU finds it.
//!
//! Both scratch pads have the same addresses, so a call from one CPU's hot code to that of
//! the other links well and goes astray: the address holds something else there. And what
//! is marked hot must lie in a pad, where the placement wants it there.

use anyhow::{Context, Result};
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};
use std::collections::BTreeSet;
use tigon2_chip::Cpu;
use tigon2_chip::memory::{SCRATCH_BASE, scratch_bytes};

/// The sections of hot code.
const HOT: [&str; 2] = [".scratch_a.text", ".scratch_b.text"];
/// Opcode of `jal`, and its target's bits.
const JAL: u32 = 3;
const TARGET: u32 = 0x03FF_FFFF;

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
            .filter(|symbol| symbol.section_index() == Some(section.index()))
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
    Ok(faults)
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
}
