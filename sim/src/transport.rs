//! A driver's transport to the simulated card: [`SimTransport`].
//!
//! There is no second thread: the card runs while the driver waits (a driver with several threads
//! has a port for each, and the card runs in the thread that waits). Each access of the driver
//! takes [`HostTiming`] of the card's time, and [`Transport::wait`] lets the card run until it
//! raises an interrupt or the time-out expires on the card's clock. So a driver sees the same card
//! whatever the speed of the computer.

pub use crate::fabric::SharedMachine;
use crate::machine::Machine;
use crate::timing::{HostAccess, Parameters};
use host_driver::transport::{Access, Bell, Port};
use host_driver::{DmaMemory, Transport, TransportError, Vector};
use std::os::fd::OwnedFd;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;
use tigon2_chip::Register;
use tigon2_chip::bits::MiscHostControl;
use tigon2_model::Board;

/// Bytes of BAR 0.
const BAR_BYTES: u32 = 0x4000;
/// Bytes of configuration space that the transport gives access to.
const CONFIG_BYTES: u32 = 0x100;
/// Where the first DMA memory goes: above 4 GB, so that both address words are used.
const FIRST_IOVA: u64 = 0x1_0000_0000;
/// Distance between the ends and starts of DMA memories, so that overruns are caught.
const IOVA_GAP: u64 = 0x1_0000;

/// A cycle of the card, and less than two.
const CYCLE_NS: u64 = 12;

/// How long a waiting thread runs the card before the others have their turns.
const SLICE: Duration = Duration::from_micros(10);

/// How long the host's accesses to the card take, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostTiming {
    /// A read: there and back.
    pub read_ns: u64,
    /// A posted write.
    pub write_ns: u64,
    /// From the interrupt line to the driver's next step.
    pub interrupt_ns: u64,
}

impl HostTiming {
    /// Those of a timing profile.
    pub fn of(parameters: &Parameters) -> HostTiming {
        HostTiming {
            read_ns: parameters.pio_ns,
            interrupt_ns: parameters.int_delay_ns,
            ..HostTiming::default()
        }
    }
}

impl Default for HostTiming {
    fn default() -> Self {
        HostTiming {
            read_ns: 500,
            write_ns: 60,
            interrupt_ns: 0,
        }
    }
}

/// A simulated card as a driver reaches it.
pub struct SimTransport {
    card: Arc<Card>,
    timing: HostTiming,
    next_iova: u64,
}

/// A way to the card for one thread of several. Time passes on the card by the accesses of
/// all of them together, so what they see depends on their turns.
struct SimPort {
    card: Arc<Card>,
    timing: HostTiming,
}

/// What the transport and its ports share.
struct Card {
    machine: SharedMachine,
}

impl Card {
    /// The machine, after an access of `ns` nanoseconds, or as long as it has to wait for the bus.
    fn after(
        &self,
        access: HostAccess,
        ns: u64,
    ) -> Result<MutexGuard<'_, Machine>, TransportError> {
        let begun = self.machine.lock().now();
        if self.machine.lock().host_asks_for_bus(access) {
            while !self.machine.lock().host_had_bus() {
                self.machine.pass(CYCLE_NS);
            }
        }
        let passed = self.machine.lock().now() - begun;
        let machine = self.machine.after(ns.saturating_sub(passed));
        if machine.is_left() {
            return Err(left());
        }
        Ok(machine)
    }

    fn read(&self, bar_offset: u32, timing: HostTiming) -> Result<u32, TransportError> {
        let offset = word(bar_offset, BAR_BYTES)?;
        let value = self
            .after(HostAccess::Read, timing.read_ns)?
            .bar_read(offset);
        // Drivers of a shared line look first whether the interrupt is the card's.
        if offset == Register::MiscHostControl.offset() {
            let control = MiscHostControl::from_bits(value);
            self.machine.pin().asked(control);
        }
        Ok(value)
    }

    fn write(&self, bar_offset: u32, value: u32, timing: HostTiming) -> Result<(), TransportError> {
        let offset = word(bar_offset, BAR_BYTES)?;
        let mut machine = self.after(HostAccess::Write, timing.write_ns)?;
        machine.bar_write(offset, value);
        self.machine.pin().look(machine.interrupt());
        Ok(())
    }

    /// Interrupts are signalled to the driver again.
    fn unmask(&self) {
        let machine = self.machine.lock();
        self.machine.pin().unmask(machine.interrupt());
    }

    /// Lets the machine run to the cycle `limit`, or until an interrupt, which is masked
    /// then. True if it came.
    fn run_to(&self, limit: u64, timing: HostTiming) -> Result<bool, TransportError> {
        let came = self.machine.wait_interrupt(limit, timing.interrupt_ns);
        if self.machine.lock().is_left() {
            return Err(left());
        }
        Ok(came)
    }

    /// The cycle at which a wait ends.
    fn limit(&self, timeout: Duration) -> u64 {
        let machine = self.machine.lock();
        let ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        machine.cycle().saturating_add(machine.clock().cycle_at(ns))
    }
}

impl Drop for Card {
    /// The card loses the driver's memory: it must not write to it any more.
    fn drop(&mut self) {
        self.machine.lock().unmap_all();
    }
}

