//! The firmware's log, decoded.
//!
//! The firmware writes defmt frames (rzCOBS) to a ring on the card;
//! [`crate::Nic::drain_log`] gives the bytes and this makes lines of them. The texts
//! are not on the card but in the firmware's ELF file.

use defmt_decoder::{DecodeError, StreamDecoder, Table};
use thiserror::Error;

/// Why there are no texts.
#[derive(Debug, Error)]
pub enum LogError {
    /// The ELF file's tables are damaged, or made by another version of defmt.
    #[error("cannot read the log texts from the ELF file: {0}")]
    Table(String),
    /// The ELF file was built without a log.
    #[error("the ELF file holds no log texts")]
    NoTable,
}

/// The texts of a firmware.
pub struct LogTexts(Table);

impl LogTexts {
    /// Reads them from the contents of the firmware's ELF file.
    ///
    /// # Errors
    /// [`LogError`] if there are none.
    pub fn parse(elf: &[u8]) -> Result<Self, LogError> {
        match Table::parse(elf) {
            Ok(Some(table)) => Ok(Self(table)),
            Ok(None) => Err(LogError::NoTable),
            Err(error) => Err(LogError::Table(error.to_string())),
        }
    }

    /// A decoder for the bytes of one run.
    #[must_use]
    pub fn decoder(&self) -> LogDecoder<'_> {
        LogDecoder {
            stream: self.0.new_stream_decoder(),
            malformed: 0,
        }
    }
}

/// Turns bytes of the log into lines.
pub struct LogDecoder<'a> {
    stream: Box<dyn StreamDecoder + Send + Sync + 'a>,
    malformed: u64,
}

impl LogDecoder<'_> {
    /// Takes bytes and gives the lines that are complete with them.
    pub fn decode(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        self.stream.received(bytes);
        loop {
            match self.stream.decode() {
                Ok(frame) => lines.push(frame.display(false).to_string()),
                Err(DecodeError::UnexpectedEof) => return lines,
                // The encoding finds the next frame by itself.
                Err(DecodeError::Malformed) => self.malformed += 1,
            }
        }
    }

    /// Frames that could not be decoded.
    #[must_use]
    pub fn malformed(&self) -> u64 {
        self.malformed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_elf_file_is_refused() {
        assert!(matches!(
            LogTexts::parse(b"not an ELF file"),
            Err(LogError::Table(_))
        ));
    }
}
