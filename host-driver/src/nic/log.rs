//! The firmware's log: bytes from a ring on the card.
//!
//! Host/NIC interface, extension words: the firmware puts bytes up to `LogProducer`,
//! the host reads up to there and moves `LogConsumer`; the first byte of a word is
//! its bits 31:24.

use host_interface::extension::Extension;

use super::error::NicError;
use super::{Nic, window};
use crate::transport::Transport;

/// Largest log ring that makes sense, in bytes.
const LARGEST_RING: u32 = 64 * 1024;

impl<T: Transport> Nic<T> {
    /// Takes what is new in the firmware's log, as bytes for a decoder. Empty if the
    /// firmware has no log.
    ///
    /// # Errors
    /// [`NicError::BadIndex`] if the ring's description cannot be; what the transport
    /// says.
    pub fn drain_log(&mut self) -> Result<Vec<u8>, NicError> {
        // Also when the firmware died before it was operational.
        let magic = self.extension(Extension::Magic)?;
        if magic != host_interface::extension::MAGIC {
            return Ok(Vec::new());
        }
        let address = self.extension(Extension::LogAddress)?;
        let bytes = self.extension(Extension::LogBytes)?;
        if address == 0 {
            return Ok(Vec::new());
        }
        let bad = |what, value| {
            Err(NicError::BadIndex {
                what,
                value,
                allowed: "inside a ring of a power of two of bytes".to_owned(),
            })
        };
        if !bytes.is_power_of_two() || !(4..=LARGEST_RING).contains(&bytes) {
            return bad("log ring size", bytes);
        }
        if !address.is_multiple_of(4) || address > tigon2_chip::memory::SRAM_MAX_BYTES - bytes {
            return bad("log ring address", address);
        }
        let producer = self.extension(Extension::LogProducer)?;
        let consumer = self.extension(Extension::LogConsumer)?;
        if producer >= bytes {
            return bad("log producer", producer);
        }
        if consumer >= bytes {
            return bad("log consumer", consumer);
        }
        let mut out = Vec::new();
        if producer < consumer {
            self.read_log(address, consumer, bytes, &mut out)?;
            self.read_log(address, 0, producer, &mut out)?;
        } else {
            self.read_log(address, consumer, producer, &mut out)?;
        }
        self.transport
            .write(Extension::LogConsumer.bar_offset(), producer)?;
        Ok(out)
    }

    /// Messages that found no room in the log; 0 if the firmware has no log.
    ///
    /// # Errors
    /// What the transport says.
    pub fn log_lost(&mut self) -> Result<u32, NicError> {
        if !self.ours {
            return Ok(0);
        }
        Ok(self.extension(Extension::LogLost)?)
    }

    /// Bytes `from..to` of the ring.
    fn read_log(
        &mut self,
        address: u32,
        from: u32,
        to: u32,
        out: &mut Vec<u8>,
    ) -> Result<(), NicError> {
        let first = from & !3;
        let words = (to.next_multiple_of(4) - first) / 4;
        let mut buffer = vec![0; words as usize];
        window::read(&mut self.transport, address + first, &mut buffer)?;
        let bytes = buffer.iter().flat_map(|word| word.to_be_bytes());
        let (skip, count) = ((from - first) as usize, (to - from) as usize);
        out.extend(bytes.skip(skip).take(count));
        Ok(())
    }
}
