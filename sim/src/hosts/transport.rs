//! The transport to the card for the CPU that acts.
//!
//! ```text
//!   CPU 0  ──────────────●───────►          the card's clock follows the CPU that
//!   CPU 1  ────────●──────────────────►     accesses it; accesses come in the order
//!   card   ────────▲─────▲                  of the CPUs' clocks
//! ```
//!
//! With [`SimTransport`], each access lets the card run for as long as the access takes. This is
//! correct for one CPU; with several, the times of all of them would add up. Here an access
//! advances the card to the time of the CPU that makes it, and no further.

use crate::transport::{HostTiming, SharedMachine, SimTransport};
use host_driver::transport::{self, Bell, Port};
use host_driver::{DmaMemory, Transport, TransportError, Vector};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// The time of the CPU that acts now, shared by the host and its transport.
#[derive(Clone, Debug, Default)]
pub struct ActingClock(Arc<Acting>);

#[derive(Debug, Default)]
struct Acting {
    now: AtomicU64,
    free: AtomicBool,
}

impl ActingClock {
    /// Nanoseconds since power-on.
    pub fn now(&self) -> u64 {
        self.0.now.load(Ordering::Relaxed)
    }

    /// Another CPU acts, or the same one later.
    pub fn set(&self, now: u64) {
        self.0.now.store(now, Ordering::Relaxed);
    }

    /// Whether accesses take no time.
    pub fn set_free(&self, free: bool) {
        self.0.free.store(free, Ordering::Relaxed);
    }

    /// An access takes this long, unless accesses are free; gives the time then.
    pub(super) fn pass(&self, nanoseconds: u64) -> u64 {
        if !self.0.free.load(Ordering::Relaxed) {
            self.set(self.now() + nanoseconds);
        }
        self.now()
    }
}

/// The machine on the clock of the CPU that acts, and the times that accesses take.
#[derive(Clone)]
struct Access {
    machine: SharedMachine,
    clock: ActingClock,
    read_ns: u64,
    write_ns: u64,
}

impl Access {
    /// An access takes `nanoseconds` of its CPU; the card gets as far.
    fn takes(&self, nanoseconds: u64) {
        let now = self.clock.pass(nanoseconds);
        let mut machine = self.machine.lock();
        let cycle = machine.clock().cycle_at(now);
        let behind = cycle.saturating_sub(machine.cycle());
        machine.run(behind);
    }

    /// Somebody has waited for the card, while no CPU did anything else.
    fn waited(&self, timeout: Duration) {
        if !timeout.is_zero() {
            let now = self.machine.lock().now();
            self.clock.set(self.clock.now().max(now));
        }
    }
}

/// A simulated card for the CPUs of a host.
pub struct CpuTransport {
    inner: SimTransport,
    access: Access,
}

/// A queue's own way to the card, on the clock of the CPU that acts.
struct CpuPort {
    inner: Box<dyn Port>,
    access: Access,
}

impl CpuTransport {
    /// The way to a machine on a host's clock, with the times that accesses take.
    pub fn new(machine: &SharedMachine, clock: &ActingClock, read_ns: u64, write_ns: u64) -> Self {
        let mut inner = SimTransport::to(machine);
        inner.set_timing(HostTiming {
            read_ns: 0,
            write_ns: 0,
            interrupt_ns: 0,
        });
        CpuTransport {
            inner,
            access: Access {
                machine: machine.clone(),
                clock: clock.clone(),
                read_ns,
                write_ns,
            },
        }
    }

    fn reads(&mut self) -> &mut SimTransport {
        self.access.takes(self.access.read_ns);
        &mut self.inner
    }

    fn writes(&mut self) -> &mut SimTransport {
        self.access.takes(self.access.write_ns);
        &mut self.inner
    }
}

impl Transport for CpuTransport {
    fn read(&mut self, bar_offset: u32) -> Result<u32, TransportError> {
        self.reads().read(bar_offset)
    }

