//! Finds the names of a firmware's handlers: the symbols behind its jump tables.
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
            let Some(target) = jump(&place, at) else {
                continue;
            };
            // An entry may lead to a jump of its own that sets more registers.
            let found = handler(&file, section, target);
            let further = || handler(&file, section, jump(&place, target)?);
            if let Some(name) = found.or_else(further) {
                names.insert((cpu.index(), bit), name);
            }
        }
    }
    Ok(names)
}

/// Where the instruction at an address jumps to, if it does.
fn jump(section: &object::Section<'_, '_>, at: u64) -> Option<u64> {
    let bytes: [u8; 4] = section.data_range(at, 4).ok()??.try_into().ok()?;
    let word = u32::from_be_bytes(bytes);
    (word >> 26 == J).then(|| at & 0xF000_0000 | u64::from((word & TARGET) << 2))
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
