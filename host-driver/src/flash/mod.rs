//! Firmware in the card's EEPROM: install, inspect, back up.
//!
//! ```text
//!   file to flash ──signature──┐
//!                              v
//!   Flasher ── boot_slots::update ── Storage: CardEeprom (two wires of a card)
//!                                             FileEeprom (an emulated board's file)
//! ```
//!
//! [`boot_slots`] decides what is written, and in which order; this module decides who may write.
//! [`Flasher::install`] accepts only files with a valid [`signature`], and none that is older than
//! an image confirmed on the card, unless that is allowed.

mod board_file;
mod card;
mod error;
mod file;
mod report;
pub mod signature;

pub use board_file::{BoardFile, BoardFileError};
pub use card::CardEeprom;
pub use error::FlashError;
pub use file::FileEeprom;
pub use report::{EepromReport, SlotReport};

use std::fmt;

use boot_slots::geometry::PAGE_BYTES;
use boot_slots::record::Found;
use boot_slots::restore::restore;
use boot_slots::select::startable;
use boot_slots::update::{self, Choices, Downgrade, Progress, Step};
use boot_slots::{BoardId, Geometry, Header, HeaderError, ImageFile, Record, Slot, Storage};

use signature::TrustedKey;

/// An EEPROM, its board, and the key of its images.
pub struct Flasher<S: Storage> {
    storage: S,
    geometry: Geometry,
    board: BoardId,
    trusted: TrustedKey,
}

