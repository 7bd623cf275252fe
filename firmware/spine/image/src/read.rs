//! Reading a container: everything is judged here, once.

use crate::ImageError;
use crate::format::{
    DATA_MAX, ENTRIES_MAX, FunctionEntry, Grade, Header, IMPORT, InterfaceEntry, LAYOUT, MAGIC,
    NAMES_MAX, RelocationEntry, RelocationKind, Section, TEXT_MAX, TEXTS_MAX, Target, TextEntry,
    Trailer, ZEROS, ZEROS_MAX,
};
use zerocopy::byteorder::big_endian::U32;
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

/// A container that was judged.
#[derive(Clone, Copy, Debug)]
pub struct Image<'a> {
    header: &'a Header,
    grade: Grade,
    text: &'a [u8],
    constants: &'a [u8],
    data: &'a [u8],
    functions: &'a [FunctionEntry],
    relocations: &'a [RelocationEntry],
    imports: &'a [InterfaceEntry],
    exports: &'a [InterfaceEntry],
    texts: &'a [TextEntry],
    names: &'a [u8],
    trailer: &'a Trailer,
    signed: &'a [u8],
}

/// A function of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function<'a> {
    /// Where in the text.
    pub offset: u32,
    /// Its bytes.
    pub bytes: u32,
    /// Its name, for messages.
    pub name: &'a str,
}

/// A place that depends on addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// In which section.
    pub section: Section,
    /// Where in it.
    pub site: u32,
    /// How the address is written.
    pub kind: RelocationKind,
    /// The address of what.
    pub target: Target,
}

/// An interface that is wanted, or exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface<'a> {
    /// Its name.
    pub name: &'a str,
    /// Hash of name and signature.
    pub hash: u32,
}

/// Takes parts off the front.
struct Parts<'a> {
    rest: &'a [u8],
}

impl<'a> Parts<'a> {
    fn cut(&self, what: &'static str, needs: u64) -> ImageError {
        ImageError::Cut {
            what,
            has: self.rest.len(),
            needs,
        }
    }

    fn bytes(&mut self, what: &'static str, bytes: u32) -> Result<&'a [u8], ImageError> {
        let split = self.rest.split_at_checked(bytes as usize);
        let (part, rest) = split.ok_or_else(|| self.cut(what, u64::from(bytes)))?;
        self.rest = rest;
        Ok(part)
    }

    fn entries<T: FromBytes + Immutable + KnownLayout + Unaligned>(
        &mut self,
        what: &'static str,
        count: U32,
    ) -> Result<&'a [T], ImageError> {
        let count = at_most(what, count, ENTRIES_MAX)?;
        let needs = u64::from(count) * size_of::<T>() as u64;
        let found = <[T]>::ref_from_prefix_with_elems(self.rest, count as usize);
        let (part, rest) = found.map_err(|_| self.cut(what, needs))?;
        self.rest = rest;
        Ok(part)
    }
}

fn at_most(what: &'static str, count: U32, most: u32) -> Result<u32, ImageError> {
    let count = count.get();
    if count > most {
        return Err(ImageError::TooMany { what, count, most });
    }
    Ok(count)
}

fn words(what: &'static str, bytes: U32, most: u32) -> Result<u32, ImageError> {
    let bytes = at_most(what, bytes, most)?;
    if !bytes.is_multiple_of(4) {
        return Err(ImageError::Unaligned { what, bytes });
    }
    Ok(bytes)
}

