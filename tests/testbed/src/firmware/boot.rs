//! Builds the boot code: ELF, instruction check, and the bytes of the boot memory.

use super::{Placement, Program, Settings, TARGET, Toolchain, compile, isa, replace};
use crate::{paths, progress};
use anyhow::{Context, Result, bail, ensure};
use object::elf::{FileHeader32, PT_LOAD};
use object::read::elf::{FileHeader, ProgramHeader};
use std::path::PathBuf;
use tigon2_chip::memory::{SCRATCH_A_BYTES, SCRATCH_BASE};

/// What the build leaves behind.
#[derive(Clone, Debug)]
pub struct BootCode {
    /// With symbols, for gdb.
    pub elf: PathBuf,
    /// The contents of the boot memory.
    pub binary: PathBuf,
    /// How many bytes those are.
    pub bytes: usize,
}

/// Builds the boot code and checks it.
///
/// # Errors
/// As for the firmware; also when it does not fit in the boot memory.
pub fn build(quiet: bool) -> Result<BootCode> {
    let (elf, code) = pad_program("tigon-boot", "boot", quiet)?;
    let binary = paths::target().join("firmware").join("boot.bin");
    replace(&binary, &code).with_context(|| format!("write {}", binary.display()))?;
    if !quiet && progress::is_verbose() {
        let bytes = code.len();
        println!("boot code  {bytes:>6} of  {SCRATCH_A_BYTES:>5} bytes used");
    }
    Ok(BootCode {
        elf,
        binary,
        bytes: code.len(),
    })
}

/// Builds a program that runs in CPU A's scratch pad as the boot code does, and checks it: its
/// ELF file, and its bytes.
///
/// # Errors
/// As [`build`].
pub fn pad_program(
    package: &'static str,
    binary: &'static str,
    quiet: bool,
) -> Result<(PathBuf, Vec<u8>)> {
    let toolchain = Toolchain::find()?;
    let target = paths::target().join("firmware");
    let program = Program {
        package,
        binary,
        placement: Placement::Scratch,
        argument: None,
        settings: Settings::default(),
    };
    compile(&toolchain, program, &target, quiet)?;
    let elf = target.join(TARGET).join("firmware").join(binary);
    let contents = std::fs::read(&elf).with_context(|| format!("read {}", elf.display()))?;
    let faults = isa::check(&contents).with_context(|| format!("check {binary}"))?;
    if let Some(fault) = faults.first() {
        bail!("{binary} has an instruction that the chip lacks: {fault}");
    }
    let code = flat(&contents)?;
    Ok((elf, code))
}

/// The segments as they stand in the scratch pad, from its first byte on.
fn flat(elf: &[u8]) -> Result<Vec<u8>> {
    let header = FileHeader32::<object::Endianness>::parse(elf).context("not a 32-bit ELF")?;
    let endian = header.endian()?;
    ensure!(
        header.e_entry(endian) == SCRATCH_BASE,
        "the boot code does not begin with its entry"
    );
    let mut code = Vec::new();
    for segment in header.program_headers(endian, elf)? {
        let data = segment.data(endian, elf).ok().context("a cut segment")?;
        if segment.p_type(endian) != PT_LOAD || data.is_empty() {
            continue;
        }
        let address = segment.p_paddr(endian);
        let end = address
            .checked_sub(SCRATCH_BASE)
            .map(|offset| offset as usize + data.len())
            .filter(|end| *end <= SCRATCH_A_BYTES as usize)
            .with_context(|| format!("a segment is loaded to {address:#x}"))?;
        code.resize(code.len().max(end), 0);
        code[end - data.len()..end].copy_from_slice(data);
    }
    Ok(code)
}
