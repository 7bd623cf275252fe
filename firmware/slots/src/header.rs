//! The header of an image, in a slot and in a file to flash.
//!
//! ```text
//!   0 "TGIM"      4 format    6 header bytes
//!   8 PCI vendor 10 device   12 version: major, minor, fix, 0
//!  16 start      20 load     24 bytes of the image    28 its CRC-32
//!  32 build id (20 bytes)    52 rollback counter   56 zero (4 bytes)
//!  60 Ed25519 signature over bytes 0..60 and the image
//! 124 CRC-32 over bytes 0..124
//! ```
//!
//! The boot code checks everything except the signature: it has neither a multiplier nor the room,
//! and whoever can write the EEPROM can also write NIC memory. The tools that bring an image to
//! the card check the signature (`host-driver`, `xtask`).
//!
//! The rollback counter is raised when no older image may return. Images from before the counter
//! existed have 0 there and count as the oldest.

use crate::CRC;
use crate::geometry::{Geometry, PAGE_BYTES};
use host_interface::image::{HIGHEST, Image, LOWEST, Version};
use thiserror::Error;
use zerocopy::big_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// "TGIM".
pub const MAGIC: u32 = 0x5447_494D;
/// This layout.
pub const FORMAT: u16 = 1;
/// Bytes of a header.
pub const HEADER_BYTES: usize = 128;
/// Bytes that are signed, before the image.
pub const SIGNED_BYTES: usize = 60;
/// Bytes of a signature.
pub const SIGNATURE_BYTES: usize = 64;
/// Bytes of a build id.
pub const BUILD_ID_BYTES: usize = 20;

/// The board of an image: the ids of its PCI function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoardId {
    /// PCI vendor.
    pub vendor: u16,
    /// PCI device.
    pub device: u16,
}

impl core::fmt::Display for BoardId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:04x}:{:04x}", self.vendor, self.device)
    }
}

/// The header as it lies in memory.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
struct Raw {
    magic: U32,
    format: U16,
    header_bytes: U16,
    vendor: U16,
    device: U16,
    version: [u8; 4],
    start: U32,
    load: U32,
    image_bytes: U32,
    image_crc: U32,
    build_id: [u8; BUILD_ID_BYTES],
    counter: U32,
    zero: [u8; 4],
    signature: [u8; SIGNATURE_BYTES],
    crc: U32,
}

const _: () = assert!(size_of::<Raw>() == HEADER_BYTES);

/// A header with valid CRC and addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The board that the image is for.
    pub board: BoardId,
    /// The firmware's version.
    pub version: Version,
    /// Where CPU A starts.
    pub start: u32,
    /// The load address in NIC memory.
    pub load: u32,
    /// Bytes of the image.
    pub image_bytes: u32,
    /// CRC-32 of the image.
    pub image_crc: u32,
    /// The build id.
    pub build_id: [u8; BUILD_ID_BYTES],
    /// Rollback counter: an image with a lower one is older.
    pub counter: u32,
    /// The signature, unchecked.
    pub signature: [u8; SIGNATURE_BYTES],
}

/// Why bytes are no header, or no header for this card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum HeaderError {
    /// Nothing was ever written there.
    #[error("there is no image")]
    Empty,
    /// No header, or another layout.
    #[error("this is no flash image")]
    NotAnImage,
    /// The header's own CRC is wrong.
    #[error("the header is damaged")]
    Damaged,
    /// An image for another board.
    #[error("the image is for board {image}, this is {card}")]
    OtherBoard {
        /// The image's board.
        image: BoardId,
        /// The card's board.
        card: BoardId,
    },
    /// Addresses where nothing can be loaded or started.
    #[error("the image cannot be loaded at {load:#x} and started at {start:#x}")]
    Addresses {
        /// Load address.
        load: u32,
        /// Start address.
        start: u32,
    },
    /// More than a slot holds.
    #[error("the image has {bytes} bytes, a slot holds {room}")]
    TooLarge {
        /// Bytes of the image.
        bytes: u32,
        /// Bytes of room.
        room: u32,
    },
    /// The file's length disagrees with its header.
    #[error("the file has {found} bytes of image, its header says {expected}")]
    Length {
        /// The actual length.
        found: usize,
        /// The length from the header.
        expected: usize,
    },
    /// The image's CRC is wrong.
    #[error("the image is damaged: its CRC-32 is {found:#010x}, not {expected:#010x}")]
    ImageCrc {
        /// The computed CRC.
        found: u32,
        /// The CRC from the header.
        expected: u32,
    },
}

impl Header {
    /// The header of an image that drivers can load, with rollback counter 0 and without a
    /// signature.
    pub fn of(board: BoardId, image: &Image<'_>, build_id: [u8; BUILD_ID_BYTES]) -> Header {
        Header {
            board,
            version: image.version(),
            start: image.start(),
            load: image.load(),
            image_bytes: image.code().len() as u32,
            image_crc: CRC.checksum(image.code()),
            build_id,
            counter: 0,
            signature: [0; SIGNATURE_BYTES],
        }
    }

