//! A driver's way to the simulated card: [`SimTransport`].
//!
//! There is no second thread: the card runs while the driver waits. Each access of the
//! driver to the card takes [`HostTiming`] of the card's time, and
//! [`Transport::wait_interrupt`] lets the card run until it interrupts or until the
//! time-out has passed on the card's clock. So a driver sees the same card whatever the
//! speed of the computer that it runs on.

use crate::machine::Machine;
use crate::timing::Parameters;
use host_driver::{DmaMemory, Transport, TransportError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tigon2_model::Board;

/// Bytes of BAR 0.
const BAR_BYTES: u32 = 0x4000;
/// Bytes of configuration space that the transport gives access to.
const CONFIG_BYTES: u32 = 0x100;
/// Where the first DMA memory goes: above 4 GB, so that both address words are used.
const FIRST_IOVA: u64 = 0x1_0000_0000;
/// Distance between the ends and starts of DMA memories, so that overruns are caught.
const IOVA_GAP: u64 = 0x1_0000;

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

/// The machine, for a test that looks at it or sends frames beside the driver.
#[derive(Clone)]
pub struct SharedMachine(Arc<Mutex<Machine>>);

impl SharedMachine {
    /// A machine that others may look at beside the driver.
    pub fn new(machine: Machine) -> SharedMachine {
        SharedMachine(Arc::new(Mutex::new(machine)))
    }

    /// Exclusive access. Do not call the driver while holding it.
    pub fn lock(&self) -> MutexGuard<'_, Machine> {
        // A panic of another holder leaves a machine that is whole: calls into it either
        // happened or did not.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A simulated card as a driver reaches it.
pub struct SimTransport {
    machine: SharedMachine,
    timing: HostTiming,
    next_iova: u64,
    masked: bool,
}

impl SimTransport {
    /// The way to a machine.
    pub fn new(machine: Machine) -> Self {
        SimTransport::to(&SharedMachine::new(machine))
    }

    /// The way to a machine that is shared already.
    pub fn to(machine: &SharedMachine) -> Self {
        SimTransport {
            machine: machine.clone(),
            timing: HostTiming::default(),
            next_iova: FIRST_IOVA,
            masked: false,
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
        self.machine.clone()
    }

    /// The machine, after `ns` nanoseconds have passed on it.
    fn after(&self, ns: u64) -> Result<MutexGuard<'_, Machine>, TransportError> {
        let mut machine = self.machine.lock();
        let cycles = machine.clock().cycle_at(ns);
        machine.run(cycles);
        if machine.is_left() {
            return Err(left());
        }
        Ok(machine)
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

impl Transport for SimTransport {
    fn read(&mut self, bar_offset: u32) -> Result<u32, TransportError> {
        let offset = word(bar_offset, BAR_BYTES)?;
        Ok(self.after(self.timing.read_ns)?.bar_read(offset))
    }

    fn write(&mut self, bar_offset: u32, value: u32) -> Result<(), TransportError> {
        let offset = word(bar_offset, BAR_BYTES)?;
        self.after(self.timing.write_ns)?.bar_write(offset, value);
        Ok(())
    }

    fn config_read(&mut self, offset: u32) -> Result<u32, TransportError> {
        let offset = word(offset, CONFIG_BYTES)?;
        let mut bytes = [0; 4];
        self.after(self.timing.read_ns)?
            .config_read(offset as usize, &mut bytes);
        Ok(u32::from_le_bytes(bytes))
    }

    fn config_write(&mut self, offset: u32, value: u32) -> Result<(), TransportError> {
        let offset = word(offset, CONFIG_BYTES)?;
        let bytes = value.to_le_bytes();
        self.after(self.timing.write_ns)?
            .config_write(offset as usize, &bytes);
        Ok(())
    }

    fn allocate(&mut self, bytes: usize) -> Result<DmaMemory, TransportError> {
        let memory = DmaMemory::new(bytes, self.next_iova)?;
        self.next_iova += memory.len() as u64 + IOVA_GAP;
        self.machine.lock().map(memory.clone());
        Ok(memory)
    }

    fn wait_interrupt(&mut self, timeout: Duration) -> Result<bool, TransportError> {
        let mut machine = self.machine.lock();
        let ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        let limit = machine.cycle().saturating_add(machine.clock().cycle_at(ns));
        let masked = self.masked;
        let came = machine.run_until(limit, |machine| machine.interrupt() && !masked);
        self.masked |= came;
        if came {
            let delay = machine.clock().cycle_at(self.timing.interrupt_ns);
            machine.run(delay);
        }
        if machine.is_left() {
            return Err(left());
        }
        Ok(came)
    }

    fn unmask_interrupt(&mut self) -> Result<(), TransportError> {
        self.masked = false;
        Ok(())
    }

    fn reset(&mut self) -> Result<(), TransportError> {
        self.machine.lock().reset();
        self.masked = false;
        Ok(())
    }
}

impl Drop for SimTransport {
    /// The card loses the driver's memory: it must not write to it any more.
    fn drop(&mut self) {
        self.machine.lock().unmap_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asm::*;
    use host_interface::bar;
    use host_interface::image::{Image, Version};
    use tigon2_chip::{Cpu, Register};
    use tigon2_model::CpuFault;

    /// Adds one to each send producer that the host writes, puts the sum into a host word
    /// by a direct DMA write (reference 6.1), and interrupts.
    fn program() -> Vec<u32> {
        let register = |register: Register| register.offset() as i32;
        vec![
            lui(T1, 0xC000),
            get(V0, Register::EventA),
            lui(A1, 0x0040),
            special(0x24, V0, V0, A1, 0),
            beq(V0, ZERO, -4),
            NOP,
            get(V1, Register::MailboxEventA),
            sw(V1, register(Register::MailboxEventA), T1),
            immediate(0x0C, V1, V1, 4),
            beq(V1, ZERO, -9),
            NOP,
            // The word at 0x2F0 = send producer + 1.
            lw(V0, 0x114, ZERO),
            addiu(V0, V0, 1),
            sw(V0, 0x2F0, ZERO),
            // Host address from gencom's 0x208/0x20C, as the information block's.
            lw(V0, 0x208, ZERO),
            sw(V0, register(Register::DmaWriteHostHigh), T1),
            lw(V0, 0x20C, ZERO),
            sw(V0, register(Register::DmaWriteHostLow), T1),
            addiu(V0, ZERO, 0x2F0),
            sw(V0, register(Register::DmaWriteLocal), T1),
            addiu(V0, ZERO, 4),
            sw(V0, register(Register::DmaWriteLength), T1),
            addiu(V0, ZERO, 6),
            sw(V0, register(Register::DmaWriteState), T1),
            addiu(V0, ZERO, 4),
            sw(V0, register(Register::MiscLocalControl), T1),
            beq(ZERO, ZERO, -26),
            NOP,
        ]
    }

    fn get(rt: u32, register: Register) -> u32 {
        lw(rt, register.offset() as i32, T1)
    }

    /// Loads and starts the program as a driver does: halt, window, program counter, run.
    fn started() -> Result<SimTransport, TransportError> {
        let mut card = SimTransport::power_on(Board::default());
        card.write(Register::MiscHostControl.offset(), 0x2200_0022)?;
        let code = bytes(&program());
        let version = Version {
            major: 1,
            minor: 0,
            fix: 0,
        };
        let image = Image::new(version, 0x4000, 0x4000, &code).expect("a good image");
        for (address, word) in image.words() {
            let (base, offset) = bar::window(address);
            card.write(Register::WindowBase.offset(), base)?;
            card.write(offset, word)?;
        }
        card.write(Register::CpuAPc.offset(), image.start())?;
        card.write(Register::CpuAState.offset(), 0)?;
        Ok(card)
    }

    /// The whole way round: mailbox, CPU, DMA into the driver's memory, interrupt.
    #[test]
    fn a_driver_and_a_program_talk_through_the_card() -> Result<(), TransportError> {
        let mut card = started()?;
        let memory = card.allocate(64)?;
        card.write(0x608, (memory.iova() >> 32) as u32)?;
        card.write(0x60C, memory.iova() as u32 + 8)?;
        for round in 1..=3 {
            card.write(bar::MAILBOX_SEND_PRODUCER, 100 * round)?;
            assert!(card.wait_interrupt(Duration::from_millis(1))?);
            assert_eq!(memory.read_word(8)?, 100 * round + 1);
            // The line is still asserted, but the transport has masked it.
            assert!(!card.wait_interrupt(Duration::from_micros(10))?);
            card.unmask_interrupt()?;
            assert!(card.wait_interrupt(Duration::from_micros(10))?);
            card.write(bar::MAILBOX_HOST_INTERRUPT, 0)?;
            card.unmask_interrupt()?;
            assert!(!card.wait_interrupt(Duration::from_micros(10))?);
        }
        assert_eq!(card.machine().lock().fault(Cpu::A), None);
        Ok(())
    }

    #[test]
    fn time_passes_on_the_card_only_in_the_driver_s_calls() -> Result<(), TransportError> {
        let mut card = started()?;
        let timing = HostTiming {
            read_ns: 1000,
            write_ns: 125,
            interrupt_ns: 250,
        };
        card.set_timing(timing);
        let cycle = |card: &SimTransport| card.machine().lock().cycle();
        let start = cycle(&card);
        card.read(Register::Timer.offset())?;
        assert_eq!(cycle(&card) - start, 88);
        card.write(Register::Timer.offset(), 0)?;
        assert_eq!(cycle(&card) - start, 88 + 11);
        assert!(
            !card.wait_interrupt(Duration::from_secs(3))?,
            "nothing happens"
        );
        assert_eq!(cycle(&card) - start, 88 + 11 + 3 * 88_000_000);
        let machine = card.machine();
        let strobe = Register::MiscLocalControl;
        machine.lock().register_write(Cpu::A, strobe, 4);
        let start = cycle(&card);
        assert!(card.wait_interrupt(Duration::from_secs(1))?);
        assert_eq!(cycle(&card) - start, 22, "the driver hears of it later");
        Ok(())
    }

    /// Host/NIC software interface: BAR 0 is 16 KB of aligned words.
    #[test]
    fn offsets_that_no_bar_has_are_refused() {
        let mut card = SimTransport::power_on(Board::default());
        for offset in [2, 0x4000, 0xFFFF_FFFC, 0x41] {
            assert!(
                matches!(card.read(offset), Err(TransportError::BadOffset(bad)) if bad == offset)
            );
            assert!(matches!(
                card.write(offset, 0),
                Err(TransportError::BadOffset(_))
            ));
        }
        assert!(card.read(0x3FFC).is_ok());
        assert!(matches!(
            card.config_read(0x100),
            Err(TransportError::BadOffset(0x100))
        ));
        assert_eq!(card.config_read(0).ok(), Some(0x0001_12AE), "an AceNIC");
    }

    #[test]
    fn memories_do_not_touch_and_lie_above_4_gb() -> Result<(), TransportError> {
        let mut card = SimTransport::power_on(Board::default());
        let (first, second) = (card.allocate(5000)?, card.allocate(1)?);
        assert_eq!((first.iova(), first.len()), (FIRST_IOVA, 8192));
        assert!(second.iova() > first.iova() + first.len() as u64);
        Ok(())
    }

    /// A card whose driver has gone can no longer write to that driver's memory.
    #[test]
    fn a_dropped_transport_takes_its_memory_along() -> Result<(), TransportError> {
        let mut card = started()?;
        let memory = card.allocate(64)?;
        card.write(0x608, (memory.iova() >> 32) as u32)?;
        card.write(0x60C, memory.iova() as u32)?;
        let machine = card.machine();
        drop(card);
        let mut machine = machine.lock();
        machine.bar_write(bar::MAILBOX_SEND_PRODUCER, 1);
        machine.run(1000);
        assert_eq!(machine.word(0x2F0), 2, "the program ran");
        assert_eq!(memory.read_word(0)?, 0);
        let state = machine.bar_read(Register::DmaWriteState.offset());
        assert_ne!(state & tigon2_chip::bits::DmaState::ERRORS, 0);
        Ok(())
    }

    /// A reset halts both CPUs; the driver can load and start again.
    #[test]
    fn a_reset_card_can_be_started_again() -> Result<(), TransportError> {
        let mut card = started()?;
        card.reset()?;
        assert_ne!(card.read(Register::CpuAState.offset())? & 0x1_0000, 0);
        assert!(!card.machine().lock().cpus().any_running());
        card.machine().lock().load_image(0x4000, &bytes(&[BREAK]));
        card.write(Register::CpuAPc.offset(), 0x4000)?;
        card.write(Register::CpuAState.offset(), 0)?;
        assert!(!card.wait_interrupt(Duration::from_micros(1))?);
        let fault = card.machine().lock().fault(Cpu::A);
        assert_eq!(fault, Some((CpuFault::Break, 0x4000)));
        Ok(())
    }
}
