//! Resolves breakpoints: from a function's name as a user types it to gdb's name for it.

use anyhow::{Context, Result, bail};
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};
use std::collections::BTreeSet;
use testbed::firmware::names;
use tigon2_chip::Cpu;

/// A place for gdb's `tbreak`, among what has `cpu`'s names.
///
/// `name` is the last part of a function's path (`receive_complete`), any longer part of
/// it, or a name of assembler code (`_start`).
///
/// # Errors
/// No function has that name, several have, or the other CPU has code at its address.
pub fn place(elf: &[u8], name: &str, cpu: Cpu) -> Result<String> {
    let file = object::File::parse(elf).context("read the firmware's symbols")?;
    let mut paths = BTreeSet::new();
    let mut others = BTreeSet::new();
    for symbol in file.symbols() {
        let Ok(raw) = symbol.name() else { continue };
        // Assembler code has no prologue that gdb could skip, and often no type.
        if raw == name {
            return Ok(format!("*{:#x}", symbol.address()));
        }
        if symbol.kind() == SymbolKind::Text {
            // gdb writes generic arguments without the turbofish.
            let path = format!("{:#}", rustc_demangle::demangle(raw)).replace("::<", "<");
            let section = symbol.section_index();
            let section = section.and_then(|index| file.section_by_index(index).ok());
            let section = section.as_ref().and_then(|section| section.name().ok());
            if !names::include(cpu, section.unwrap_or_default()) {
                others.insert(path.clone());
            }
            paths.insert(path);
        }
    }
    let found: Vec<&String> = paths.iter().filter(|path| is_called(path, name)).collect();
    match found.as_slice() {
        [one] if others.contains(*one) => bail!(
            "{name} is where CPU {cpu} has other code: --names {}",
            if cpu == Cpu::A { "b" } else { "a" }
        ),
        [one] => Ok((*one).clone()),
        [] => bail!("the firmware has no function {name}"),
        several => bail!(
            "{name} may be any of: {}",
            several
                .iter()
                .map(|path| path.as_str())
                .collect::<Vec<_>>()
                .join(", ")
        ),
    }
}

/// Whether a path ends in `name`; generic arguments do not count.
fn is_called(path: &str, name: &str) -> bool {
    let plain = path.split('<').next().unwrap_or(path);
    let plain = if plain.is_empty() { path } else { plain };
    path == name
        || plain
            .strip_suffix(name)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with("::"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_called_by_the_end_of_its_path() {
        let path = "tigon_firmware::events::mailbox<tigon2_hal::mmio::Mmio>";
        for name in ["mailbox", "events::mailbox", path] {
            assert!(is_called(path, name), "{name}");
        }
        for name in ["box", "Mmio", "events", ""] {
            assert!(!is_called(path, name), "{name}");
        }
    }
}