impl<S: Storage> Flasher<S>
where
    S::Error: fmt::Display,
{
    /// Opens an EEPROM of `bytes` on a board.
    ///
    /// # Errors
    /// [`FlashError::NoRoom`] when two slots do not fit.
    pub fn new(
        storage: S,
        bytes: u32,
        board: BoardId,
        trusted: TrustedKey,
    ) -> Result<Self, FlashError> {
        let geometry = Geometry::of(bytes).ok_or(FlashError::NoRoom {
            bytes: bytes.into(),
        })?;
        Ok(Self {
            storage,
            geometry,
            board,
            trusted,
        })
    }

    /// The key whose images are accepted.
    pub fn trusted(&self) -> TrustedKey {
        self.trusted
    }

    /// Returns the storage.
    pub fn into_storage(self) -> S {
        self.storage
    }

    /// Checks a file as [`Flasher::install`] does, and writes nothing.
    ///
    /// # Errors
    /// The reason for rejecting it.
    pub fn check<'a>(&self, file: &'a [u8]) -> Result<ImageFile<'a>, FlashError> {
        let file = ImageFile::parse(file)?;
        file.header.fits(self.board, self.geometry)?;
        self.trusted.verify(&file)?;
        Ok(file)
    }

    /// Installs a file; returns its slot.
    ///
    /// # Errors
    /// The reason for rejecting it, before anything was written, or an error: the card then boots
    /// what it booted before.
    pub fn install(
        &mut self,
        file: &[u8],
        choices: Choices,
        progress: Progress<'_>,
    ) -> Result<Slot, FlashError> {
        let file = self.check(file)?;
        let (geometry, board) = (self.geometry, self.board);
        let slot = update::install(&mut self.storage, geometry, board, &file, choices, progress)?;
        Ok(slot)
    }

    /// The boot record, if there is one.
    ///
    /// # Errors
    /// If the EEPROM does not answer.
    pub fn record(&mut self) -> Result<Option<Record>, FlashError> {
        match Record::find(&mut self.storage) {
            Ok(Found::Record(record, _)) => Ok(Some(record)),
            Ok(Found::Blank | Found::Damaged) => Ok(None),
            Err(error) => Err(FlashError::Storage(error.to_string())),
        }
    }

    /// The slot whose image the boot code would start.
    ///
    /// # Errors
    /// If the EEPROM does not answer.
    pub fn started(&mut self) -> Result<Option<Slot>, FlashError> {
        let Some(record) = self.record()? else {
            return Ok(None);
        };
        for slot in [record.preferred, record.preferred.other()] {
            if startable(&mut self.storage, self.board, &record, slot).is_ok()
                && ImageFile::parse(&self.read_slot(slot, &mut |_, _, _| {})?).is_ok()
            {
                return Ok(Some(slot));
            }
        }
        Ok(None)
    }

    /// Reads a slot and checks it: header, CRC and signature.
    ///
    /// # Errors
    /// [`FlashError::Empty`], or [`FlashError::Slot`] with the fault.
    pub fn verify(&mut self, slot: Slot, progress: Progress<'_>) -> Result<Header, FlashError> {
        let wrong = |why: String| FlashError::Slot { slot, why };
        let bytes = self.read_slot(slot, progress)?;
        let file = ImageFile::parse(&bytes).map_err(|error| match error {
            HeaderError::Empty => FlashError::Empty { slot },
            error => wrong(error.to_string()),
        })?;
        let checked = file.header.fits(self.board, self.geometry);
        checked.map_err(|error| wrong(error.to_string()))?;
        let checked = self.trusted.verify(&file);
        checked.map_err(|error| wrong(error.to_string()))?;
        Ok(file.header)
    }

    /// Header and image of a slot, in the format of a file and of the length in the header.
    fn read_slot(&mut self, slot: Slot, progress: Progress<'_>) -> Result<Vec<u8>, FlashError> {
        let mut file = vec![0; boot_slots::header::HEADER_BYTES];
        self.read(self.geometry.header_at(slot), &mut file)?;
        let Some(header) = file.first_chunk().map(Header::parse).and_then(Result::ok) else {
            return Ok(file);
        };
        let bytes = header.image_bytes.min(self.geometry.image_bytes());
        let mut image = vec![0; bytes as usize];
        let mut done = 0;
        for page in image.chunks_mut(PAGE_BYTES as usize) {
            progress(Step::Verify, done, bytes);
            self.read(self.geometry.image_at(slot) + done, page)?;
            done += page.len() as u32;
        }
        progress(Step::Verify, done, bytes);
        file.extend(image);
        Ok(file)
    }

    fn read(&mut self, at: u32, out: &mut [u8]) -> Result<(), FlashError> {
        let read = self.storage.read(at, out);
        read.map_err(|error| FlashError::Storage(error.to_string()))
    }

    /// Confirms the image in a slot.
    ///
    /// # Errors
    /// If there is none, or the EEPROM does not store the record.
    pub fn confirm(&mut self, slot: Slot) -> Result<(), FlashError> {
        Ok(update::confirm(&mut self.storage, slot)?)
    }

    /// Makes a slot the preferred one.
    ///
    /// # Errors
    /// If its image would not start, [`FlashError::Older`], or if the EEPROM does not store the
    /// record.
    pub fn prefer(&mut self, slot: Slot, downgrade: Downgrade) -> Result<(), FlashError> {
        Ok(update::prefer(&mut self.storage, slot, downgrade)?)
    }

    /// The whole content of the EEPROM.
    ///
    /// # Errors
    /// If it does not answer.
    pub fn backup(&mut self, progress: Progress<'_>) -> Result<Vec<u8>, FlashError> {
        let all = self.geometry.bytes();
        let mut contents = vec![0; all as usize];
        let mut done = 0;
        for page in contents.chunks_mut(PAGE_BYTES as usize) {
            progress(Step::Verify, done, all);
            self.read(done, page)?;
            done += page.len() as u32;
        }
        progress(Step::Verify, done, all);
        Ok(contents)
    }

    /// Restores a backup, except the manufacturing data, which stay the card's own. Pages that are
    /// already correct are left alone. If interrupted at any moment, the card boots either its old
    /// image or the backup's.
    ///
    /// # Errors
    /// [`FlashError::BackupSize`]; [`FlashError::Slot`] for an image that would start although no
    /// trusted key signed it or it is for another board; [`FlashError::Older`]: all before anything
    /// is written. Also the EEPROM's errors.
    pub fn restore(
        &mut self,
        backup: &[u8],
        downgrade: Downgrade,
        progress: Progress<'_>,
    ) -> Result<(), FlashError> {
        let all = self.geometry.bytes();
        if backup.len() != all as usize {
            return Err(FlashError::BackupSize {
                found: backup.len(),
                expected: all,
            });
        }
        for slot in Slot::ALL {
            self.check_backup(slot, backup)?;
        }
        let (geometry, board) = (self.geometry, self.board);
        Ok(restore(
            &mut self.storage,
            geometry,
            board,
            backup,
            downgrade,
            progress,
        )?)
    }

    /// Rejects a backup whose image could start but must not. An incomplete image does not count.
    fn check_backup(&self, slot: Slot, backup: &[u8]) -> Result<(), FlashError> {
        let wrong = |why: String| FlashError::Slot { slot, why };
        let (header, image) = (self.geometry.header_at(slot), self.geometry.image_at(slot));
        let bytes = backup.get(header as usize..).unwrap_or_default();
        let Some(first) = bytes.first_chunk() else {
            return Ok(());
        };
        let Ok(parsed) = Header::parse(first) else {
            return Ok(());
        };
        let fits = parsed.fits(self.board, self.geometry);
        fits.map_err(|error| wrong(error.to_string()))?;
        let image = backup.get(image as usize..).unwrap_or_default();
        let image = image.get(..parsed.image_bytes as usize).unwrap_or(image);
        let file = [first.as_slice(), image].concat();
        let Ok(file) = ImageFile::parse(&file) else {
            return Ok(());
        };
        let signed = self.trusted.verify(&file);
        signed.map_err(|error| wrong(error.to_string()))
    }
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
