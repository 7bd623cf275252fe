//! Hides data from debuggers where the other CPU has code.
//!
//! Both scratch pads lie at the same addresses. A debugger goes by addresses alone: of two
//! sections at one address it takes either. The hot code of the CPUs has addresses of its own
//! (see `pads`), but there is no room for the state beside it:
//!
//! ```text
//! 0xC00000              0xC00400      0xC00800       0xC01000          0xC02080       0xC04000
//! CPU A  stack          low code      state          ..                hot code
//! CPU B  stack, state ................ hot code .......................
//! ```
//!
//! Nor is there for [`OVER`], hot code of CPU A for receive queues and extensions. The section of
//! such state or code gives up the flag "allocated". Debuggers then leave its symbols out when they
//! look for what is at an address; its variables have their addresses by DWARF, and whose code an
//! address is in debug information is the matter of [`names`](super::names). Loaders go by segments,
//! which stay.

use super::pads::OVER;
use anyhow::{Context, Result, anyhow};
use object::Endianness;
use object::elf::{
    FileHeader32, SHF_ALLOC, SHF_EXECINSTR, SHT_NOBITS, SectionFlags, SectionHeader32,
};
use object::pod::slice_from_bytes_mut;
use object::read::elf::{FileHeader, SectionHeader};
use std::ops::Range;

type Header = SectionHeader32<Endianness>;

/// Clears the flag of each section of data that overlaps one of code, and of [`OVER`].
///
/// # Errors
/// When the bytes are no 32-bit ELF.
pub fn hide(elf: &mut [u8]) -> Result<()> {
    let header = FileHeader32::<Endianness>::parse(&*elf).context("not a 32-bit ELF")?;
    let endian = header.endian().context("no byte order")?;
    let over = header.sections(endian, &*elf)?;
    let over = over.section_by_name(endian, OVER.as_bytes());
    let over = over.map(|(index, _)| index.0);
    let (at, count) = (header.e_shoff(endian), header.e_shnum(endian));
    let table = elf
        .get_mut(at as usize..)
        .context("a section table outside")?;
    let (sections, _) = slice_from_bytes_mut::<Header>(table, usize::from(count))
        .map_err(|()| anyhow!("a cut section table"))?;
    let code: Vec<Range<u32>> = sections
        .iter()
        .enumerate()
        .filter(|(number, _)| Some(*number) != over)
        .map(|(_, section)| section)
        .filter(|section| section.sh_type(endian) != SHT_NOBITS)
        .filter(|section| has(section, endian, SHF_ALLOC | SHF_EXECINSTR))
        .map(|section| place(section, endian))
        .collect();
    for (number, section) in sections.iter_mut().enumerate() {
        let place = place(section, endian);
        let hit = code
            .iter()
            .any(|code| code.start < place.end && place.start < code.end);
        let is_data = !has(section, endian, SHF_EXECINSTR);
        if Some(number) == over || hit && is_data {
            let flags = section.sh_flags.get_u64(endian);
            let left = SectionFlags(flags.0 & !SHF_ALLOC.0);
            section.sh_flags.set_u64_truncate(endian, left);
        }
    }
    Ok(())
}

fn has(section: &Header, endian: Endianness, flags: SectionFlags) -> bool {
    section.sh_flags(endian).contains(flags)
}

fn place(section: &Header, endian: Endianness) -> Range<u32> {
    let start = section.sh_addr(endian);
    start..start.saturating_add(section.sh_size(endian))
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::elf::{EM_MIPS, SHF_WRITE, SHT_PROGBITS};
    use object::write::elf::{FileHeader, SectionHeader, Writer};
    use object::{Object, ObjectSection};

    /// An ELF with these sections: name, address, size, whether it is code.
    fn elf(sections: &[(&str, u32, u32, bool)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(Endianness::Big, false, &mut bytes);
        writer.reserve_file_header();
        let names: Vec<_> = sections
            .iter()
            .map(|(name, ..)| {
                let text = writer.add_section_name(name.as_bytes());
                writer.reserve_section_index();
                text
            })
            .collect();
        writer.reserve_shstrtab_section_index();
        writer.reserve_shstrtab().expect("names");
        writer.reserve_section_headers();
        writer
            .write_file_header(&FileHeader {
                os_abi: object::elf::ELFOSABI_NONE,
                abi_version: 0,
                e_type: object::elf::ET_EXEC,
                e_machine: EM_MIPS,
                e_entry: 0x4000,
                e_flags: object::elf::FileFlags(0),
            })
            .expect("a header");
        writer.write_shstrtab();
        writer.write_null_section_header();
        for ((_, address, size, is_code), name) in sections.iter().zip(names) {
            let kind = if *is_code { SHF_EXECINSTR } else { SHF_WRITE };
            writer.write_section_header(&SectionHeader {
                sh_name: writer.section_name_offset(Some(name)),
                sh_type: SHT_PROGBITS,
                sh_flags: SectionFlags(SHF_ALLOC.0 | kind.0),
                sh_addr: u64::from(*address),
                sh_offset: 0,
                sh_size: u64::from(*size),
                sh_link: 0,
                sh_info: 0,
                sh_addralign: 4,
                sh_entsize: 0,
            });
        }
        writer.write_shstrtab_section_header();
        bytes
    }

    #[test]
    fn only_data_over_code_is_hidden_and_code_that_says_so() {
        let mut bytes = elf(&[
            (".data", 0x4000, 0x100, false),
            (".scratch_a.low", 0xC0_0400, 0x380, true),
            (".scratch_a.data", 0xC0_0800, 0x800, false),
            (OVER, 0xC0_1000, 0x100, true),
            (".scratch_b.data", 0xC0_0200, 0x200, false),
            (".scratch_b.text", 0xC0_0FFC, 0x100, true),
        ]);
        hide(&mut bytes).expect("an ELF");
        let file = object::File::parse(&*bytes).expect("an ELF");
        let left: Vec<String> = file
            .sections()
            .filter(|section| {
                matches!(section.flags(), object::SectionFlags::Elf { sh_flags, .. }
                    if sh_flags.contains(SHF_ALLOC))
            })
            .map(|section| section.name().expect("a name").to_owned())
            .collect();
        let expected = [
            ".data",
            ".scratch_a.low",
            ".scratch_b.data",
            ".scratch_b.text",
        ];
        assert_eq!(left, expected);
    }

    #[test]
    fn a_cut_file_is_an_error() {
        let whole = elf(&[(".text", 0x4000, 4, true)]);
        for length in [0, 20, whole.len() - 1] {
            assert!(hide(&mut whole[..length].to_vec()).is_err(), "{length}");
        }
    }
}
