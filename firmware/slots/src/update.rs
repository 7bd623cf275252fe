//! Installs, confirms and prefers an image.
//!
//! The order of writes makes every moment safe: until the last write, the boot code starts what it
//! started before.
//!
//! ```text
//!  (record: prefer the other slot)      only if the target is preferred now
//!   header page of the target erased
//!   pages of the image
//!   header page                         now whole, but no record means it yet
//!   -- read back --
//!   record: prefer the target, trial boots or confirmed
//! ```
//!
//! Confirming an image raises the record's rollback counter to the image's own. An image with a
//! lower one is rejected, unless a [`Downgrade`] is allowed.

use crate::CRC;
use crate::geometry::{Geometry, PAGE_BYTES, Slot};
use crate::header::{BoardId, HEADER_BYTES, Header, HeaderError, ImageFile};
use crate::record::{Found, Record, SlotState, TRIAL_BOOTS};
use crate::select::{Nowhere, Reason, load, startable};
use crate::storage::Storage;
use thiserror::Error;

/// Why an update was rejected or abandoned. In each case the boot code still starts what it
/// started before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum UpdateError<E> {
    /// The image is not for this card.
    #[error(transparent)]
    Image(HeaderError),
    /// The slot holds the only image that starts.
    #[error("{slot} holds the only image that starts: use {other}")]
    OnlyImage {
        /// The slot.
        slot: Slot,
        /// The other slot.
        other: Slot,
    },
    /// The part does not hold what was written.
    #[error("the EEPROM does not keep what is written at {at:#x}")]
    NotKept {
        /// The address.
        at: u32,
    },
    /// The image is older than what was confirmed on the card.
    #[error(
        "the image is older than the card's: its rollback counter is {image}, the card's {card}"
    )]
    Older {
        /// The image's counter.
        image: u32,
        /// The card's counter.
        card: u32,
    },
    /// There is no boot record.
    #[error("the EEPROM has no boot record")]
    NoRecord,
    /// The slot's image cannot be started.
    #[error("{slot} cannot be started: {}", .reason.text())]
    NotStartable {
        /// The slot.
        slot: Slot,
        /// The reason.
        reason: Reason,
    },
    /// The part does not answer.
    #[error("{0}")]
    Storage(E),
}

/// The current step of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Reads the current contents.
    Look,
    /// Writes the image.
    Write,
    /// Reads the image back.
    Verify,
}

/// Called with a step, its finished bytes and its total bytes.
pub type Progress<'a> = &'a mut dyn FnMut(Step, u32, u32);

/// Whether an image may be older than what was confirmed on the card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Downgrade {
    /// It may not.
    #[default]
    Refuse,
    /// It may; the card's counter stays unchanged.
    Allow,
}

impl Downgrade {
    /// Checks an image's rollback counter against the card's.
    pub(crate) const fn check<E>(self, image: u32, card: u32) -> Result<(), UpdateError<E>> {
        match self {
            Downgrade::Refuse if image < card => Err(UpdateError::Older { image, card }),
            _ => Ok(()),
        }
    }
}

/// How to install.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Choices {
    /// The slot; `None` selects the one that does not start now.
    pub slot: Option<Slot>,
    /// Whether it is confirmed at once, without trial boots.
    pub confirmed: bool,
    /// Whether it may be older.
    pub downgrade: Downgrade,
}

impl Choices {
    /// Into the slot that does not start now, on trial.
    pub const TRIAL: Self = Choices {
        slot: None,
        confirmed: false,
        downgrade: Downgrade::Refuse,
    };
    /// Into the slot that does not start now, confirmed.
    pub const CONFIRMED: Self = Choices {
        slot: None,
        confirmed: true,
        downgrade: Downgrade::Refuse,
    };
}

