//! Converts the compiler's object file to a container.
//!
//! The object file is a relocatable ELF of MIPS O32 with a section for each function and each
//! static. O32 stores an addend in the relocated instruction, that of a high half in two
//! instructions; the container stores each addend in its relocation.

use object::read::elf::{ElfFile32, ElfSection32, FileHeader};
use object::{
    BigEndian, Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget, SectionKind,
    SymbolKind, elf,
};
use spine_image::format::BUILD_ID_BYTES;
use spine_image::{Builder, Grade, RelocationKind, Section, Target, interface};
use std::collections::BTreeMap;
use thiserror::Error;

/// The function that the wrapper exports.
const INIT: &str = "spine_init";

/// Why an object file becomes no container.
#[derive(Debug, Error)]
pub enum ObjectError {
    /// It is none, or damaged.
    #[error("the object file: {0}")]
    Read(#[from] object::Error),
    /// A file for another CPU.
    #[error("the object file is not for big-endian MIPS")]
    OtherCpu,
    /// A section that cannot come to the card.
    #[error("section {0} cannot be loaded into the card")]
    Section(String),
    /// A relocation that the card's code has no use for.
    #[error("{section} + {site:#x}: relocations of type {kind} are not supported")]
    Relocation {
        /// In which section.
        section: String,
        /// Where.
        site: u64,
        /// ELF's number.
        kind: u32,
    },
    /// A high half without its low half.
    #[error("{section} + {site:#x}: an address has a high half without a low half")]
    Unpaired {
        /// In which section.
        section: String,
        /// Where.
        site: u64,
    },
    /// Something refers to what is not there.
    #[error("{section} + {site:#x} refers to nothing")]
    NoTarget {
        /// In which section.
        section: String,
        /// Where.
        site: u64,
    },
    /// An import that no runtime has.
    #[error("{0} is no interface of the runtime")]
    UnknownImport(String),
    /// There is no `init`.
    #[error("the extension has no init")]
    NoInit,
    /// Bytes of the text that belong to no function.
    #[error("section {0} is not one function")]
    NotAFunction(String),
}

/// Where a section of the object file went.
#[derive(Clone, Copy)]
enum Place {
    Section(Section, u32),
    Zeros(u32),
}

type File<'a> = ElfFile32<'a, BigEndian>;

struct Maker {
    builder: Builder,
    places: BTreeMap<usize, Place>,
    imports: BTreeMap<String, u32>,
}

/// Makes a container of an object file.
///
/// # Errors
/// What cannot come to the card.
pub fn container(
    name: &str,
    grade: Grade,
    build_id: [u8; BUILD_ID_BYTES],
    bytes: &[u8],
) -> Result<Builder, ObjectError> {
    let file = File::parse(bytes)?;
    if file.elf_header().e_machine(BigEndian) != elf::EM_MIPS {
        return Err(ObjectError::OtherCpu);
    }
    let mut maker = Maker {
        builder: Builder::new(name, grade, build_id),
        places: BTreeMap::new(),
        imports: BTreeMap::new(),
    };
    maker.place(&file)?;
    maker.name_functions(&file)?;
    maker.relocate(&file)?;
    Ok(maker.builder)
}

fn name_of(section: &ElfSection32<'_, '_, BigEndian>) -> String {
    section.name().unwrap_or("?").to_owned()
}

impl Maker {
    /// Puts the sections of the object file one behind the other, by kind.
    fn place(&mut self, file: &File<'_>) -> Result<(), ObjectError> {
        for section in file.sections() {
            let kept = match section.kind() {
                SectionKind::Text => Section::Text,
                SectionKind::ReadOnlyData | SectionKind::ReadOnlyString => Section::Constants,
                SectionKind::Data => Section::Data,
                SectionKind::UninitializedData => {
                    let align = section.align().max(4) as u32;
                    let at = self.builder.zeros.next_multiple_of(align);
                    self.builder.zeros = (at + section.size() as u32).next_multiple_of(4);
                    self.places.insert(section.index().0, Place::Zeros(at));
                    continue;
                }
                _ if !is_loaded(&section) => continue,
                _ => return Err(ObjectError::Section(name_of(&section))),
            };
            if section.size() == 0 || name_of(&section).starts_with(".MIPS") {
                continue;
            }
            let bytes = &mut self.builder.sections[kept as usize];
            let align = section.align().max(4) as usize;
            bytes.resize(bytes.len().next_multiple_of(align), 0);
            let place = Place::Section(kept, bytes.len() as u32);
            self.places.insert(section.index().0, place);
            bytes.extend(section.data()?);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        Ok(())
    }

    fn name_functions(&mut self, file: &File<'_>) -> Result<(), ObjectError> {
        let mut found = Vec::new();
        for symbol in file.symbols() {
            let section = symbol.section_index().map(|index| index.0);
            let place = section.and_then(|index| self.places.get(&index));
            if symbol.kind() == SymbolKind::Text
                && let Some(Place::Section(Section::Text, at)) = place
            {
                let offset = at + symbol.address() as u32;
                found.push((offset, symbol.size() as u32, symbol.name()?.to_owned()));
            }
        }
        found.sort();
        let mut init = None;
        for (offset, bytes, name) in &found {
            let number = self.builder.function(name, *offset, *bytes);
            if name == INIT {
                init = Some(number);
            }
        }
        self.builder.init = init.ok_or(ObjectError::NoInit)?;
        for section in file.sections() {
            let place = self.places.get(&section.index().0);
            if let Some(Place::Section(Section::Text, at)) = place
                && !found.iter().any(|(offset, ..)| offset == at)
            {
                return Err(ObjectError::NotAFunction(name_of(&section)));
            }
        }
        Ok(())
    }

    fn relocate(&mut self, file: &File<'_>) -> Result<(), ObjectError> {
        let mut made = Vec::new();
        for section in file.sections() {
            let Some(Place::Section(kept, start)) = self.places.get(&section.index().0).copied()
            else {
                continue;
            };
            let data = section.data()?;
            let all: Vec<_> = section.relocations().collect();
            for (index, (site, relocation)) in all.iter().enumerate() {
                let wrong = |kind| ObjectError::Relocation {
                    section: name_of(&section),
                    site: *site,
                    kind,
                };
                let RelocationFlags::Elf { r_type } = relocation.flags() else {
                    return Err(wrong(0));
                };
                let word = word_at(data, *site).ok_or_else(|| wrong(r_type.0))?;
                let (kind, addend) = match r_type {
                    elf::R_MIPS_32 => (RelocationKind::Word, word),
                    elf::R_MIPS_26 => (RelocationKind::Jump, (word & 0x03FF_FFFF) << 2),
                    elf::R_MIPS_HI16 => {
                        let low = all[index..].iter().find(|(_, other)| {
                            other.target() == relocation.target()
                                && matches!(other.flags(), RelocationFlags::Elf { r_type }
                                    if r_type == elf::R_MIPS_LO16)
                        });
                        let low = low.and_then(|(at, _)| word_at(data, *at));
                        let low = low.ok_or_else(|| ObjectError::Unpaired {
                            section: name_of(&section),
                            site: *site,
                        })?;
                        (RelocationKind::High, (word << 16).wrapping_add(signed(low)))
                    }
                    elf::R_MIPS_LO16 => {
                        // The high half of its own group is in front of it.
                        let high = all[..index].iter().rev().find(|(_, other)| {
                            other.target() == relocation.target()
                                && matches!(other.flags(), RelocationFlags::Elf { r_type }
                                    if r_type == elf::R_MIPS_HI16)
                        });
                        let high = high.and_then(|(at, _)| word_at(data, *at));
                        let high = high.ok_or_else(|| ObjectError::Unpaired {
                            section: name_of(&section),
                            site: *site,
                        })?;
                        (RelocationKind::Low, (high << 16).wrapping_add(signed(word)))
                    }
                    other => return Err(wrong(other.0)),
                };
                let target = self.target(file, relocation.target(), addend, &section, *site)?;
                made.push((kept, start + *site as u32, kind, target));
            }
        }
        for (section, site, kind, target) in made {
            self.builder.relocation(section, site, kind, target);
        }
        Ok(())
    }

    fn target(
        &mut self,
        file: &File<'_>,
        target: RelocationTarget,
        addend: u32,
        section: &ElfSection32<'_, '_, BigEndian>,
        site: u64,
    ) -> Result<Target, ObjectError> {
        let nothing = || ObjectError::NoTarget {
            section: name_of(section),
            site,
        };
        let RelocationTarget::Symbol(symbol) = target else {
            return Err(nothing());
        };
        let symbol = file.symbol_by_index(symbol)?;
        if symbol.is_undefined() {
            let name = symbol.name()?.to_owned();
            let number = self.import(&name)?;
            return if addend == 0 {
                Ok(Target::Import(number))
            } else {
                Err(nothing())
            };
        }
        let index = symbol.section_index().ok_or_else(nothing)?;
        let offset = (symbol.address() as u32).wrapping_add(addend);
        match self.places.get(&index.0).copied().ok_or_else(nothing)? {
            Place::Section(kept, start) => Ok(Target::Section(kept, start.wrapping_add(offset))),
            Place::Zeros(start) => Ok(Target::Zeros(start.wrapping_add(offset))),
        }
    }

    fn import(&mut self, name: &str) -> Result<u32, ObjectError> {
        if let Some(number) = self.imports.get(name) {
            return Ok(*number);
        }
        let found = interface::find(name);
        let (_, found) = found.ok_or_else(|| ObjectError::UnknownImport(name.to_owned()))?;
        let number = self.builder.import(name, found.hash());
        self.imports.insert(name.to_owned(), number);
        Ok(number)
    }
}

fn is_loaded(section: &ElfSection32<'_, '_, BigEndian>) -> bool {
    let object::SectionFlags::Elf { sh_flags, .. } = section.flags() else {
        return false;
    };
    let notes = [".MIPS.abiflags", ".reginfo"];
    let name = section.name().unwrap_or_default();
    sh_flags.contains(elf::SHF_ALLOC) && !notes.contains(&name)
}

fn word_at(data: &[u8], site: u64) -> Option<u32> {
    let word = data.get(site as usize..)?.first_chunk()?;
    Some(u32::from_be_bytes(*word))
}

fn signed(word: u32) -> u32 {
    i32::from(word as u16 as i16) as u32
}
