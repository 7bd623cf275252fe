//! What a firmware calls its handlers: the symbols behind its jump tables.
//!
//! `dispatch_table_a` and the like have two instructions an entry, the first of them a jump
//! to a handler; entry 0 is "nothing pending", entry n + 1 belongs to event bit n.

use anyhow::{Context, Result};
use object::{Object, ObjectSection, ObjectSymbol, SectionIndex};
use std::collections::BTreeMap;
use tigon2_chip::Cpu;

/// What the symbols of the tables begin with. One that ends with `_b` is CPU B's.
const TABLE: &str = "dispatch_table";
/// Entries of a table behind the first, and bytes of an entry.
const BITS: u8 = 32;
const ENTRY: u64 = 8;
/// Opcode of `j`, and its target's bits.
const J: u32 = 2;
const TARGET: u32 = 0x03FF_FFFF;

/// The names of the handlers of an ELF, by CPU and event bit. Without such tables there are
/// none.
///
/// # Errors
/// When the bytes are no ELF.
pub fn names(elf: &[u8]) -> Result<BTreeMap<(usize, u8), String>> {
    let file = object::File::parse(elf).context("not an ELF")?;
    let mut names = BTreeMap::new();
    for table in file.symbols() {
        let name = table.name().unwrap_or_default();
        let Some(section) = table.section_index().filter(|_| name.starts_with(TABLE)) else {
            continue;
        };
        let cpu = if name.ends_with("_b") { Cpu::B } else { Cpu::A };
        let place = file.section_by_index(section)?;
        for bit in 0..BITS {
            let at = table.address() + ENTRY * (u64::from(bit) + 1);
            let Ok(Some(bytes)) = place.data_range(at, 4) else {
                continue;
            };
            let word = bytes
                .iter()
                .fold(0, |word, byte| word << 8 | u32::from(*byte));
            if word >> 26 != J {
                continue;
            }
            let target = at & 0xF000_0000 | u64::from((word & TARGET) << 2);
            if let Some(name) = handler(&file, section, target) {
                names.insert((cpu.index(), bit), name);
            }
        }
    }
    Ok(names)
}

/// The function at an address. Both scratch pads have the same addresses: that of the table's
/// own section goes first. The loop, to which entries without handler lead, is none.
fn handler(file: &object::File<'_>, section: SectionIndex, address: u64) -> Option<String> {
    let at = |symbol: &object::Symbol<'_, '_>| {
        symbol.address() == address && symbol.kind() == object::SymbolKind::Text
    };
    let own = file
        .symbols()
        .find(|symbol| at(symbol) && symbol.section_index() == Some(section));
    let found = own.or_else(|| file.symbols().find(at))?;
    let name = format!("{:#}", rustc_demangle::demangle(found.name().ok()?));
    // The last part of the path, without generic arguments.
    let plain = name.split('<').next()?.trim_end_matches("::");
    let last = plain.rsplit("::").next()?;
    (!last.is_empty() && !last.starts_with("dispatch_")).then(|| last.to_owned())
}