/// The record of a part, or a first one if it has none.
///
/// # Errors
/// The storage's error.
pub fn record_or_first<S: Storage>(
    storage: &mut S,
    geometry: Geometry,
    board: BoardId,
) -> Result<Record, S::Error> {
    Ok(match Record::find(storage)? {
        Found::Record(record, _) if record.geometry == geometry && record.board == board => record,
        _ => Record::first(geometry, board),
    })
}

/// Whether the boot code would start the image of a slot.
///
/// # Errors
/// The reason why it would not.
pub fn starts<S: Storage>(storage: &mut S, record: &Record, slot: Slot) -> Result<Header, Reason> {
    let header = startable(storage, record.board, record, slot)?;
    load(storage, record, slot, &header, &mut Nowhere)?;
    Ok(header)
}

/// Installs a file's image in a slot; returns that slot.
///
/// # Errors
/// [`UpdateError`]; nothing is written if the image or the slot is rejected.
pub fn install<S: Storage>(
    storage: &mut S,
    geometry: Geometry,
    board: BoardId,
    file: &ImageFile<'_>,
    choices: Choices,
    progress: Progress<'_>,
) -> Result<Slot, UpdateError<S::Error>> {
    file.header
        .fits(board, geometry)
        .map_err(UpdateError::Image)?;
    progress(Step::Look, 0, 1);
    let mut record = record_or_first(storage, geometry, board).map_err(UpdateError::Storage)?;
    choices
        .downgrade
        .check(file.header.counter, record.counter)?;
    let target = target(storage, &record, choices.slot)?;
    progress(Step::Look, 1, 1);

    if record.preferred == target && record.slot(target.other()).may_start() {
        record.preferred = target.other();
        record.write(storage).map_err(UpdateError::Storage)?;
    }
    write_slot(storage, geometry, target, file, progress)?;
    verify_slot(storage, geometry, target, file, progress)?;

    record.preferred = target;
    *record.slot_mut(target) = SlotState {
        header_crc: file.header.crc(),
        confirmed: choices.confirmed,
        trials: if choices.confirmed { 0 } else { TRIAL_BOOTS },
    };
    if choices.confirmed {
        record.counter = record.counter.max(file.header.counter);
    }
    write_record(storage, record)?;
    Ok(target)
}

/// The slot to write, never the only one that starts.
fn target<S: Storage>(
    storage: &mut S,
    record: &Record,
    wanted: Option<Slot>,
) -> Result<Slot, UpdateError<S::Error>> {
    let first = record.preferred;
    let first_starts = starts(storage, record, first).is_ok();
    match wanted {
        None if first_starts => Ok(first.other()),
        // The boot code falls back to the other slot, which must stay.
        None => Ok(first),
        Some(slot) => {
            let started_now = if first_starts { first } else { first.other() };
            let other = slot.other();
            if slot != started_now
                || starts(storage, record, other).is_ok()
                || starts(storage, record, slot).is_err()
            {
                Ok(slot)
            } else {
                Err(UpdateError::OnlyImage { slot, other })
            }
        }
    }
}

fn write_slot<S: Storage>(
    storage: &mut S,
    geometry: Geometry,
    slot: Slot,
    file: &ImageFile<'_>,
    progress: Progress<'_>,
) -> Result<(), UpdateError<S::Error>> {
    let mut write = |at, bytes: &[u8]| storage.write(at, bytes).map_err(UpdateError::Storage);
    write(geometry.header_at(slot), &[0xFF; PAGE_BYTES as usize])?;
    let mut at = geometry.image_at(slot);
    let mut done = 0;
    for page in file.image.chunks(PAGE_BYTES as usize) {
        progress(Step::Write, done, file.header.image_bytes);
        write(at, page)?;
        at += PAGE_BYTES;
        done += page.len() as u32;
    }
    write(geometry.header_at(slot), &file.header.to_bytes())?;
    progress(Step::Write, done, done);
    Ok(())
}