    /// The header's bytes.
    pub fn to_bytes(&self) -> [u8; HEADER_BYTES] {
        let Version { major, minor, fix } = self.version;
        let mut raw = Raw {
            magic: MAGIC.into(),
            format: FORMAT.into(),
            header_bytes: (HEADER_BYTES as u16).into(),
            vendor: self.board.vendor.into(),
            device: self.board.device.into(),
            version: [major, minor, fix, 0],
            start: self.start.into(),
            load: self.load.into(),
            image_bytes: self.image_bytes.into(),
            image_crc: self.image_crc.into(),
            build_id: self.build_id,
            counter: self.counter.into(),
            zero: [0; 4],
            signature: self.signature,
            crc: 0.into(),
        };
        raw.crc = CRC.checksum(&raw.as_bytes()[..HEADER_BYTES - 4]).into();
        let mut bytes = [0; HEADER_BYTES];
        bytes.copy_from_slice(raw.as_bytes());
        bytes
    }

    /// Parses a header.
    ///
    /// # Errors
    /// [`HeaderError`] for everything that can be checked without card and image.
    pub fn parse(bytes: &[u8; HEADER_BYTES]) -> Result<Header, HeaderError> {
        let raw = Raw::ref_from_bytes(bytes).map_err(|_| HeaderError::NotAnImage)?;
        if bytes.iter().all(|byte| *byte == 0xFF) {
            return Err(HeaderError::Empty);
        }
        if CRC.checksum(&bytes[..HEADER_BYTES - 4]) != raw.crc.get() {
            return Err(if raw.magic.get() == MAGIC {
                HeaderError::Damaged
            } else {
                HeaderError::NotAnImage
            });
        }
        let known = (MAGIC, FORMAT, HEADER_BYTES as u16);
        if (raw.magic.get(), raw.format.get(), raw.header_bytes.get()) != known {
            return Err(HeaderError::NotAnImage);
        }
        let [major, minor, fix, _] = raw.version;
        let header = Header {
            board: BoardId {
                vendor: raw.vendor.get(),
                device: raw.device.get(),
            },
            version: Version { major, minor, fix },
            start: raw.start.get(),
            load: raw.load.get(),
            image_bytes: raw.image_bytes.get(),
            image_crc: raw.image_crc.get(),
            build_id: raw.build_id,
            counter: raw.counter.get(),
            signature: raw.signature,
        };
        if header.can_be_loaded() {
            Ok(header)
        } else {
            let Header { load, start, .. } = header;
            Err(HeaderError::Addresses { load, start })
        }
    }

    /// Checks the addresses as a driver does, without the image.
    fn can_be_loaded(&self) -> bool {
        let words = self.image_bytes != 0 && self.image_bytes & 3 == 0;
        let inside = self.start >= self.load && self.start - self.load < self.image_bytes;
        words
            && (LOWEST..HIGHEST).contains(&self.load)
            && self.image_bytes <= HIGHEST - self.load
            && inside
            && (self.load | self.start) & 3 == 0
    }

    /// Whether the image is for this card and fits.
    ///
    /// # Errors
    /// [`HeaderError::OtherBoard`], [`HeaderError::TooLarge`].
    pub fn fits(&self, card: BoardId, geometry: Geometry) -> Result<(), HeaderError> {
        if self.board != card {
            let image = self.board;
            return Err(HeaderError::OtherBoard { image, card });
        }
        let (bytes, room) = (self.image_bytes, geometry.image_bytes());
        if bytes > room {
            return Err(HeaderError::TooLarge { bytes, room });
        }
        Ok(())
    }

    /// The header's CRC, which identifies the image in a boot record.
    pub fn crc(&self) -> u32 {
        CRC.checksum(&self.to_bytes()[..HEADER_BYTES - 4])
    }

    /// The signed bytes of the header, which precede those of the image.
    pub fn signed_bytes(&self) -> [u8; SIGNED_BYTES] {
        let mut signed = [0; SIGNED_BYTES];
        signed.copy_from_slice(&self.to_bytes()[..SIGNED_BYTES]);
        signed
    }
}

/// A file to flash: a complete header and its complete image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageFile<'a> {
    /// The header.
    pub header: Header,
    /// The image.
    pub image: &'a [u8],
}

impl<'a> ImageFile<'a> {
    /// Parses header and image of a file; does not check the signature.
    ///
    /// # Errors
    /// [`HeaderError`] for a file that is no image, truncated or damaged.
    pub fn parse(file: &'a [u8]) -> Result<Self, HeaderError> {
        let Some((header, image)) = file.split_first_chunk::<HEADER_BYTES>() else {
            return Err(HeaderError::NotAnImage);
        };
        let header = Header::parse(header)?;
        let expected = header.image_bytes as usize;
        if image.len() != expected {
            let found = image.len();
            return Err(HeaderError::Length { found, expected });
        }
        let (found, expected) = (CRC.checksum(image), header.image_crc);
        if found != expected {
            return Err(HeaderError::ImageCrc { found, expected });
        }
        Ok(ImageFile { header, image })
    }
}

const _: () = assert!(HEADER_BYTES as u32 <= PAGE_BYTES);