impl<'a> Image<'a> {
    /// Judges a container.
    ///
    /// # Errors
    /// What is wrong with it first. The signature is the caller's to verify.
    pub fn parse(bytes: &'a [u8]) -> Result<Image<'a>, ImageError> {
        let mut parts = Parts { rest: bytes };
        let (header, rest) = Header::ref_from_prefix(bytes)
            .map_err(|_| parts.cut("the header", size_of::<Header>() as u64))?;
        parts.rest = rest;
        if header.magic != MAGIC {
            return Err(ImageError::Magic);
        }
        if header.layout.get() != LAYOUT {
            return Err(ImageError::Layout(header.layout.get()));
        }
        let grade = header.grade.get();
        let grade = Grade::from_code(grade).ok_or(ImageError::Grade(grade))?;
        let text = words("text", header.text, TEXT_MAX)?;
        let constants = words("constants", header.constants, DATA_MAX)?;
        let data = words("data", header.data, DATA_MAX)?;
        words("zeros", header.zeros, ZEROS_MAX)?;
        at_most("texts", header.texts, TEXTS_MAX)?;
        let image = Image {
            header,
            grade,
            text: parts.bytes("text", text)?,
            constants: parts.bytes("constants", constants)?,
            data: parts.bytes("data", data)?,
            functions: parts.entries("functions", header.functions)?,
            relocations: parts.entries("relocations", header.relocations)?,
            imports: parts.entries("imports", header.imports)?,
            exports: parts.entries("exports", header.exports)?,
            texts: parts.entries("texts", header.texts)?,
            names: parts.bytes("names", at_most("names", header.names, NAMES_MAX)?)?,
            signed: bytes
                .get(..bytes.len() - parts.rest.len())
                .unwrap_or_default(),
            trailer: Trailer::ref_from_prefix(parts.rest)
                .map(|(trailer, _)| trailer)
                .map_err(|_| parts.cut("the trailer", size_of::<Trailer>() as u64))?,
        };
        match parts.rest.len() - size_of::<Trailer>() {
            0 => {}
            more => return Err(ImageError::TooLong(more)),
        }
        image.judge()?;
        Ok(image)
    }

    fn judge(&self) -> Result<(), ImageError> {
        let mut end = 0;
        for (index, function) in self.functions.iter().enumerate() {
            let (offset, bytes) = (function.offset.get(), function.bytes.get());
            let fits = offset >= end
                && bytes != 0
                && offset | bytes == (offset | bytes) & !3
                && offset
                    .checked_add(bytes)
                    .is_some_and(|end| end as usize <= self.text.len());
            if !fits {
                return Err(ImageError::Function {
                    index,
                    offset,
                    bytes,
                });
            }
            end = offset + bytes;
            self.name("function", index, function.name, function.name_bytes)?;
        }
        if self.header.init.get() as usize >= self.functions.len() {
            return Err(ImageError::Init(self.header.init.get()));
        }
        for (what, entries) in [("import", self.imports), ("export", self.exports)] {
            for (index, entry) in entries.iter().enumerate() {
                self.name(what, index, entry.name, entry.name_bytes)?;
            }
        }
        self.judge_texts()?;
        self.name("extension", 0, U32::new(0), self.header.name)?;
        for (index, relocation) in self.relocations.iter().enumerate() {
            self.judge_relocation(index, relocation)?;
        }
        Ok(())
    }

    fn judge_texts(&self) -> Result<(), ImageError> {
        let mut last = None;
        for (index, entry) in self.texts.iter().enumerate() {
            let text = self.name("text", index, entry.name, entry.name_bytes)?;
            spine_text::holes(text).map_err(|error| ImageError::Text { index, error })?;
            let number = Some(spine_text::number(text));
            if number <= last {
                return Err(ImageError::TextNumber(index));
            }
            last = number;
        }
        Ok(())
    }

    fn judge_relocation(&self, index: usize, entry: &RelocationEntry) -> Result<(), ImageError> {
        let code = |what, value| ImageError::RelocationCode { index, what, value };
        let section = Section::from_code(entry.section);
        let section = section.ok_or(code("section", entry.section))?;
        let kind = RelocationKind::from_code(entry.kind).ok_or(code("kind", entry.kind))?;
        if kind != RelocationKind::Word && section != Section::Text {
            return Err(code("kind", entry.kind));
        }
        let site = entry.site.get();
        let inside = site.is_multiple_of(4) && (site as usize) < self.section(section).len();
        if !inside {
            return Err(ImageError::RelocationSite { index, site });
        }
        let addend = entry.addend.get();
        let limit = match entry.target {
            IMPORT => self.imports.len() as u64,
            // One may point behind the last byte, as the end of a slice.
            ZEROS => u64::from(self.header.zeros.get()) + 1,
            other => match Section::from_code(other) {
                Some(Section::Text) => self.text.len() as u64,
                Some(section) => self.section(section).len() as u64 + 1,
                None => return Err(code("target", other)),
            },
        };
        if u64::from(addend) >= limit {
            return Err(ImageError::RelocationTarget { index, addend });
        }
        Ok(())
    }

    fn name(
        &self,
        what: &'static str,
        index: usize,
        start: U32,
        bytes: U32,
    ) -> Result<&'a str, ImageError> {
        let wrong = ImageError::Name { what, index };
        let start = start.get() as usize;
        let end = start.checked_add(bytes.get() as usize).ok_or(wrong)?;
        let name = self.names.get(start..end).ok_or(wrong)?;
        core::str::from_utf8(name).map_err(|_| wrong)
    }

