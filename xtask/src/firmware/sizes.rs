//! How much of each memory a firmware uses.

use anyhow::{Context, Result};
use object::{Object, ObjectSection, ObjectSymbol, SectionFlags};
use serde::Serialize;
use std::fmt;
use tigon2_chip::Cpu;
use tigon2_chip::memory::{FIRMWARE_BASE, SCRATCH_BASE, scratch_bytes};

/// One memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MemoryUse {
    /// What it is called.
    pub name: &'static str,
    /// Bytes used.
    pub used: u64,
    /// Bytes there.
    pub there: u64,
}

impl fmt::Display for MemoryUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<10} {:>6} of {:>6} bytes used",
            self.name, self.used, self.there
        )
    }
}

/// All memories of one firmware.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sizes {
    /// SRAM for the image and its variables, then the scratch pads of CPU A and CPU B.
    pub memories: Vec<MemoryUse>,
}

/// Measures an ELF.
///
/// # Errors
/// When the bytes are no ELF or lack the linker script's symbols.
pub fn measure(elf: &[u8]) -> Result<Sizes> {
    let file = object::File::parse(elf).context("not an ELF")?;
    let symbol = |name: &str| -> Result<u64> {
        let found = file.symbols().find(|symbol| symbol.name() == Ok(name));
        Ok(found
            .with_context(|| format!("the ELF has no symbol {name}"))?
            .address())
    };
    // Both pads have the same addresses: a section's name says whose it is.
    let used = |prefix: &str| {
        file.sections()
            .filter(|section| {
                let allocated = matches!(section.flags(), SectionFlags::Elf { sh_flags, .. }
                    if sh_flags & u64::from(object::elf::SHF_ALLOC) != 0);
                allocated && section.name().is_ok_and(|name| name.starts_with(prefix))
            })
            .filter_map(|section| {
                let offset = section.address().checked_sub(u64::from(SCRATCH_BASE))?;
                Some(offset + section.size())
            })
            .max()
            .unwrap_or(0)
    };
    let base = u64::from(FIRMWARE_BASE);
    Ok(Sizes {
        memories: vec![
            MemoryUse {
                name: "SRAM",
                used: symbol("_bss_end")? - base,
                there: symbol("_sram_end")? - base,
            },
            MemoryUse {
                name: "scratch A",
                used: used(".scratch_a"),
                there: scratch_bytes(Cpu::A).into(),
            },
            MemoryUse {
                name: "scratch B",
                used: used(".scratch_b"),
                there: scratch_bytes(Cpu::B).into(),
            },
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_used_and_there() {
        let memory = MemoryUse {
            name: "scratch A",
            used: 9000,
            there: 16384,
        };
        assert_eq!(memory.to_string(), "scratch A    9000 of  16384 bytes used");
    }

    #[test]
    fn an_elf_without_the_linker_scripts_symbols_is_refused() {
        use object::{Architecture, BinaryFormat, Endianness};
        let file =
            object::write::Object::new(BinaryFormat::Elf, Architecture::Mips, Endianness::Big);
        let error = measure(&file.write().expect("an ELF")).expect_err("no symbols");
        assert!(error.to_string().contains("_bss_end"), "{error}");
        assert!(measure(b"no ELF").is_err());
    }
}
