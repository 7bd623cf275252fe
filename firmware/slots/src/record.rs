//! The boot record: the preferred slot, and the state of both images.
//!
//! ```text
//!   0 "TGBR"   4 format   6 zero   8 sequence
//!  12 bytes of the EEPROM   16 PCI vendor  18 device
//!  20 preferred slot   21 zero (3 bytes)
//!  24 slot 0: CRC of its header, confirmed, trial boots left, zero (2 bytes)
//!  32 slot 1: the same
//!  40 rollback counter  44 zero (16 bytes)   60 CRC-32 over bytes 0..60
//! ```
//!
//! There are two copies. A new record replaces the older one, with the next sequence number, so a
//! write that fails in its middle leaves the previous record intact. A slot's state applies only
//! to the image with that header CRC: it is void once the image has been replaced.
//!
//! The rollback counter is the highest of all images that were ever confirmed on the card. Updates
//! never lower it: an image with a lower one is older than the card's. Records from before the
//! counter existed have 0 there, which rejects nothing.

use crate::CRC;
use crate::geometry::{Geometry, RECORD_COPIES, Slot};
use crate::header::BoardId;
use crate::storage::Storage;
use zerocopy::big_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// "TGBR".
pub const MAGIC: u32 = 0x5447_4252;
/// This layout.
pub const FORMAT: u16 = 1;
/// Bytes of a record.
pub const RECORD_BYTES: usize = 64;
/// The mark of a confirmed image; more than one bit away from 0.
const CONFIRMED: u8 = 0xC5;
/// Trial boots of a new image.
pub const TRIAL_BOOTS: u8 = 3;

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawSlot {
    header_crc: U32,
    confirmed: u8,
    trials: u8,
    zero: [u8; 2],
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Raw {
    magic: U32,
    format: U16,
    zero: U16,
    sequence: U32,
    eeprom_bytes: U32,
    vendor: U16,
    device: U16,
    preferred: u8,
    zero_21: [u8; 3],
    slots: [RawSlot; 2],
    counter: U32,
    zero_44: [u8; 16],
    crc: U32,
}

const _: () = assert!(size_of::<Raw>() == RECORD_BYTES);

/// The state of the image in a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotState {
    /// CRC of the image's header; 0 if there is no image.
    pub header_crc: u32,
    /// It was operational once, and the host confirmed it.
    pub confirmed: bool,
    /// How many more times it may start unconfirmed.
    pub trials: u8,
}

impl SlotState {
    /// Whether the boot code may start the image on trial.
    pub const fn is_on_trial(&self) -> bool {
        !self.confirmed && self.trials > 0
    }

    /// Whether the boot code may start the image.
    pub const fn may_start(&self) -> bool {
        self.confirmed || self.trials > 0
    }
}

/// A valid boot record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Sequence number of the record; the higher one is newer.
    pub sequence: u32,
    /// The layout of the part.
    pub geometry: Geometry,
    /// The board that the EEPROM belongs to.
    pub board: BoardId,
    /// The slot to try first.
    pub preferred: Slot,
    /// The states of the slots.
    pub slots: [SlotState; 2],
    /// Rollback counter: the highest of all confirmed images.
    pub counter: u32,
}

/// The content of the two copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing was ever written: the part is not set up for booting.
    Blank,
    /// Something, but no valid record.
    Damaged,
    /// The newer valid record, and the number of its copy.
    Record(Record, usize),
}

impl Record {
    /// The first record of a part: no image yet.
    pub const fn first(geometry: Geometry, board: BoardId) -> Record {
        const NONE: SlotState = SlotState {
            header_crc: 0,
            confirmed: false,
            trials: 0,
        };
        Record {
            sequence: 0,
            geometry,
            board,
            preferred: Slot::Zero,
            slots: [NONE; 2],
            counter: 0,
        }
    }

    /// The state of a slot.
    pub const fn slot(&self, slot: Slot) -> SlotState {
        match slot {
            Slot::Zero => self.slots[0],
            Slot::One => self.slots[1],
        }
    }

