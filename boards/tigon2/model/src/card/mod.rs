//! The card: all parts together, and the calls for an engine.

mod device;
mod host;
mod inspect;
mod registers;
#[cfg(test)]
mod tests;
mod wire;
mod work;

pub use device::{Device, Stages};
pub use inspect::Inspect;
pub use work::DmaWork;

use crate::board::Board;
use crate::control::{BusState, HostControl, LocalControl};
use crate::cpu::{CpuCommand, CpuControl, CpuFault};
use crate::dma::{Direction, Dma};
use crate::eeprom::Eeprom;
use crate::environment::{Effect, Environment};
use crate::events::{Levels, SoftwareEvents};
use crate::faults::Faults;
use crate::interrupt::Interrupt;
use crate::link::Link;
use crate::mac::Mac;
use crate::mailbox::Mailboxes;
use crate::memory::{SPILL_BASE_MASK, SramMap};
use crate::operations::Operation;
use crate::partner::Partner;
use crate::pci::PciFunction;
use crate::semaphore::Semaphore;
use crate::timers::Timers;
use crate::undefined::{Accessor, UndefinedKind, UndefinedLog};
use crate::window::Window;
use tigon2_chip::Cpu;
use tigon2_chip::memory::SCRATCH_BASE;

/// Words of the register page.
const REGISTER_WORDS: usize = tigon2_chip::memory::REGISTERS_BYTES as usize / 4;

/// Code that does not fit in the boot memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the boot code has {bytes} bytes, but there is room for {room}")]
pub struct BootCodeTooLarge {
    /// Bytes of the code.
    pub bytes: usize,
    /// Bytes that fit.
    pub room: usize,
}

/// One AceNIC without its CPUs and memory. See the crate's documentation.
#[derive(Clone, Debug)]
pub struct Card {
    board: Board,
    map: SramMap,
    host_control: HostControl,
    local_control: LocalControl,
    bus: BusState,
    interrupt: Interrupt,
    window: Window,
    semaphore: Semaphore,
    software_events: SoftwareEvents,
    mailboxes: Mailboxes,
    timers: Timers,
    cpus: [CpuControl; Cpu::MOST],
    scratch_address: [u32; 2],
    dma: Dma,
    mac: Mac,
    link: Link,
    /// Frames that the engine's wire accepts now; `None`: all.
    wire_room: Option<u32>,
    faults: Faults,
    eeprom: Eeprom,
    /// The words of the boot memory; empty if the card has none.
    boot_code: Vec<u32>,
    pci: PciFunction,
    /// Registers that only store their value, by offset / 4.
    stored: [u32; REGISTER_WORDS],
    undefined: UndefinedLog,
    effects: Vec<Effect>,
    /// The recorded operations, if recording is on.
    operations: Option<Vec<Operation>>,
}

impl Card {
    /// A card that was just plugged in; [`power_on`](Device::power_on) sets its clock.
    pub fn new(board: Board) -> Card {
        Card {
            map: SramMap::new(board.memory.sram_bytes),
            host_control: HostControl::default(),
            local_control: LocalControl::default(),
            bus: BusState::new(&board.pci),
            interrupt: Interrupt::default(),
            window: Window::default(),
            semaphore: Semaphore::default(),
            software_events: SoftwareEvents::default(),
            mailboxes: Mailboxes::default(),
            timers: Timers::new(board.clock.core_hz, 0),
            cpus: [CpuControl::default(); Cpu::MOST],
            scratch_address: [0; 2],
            dma: Dma::default(),
            mac: Mac::default(),
            link: Link::new(&board),
            wire_room: None,
            faults: Faults::default(),
            eeprom: Eeprom::new(board.eeprom.bytes, board.eeprom.page_bytes),
            boot_code: Vec::new(),
            pci: PciFunction::new(&board.pci),
            stored: [0; REGISTER_WORDS],
            undefined: UndefinedLog::default(),
            effects: Vec::with_capacity(64),
            operations: None,
            board,
        }
    }

