//! Firmware in the card's own EEPROM: installing it, looking at it, keeping a copy.
//!
//! ```text
//!   file to flash ──signature──┐
//!                              v
//!   Flasher ── boot_slots::update ── Storage: CardEeprom (two wires of a card)
//!                                             FileEeprom (an emulated board's file)
//! ```
//!
//! What is written, and in which order, is [`boot_slots`]'s; here is who may write:
//! [`Flasher::install`] takes no file that [`signature`] does not vouch for, and none that is
//! older than what was confirmed on the card, unless that is allowed.

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

/// An EEPROM, the board that it is on and who may put images there.
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
    /// For an EEPROM of `bytes` on a board.
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

    /// The key whose images are taken.
    pub fn trusted(&self) -> TrustedKey {
        self.trusted
    }

    /// The EEPROM back.
    pub fn into_storage(self) -> S {
        self.storage
    }

    /// Judges a file as [`Flasher::install`] does, and writes nothing.
    ///
    /// # Errors
    /// Why it would be refused.
    pub fn judge<'a>(&self, file: &'a [u8]) -> Result<ImageFile<'a>, FlashError> {
        let file = ImageFile::parse(file)?;
        file.header.fits(self.board, self.geometry)?;
        self.trusted.verify(&file)?;
        Ok(file)
    }

    /// Installs a file; returns the slot that it is in.
    ///
    /// # Errors
    /// Why it was refused, before anything was written, or what went wrong: the card
    /// then boots what it booted before.
    pub fn install(
        &mut self,
        file: &[u8],
        choices: Choices,
        progress: Progress<'_>,
    ) -> Result<Slot, FlashError> {
        let file = self.judge(file)?;
        let (geometry, board) = (self.geometry, self.board);
        let slot = update::install(&mut self.storage, geometry, board, &file, choices, progress)?;
        Ok(slot)
    }

    /// The boot record, if there is one.
    ///
    /// # Errors
    /// When the EEPROM does not answer.
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
    /// When the EEPROM does not answer.
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

    /// Reads a slot and judges it: header, CRC and signature.
    ///
    /// # Errors
    /// [`FlashError::Empty`], or [`FlashError::Slot`] with what is wrong.
    pub fn verify(&mut self, slot: Slot, progress: Progress<'_>) -> Result<Header, FlashError> {
        let wrong = |why: String| FlashError::Slot { slot, why };
        let bytes = self.read_slot(slot, progress)?;
        let file = ImageFile::parse(&bytes).map_err(|error| match error {
            HeaderError::Empty => FlashError::Empty { slot },
            error => wrong(error.to_string()),
        })?;
        let judged = file.header.fits(self.board, self.geometry);
        judged.map_err(|error| wrong(error.to_string()))?;
        let judged = self.trusted.verify(&file);
        judged.map_err(|error| wrong(error.to_string()))?;
        Ok(file.header)
    }

    /// The header and image in a slot, as a file has them, as long as the header says.
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
    /// When there is none, or the EEPROM does not keep it.
    pub fn confirm(&mut self, slot: Slot) -> Result<(), FlashError> {
        Ok(update::confirm(&mut self.storage, slot)?)
    }

    /// Makes a slot the first to be tried.
    ///
    /// # Errors
    /// When its image would not be started, [`FlashError::Older`], or when the EEPROM does not
    /// keep it.
    pub fn prefer(&mut self, slot: Slot, downgrade: Downgrade) -> Result<(), FlashError> {
        Ok(update::prefer(&mut self.storage, slot, downgrade)?)
    }

    /// Everything that the EEPROM holds.
    ///
    /// # Errors
    /// When it does not answer.
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

    /// Puts a backup back, but for the manufacturing data, which stay the card's own.
    /// Pages that are right already are left alone. Cut short at any moment, the card boots
    /// what it booted before or what the backup boots.
    ///
    /// # Errors
    /// [`FlashError::BackupSize`], or [`FlashError::Slot`] for an image that would be started
    /// and that nobody trusted has signed or that is for another board, before anything is
    /// written; [`FlashError::Older`]; what the EEPROM says.
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
            self.judge_backup(slot, backup)?;
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

    /// Refuses a backup's image that could be started and should not be. What is no whole
    /// image is none.
    fn judge_backup(&self, slot: Slot, backup: &[u8]) -> Result<(), FlashError> {
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
