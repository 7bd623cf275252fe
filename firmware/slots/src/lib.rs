//! The boot layout of the serial EEPROM, and the selection of the image to start.
//!
//! The card's boot code and the host's tools share this crate: it defines in one place what an
//! update writes and what the boot code does with it. Its tests run on a host, with a power cut at
//! every write and with every bit flipped (`tests/`).
//!
//! ```text
//!  0x00000  manufacturing data; the station address at 0x8C   (never written here)
//!  0x00100  boot record, first copy        } two copies, the valid one with the
//!  0x00200  boot record, second copy       } higher sequence number counts
//!  0x00400  slot 0: header, and from its next page on the image
//!           slot 1: header, image           (half of the rest each, whole pages)
//! ```
//!
//! | module | what |
//! | --- | --- |
//! | [`geometry`] | the layout of a part of a given size |
//! | [`header`] | the header of an image: board, addresses, CRC-32, signature |
//! | [`record`] | the boot record: which slot first, trial boots, confirmed |
//! | [`storage`] | access to the part: reading, and writing a page |
//! | [`select`] | the boot code's selection |
//! | [`update`] | installing, confirming and preferring an image, safe against power cuts |
//! | [`restore`] | restoring a backup, as safely |
//!
//! All numbers in the EEPROM are big-endian.
#![no_std]
#![forbid(unsafe_code)]

pub mod geometry;
pub mod header;
pub mod record;
pub mod restore;
pub mod select;
pub mod storage;
pub mod update;

pub use geometry::{Geometry, Slot};
pub use header::{BoardId, Header, HeaderError, ImageFile};
pub use record::{Record, SlotState};
pub use storage::Storage;

/// The CRC of images, headers and records: that of Ethernet, zip and PNG.
pub const CRC: crc::Crc<u32> = crc::Crc::<u32>::new(&crc::CRC_32_ISO_HDLC);
