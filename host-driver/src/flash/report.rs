//! A report of an EEPROM's content.

use std::fmt;

use boot_slots::update::{self, Progress};
use boot_slots::{Header, ImageFile, Slot, Storage};
use serde::Serialize;

use super::{FlashError, Flasher, hex};

/// The content of a slot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SlotReport {
    /// Its number.
    pub slot: usize,
    /// Whether it is tried first.
    pub preferred: bool,
    /// Whether it was confirmed.
    pub confirmed: bool,
    /// Trial boots left.
    pub trials: u8,
    /// Version of the image, if there is one.
    pub version: Option<String>,
    /// Bytes of the image.
    pub bytes: Option<u32>,
    /// The build id of the image.
    pub build_id: Option<String>,
    /// `starts` if the image is complete and the boot code would start it; otherwise the reason.
    pub state: String,
    /// Rollback counter of the image.
    pub counter: Option<u32>,
    /// `trusted`, or the fault of the signature.
    pub signature: String,
    /// The key that trusts it, see [`TrustedKey`](super::signature::TrustedKey).
    pub key: Option<String>,
}

/// The content of an EEPROM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EepromReport {
    /// Its size.
    pub bytes: u32,
    /// Image bytes that fit into a slot.
    pub slot_bytes: u32,
    /// Whether there is a boot record.
    pub record: bool,
    /// Number of the boot record.
    pub sequence: u32,
    /// Rollback counter: the highest of all confirmed images.
    pub counter: u32,
    /// The slots.
    pub slots: Vec<SlotReport>,
}

impl<S: Storage> Flasher<S>
where
    S::Error: fmt::Display,
{
    /// Reports the content of both slots.
    ///
    /// # Errors
    /// If the EEPROM does not answer.
    pub fn report(&mut self, progress: Progress<'_>) -> Result<EepromReport, FlashError> {
        let record = self.record()?;
        let mut slots = Vec::new();
        for slot in Slot::ALL {
            let bytes = self.read_slot(slot, progress)?;
            let header = bytes.first_chunk().map(Header::parse).and_then(Result::ok);
            let state = match &record {
                None => Err("no boot record"),
                Some(record) => update::starts(&mut self.storage, record, slot)
                    .map(drop)
                    .map_err(boot_slots::select::Reason::text),
            };
            let file = ImageFile::parse(&bytes).map_err(|error| error.to_string());
            let signature = file.and_then(|file| {
                let checked = self.trusted.verify(&file);
                checked.map_err(|error| error.to_string())
            });
            let known = record.map(|record| record.slot(slot)).unwrap_or_default();
            slots.push(SlotReport {
                slot: slot.index(),
                preferred: record.is_some_and(|record| record.preferred == slot),
                confirmed: known.confirmed,
                trials: known.trials,
                version: header.map(|header| header.version.to_string()),
                bytes: header.map(|header| header.image_bytes),
                build_id: header.map(|header| hex(&header.build_id)),
                state: state.err().unwrap_or("starts").to_owned(),
                counter: header.map(|header| header.counter),
                key: signature.is_ok().then(|| self.trusted.to_string()),
                signature: signature.err().unwrap_or_else(|| "trusted".to_owned()),
            });
        }
        Ok(EepromReport {
            bytes: self.geometry.bytes(),
            slot_bytes: self.geometry.image_bytes(),
            record: record.is_some(),
            sequence: record.map_or(0, |record| record.sequence),
            counter: record.map_or(0, |record| record.counter),
            slots,
        })
    }
}
