//! The running card, for the linker of extensions.

use std::time::Duration;

use host_interface::spine::MAILBOX;
use host_interface::spine::rings::{FIRST_MAILBOX, MAILBOXES};
use spine_linker::endpoint::Memory;
use spine_linker::load::Card;
use tigon2_chip::mailbox;

use super::{Control, NicError, window};
use crate::dma::{DmaError, DmaMemory};
use crate::transport::Transport;

/// How long the firmware has at a look: it answers between two handlers.
const LOOK: Duration = Duration::from_micros(50);
/// Looks for an answer. `init` alone may take 200 us, and an emulated card waits for its computer.
const LOOKS: u32 = 20_000;

/// A card that its driver lends to [`spine_linker`]: NIC memory by the window, and the mailbox of
/// extensions.
pub struct ExtensionCard<'a, T: Transport>(pub &'a mut Control<T>);

impl<T: Transport> Card for ExtensionCard<'_, T> {
    type Error = NicError;

    fn read(&mut self, address: u32, out: &mut [u32]) -> Result<(), NicError> {
        self.0.peek_memory(address, out)
    }

    fn write(&mut self, address: u32, words: &[u32]) -> Result<(), NicError> {
        window::write(&mut self.0.transport, address, words)?;
        // Posted writes have arrived before the mailbox is written, whose order is another.
        Ok(self.0.transport.flush()?)
    }

    fn ring(&mut self, number: u32) -> Result<(), NicError> {
        // The number is the card's own word: another one is not written to.
        if number == MAILBOX {
            let low = mailbox::BAR_BASE + mailbox::BYTES * number + 4;
            self.0.transport.write(low, 1)?;
            self.0.transport.flush()?;
        }
        Ok(())
    }

    fn post(&mut self, number: u32, high: u32, low: u32) -> Result<(), NicError> {
        if (FIRST_MAILBOX..FIRST_MAILBOX + MAILBOXES).contains(&number) {
            let at = mailbox::BAR_BASE + mailbox::BYTES * number;
            self.0.transport.write_block(at, &[high, low])?;
            self.0.transport.flush()?;
        }
        Ok(())
    }

    fn wait(&mut self, turns: u32) -> bool {
        std::thread::sleep(LOOK);
        turns < LOOKS
    }
}

impl Memory for DmaMemory {
    type Error = DmaError;

    fn read_word(&self, offset: usize) -> Result<u32, DmaError> {
        DmaMemory::read_word(self, offset)
    }

    fn write_word(&self, offset: usize, value: u32) -> Result<(), DmaError> {
        DmaMemory::write_word(self, offset, value)
    }

    fn write_bytes(&self, offset: usize, bytes: &[u8]) -> Result<(), DmaError> {
        DmaMemory::write_bytes(self, offset, bytes)
    }
}