    /// A read-only view of the card.
    pub fn inspect(&self) -> Inspect<'_> {
        Inspect::new(self)
    }

    pub(crate) fn power_on(&mut self, env: &mut Environment<'_>) {
        self.pci = PciFunction::new(&self.board.pci);
        self.link.power_on(env.now);
        self.reset(env);
    }

    pub(crate) fn reset(&mut self, env: &mut Environment<'_>) {
        for cpu in Cpu::EVERY {
            if !self.cpus[cpu.index()].halted() {
                self.effects.push(Effect::CpuHalt { cpu });
            }
        }
        self.cpus = [CpuControl::default(); Cpu::MOST];
        self.scratch_address = [0; 2];
        self.host_control = HostControl::default();
        self.local_control = LocalControl::default();
        self.bus = BusState::new(&self.board.pci);
        self.window = Window::default();
        self.semaphore = Semaphore::default();
        self.software_events = SoftwareEvents::default();
        self.mailboxes = Mailboxes::default();
        self.timers = Timers::new(self.board.clock.core_hz, env.now);
        self.dma.reset();
        self.mac = Mac::default();
        self.link.reset();
        for cpu in Cpu::ALL {
            if self.spill_base(cpu) != 0 {
                self.effects.push(Effect::SpillBase { cpu, base: 0 });
            }
        }
        self.stored = [0; REGISTER_WORDS];
        self.interrupt.clear();
        self.settle_interrupt();
        self.start_boot_code(env);
    }

    /// Puts code into the boot memory, as big-endian words: CPU A runs it after each reset, from
    /// its scratch pad (docs/hardware.md, "Boot"). Without boot code, a reset leaves CPU A halted
    /// for the host.
    ///
    /// # Errors
    /// [`BootCodeTooLarge`] if it does not fit in CPU A's scratch pad; nothing changes.
    pub fn set_boot_code(&mut self, code: &[u8]) -> Result<(), BootCodeTooLarge> {
        let room = self.board.scratch_bytes(Cpu::A) as usize;
        if code.len() > room {
            let bytes = code.len();
            return Err(BootCodeTooLarge { bytes, room });
        }
        self.boot_code = code
            .chunks(4)
            .map(|word| {
                let mut bytes = [0; 4];
                bytes[..word.len()].copy_from_slice(word);
                u32::from_be_bytes(bytes)
            })
            .collect();
        Ok(())
    }

    /// Reset with a boot memory: copies its code to CPU A's scratch pad and runs it.
    fn start_boot_code(&mut self, env: &mut Environment<'_>) {
        if self.boot_code.is_empty() {
            return;
        }
        for (offset, word) in (0..).step_by(4).zip(&self.boot_code) {
            env.cpus.scratch_write(Cpu::A, offset, *word);
        }
        self.cpus[Cpu::A.index()].write_pc(SCRATCH_BASE);
        self.write_cpu_state(env, Accessor::Cpu(Cpu::A), Cpu::A, 0);
    }

    #[inline]
    pub(crate) fn events(&self, now: u64, cpu: Cpu) -> u32 {
        let levels = Levels {
            receive_complete: self.mac.receive_complete(),
            dma_write_complete: self.dma.assist.ring(Direction::Write).passed(),
            dma_read_complete: self.dma.assist.ring(Direction::Read).passed(),
            dma_write_attention: self.dma.channel(Direction::Write).failed(),
            dma_read_attention: self.dma.channel(Direction::Read).failed(),
            mailbox: self.mailboxes.read(cpu) != 0,
            mac_rx_attention: self.mac.rx_attention(),
            mac_tx_attention: self.mac.tx_attention(),
            timer: self.timers.reached(now, cpu),
        };
        self.software_events.read(cpu) | levels.bits()
    }

    pub(crate) fn advance(&mut self, env: &mut Environment<'_>) {
        if self.let_time_pass(env) {
            self.run(env);
            self.flow_control(env);
        }
    }

    pub(crate) fn let_time_pass(&mut self, env: &mut Environment<'_>) -> bool {
        // Timer events are levels that follow from the time. Only two things wait for the time: a
        // transmitter that a pause frame holds, and our own next pause frame.
        let until = self.mac.pause.held_until;
        let released = until != 0 && env.now >= until;
        if released {
            self.mac.pause.held_until = 0;
        }
        self.flow_control(env);
        released
    }

    pub(crate) fn next_deadline(&self, now: u64) -> Option<u64> {
        let timer = self.timers.next_deadline(now);
        timer.into_iter().chain(self.work_deadline(now)).min()
    }

    #[inline]
    pub(crate) fn event_deadline(&self, now: u64, cpu: Cpu) -> Option<u64> {
        self.timers.deadline(now, cpu)
    }

    #[inline]
    pub(crate) fn work_deadline(&self, now: u64) -> Option<u64> {
        let held = Some(self.mac.pause.held_until);
        let pauses = [held, self.mac.pause.asked].into_iter().flatten();
        pauses.filter(|at| *at > now).min()
    }

    pub(crate) fn cpu_fault(
        &mut self,
        _env: &mut Environment<'_>,
        cpu: Cpu,
        fault: CpuFault,
        pc: u32,
    ) {
        if self.cpus[cpu.index()].stop_on(fault, pc) {
            self.effects.push(Effect::CpuHalt { cpu });
        }
    }

    pub(crate) fn note_undefined(
        &mut self,
        by: Accessor,
        kind: UndefinedKind,
        address: u32,
        value: u32,
    ) {
        self.undefined.note(by, kind, address, value);
    }

    /// The effects for the engine to carry out, in order.
    pub fn drain_effects(&mut self) -> impl Iterator<Item = Effect> {
        self.effects.drain(..)
    }

    #[inline]
    pub(crate) fn has_effects(&self) -> bool {
        !self.effects.is_empty()
    }

    /// Records every [`Operation`] from now on, until they are taken.
    pub fn record_operations(&mut self) {
        self.operations.get_or_insert_default();
    }

    /// The operations since they were last taken, in order; none unless they are
    /// [recorded](Self::record_operations).
    pub fn take_operations(&mut self) -> Vec<Operation> {
        let kept = self.operations.as_mut();
        kept.map(std::mem::take).unwrap_or_default()
    }

    #[inline]
    fn note(&mut self, operation: impl FnOnce() -> Operation) {
        if let Some(operations) = &mut self.operations {
            operations.push(operation());
        }
    }

    pub(crate) fn sram_map(&self) -> SramMap {
        self.map
    }

    /// Base of a CPU's spill window: `R[150]` or `R[250]`, in steps of 4 KB.
    pub(super) fn spill_base(&self, cpu: Cpu) -> u32 {
        let register = tigon2_chip::Register::spill_base(cpu);
        self.stored[register.offset() as usize / 4] & SPILL_BASE_MASK
    }

    /// The serial EEPROM, to load or change its contents.
    pub fn eeprom_mut(&mut self) -> &mut Eeprom {
        &mut self.eeprom
    }

    /// Writes the card's address into the EEPROM, bytes 0x8C..0x93 (9).
    pub fn set_mac_address(&mut self, address: [u8; 6]) {
        self.eeprom.set_mac_address(address);
    }

    /// Plugs or unplugs the cable; a change is attention 25 (11).
    pub fn set_cable(&mut self, env: &mut Environment<'_>, plugged: bool) {
        if self.link.set_cable(env.now, plugged) {
            self.mac.sync_changed();
        }
    }

    /// Connects another partner, as if the cable had been unplugged for a moment.
    pub fn set_partner(&mut self, env: &mut Environment<'_>, partner: Partner) {
        if self.link.set_partner(env.now, partner) {
            self.mac.sync_changed();
        }
    }

    pub(crate) fn link_megabits(&self, now: u64) -> u32 {
        self.link.megabits(now) * self.board.mac.times
    }

    fn settle_interrupt(&mut self) {
        let masked = self.host_control.masked() || self.pci.intx_disabled();
        if let Some(level) = self.interrupt.settle(masked) {
            self.effects.push(Effect::Interrupt(level));
        }
    }

    fn command_cpu(&mut self, env: &mut Environment<'_>, cpu: Cpu, command: CpuCommand) {
        self.effects.push(match command {
            CpuCommand::Halt => Effect::CpuHalt { cpu },
            CpuCommand::Start { pc } => Effect::CpuStart {
                cpu,
                pc: pc.unwrap_or_else(|| env.cpus.pc(cpu)),
            },
        });
    }
}