    /// The same, mutable.
    pub const fn slot_mut(&mut self, slot: Slot) -> &mut SlotState {
        match slot {
            Slot::Zero => &mut self.slots[0],
            Slot::One => &mut self.slots[1],
        }
    }

    /// The record's bytes.
    pub fn to_bytes(&self) -> [u8; RECORD_BYTES] {
        let slot = |state: SlotState| RawSlot {
            header_crc: state.header_crc.into(),
            confirmed: if state.confirmed { CONFIRMED } else { 0 },
            trials: state.trials,
            zero: [0; 2],
        };
        let mut raw = Raw {
            magic: MAGIC.into(),
            format: FORMAT.into(),
            zero: 0.into(),
            sequence: self.sequence.into(),
            eeprom_bytes: self.geometry.bytes().into(),
            vendor: self.board.vendor.into(),
            device: self.board.device.into(),
            preferred: self.preferred.index() as u8,
            zero_21: [0; 3],
            slots: [slot(self.slots[0]), slot(self.slots[1])],
            counter: self.counter.into(),
            zero_44: [0; 16],
            crc: 0.into(),
        };
        raw.crc = CRC.checksum(&raw.as_bytes()[..RECORD_BYTES - 4]).into();
        let mut bytes = [0; RECORD_BYTES];
        bytes.copy_from_slice(raw.as_bytes());
        bytes
    }

    /// Parses a record; `None` if the bytes are none.
    pub fn parse(bytes: &[u8; RECORD_BYTES]) -> Option<Record> {
        let raw = Raw::ref_from_bytes(bytes).ok()?;
        let whole = CRC.checksum(&bytes[..RECORD_BYTES - 4]) == raw.crc.get();
        if !whole || raw.magic.get() != MAGIC || raw.format.get() != FORMAT {
            return None;
        }
        let slot = |raw: &RawSlot| SlotState {
            header_crc: raw.header_crc.get(),
            confirmed: raw.confirmed == CONFIRMED,
            trials: raw.trials,
        };
        Some(Record {
            sequence: raw.sequence.get(),
            geometry: Geometry::of(raw.eeprom_bytes.get())?,
            board: BoardId {
                vendor: raw.vendor.get(),
                device: raw.device.get(),
            },
            preferred: Slot::from_index(raw.preferred.into())?,
            slots: [slot(&raw.slots[0]), slot(&raw.slots[1])],
            counter: raw.counter.get(),
        })
    }

    /// Finds the newer record.
    ///
    /// # Errors
    /// The storage's error.
    pub fn find<S: Storage>(storage: &mut S) -> Result<Found, S::Error> {
        let mut found: Option<(Record, usize)> = None;
        let mut blank = true;
        for (copy, at) in RECORD_COPIES.into_iter().enumerate() {
            let mut bytes = [0; RECORD_BYTES];
            storage.read(at, &mut bytes)?;
            blank &= bytes.iter().all(|byte| *byte == 0xFF);
            if let Some(record) = Record::parse(&bytes)
                && found.is_none_or(|(other, _)| record.is_newer_than(&other))
            {
                found = Some((record, copy));
            }
        }
        Ok(match found {
            Some((record, copy)) => Found::Record(record, copy),
            None if blank => Found::Blank,
            None => Found::Damaged,
        })
    }

    /// Compares wrapping sequence numbers; the part wears out long before they wrap.
    const fn is_newer_than(&self, other: &Record) -> bool {
        (self.sequence.wrapping_sub(other.sequence) as i32) > 0
    }

    /// Writes the record as the newest one, in place of the older copy.
    ///
    /// # Errors
    /// The storage's error.
    pub fn write<S: Storage>(&mut self, storage: &mut S) -> Result<(), S::Error> {
        let (sequence, copy) = match Record::find(storage)? {
            Found::Record(newest, copy) => (newest.sequence.wrapping_add(1), 1 - copy),
            Found::Blank | Found::Damaged => (1, 0),
        };
        self.sequence = sequence;
        storage.write(RECORD_COPIES[copy & 1], &self.to_bytes())
    }
}
