//! A transport that lets a story reach into the memory that driver and card share.
//!
//! The story finds its way as the card does: from the general information
//! block's address in gencom to the control block of a ring to its descriptors.

use host_driver::{DmaMemory, Transport, TransportError};
use host_interface::gencom::Gencom;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Offset of the send ring's control block in the information block.
const SEND_CONTROL_BLOCK: u64 = 0x420;
/// Bytes of a send BD.
const SEND_BD_BYTES: u64 = 16;

/// Forwards everything and remembers the memory that was allocated.
pub struct Spy<T> {
    inner: T,
    memory: Arc<Mutex<Vec<DmaMemory>>>,
}

/// The memory that a [`Spy`] has seen.
#[derive(Clone)]
pub struct Shared(Arc<Mutex<Vec<DmaMemory>>>);

impl<T: Transport> Spy<T> {
    /// Watches a transport.
    pub fn on(inner: T) -> (Spy<T>, Shared) {
        let memory = Arc::new(Mutex::new(Vec::new()));
        let shared = Shared(memory.clone());
        (Spy { inner, memory }, shared)
    }
}

impl Shared {
    /// The memory at a bus address, and the offset in it.
    fn at(&self, address: u64) -> (DmaMemory, usize) {
        let memory = self.0.lock().expect("no panic elsewhere");
        let found = memory
            .iter()
            .find(|part| (part.iova()..part.iova() + part.len() as u64).contains(&address))
            .expect("the card knows only what was allocated");
        (found.clone(), (address - found.iova()) as usize)
    }

    fn word(&self, address: u64) -> u32 {
        let (memory, offset) = self.at(address);
        memory.read_word(offset).expect("inside")
    }

    fn address(&self, at: u64) -> u64 {
        u64::from(self.word(at)) << 32 | u64::from(self.word(at + 4))
    }

    /// Writes send BD `index` as these four words.
    pub fn write_send_bd<T: Transport>(&self, transport: &mut T, index: u32, words: [u32; 4]) {
        let mut gencom = |word: Gencom| {
            let value = transport.read(word.bar_offset());
            u64::from(value.expect("the card is there"))
        };
        let block = gencom(Gencom::InfoHigh) << 32 | gencom(Gencom::InfoLow);
        let ring = self.address(block + SEND_CONTROL_BLOCK);
        let (memory, offset) = self.at(ring + u64::from(index) * SEND_BD_BYTES);
        memory.write_words(offset, &words).expect("inside");
    }
}

impl<T: Transport> Transport for Spy<T> {
    fn read(&mut self, bar_offset: u32) -> Result<u32, TransportError> {
        self.inner.read(bar_offset)
    }
    fn write(&mut self, bar_offset: u32, value: u32) -> Result<(), TransportError> {
        self.inner.write(bar_offset, value)
    }
    fn write_block(&mut self, bar_offset: u32, words: &[u32]) -> Result<(), TransportError> {
        self.inner.write_block(bar_offset, words)
    }
    fn read_block(&mut self, bar_offset: u32, out: &mut [u32]) -> Result<(), TransportError> {
        self.inner.read_block(bar_offset, out)
    }
    fn flush(&mut self) -> Result<(), TransportError> {
        self.inner.flush()
    }
    fn config_read(&mut self, offset: u32) -> Result<u32, TransportError> {
        self.inner.config_read(offset)
    }
    fn config_write(&mut self, offset: u32, value: u32) -> Result<(), TransportError> {
        self.inner.config_write(offset, value)
    }
    fn allocate(&mut self, bytes: usize) -> Result<DmaMemory, TransportError> {
        let memory = self.inner.allocate(bytes)?;
        self.memory
            .lock()
            .expect("no panic elsewhere")
            .push(memory.clone());
        Ok(memory)
    }
    fn wait_interrupt(&mut self, timeout: Duration) -> Result<bool, TransportError> {
        self.inner.wait_interrupt(timeout)
    }
    fn interrupt_fd(&self) -> Option<BorrowedFd<'_>> {
        self.inner.interrupt_fd()
    }
    fn unmask_interrupt(&mut self) -> Result<(), TransportError> {
        self.inner.unmask_interrupt()
    }
    fn reset(&mut self) -> Result<(), TransportError> {
        self.inner.reset()
    }
}