impl SimTransport {
    /// The way to a machine.
    pub fn new(machine: Machine) -> Self {
        SimTransport::to(&SharedMachine::new(machine))
    }

    /// The way to a machine that is shared already.
    pub fn to(machine: &SharedMachine) -> Self {
        machine.pin().reset();
        SimTransport {
            card: Arc::new(Card {
                machine: machine.clone(),
            }),
            timing: HostTiming::default(),
            next_iova: FIRST_IOVA,
        }
    }

    /// The way to a new card of a board.
    pub fn power_on(board: Board) -> Self {
        SimTransport::new(Machine::new(board))
    }

    /// Sets how long the host's accesses take.
    pub fn set_timing(&mut self, timing: HostTiming) {
        self.timing = timing;
    }

    /// A handle to the machine.
    pub fn machine(&self) -> SharedMachine {
        self.card.machine.clone()
    }
}

/// A [probe](crate::machine::probe) has seen enough.
fn left() -> TransportError {
    TransportError::Gone("the simulation has been left".into())
}

/// The offset, if it is a word of a space of `bytes`.
fn word(offset: u32, bytes: u32) -> Result<u32, TransportError> {
    if offset.is_multiple_of(4) && offset < bytes {
        Ok(offset)
    } else {
        Err(TransportError::BadOffset(offset))
    }
}

impl SimTransport {
    /// Lets the card reach memory at the next free IOVA.
    fn share(&mut self, memory: DmaMemory) -> DmaMemory {
        self.next_iova += memory.len() as u64 + IOVA_GAP;
        self.card.machine.lock().map(memory.clone());
        memory
    }
}

impl Transport for SimTransport {
    fn read(&mut self, bar_offset: u32) -> Result<u32, TransportError> {
        self.card.read(bar_offset, self.timing)
    }

    fn write(&mut self, bar_offset: u32, value: u32) -> Result<(), TransportError> {
        self.card.write(bar_offset, value, self.timing)
    }

    fn config_read(&mut self, offset: u32) -> Result<u32, TransportError> {
        let offset = word(offset, CONFIG_BYTES)?;
        let mut bytes = [0; 4];
        self.card
            .after(HostAccess::Read, self.timing.read_ns)?
            .config_read(offset as usize, &mut bytes);
        Ok(u32::from_le_bytes(bytes))
    }

    fn config_write(&mut self, offset: u32, value: u32) -> Result<(), TransportError> {
        let offset = word(offset, CONFIG_BYTES)?;
        let bytes = value.to_le_bytes();
        self.card
            .after(HostAccess::Write, self.timing.write_ns)?
            .config_write(offset as usize, &bytes);
        Ok(())
    }

    fn allocate(&mut self, bytes: usize) -> Result<DmaMemory, TransportError> {
        let memory = DmaMemory::new(bytes, self.next_iova)?;
        Ok(self.share(memory))
    }

    fn map(&mut self, file: OwnedFd, access: Access) -> Result<DmaMemory, TransportError> {
        let memory = DmaMemory::of_file(file, self.next_iova)?;
        Ok(self.share(memory.for_card(access)))
    }

    fn unmap(&mut self, memory: &DmaMemory) -> Result<(), TransportError> {
        self.card.machine.lock().unmap(memory);
        Ok(())
    }

    fn wait(&mut self, vector: Vector, timeout: Duration) -> Result<bool, TransportError> {
        vector.must_be_pin()?;
        self.card.run_to(self.card.limit(timeout), self.timing)
    }

    fn unmask(&mut self, vector: Vector) -> Result<(), TransportError> {
        vector.must_be_pin()?;
        self.card.unmask();
        Ok(())
    }

    fn port(&mut self) -> Result<Box<dyn Port>, TransportError> {
        Ok(Box::new(SimPort {
            card: self.card.clone(),
            timing: self.timing,
        }))
    }

    fn counts(&mut self) -> Result<Option<String>, TransportError> {
        Ok(Some(self.card.machine.stalls().to_string()))
    }

    fn reset(&mut self) -> Result<(), TransportError> {
        self.card.machine.lock().reset();
        self.card.machine.pin().reset();
        Ok(())
    }
}

impl Port for SimPort {
    fn read(&mut self, bar_offset: u32) -> Result<u32, TransportError> {
        self.card.read(bar_offset, self.timing)
    }

    fn write(&mut self, bar_offset: u32, value: u32) -> Result<(), TransportError> {
        self.card.write(bar_offset, value, self.timing)
    }

    /// The card runs in slices: between two of them the other threads have their turns.
    fn wait(
        &mut self,
        vector: Vector,
        timeout: Duration,
        bell: &Bell,
    ) -> Result<bool, TransportError> {
        vector.must_be_pin()?;
        let end = self.card.limit(timeout);
        loop {
            if bell.is_rung() {
                return Ok(false);
            }
            let slice = self.card.limit(SLICE).min(end);
            if self.card.run_to(slice, self.timing)? {
                return Ok(true);
            }
            if self.card.machine.lock().cycle() >= end {
                return Ok(false);
            }
            self.card.machine.give_way();
        }
    }

    fn unmask(&mut self, vector: Vector) -> Result<(), TransportError> {
        vector.must_be_pin()?;
        self.card.unmask();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
