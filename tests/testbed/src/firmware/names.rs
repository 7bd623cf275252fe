//! Gives code that both CPUs have at one address a name of one of them in debug information.
//!
//! Each CPU sees its own scratch pad at the same addresses, and CPU A has some of its hot code
//! ([`OVER`]) where CPU B has other code. A debugger goes by addresses alone: whoever steps through
//! CPU B would see CPU A's functions. So the debug information of one of the two is moved out of the
//! way, to addresses where nothing is:
//!
//! ```text
//!                          0xC01000       0xC02000        0xD01000
//! names of CPU B, as built  CPU B's code                   CPU A's .scratch_a.over
//! names of CPU A            .scratch_a.over                CPU B's code
//! ```
//!
//! The linker leaves its relocations (`--emit-relocs`): they say which section an address in
//! `.debug_*` belongs to. Code, symbols and segments stay as they are.

use super::pads::{HOST, OVER};
use anyhow::{Context, Result, bail};
use object::elf::{R_MIPS_32, SHT_REL};
use object::read::elf::{ElfFile32, Rel, SectionHeader};
use object::{
    Endianness, Object, ObjectSection, ObjectSymbol, SectionIndex, SymbolIndex, SymbolKind,
};
use tigon2_chip::Cpu;

/// How far it is moved.
const AWAY: u32 = 0x10_0000;

/// Names `cpu`'s code at the addresses at which both have some, in an ELF as it was built.
///
/// # Errors
/// When the bytes are no ELF of the firmware.
pub fn of(elf: &mut [u8], cpu: Cpu) -> Result<()> {
    if cpu == Cpu::A {
        shift(elf, OVER, AWAY.wrapping_neg())?;
        shift(elf, HOST, AWAY)?;
    }
    Ok(())
}

/// Names CPU B's code in an ELF as it was linked.
///
/// # Errors
/// When the bytes are no ELF.
pub(super) fn of_b(elf: &mut [u8]) -> Result<()> {
    shift(elf, OVER, AWAY)
}

/// Whether `cpu`'s names include this symbol's section.
pub fn include(cpu: Cpu, section: &str) -> bool {
    section != if cpu == Cpu::A { HOST } else { OVER }
}

/// Adds `bytes` to each address of a section in debug information.
fn shift(elf: &mut [u8], section: &str, bytes: u32) -> Result<()> {
    for place in places(elf, section)? {
        let word = elf.get_mut(place..place + 4).context("a cut ELF")?;
        let address = u32::from_be_bytes(word.try_into()?).wrapping_add(bytes);
        word.copy_from_slice(&address.to_be_bytes());
    }
    Ok(())
}

/// Where in the file the addresses of a section stand in debug information.
fn places(elf: &[u8], section: &str) -> Result<Vec<usize>> {
    let file = ElfFile32::<Endianness>::parse(elf).context("not a 32-bit ELF")?;
    let (endian, table) = (file.endian(), file.elf_section_table());
    if endian != Endianness::Big {
        bail!("an ELF of another byte order");
    }
    let Some(wanted) = file.section_by_name(section) else {
        return Ok(Vec::new());
    };
    let mut places = Vec::new();
    for header in table
        .iter()
        .filter(|header| header.sh_type(endian) == SHT_REL)
    {
        let target = SectionIndex(header.sh_info(endian) as usize);
        let target = file.section_by_index(target).context("a relocation")?;
        if !target.name().unwrap_or_default().starts_with(".debug_") {
            continue;
        }
        let (at, _) = target.file_range().context("a section without bytes")?;
        let Some((entries, _)) = header.rel(endian, elf)? else {
            continue;
        };
        for entry in entries {
            // Addresses in merged sections have no symbol.
            let symbol = SymbolIndex(entry.r_sym(endian) as usize);
            if symbol.0 == 0 || entry.r_type(endian) != R_MIPS_32 {
                continue;
            }
            let symbol = file.symbol_by_index(symbol)?;
            let is_section = symbol.kind() == SymbolKind::Section;
            if is_section && symbol.section_index() == Some(wanted.index()) {
                places.push(at as usize + entry.r_offset(endian) as usize);
            }
        }
    }
    Ok(places)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::firmware::{FirmwareOptions, Placement, Variant, build};

    /// Addresses in debug information of code of these sections.
    fn addresses(elf: &[u8], section: &str) -> Vec<u32> {
        let places = places(elf, section).expect("the firmware's ELF");
        let word = |at: usize| u32::from_be_bytes(elf[at..at + 4].try_into().expect("a word"));
        places.into_iter().map(word).collect()
    }

    #[test]
    fn an_address_has_the_name_of_one_cpu() {
        let built = build(FirmwareOptions {
            variant: Variant::Parallel,
            placement: Placement::Scratch,
            quiet: true,
        });
        let mut elf = std::fs::read(built.expect("it builds").elf).expect("the ELF");
        let pad = 0xC0_0000..0xC0_4000;
        let is_named = |elf: &[u8], section: &str| {
            let addresses = addresses(elf, section);
            let there = addresses
                .iter()
                .filter(|address| pad.contains(*address))
                .count();
            assert!(!addresses.is_empty(), "{section} has debug information");
            assert!(there == 0 || there == addresses.len(), "{section}");
            there != 0
        };
        assert_eq!(
            [OVER, HOST].map(|section| is_named(&elf, section)),
            [false, true]
        );
        of(&mut elf, Cpu::B).expect("an ELF");
        assert_eq!(
            [OVER, HOST].map(|section| is_named(&elf, section)),
            [false, true]
        );
        of(&mut elf, Cpu::A).expect("an ELF");
        assert_eq!(
            [OVER, HOST].map(|section| is_named(&elf, section)),
            [true, false]
        );
    }
}