    fn write(&mut self, bar_offset: u32, value: u32) -> Result<(), TransportError> {
        self.writes().write(bar_offset, value)
    }

    fn config_read(&mut self, offset: u32) -> Result<u32, TransportError> {
        self.reads().config_read(offset)
    }

    fn config_write(&mut self, offset: u32, value: u32) -> Result<(), TransportError> {
        self.writes().config_write(offset, value)
    }

    fn allocate(&mut self, bytes: usize) -> Result<DmaMemory, TransportError> {
        self.inner.allocate(bytes)
    }

    fn map(
        &mut self,
        file: OwnedFd,
        access: transport::Access,
    ) -> Result<DmaMemory, TransportError> {
        self.inner.map(file, access)
    }

    fn unmap(&mut self, memory: &DmaMemory) -> Result<(), TransportError> {
        self.inner.unmap(memory)
    }

    /// Looks for the interrupt. With a time-out only for bringing the card up, when no CPU
    /// does anything else: time passes here.
    fn wait(&mut self, vector: Vector, timeout: Duration) -> Result<bool, TransportError> {
        let came = self.inner.wait(vector, timeout)?;
        self.access.waited(timeout);
        Ok(came)
    }

    fn unmask(&mut self, vector: Vector) -> Result<(), TransportError> {
        self.inner.unmask(vector)
    }

    fn port(&mut self) -> Result<Box<dyn Port>, TransportError> {
        Ok(Box::new(CpuPort {
            inner: self.inner.port()?,
            access: self.access.clone(),
        }))
    }

    fn reset(&mut self) -> Result<(), TransportError> {
        self.inner.reset()
    }
}

impl Port for CpuPort {
    fn read(&mut self, bar_offset: u32) -> Result<u32, TransportError> {
        self.access.takes(self.access.read_ns);
        self.inner.read(bar_offset)
    }

    fn write(&mut self, bar_offset: u32, value: u32) -> Result<(), TransportError> {
        self.access.takes(self.access.write_ns);
        self.inner.write(bar_offset, value)
    }

    /// As [`CpuTransport::wait`].
    fn wait(
        &mut self,
        vector: Vector,
        timeout: Duration,
        bell: &Bell,
    ) -> Result<bool, TransportError> {
        let came = self.inner.wait(vector, timeout, bell)?;
        self.access.waited(timeout);
        Ok(came)
    }

    fn unmask(&mut self, vector: Vector) -> Result<(), TransportError> {
        self.inner.unmask(vector)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Machine;
    use tigon2_chip::Register;
    use tigon2_model::Board;

    /// Two CPUs read at the same time: the card's clock moves by one read, not by two. The card's
    /// times are whole cycles: 125 ns are 11.
    #[test]
    fn accesses_at_the_same_time_do_not_add_up() -> Result<(), TransportError> {
        let machine = SharedMachine::new(Machine::new(Board::default()));
        let clock = ActingClock::default();
        let mut card = CpuTransport::new(&machine, &clock, 500, 60);
        for _cpu in 0..2 {
            clock.set(10_000);
            card.read(Register::Timer.offset())?;
            assert_eq!(clock.now(), 10_500);
        }
        assert_eq!(machine.lock().now(), 10_500);
        clock.set(10_065);
        card.write(Register::Timer.offset(), 0)?;
        assert_eq!((clock.now(), machine.lock().now()), (10_125, 10_500));
        let mut port = card.port()?;
        port.read(Register::Timer.offset())?;
        assert_eq!((clock.now(), machine.lock().now()), (10_625, 10_625));
        port.write(Register::Timer.offset(), 0)?;
        assert_eq!(clock.now(), 10_685, "a queue's own way takes as long");
        clock.set_free(true);
        card.read(Register::Timer.offset())?;
        assert_eq!(clock.now(), 10_685);
        Ok(())
    }
}
