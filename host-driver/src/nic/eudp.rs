//! The running card, for endpoints.

use std::os::fd::OwnedFd;
use std::time::Duration;

use tigon2_chip::mailbox;

use super::{Control, NicError, window};
use crate::dma::{DmaError, DmaMemory};
use crate::transport::{Access, Transport};

/// How long the firmware has at a look: it answers between two handlers.
const LOOK: Duration = Duration::from_micros(50);
/// Looks for an answer: an emulated card waits for its computer.
const LOOKS: u32 = 20_000;
/// The first mailbox that no driver uses.
const FIRST: u32 = 6;

/// A card that its driver lends to [`eudp`].
pub struct EndpointCard<'a, T: Transport>(pub &'a mut Control<T>);

impl eudp::Memory for DmaMemory {
    type Error = DmaError;

    fn bytes(&self) -> usize {
        self.len()
    }

    fn access(&self) -> Access {
        DmaMemory::access(self)
    }

    fn address(&self, offset: usize, bytes: usize) -> Result<u64, DmaError> {
        DmaMemory::address(self, offset, bytes)
    }

    fn read_words(&self, offset: usize, out: &mut [u32]) -> Result<(), DmaError> {
        DmaMemory::read_words(self, offset, out)
    }

    fn write_words(&self, offset: usize, words: &[u32]) -> Result<(), DmaError> {
        DmaMemory::write_words(self, offset, words)
    }

    fn read_bytes(&self, offset: usize, out: &mut [u8]) -> Result<(), DmaError> {
        DmaMemory::read_bytes(self, offset, out)
    }

    fn write_bytes(&self, offset: usize, bytes: &[u8]) -> Result<(), DmaError> {
        DmaMemory::write_bytes(self, offset, bytes)
    }
}

impl<T: Transport> eudp::Card for EndpointCard<'_, T> {
    type Error = NicError;
    type Memory = DmaMemory;

    fn read(&mut self, address: u32, out: &mut [u32]) -> Result<(), NicError> {
        self.0.peek_memory(address, out)
    }

    fn write(&mut self, address: u32, words: &[u32]) -> Result<(), NicError> {
        Ok(window::write(&mut self.0.transport, address, words)?)
    }

    fn ring(&mut self, number: u32, word: u32) -> Result<(), NicError> {
        // The number is the card's own word: the driver's mailboxes are not written to.
        if (FIRST..mailbox::COUNT).contains(&number) {
            let low = mailbox::BAR_BASE + mailbox::BYTES * number + 4;
            self.0.transport.write(low, word)?;
            self.0.transport.flush()?;
        }
        Ok(())
    }

    fn allocate(&mut self, bytes: usize) -> Result<DmaMemory, NicError> {
        Ok(self.0.transport.allocate(bytes)?)
    }

    fn map(&mut self, file: OwnedFd, access: Access) -> Result<DmaMemory, NicError> {
        Ok(self.0.transport.map(file, access)?)
    }

    fn unmap(&mut self, memory: &DmaMemory) -> Result<(), NicError> {
        Ok(self.0.transport.unmap(memory)?)
    }

    fn wait(&mut self, turns: u32) -> bool {
        std::thread::sleep(LOOK);
        turns < LOOKS
    }
}
