//! The running card, for the linker of extensions.

use host_interface::spine::MAILBOX;
use host_interface::spine::rings::{FIRST_MAILBOX, MAILBOXES};
use spine_linker::endpoint::Memory;
use spine_linker::load::Card;
use tigon2_chip::mailbox;

use super::window::{self, LOOK, LOOKS};
use super::{Control, NicError};
use crate::dma::{DmaError, DmaMemory};
use crate::transport::Transport;

/// A card that its driver lends to [`spine_linker`]: NIC memory by the window, and the mailbox of
/// extensions.
pub struct ExtensionCard<'a, T: Transport>(pub &'a mut Control<T>);

impl<T: Transport> Card for ExtensionCard<'_, T> {
    type Error = NicError;

    fn read(&mut self, address: u32, out: &mut [u32]) -> Result<(), NicError> {
        self.0.peek_memory(address, out)
    }

    fn write(&mut self, address: u32, words: &[u32]) -> Result<(), NicError> {
        let control = &mut *self.0;
        let memory = control.memory_access;
        memory.write(&mut control.transport, address, words)?;
        // Posted writes have arrived before the mailbox is written, whose order is another.
        Ok(self.0.transport.flush()?)
    }

    fn ring(&mut self, number: u32) -> Result<(), NicError> {
        // The number is the card's own word: another one is not written to.
        if number == MAILBOX {
            window::ring(&mut self.0.transport, number)?;
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
        // `init` alone may take 200 us.
        std::thread::sleep(LOOK);
        turns < LOOKS
    }

    fn lease_window(&mut self, address: u32) -> Result<(), NicError> {
        let control = &mut *self.0;
        let memory = &mut control.memory_access;
        Ok(memory.lease(&mut control.transport, address)?)
    }

    fn take_back_window(&mut self) {
        self.0.memory_access = window::MemoryAccess::Window;
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
