//! Why an EEPROM could not be read or changed.

use std::fmt;

use boot_slots::update::UpdateError;
use boot_slots::{HeaderError, Slot};
use thiserror::Error;

use super::signature::SignatureError;

/// Why an operation on an EEPROM failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FlashError {
    /// The file is no image, is damaged or was truncated.
    #[error(transparent)]
    Image(#[from] HeaderError),
    /// No trusted key has signed it.
    #[error(transparent)]
    Signature(#[from] SignatureError),
    /// It is older than an image that was confirmed on the card.
    #[error(
        "the image is older than the card's: its rollback counter is {image}, the card's {card} (--allow-downgrade accepts it)"
    )]
    Older {
        /// The image's rollback counter.
        image: u32,
        /// The card's rollback counter.
        card: u32,
    },
    /// The update was rejected or could not be finished.
    #[error("{0}")]
    Update(String),
    /// The EEPROM cannot hold two images.
    #[error("an EEPROM of {bytes} bytes has no room for boot images")]
    NoRoom {
        /// Its size.
        bytes: u64,
    },
    /// A backup of another size.
    #[error("the backup has {found} bytes, the EEPROM {expected}")]
    BackupSize {
        /// Bytes of the backup.
        found: usize,
        /// Bytes of the EEPROM.
        expected: u32,
    },
    /// Nothing was ever written to a slot.
    #[error("{slot}: there is no image")]
    Empty {
        /// Which slot.
        slot: Slot,
    },
    /// The content of a slot is wrong.
    #[error("{slot}: {why}")]
    Slot {
        /// Which slot.
        slot: Slot,
        /// What is wrong.
        why: String,
    },
    /// The EEPROM cannot be reached.
    #[error("{0}")]
    Storage(String),
}

impl<E: fmt::Display> From<UpdateError<E>> for FlashError {
    fn from(error: UpdateError<E>) -> Self {
        match error {
            UpdateError::Image(error) => FlashError::Image(error),
            UpdateError::Older { image, card } => FlashError::Older { image, card },
            UpdateError::Storage(error) => FlashError::Storage(error.to_string()),
            other => FlashError::Update(other.to_string()),
        }
    }
}
