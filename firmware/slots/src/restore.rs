//! Restores a backup so that a power cut at any moment is safe.
//!
//! An image of the backup is written to its own slot only while the other slot starts. If the card
//! starts from that slot now, the image goes into the other slot first:
//!
//! ```text
//!   M: the slot that the backup starts     O: the other one
//!
//!   M starts now, another image:  backup's M -> O, record: prefer O     the new one starts
//!                                 backup's M -> M, record: prefer M
//!   O starts now:                 backup's M -> M, record: prefer M     the new one starts
//!                                 backup's O -> O
//!                                 both copies of the record, the older one's place last
//! ```
//!
//! Pages that are already correct, and the manufacturing data, are left alone. The card's rollback
//! counter becomes the backup's. A backup with a lower counter, or one that starts an image with a
//! lower counter, is rejected unless a [`Downgrade`] is allowed.

use crate::geometry::{FIRST_SLOT, Geometry, MANUFACTURING_BYTES, PAGE_BYTES, RECORD_COPIES, Slot};
use crate::header::{BoardId, HEADER_BYTES, Header};
use crate::record::{Found, RECORD_BYTES, Record, SlotState};
use crate::select::{Nowhere, load, startable};
use crate::storage::Storage;
use crate::update::{Downgrade, Progress, Step, UpdateError, write_record};

const PAGE: usize = PAGE_BYTES as usize;

/// A backup, accessed like a part.
struct Backup<'a>(&'a [u8]);

impl Storage for Backup<'_> {
    type Error = ();

    fn read(&mut self, at: u32, out: &mut [u8]) -> Result<(), ()> {
        let at = at as usize;
        let bytes = self.0.get(at..at + out.len()).ok_or(())?;
        out.copy_from_slice(bytes);
        Ok(())
    }

    fn write(&mut self, _at: u32, _bytes: &[u8]) -> Result<(), ()> {
        Err(())
    }
}

/// The newest record of a part, and the slot that the boot code would start with its header, if
/// any.
fn boots<S: Storage>(
    storage: &mut S,
    board: BoardId,
) -> Result<Option<(Record, Slot, Header)>, S::Error> {
    let Found::Record(record, _) = Record::find(storage)? else {
        return Ok(None);
    };
    for slot in [record.preferred, record.preferred.other()] {
        let Ok(header) = startable(storage, board, &record, slot) else {
            continue;
        };
        if load(storage, &record, slot, &header, &mut Nowhere).is_ok() {
            return Ok(Some((record, slot, header)));
        }
    }
    Ok(None)
}

/// A restore in progress.
struct Restore<'a, 'b, S> {
    storage: &'a mut S,
    geometry: Geometry,
    backup: &'a [u8],
    progress: Progress<'b>,
    done: u32,
}

/// Makes a part equal to `backup`, which has the same size.
///
/// If the power is cut at any moment, the card starts either its old image or the backup's, if
/// both start something.
///
/// # Errors
/// [`UpdateError::Older`] before anything is written, [`UpdateError::NotKept`] and
/// [`UpdateError::Storage`].
pub fn restore<S: Storage>(
    storage: &mut S,
    geometry: Geometry,
    board: BoardId,
    backup: &[u8],
    downgrade: Downgrade,
    progress: Progress<'_>,
) -> Result<(), UpdateError<S::Error>> {
    let now = boots(storage, board).map_err(UpdateError::Storage)?;
    // A part of this size reads a backup of this size.
    let wanted = boots(&mut Backup(backup), board).unwrap_or(None);
    if let Found::Record(record, _) = Record::find(storage).map_err(UpdateError::Storage)? {
        let counter = wanted.map_or(0, |(of, _, header)| of.counter.min(header.counter));
        downgrade.check(counter, record.counter)?;
    }
    let mut restore = Restore {
        storage,
        geometry,
        backup,
        progress,
        done: 0,
    };
    let (Some((record, started, _)), Some((target, main, _))) = (now, wanted) else {
        return restore.plainly();
    };
    if record.geometry != geometry || target.geometry != geometry {
        return restore.plainly();
    }
    restore.main(record, started, main, target.slot(main))?;
    restore.slot(main.other())?;
    restore.rest()?;
    restore.records()
}

impl<S: Storage> Restore<'_, '_, S> {
    /// There is nothing to lose, or nothing to gain: the records come last.
    fn plainly(&mut self) -> Result<(), UpdateError<S::Error>> {
        for slot in Slot::ALL {
            self.slot(slot)?;
        }
        self.rest()?;
        for at in RECORD_COPIES {
            self.page(at)?;
        }
        Ok(())
    }

    /// Makes the card start the backup's image from its own slot, `main`.
    fn main(
        &mut self,
        mut record: Record,
        started: Slot,
        main: Slot,
        state: SlotState,
    ) -> Result<(), UpdateError<S::Error>> {
        let other = main.other();
        if !self.is_there(main)? {
            if started == main {
                self.mean(&mut record, main, None)?;
                self.copy(main, other)?;
                self.mean(&mut record, other, Some(state))?;
            } else {
                self.mean(&mut record, other, None)?;
            }
            self.slot(main)?;
        }
        self.mean(&mut record, main, Some(state))
    }

