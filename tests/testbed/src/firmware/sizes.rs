//! Measures how much of each memory a firmware uses.

use anyhow::{Context, Result};
use object::{Object, ObjectSection, ObjectSymbol};
use serde::Serialize;
use std::fmt;
use tigon2_chip::Cpu;
use tigon2_chip::memory::{FIRMWARE_BASE, SCRATCH_BASE, scratch_bytes};

/// What the names of a pad's sections begin with, CPU A's first.
const PADS: [&str; 2] = [".scratch_a", ".scratch_b"];
/// Code that takes the place of other code in a pad: whether it fits is the linker's to check.
const OVERLAYS: [&str; 3] = [
    ".scratch_a.low_ahead",
    ".scratch_a.system",
    ".scratch_b.endpoints",
];
/// The dispatch loop's own words, which the linker script places in CPU A's pad.
const CORE: &str = ".core";

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
    // Both pads have the same addresses: a section's name says whose it is. What lies at
    // the end of a pad leaves room before it.
    let used = |prefix: &str| -> u64 {
        let core = if prefix == PADS[0] { CORE } else { prefix };
        file.sections()
            .filter(|section| {
                let name = section.name().unwrap_or_default();
                let in_pad = section.address() >= u64::from(SCRATCH_BASE);
                let counts = name.starts_with(prefix) || name == core;
                in_pad && counts && !OVERLAYS.contains(&name)
            })
            .map(|section| section.size())
            .sum()
    };
    let base = u64::from(FIRMWARE_BASE);
    let (variables, there) = (symbol("_bss_end")?, symbol("_sram_end")?);
    // The parallel image's variables lie over what is copied into the pads; CPU B's code is the
    // last of that, behind it what takes other code's place.
    let code = |what: &str| -> Result<u64> {
        let bytes = symbol(&format!("{what}_end"))? - symbol(&format!("{what}_start"))?;
        Ok(symbol(&format!("{what}_load"))? + bytes)
    };
    let last = [
        "_scratch_b_text",
        "_scratch_b_endpoints",
        "_scratch_a_system",
    ];
    let ends = last.map(|what| code(what).unwrap_or(base));
    let end = ends.into_iter().fold(variables, u64::max);
    Ok(Sizes {
        memories: vec![
            MemoryUse {
                name: "SRAM",
                used: end - base,
                there: there - base,
            },
            MemoryUse {
                name: "scratch A",
                used: used(PADS[0]),
                there: scratch_bytes(Cpu::A).into(),
            },
            MemoryUse {
                name: "scratch B",
                used: used(PADS[1]),
                // More than the chip's on a board beyond it.
                there: symbol("_scratch_b_bytes").unwrap_or(scratch_bytes(Cpu::B).into()),
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
