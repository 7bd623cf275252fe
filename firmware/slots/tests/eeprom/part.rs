//! An EEPROM in memory whose power can be cut, and images for it.

use boot_slots::geometry::PAGE_BYTES;
use boot_slots::select::{Choice, Memory, choose};
use boot_slots::update::{Choices, UpdateError, install};
use boot_slots::{BoardId, Geometry, Header, ImageFile, Slot, Storage};
use host_interface::image::{Image, Version};

pub const BOARD: BoardId = BoardId {
    vendor: 0x12AE,
    device: 1,
};

/// The power is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoPower;

impl std::fmt::Display for NoPower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("no power")
    }
}

/// What a write during which the power fails leaves in its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Torn {
    /// What was there before.
    Nothing,
    /// The first half is new.
    FirstHalf,
    /// The second half is new.
    SecondHalf,
    /// The bytes are erased and not yet written.
    Erased,
    /// None of them is right.
    Garbage,
    /// All of it: the power failed just afterwards.
    Whole,
}

impl Torn {
    pub const ALL: [Torn; 6] = [
        Torn::Nothing,
        Torn::FirstHalf,
        Torn::SecondHalf,
        Torn::Erased,
        Torn::Garbage,
        Torn::Whole,
    ];
}

#[derive(Clone)]
pub struct Part {
    pub bytes: Vec<u8>,
    /// Writes until the power fails, and how the last of them ends.
    pub cut: Option<(usize, Torn)>,
    pub writes: usize,
    off: bool,
}

impl Part {
    /// A part as it comes on a card: erased, with manufacturing data.
    pub fn new(bytes: usize) -> Part {
        let mut contents = vec![0xFF; bytes];
        for (at, byte) in contents[..0x100].iter_mut().enumerate() {
            *byte = at as u8 ^ 0x5A;
        }
        Part {
            bytes: contents,
            cut: None,
            writes: 0,
            off: false,
        }
    }

    pub fn geometry(&self) -> Geometry {
        Geometry::of(self.bytes.len() as u32).expect("room for two slots")
    }

    /// The same contents with power on.
    pub fn powered(&self) -> Part {
        Part {
            cut: None,
            writes: 0,
            off: false,
            ..self.clone()
        }
    }

    pub fn install(&mut self, file: &[u8], choices: Choices) -> Result<Slot, UpdateError<NoPower>> {
        let file = ImageFile::parse(file).expect("a good file");
        let geometry = self.geometry();
        install(self, geometry, BOARD, &file, choices, &mut |_, _, _| {})
    }

    /// What the boot code does, and the image that it placed.
    pub fn boot(&mut self) -> (Choice, Vec<u8>) {
        let mut memory = Placed::default();
        let choice = choose(self, BOARD, &mut memory);
        (choice, memory.bytes)
    }

    /// What is started after power has come back: the image's bytes, or nothing.
    pub fn started(&self) -> Option<Vec<u8>> {
        match self.powered().boot() {
            (Choice::Start { start, .. }, image) => {
                assert_eq!(start, 0x4000);
                Some(image)
            }
            _ => None,
        }
    }
}

impl Storage for Part {
    type Error = NoPower;

    fn read(&mut self, at: u32, out: &mut [u8]) -> Result<(), NoPower> {
        if self.off {
            return Err(NoPower);
        }
        let at = at as usize;
        out.copy_from_slice(&self.bytes[at..at + out.len()]);
        Ok(())
    }

    fn write(&mut self, at: u32, new: &[u8]) -> Result<(), NoPower> {
        if self.off {
            return Err(NoPower);
        }
        let last = at + new.len() as u32 - 1;
        assert_eq!(at / PAGE_BYTES, last / PAGE_BYTES, "one page");
        assert!(at >= PAGE_BYTES, "manufacturing data is not written");
        let cells = &mut self.bytes[at as usize..][..new.len()];
        let half = new.len() / 2;
        let torn = match self.cut {
            Some((left, torn)) if left == self.writes => torn,
            _ => Torn::Whole,
        };
        match torn {
            Torn::Nothing => {}
            Torn::FirstHalf => cells[..half].copy_from_slice(&new[..half]),
            Torn::SecondHalf => cells[half..].copy_from_slice(&new[half..]),
            Torn::Erased => cells.fill(0xFF),
            Torn::Garbage => cells
                .iter_mut()
                .zip(new)
                .for_each(|(cell, new)| *cell = !new),
            Torn::Whole => cells.copy_from_slice(new),
        }
        self.off = self.cut.is_some_and(|(left, _)| left == self.writes);
        self.writes += 1;
        if self.off { Err(NoPower) } else { Ok(()) }
    }
}

#[derive(Default)]
struct Placed {
    bytes: Vec<u8>,
}

impl Memory for Placed {
    fn place(&mut self, address: u32, bytes: &[u8]) {
        let offset = (address - 0x4000) as usize;
        // A second slot's image is placed over what the first one left.
        self.bytes.truncate(offset);
        assert_eq!(self.bytes.len(), offset, "without gaps");
        self.bytes.extend(bytes);
    }
}

/// Words that are different in each build.
pub fn code(words: usize, build: u32) -> Vec<u8> {
    let word = |n: u32| (n ^ build).wrapping_mul(0x9E37_79B9).to_be_bytes();
    (0..words as u32).flat_map(word).collect()
}

/// A file to flash.
pub fn file(words: usize, build: u32) -> Vec<u8> {
    file_for(BOARD, words, build)
}

pub fn file_for(board: BoardId, words: usize, build: u32) -> Vec<u8> {
    let code = code(words, build);
    let version = Version {
        major: 0,
        minor: 1,
        fix: build as u8,
    };
    let image = Image::new(version, 0x4000, 0x4000, &code).expect("an image");
    let header = Header::of(board, &image, [build as u8; 20]);
    [header.to_bytes().as_slice(), &code].concat()
}

/// A file to flash with a rollback counter.
pub fn counted(build: u32, counter: u32) -> Vec<u8> {
    let mut file = file(300, build);
    let header = file.first_chunk().map(Header::parse);
    let header = header.expect("whole").expect("a header");
    let counted = Header { counter, ..header }.to_bytes();
    file[..counted.len()].copy_from_slice(&counted);
    file
}