    /// Writes a record that prefers a slot, with its state, if that differs.
    fn mean(
        &mut self,
        record: &mut Record,
        slot: Slot,
        state: Option<SlotState>,
    ) -> Result<(), UpdateError<S::Error>> {
        let before = *record;
        record.preferred = slot;
        if let Some(state) = state {
            *record.slot_mut(slot) = state;
        }
        if *record == before {
            return Ok(());
        }
        write_record(self.storage, *record)
    }

    /// Whether a slot equals the backup's.
    fn is_there(&mut self, slot: Slot) -> Result<bool, UpdateError<S::Error>> {
        let first = self.geometry.header_at(slot);
        for at in (first..first + self.geometry.slot_bytes()).step_by(PAGE) {
            if !self.is_page(at, at)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether the page at `at` equals the backup's page of `from`.
    fn is_page(&mut self, from: u32, at: u32) -> Result<bool, UpdateError<S::Error>> {
        let mut now = [0; PAGE];
        let read = self.storage.read(at, &mut now);
        read.map_err(UpdateError::Storage)?;
        Ok(self.of_backup(from) == Some(&now))
    }

    fn of_backup(&self, at: u32) -> Option<&[u8; PAGE]> {
        self.backup.get(at as usize..)?.first_chunk()
    }

    /// Writes the backup's page of `from` to `at`.
    fn put(&mut self, from: u32, at: u32) -> Result<(), UpdateError<S::Error>> {
        (self.progress)(Step::Write, self.done, self.geometry.bytes());
        self.done = self.geometry.bytes().min(self.done + PAGE_BYTES);
        if self.is_page(from, at)? {
            return Ok(());
        }
        let page = *self.of_backup(from).ok_or(UpdateError::NotKept { at })?;
        let written = self.storage.write(at, &page);
        written.map_err(UpdateError::Storage)?;
        if self.is_page(from, at)? {
            Ok(())
        } else {
            Err(UpdateError::NotKept { at })
        }
    }

    fn page(&mut self, at: u32) -> Result<(), UpdateError<S::Error>> {
        self.put(at, at)
    }

    /// Makes a slot that does not start now equal to the backup's: it has no header while the image
    /// is being written.
    fn slot(&mut self, slot: Slot) -> Result<(), UpdateError<S::Error>> {
        if !self.is_there(slot)? {
            self.copy(slot, slot)?;
        }
        let image = self.geometry.image_at(slot);
        let end = self.geometry.header_at(slot) + self.geometry.slot_bytes();
        for at in (image..end).step_by(PAGE) {
            self.page(at)?;
        }
        Ok(())
    }

    /// Writes the backup's image of one slot into a slot, header last.
    fn copy(&mut self, from: Slot, to: Slot) -> Result<(), UpdateError<S::Error>> {
        let geometry = self.geometry;
        let erased = self.storage.write(geometry.header_at(to), &[0xFF; PAGE]);
        erased.map_err(UpdateError::Storage)?;
        let header = self.of_backup(geometry.header_at(from));
        let header = header.and_then(|page| page.first_chunk::<HEADER_BYTES>());
        let bytes = match header.map(Header::parse) {
            Some(Ok(header)) => header.image_bytes.min(geometry.image_bytes()),
            _ => 0,
        };
        for offset in (0..bytes).step_by(PAGE) {
            self.put(
                geometry.image_at(from) + offset,
                geometry.image_at(to) + offset,
            )?;
        }
        self.put(geometry.header_at(from), geometry.header_at(to))
    }

    /// Restores everything outside of the slots and the records.
    fn rest(&mut self) -> Result<(), UpdateError<S::Error>> {
        let behind = FIRST_SLOT + 2 * self.geometry.slot_bytes();
        let between = (MANUFACTURING_BYTES..FIRST_SLOT).chain(behind..self.geometry.bytes());
        for at in between.step_by(PAGE) {
            if !RECORD_COPIES.contains(&at) {
                self.page(at)?;
            }
        }
        Ok(())
    }

    /// Restores both copies of the record. The part's own newest record, which says the same as the
    /// backup's, stays until the new one is complete.
    fn records(&mut self) -> Result<(), UpdateError<S::Error>> {
        let find = |found| match found {
            Ok(Found::Record(record, copy)) => Some((record, copy & 1)),
            _ => None,
        };
        let newest = find(Record::find(&mut Backup(self.backup)).map_err(drop));
        let Some((_, newest)) = newest else {
            return Err(UpdateError::NoRecord);
        };
        let now = Record::find(self.storage).map_err(UpdateError::Storage)?;
        if let Found::Record(record, copy) = now
            && copy & 1 == newest
            && !self.is_page(RECORD_COPIES[newest], RECORD_COPIES[newest])?
        {
            write_record(self.storage, record)?;
        }
        self.page(RECORD_COPIES[newest])?;
        self.page(RECORD_COPIES[1 - newest])?;
        let all = self.geometry.bytes();
        (self.progress)(Step::Write, all, all);
        Ok(())
    }
}

const _: () = assert!(RECORD_BYTES <= PAGE);