/// Reads a slot back and compares it with a file.
///
/// # Errors
/// [`UpdateError::NotKept`] at the first difference.
pub fn verify_slot<S: Storage>(
    storage: &mut S,
    geometry: Geometry,
    slot: Slot,
    file: &ImageFile<'_>,
    progress: Progress<'_>,
) -> Result<(), UpdateError<S::Error>> {
    compare(
        storage,
        geometry.header_at(slot),
        &file.header.to_bytes()[..HEADER_BYTES],
    )?;
    let mut at = geometry.image_at(slot);
    let mut done = 0;
    for page in file.image.chunks(PAGE_BYTES as usize) {
        progress(Step::Verify, done, file.header.image_bytes);
        compare(storage, at, page)?;
        at += PAGE_BYTES;
        done += page.len() as u32;
    }
    progress(Step::Verify, done, done);
    Ok(())
}

fn compare<S: Storage>(
    storage: &mut S,
    at: u32,
    expected: &[u8],
) -> Result<(), UpdateError<S::Error>> {
    let mut page = [0; PAGE_BYTES as usize];
    let page = page
        .get_mut(..expected.len())
        .ok_or(UpdateError::NotKept { at })?;
    storage.read(at, page).map_err(UpdateError::Storage)?;
    if CRC.checksum(page) == CRC.checksum(expected) && page == expected {
        Ok(())
    } else {
        Err(UpdateError::NotKept { at })
    }
}

/// Writes a record and verifies that it is the newest one.
pub(crate) fn write_record<S: Storage>(
    storage: &mut S,
    mut record: Record,
) -> Result<(), UpdateError<S::Error>> {
    record.write(storage).map_err(UpdateError::Storage)?;
    match Record::find(storage).map_err(UpdateError::Storage)? {
        Found::Record(kept, _) if kept == record => Ok(()),
        Found::Record(_, copy) => Err(UpdateError::NotKept {
            at: crate::geometry::RECORD_COPIES[1 - (copy & 1)],
        }),
        _ => Err(UpdateError::NotKept {
            at: crate::geometry::RECORD_COPIES[0],
        }),
    }
}

/// The record, which must exist.
fn record<S: Storage>(storage: &mut S) -> Result<Record, UpdateError<S::Error>> {
    match Record::find(storage).map_err(UpdateError::Storage)? {
        Found::Record(record, _) => Ok(record),
        _ => Err(UpdateError::NoRecord),
    }
}

/// Confirms the image in a slot: it needs no more trial boots. Writes nothing if it is confirmed
/// already.
///
/// # Errors
/// [`UpdateError::NotStartable`] if there is no such image.
pub fn confirm<S: Storage>(storage: &mut S, slot: Slot) -> Result<(), UpdateError<S::Error>> {
    let mut record = record(storage)?;
    let mut asked = record;
    // An image that has used up its trials may be the one that runs.
    asked.slot_mut(slot).confirmed = true;
    let checked = startable(storage, record.board, &asked, slot);
    let header = checked.map_err(|reason| UpdateError::NotStartable { slot, reason })?;
    if record.slot(slot).confirmed {
        return Ok(());
    }
    let state = record.slot_mut(slot);
    (state.confirmed, state.trials) = (true, 0);
    record.counter = record.counter.max(header.counter);
    write_record(storage, record)
}

/// Makes a slot the preferred one.
///
/// # Errors
/// [`UpdateError::NotStartable`] if its image would not be started, [`UpdateError::Older`].
pub fn prefer<S: Storage>(
    storage: &mut S,
    slot: Slot,
    downgrade: Downgrade,
) -> Result<(), UpdateError<S::Error>> {
    let mut record = record(storage)?;
    let checked = starts(storage, &record, slot);
    let header = checked.map_err(|reason| UpdateError::NotStartable { slot, reason })?;
    if record.preferred == slot {
        return Ok(());
    }
    downgrade.check(header.counter, record.counter)?;
    record.preferred = slot;
    write_record(storage, record)
}
