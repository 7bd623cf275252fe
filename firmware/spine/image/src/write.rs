//! Making a container.

use crate::format::{
    BUILD_ID_BYTES, FunctionEntry, Grade, Header, IMPORT, InterfaceEntry, LAYOUT, MAGIC,
    RelocationEntry, RelocationKind, Section, Target, TextEntry, Trailer, ZEROS,
};
use alloc::string::String;
use alloc::vec::Vec;
use zerocopy::IntoBytes;

/// The parts of a container that is being made. They are written as they are: whoever reads
/// them judges.
#[derive(Clone, Debug)]
pub struct Builder {
    /// For which walls.
    pub grade: Grade,
    /// Compiler and API.
    pub build_id: [u8; BUILD_ID_BYTES],
    /// Text, constants and data.
    pub sections: [Vec<u8>; 3],
    /// Bytes of the region that begin as zeros.
    pub zeros: u32,
    /// The function that is called first.
    pub init: u32,
    functions: Vec<FunctionEntry>,
    relocations: Vec<RelocationEntry>,
    imports: Vec<InterfaceEntry>,
    exports: Vec<InterfaceEntry>,
    texts: Vec<TextEntry>,
    name: u32,
    names: String,
}

impl Builder {
    /// Of an extension with this name.
    pub fn new(name: &str, grade: Grade, build_id: [u8; BUILD_ID_BYTES]) -> Builder {
        Builder {
            grade,
            build_id,
            sections: [const { Vec::new() }; 3],
            zeros: 0,
            init: 0,
            functions: Vec::new(),
            relocations: Vec::new(),
            imports: Vec::new(),
            exports: Vec::new(),
            texts: Vec::new(),
            name: name.len() as u32,
            names: name.into(),
        }
    }

    fn named(&mut self, name: &str) -> (u32, u32) {
        let at = self.names.len() as u32;
        self.names.push_str(name);
        (at, name.len() as u32)
    }

    /// One more function; they come by their offsets. Returns its number.
    pub fn function(&mut self, name: &str, offset: u32, bytes: u32) -> u32 {
        let (name, name_bytes) = self.named(name);
        self.functions.push(FunctionEntry {
            offset: offset.into(),
            bytes: bytes.into(),
            name: name.into(),
            name_bytes: name_bytes.into(),
        });
        self.functions.len() as u32 - 1
    }

    /// One more import. Returns its number.
    pub fn import(&mut self, name: &str, hash: u32) -> u32 {
        let entry = self.interface(name, hash);
        self.imports.push(entry);
        self.imports.len() as u32 - 1
    }

    /// One more export.
    pub fn export(&mut self, name: &str, hash: u32) {
        let entry = self.interface(name, hash);
        self.exports.push(entry);
    }

    /// One more text of the log; they come by their numbers.
    pub fn text(&mut self, text: &str) {
        let (name, name_bytes) = self.named(text);
        self.texts.push(TextEntry {
            name: name.into(),
            name_bytes: name_bytes.into(),
        });
    }

    fn interface(&mut self, name: &str, hash: u32) -> InterfaceEntry {
        let (name, name_bytes) = self.named(name);
        InterfaceEntry {
            name: name.into(),
            name_bytes: name_bytes.into(),
            hash: hash.into(),
        }
    }

    /// One more relocation.
    pub fn relocation(
        &mut self,
        section: Section,
        site: u32,
        kind: RelocationKind,
        target: Target,
    ) {
        let (target, addend) = match target {
            Target::Section(section, at) => (section as u8, at),
            Target::Zeros(at) => (ZEROS, at),
            Target::Import(number) => (IMPORT, number),
        };
        self.relocations.push(RelocationEntry {
            section: section as u8,
            kind: kind as u8,
            target,
            reserved: 0,
            site: site.into(),
            addend: addend.into(),
        });
    }

    /// All bytes that are signed.
    pub fn unsigned(&self) -> Vec<u8> {
        let [text, constants, data] = &self.sections;
        let header = Header {
            magic: MAGIC,
            layout: LAYOUT.into(),
            grade: (self.grade as u16).into(),
            text: (text.len() as u32).into(),
            constants: (constants.len() as u32).into(),
            data: (data.len() as u32).into(),
            zeros: self.zeros.into(),
            functions: (self.functions.len() as u32).into(),
            relocations: (self.relocations.len() as u32).into(),
            imports: (self.imports.len() as u32).into(),
            exports: (self.exports.len() as u32).into(),
            texts: (self.texts.len() as u32).into(),
            names: (self.names.len() as u32).into(),
            init: self.init.into(),
            name: self.name.into(),
            build_id: self.build_id,
        };
        [
            header.as_bytes(),
            text,
            constants,
            data,
            self.functions.as_bytes(),
            self.relocations.as_bytes(),
            self.imports.as_bytes(),
            self.exports.as_bytes(),
            self.texts.as_bytes(),
            self.names.as_bytes(),
        ]
        .concat()
    }

    /// The container, signed by `sign`, which is given the bytes.
    pub fn finish(&self, signer: [u8; 32], sign: impl FnOnce(&[u8]) -> [u8; 64]) -> Vec<u8> {
        let mut bytes = self.unsigned();
        let signature = sign(&bytes);
        let trailer = Trailer { signer, signature };
        bytes.extend_from_slice(trailer.as_bytes());
        bytes
    }
}
