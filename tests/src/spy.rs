//! A transport through which a story accesses the memory that driver and card share.
//!
//! The story finds structures as the card does: from the address of the general information block
//! in gencom to a ring's control block to its descriptors. It can also change the driver's data
//! just before the card starts, to imitate a faulty driver.
//! card is started, as a driver with a mistake would.

use host_driver::transport::{Access, Port};
use host_driver::{DmaMemory, Transport, TransportError, Vector};
use host_interface::bar;
use host_interface::gencom::Gencom;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tigon2_chip::Cpu;
use tigon2_chip::bits::CpuState;
use tigon2_chip::registers::Register;

/// Offset of the send ring's control block in the information block.
pub const SEND_RING: u64 = 0x420;
/// Offset of the standard ring's control block.
pub const STANDARD_RING: u64 = 0x430;
/// A send BD's flag for the end of a frame, in its third word beside the length.
pub const END: u32 = 0x004;
/// Bytes of a send BD.
const SEND_BD_BYTES: u64 = 16;
/// Bytes of a receive BD.
const RECEIVE_BD_BYTES: u64 = 32;

/// What a story does to shared memory just before the driver writes a register.
struct Sabotage {
    bar_offset: u32,
    /// Whether the value is the one that is waited for.
    wanted: fn(u32) -> bool,
    change: Change,
}

/// Is given the information block's bus address.
type Change = Box<dyn FnOnce(&Shared, u64) + Send>;

/// What a story does before the driver waits for an interrupt.
type Act = Box<dyn FnOnce() + Send>;

/// Forwards everything and remembers the memory that was allocated.
pub struct Spy<T> {
    inner: T,
    shared: Shared,
}

/// The memory that a [`Spy`] has seen.
#[derive(Clone, Default)]
pub struct Shared {
    memory: Arc<Mutex<Vec<DmaMemory>>>,
    sabotage: Arc<Mutex<Option<Sabotage>>>,
    before_wait: Arc<Mutex<Option<Act>>>,
}

impl<T: Transport> Spy<T> {
    /// Watches a transport.
    pub fn on(inner: T) -> (Spy<T>, Shared) {
        let shared = Shared::default();
        let spy = Spy {
            inner,
            shared: shared.clone(),
        };
        (spy, shared)
    }
}

impl Shared {
    /// The memory at a bus address, and the offset in it.
    fn at(&self, address: u64) -> (DmaMemory, usize) {
        let memory = self.memory.lock().expect("no panic elsewhere");
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

    /// How often memory was allocated.
    pub fn allocations(&self) -> usize {
        self.memory.lock().expect("no panic elsewhere").len()
    }

    /// Where the information block is.
    pub fn info<T: Transport>(&self, transport: &mut T) -> u64 {
        let mut gencom = |word: Gencom| {
            let value = transport.read(word.bar_offset());
            u64::from(value.expect("the card is there"))
        };
        gencom(Gencom::InfoHigh) << 32 | gencom(Gencom::InfoLow)
    }

    /// Writes words at a bus address.
    pub fn write(&self, address: u64, words: &[u32]) {
        let (memory, offset) = self.at(address);
        memory.write_words(offset, words).expect("inside");
    }

    /// Writes send BD `index` as these four words.
    pub fn write_send_bd<T: Transport>(&self, transport: &mut T, index: u32, words: [u32; 4]) {
        let ring = self.address(self.info(transport) + SEND_RING);
        self.write(ring + u64::from(index) * SEND_BD_BYTES, &words);
    }

    /// Writes the lengths of the standard ring's first `count` BDs (Host/NIC software
    /// interface: the lower half of the third word), given the information block.
    pub fn write_standard_lengths(&self, info: u64, count: u32, length: u16) {
        let ring = self.address(info + STANDARD_RING);
        for index in 0..count {
            let word = ring + u64::from(index) * RECEIVE_BD_BYTES + 8;
            let kept = self.word(word) & 0xFFFF_0000;
            self.write(word, &[kept | u32::from(length)]);
        }
    }

    /// Has `change` look at the information block, whose bus address it is given,
    /// just before CPU A is started the next time (Hardware reference, 3.4).
    pub fn before_start(&self, change: impl FnOnce(&Shared, u64) + Send + 'static) {
        let runs = |value| !CpuState::from_bits(value).halt();
        self.before(Register::cpu_state(Cpu::A).offset(), runs, change);
    }

    /// The same before the driver tells the card of standard receive buffers.
    pub fn before_buffers(&self, change: impl FnOnce(&Shared, u64) + Send + 'static) {
        // Zero is written when the card is started.
        self.before(bar::MAILBOX_STANDARD_PRODUCER, |value| value != 0, change);
    }

    /// Has `act` done just before the driver waits for an interrupt the next time.
    pub fn before_wait(&self, act: impl FnOnce() + Send + 'static) {
        let mut next = self.before_wait.lock().expect("no panic elsewhere");
        *next = Some(Box::new(act));
    }

    fn before(
        &self,
        bar_offset: u32,
        wanted: fn(u32) -> bool,
        change: impl FnOnce(&Shared, u64) + Send + 'static,
    ) {
        let mut sabotage = self.sabotage.lock().expect("no panic elsewhere");
        *sabotage = Some(Sabotage {
            bar_offset,
            wanted,
            change: Box::new(change),
        });
    }

    /// What the story wants to do before this write.
    fn due(&self, bar_offset: u32, value: u32) -> Option<Sabotage> {
        let mut sabotage = self.sabotage.lock().expect("no panic elsewhere");
        sabotage.take_if(|s| s.bar_offset == bar_offset && (s.wanted)(value))
    }
}

impl<T: Transport> Transport for Spy<T> {
    fn read(&mut self, bar_offset: u32) -> Result<u32, TransportError> {
        self.inner.read(bar_offset)
    }
    fn write(&mut self, bar_offset: u32, value: u32) -> Result<(), TransportError> {
        if let Some(sabotage) = self.shared.due(bar_offset, value) {
            let info = self.shared.info(&mut self.inner);
            (sabotage.change)(&self.shared, info);
        }
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
        self.shared
            .memory
            .lock()
            .expect("no panic elsewhere")
            .push(memory.clone());
        Ok(memory)
    }
    fn map(&mut self, file: OwnedFd, access: Access) -> Result<DmaMemory, TransportError> {
        self.inner.map(file, access)
    }
    fn unmap(&mut self, memory: &DmaMemory) -> Result<(), TransportError> {
        self.inner.unmap(memory)
    }
    fn port(&mut self) -> Result<Box<dyn Port>, TransportError> {
        self.inner.port()
    }
    fn wait(&mut self, vector: Vector, timeout: Duration) -> Result<bool, TransportError> {
        let act = self
            .shared
            .before_wait
            .lock()
            .expect("no panic elsewhere")
            .take();
        if let Some(act) = act {
            act();
        }
        self.inner.wait(vector, timeout)
    }
    fn vector_fd(&self, vector: Vector) -> Option<BorrowedFd<'_>> {
        self.inner.vector_fd(vector)
    }
    fn unmask(&mut self, vector: Vector) -> Result<(), TransportError> {
        self.inner.unmask(vector)
    }
    fn reset(&mut self) -> Result<(), TransportError> {
        self.inner.reset()
    }
}
