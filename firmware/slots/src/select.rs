//! The boot code's selection of the image to start.
//!
//! ```text
//!  newest valid record ── none: blank ──> wait for the host
//!        │                 └── damaged ─> PROM failed
//!        v
//!  preferred slot, then the other one:
//!     header whole, this board, the one that the record means, confirmed or trials left
//!        │ no: note why, next slot
//!        v
//!     image copied to NIC memory, its CRC right
//!        │ no: note why, next slot
//!        v
//!     unconfirmed: one trial less, written and read back, before it runs
//!        v
//!     start                      neither slot: PROM failed
//! ```

use crate::CRC;
use crate::geometry::{PAGE_BYTES, Slot};
use crate::header::{BoardId, HEADER_BYTES, Header, HeaderError};
use crate::record::{Found, Record};
use crate::storage::Storage;

/// The destination of an image.
pub trait Memory {
    /// Puts bytes at a NIC address; both are multiples of 4.
    fn place(&mut self, address: u32, bytes: &[u8]);
}

/// A memory that discards everything: to check an image without loading it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nowhere;

impl Memory for Nowhere {
    fn place(&mut self, _address: u32, _bytes: &[u8]) {}
}

/// Why a slot's image is not started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Reason {
    /// It was not checked, or there is no reason.
    None = 0,
    /// The slot is empty.
    Empty = 1,
    /// There is no valid header.
    Header = 2,
    /// The image is for another board.
    OtherBoard = 3,
    /// The image is longer than the slot.
    TooLarge = 4,
    /// The record describes another image, or none: an update was interrupted.
    Unknown = 5,
    /// It used up its trial boots without being confirmed.
    TrialsUsedUp = 6,
    /// The image is damaged.
    Crc = 7,
    /// The trial could not be counted.
    NotCounted = 8,
    /// The EEPROM does not answer.
    NoAnswer = 9,
}

impl Reason {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Reason; 10] = [
        Reason::None,
        Reason::Empty,
        Reason::Header,
        Reason::OtherBoard,
        Reason::TooLarge,
        Reason::Unknown,
        Reason::TrialsUsedUp,
        Reason::Crc,
        Reason::NotCounted,
        Reason::NoAnswer,
    ];

    /// The reason in words.
    pub const fn text(self) -> &'static str {
        match self {
            Reason::None => "not looked at",
            Reason::Empty => "empty",
            Reason::Header => "header damaged",
            Reason::OtherBoard => "for another board",
            Reason::TooLarge => "too large",
            Reason::Unknown => "unfinished update",
            Reason::TrialsUsedUp => "trial boots used up without a confirmation",
            Reason::Crc => "image damaged",
            Reason::NotCounted => "trial boot could not be counted",
            Reason::NoAnswer => "EEPROM does not answer",
        }
    }
}

/// The boot code's action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Start CPU A at `start`; the image is in place.
    Start {
        /// The slot that it came from.
        slot: Slot,
        /// The first instruction.
        start: u32,
        /// It is not confirmed.
        trial: bool,
    },
    /// Nothing was ever installed: wait for the host.
    Blank,
    /// PROM failed: wait for the host. The reason for each slot; both are [`Reason::None`] if there
    /// is no record.
    Failed([Reason; 2]),
}

/// Selects, loads and counts the trial.
pub fn choose<S: Storage, M: Memory>(storage: &mut S, board: BoardId, memory: &mut M) -> Choice {
    let mut record = match Record::find(storage) {
        Ok(Found::Record(record, _)) => record,
        Ok(Found::Blank) => return Choice::Blank,
        Ok(Found::Damaged) => return Choice::Failed([Reason::None; 2]),
        Err(_) => return Choice::Failed([Reason::NoAnswer; 2]),
    };
    let mut reasons = [Reason::None; 2];
    for slot in [record.preferred, record.preferred.other()] {
        match try_slot(storage, board, memory, &mut record, slot) {
            Ok(start) => {
                let trial = !record.slot(slot).confirmed;
                return Choice::Start { slot, start, trial };
            }
            Err(reason) => match slot {
                Slot::Zero => reasons[0] = reason,
                Slot::One => reasons[1] = reason,
            },
        }
    }
    Choice::Failed(reasons)
}

fn try_slot<S: Storage, M: Memory>(
    storage: &mut S,
    board: BoardId,
    memory: &mut M,
    record: &mut Record,
    slot: Slot,
) -> Result<u32, Reason> {
    let header = startable(storage, board, record, slot)?;
    load(storage, record, slot, &header, memory)?;
    if !record.slot(slot).confirmed {
        count_trial(storage, record, slot)?;
    }
    Ok(header.start)
}

/// The header of a slot's image, if the boot code would try it.
///
/// # Errors
/// The reason why it would not.
pub fn startable<S: Storage>(
    storage: &mut S,
    board: BoardId,
    record: &Record,
    slot: Slot,
) -> Result<Header, Reason> {
    let mut bytes = [0; HEADER_BYTES];
    storage
        .read(record.geometry.header_at(slot), &mut bytes)
        .map_err(|_| Reason::NoAnswer)?;
    let header = Header::parse(&bytes).map_err(|error| match error {
        HeaderError::Empty => Reason::Empty,
        _ => Reason::Header,
    })?;
    header
        .fits(board, record.geometry)
        .map_err(|error| match error {
            HeaderError::OtherBoard { .. } => Reason::OtherBoard,
            _ => Reason::TooLarge,
        })?;
    let state = record.slot(slot);
    if state.header_crc != header.crc() {
        return Err(Reason::Unknown);
    }
    if !state.may_start() {
        return Err(Reason::TrialsUsedUp);
    }
    Ok(header)
}

/// Copies an image to memory and checks it on the way.
///
/// # Errors
/// [`Reason::Crc`], [`Reason::NoAnswer`]; the copied bytes are then useless.
pub fn load<S: Storage, M: Memory>(
    storage: &mut S,
    record: &Record,
    slot: Slot,
    header: &Header,
    memory: &mut M,
) -> Result<(), Reason> {
    let mut page = [0; PAGE_BYTES as usize];
    let mut digest = CRC.digest();
    let from = record.geometry.image_at(slot);
    let mut done = 0;
    while done < header.image_bytes {
        let bytes = (header.image_bytes - done).min(PAGE_BYTES);
        let Some(page) = page.get_mut(..bytes as usize) else {
            return Err(Reason::Crc);
        };
        storage
            .read(from + done, page)
            .map_err(|_| Reason::NoAnswer)?;
        digest.update(page);
        memory.place(header.load + done, page);
        done += bytes;
    }
    if digest.finalize() == header.image_crc {
        Ok(())
    } else {
        Err(Reason::Crc)
    }
}

/// Decrements the trials and verifies that the part has kept the new count: an image that cannot
/// be counted could be tried forever.
fn count_trial<S: Storage>(storage: &mut S, record: &mut Record, slot: Slot) -> Result<(), Reason> {
    let trials = &mut record.slot_mut(slot).trials;
    *trials = trials.saturating_sub(1);
    record.write(storage).map_err(|_| Reason::NotCounted)?;
    match Record::find(storage) {
        Ok(Found::Record(kept, _)) if kept == *record => Ok(()),
        _ => Err(Reason::NotCounted),
    }
}