    /// The extension's name.
    pub fn extension(&self) -> &'a str {
        self.name("extension", 0, U32::new(0), self.header.name)
            .unwrap_or_default()
    }

    /// For which walls it was built.
    pub const fn grade(&self) -> Grade {
        self.grade
    }

    /// Compiler and API that made it.
    pub const fn build_id(&self) -> &'a [u8; crate::format::BUILD_ID_BYTES] {
        &self.header.build_id
    }

    /// The bytes of a section.
    pub const fn section(&self, section: Section) -> &'a [u8] {
        match section {
            Section::Text => self.text,
            Section::Constants => self.constants,
            Section::Data => self.data,
        }
    }

    /// The words of a section.
    pub fn words(&self, section: Section) -> impl ExactSizeIterator<Item = u32> + use<'a> {
        let (words, _) = self.section(section).as_chunks();
        words.iter().map(|word| u32::from_be_bytes(*word))
    }

    /// Bytes of the region that begin as zeros, behind the data.
    pub const fn zeros(&self) -> u32 {
        self.header.zeros.get()
    }

    /// Bytes of the region.
    pub const fn region(&self) -> u32 {
        self.data.len() as u32 + self.header.zeros.get()
    }

    /// The functions, by their offsets.
    pub fn functions(&self) -> impl ExactSizeIterator<Item = Function<'a>> {
        let functions = self.functions.iter().enumerate();
        functions.map(|(index, function)| Function {
            offset: function.offset.get(),
            bytes: function.bytes.get(),
            name: self
                .name("function", index, function.name, function.name_bytes)
                .unwrap_or_default(),
        })
    }

    /// The function that is called first, by its number.
    pub const fn init(&self) -> usize {
        self.header.init.get() as usize
    }

    /// What depends on addresses.
    pub fn relocations(&self) -> impl Iterator<Item = Relocation> + use<'a> {
        self.relocations.iter().filter_map(|entry| {
            let addend = entry.addend.get();
            Some(Relocation {
                section: Section::from_code(entry.section)?,
                site: entry.site.get(),
                kind: RelocationKind::from_code(entry.kind)?,
                target: match entry.target {
                    IMPORT => Target::Import(addend),
                    ZEROS => Target::Zeros(addend),
                    other => Target::Section(Section::from_code(other)?, addend),
                },
            })
        })
    }

    /// The interfaces that it wants.
    pub fn imports(&self) -> impl ExactSizeIterator<Item = Interface<'a>> {
        self.interfaces("import", self.imports)
    }

    /// The procedures that other extensions may import.
    pub fn exports(&self) -> impl ExactSizeIterator<Item = Interface<'a>> {
        self.interfaces("export", self.exports)
    }

    /// The texts of its log, by their numbers.
    pub fn texts(&self) -> impl ExactSizeIterator<Item = &'a str> {
        let texts = self.texts.iter().enumerate();
        texts.map(|(index, entry)| {
            self.name("text", index, entry.name, entry.name_bytes)
                .unwrap_or_default()
        })
    }

    fn interfaces(
        &self,
        what: &'static str,
        entries: &'a [InterfaceEntry],
    ) -> impl ExactSizeIterator<Item = Interface<'a>> {
        entries.iter().enumerate().map(move |(index, entry)| {
            let name = self.name(what, index, entry.name, entry.name_bytes);
            Interface {
                name: name.unwrap_or_default(),
                hash: entry.hash.get(),
            }
        })
    }

    /// Who signed, and the signature.
    pub const fn trailer(&self) -> &'a Trailer {
        self.trailer
    }

    /// The bytes that were signed.
    pub const fn signed(&self) -> &'a [u8] {
        self.signed
    }
}
