//! The whole card: model, SRAM, both CPUs, host memory and wire under one clock.
//!
//! ```text
//!   bar_read/bar_write ──► Card (tigon2-model) ◄──► SRAM, host memory
//!                           ▲   │ effects                 ▲
//!          register accesses│   ▼                         │
//!                         CPU A, CPU B ───────────────────┘
//!                         one instruction a cycle
//! ```
//!
//! Time is the number of core cycles since power-on and advances only in [`Machine::run`] and its
//! variants. In each cycle CPU A goes before CPU B; the card does its work (DMA, MAC) at once,
//! between two instructions. The same inputs at the same cycles always give the same outputs.
//!
//! Each instruction costs [`Timing::cycles`]; a cycle-level model replaces that function and the
//! zero-time DMA and MAC, not the structure.

mod ahead;
mod bus;
mod cut_through;
#[cfg(test)]
mod cut_through_tests;
#[cfg(test)]
mod golden;
mod host;
mod idle;
mod lead;
#[cfg(test)]
mod lead_tests;
mod line;
#[cfg(test)]
mod link;
#[cfg(test)]
mod noise;
mod observe;
mod parking;
pub mod probe;
mod run;
#[cfg(test)]
mod stale_tests;
mod timed;
mod unlimited;
pub(crate) mod view;

use lead::Lead;
use parking::Parked;
use unlimited::Poll;
#[cfg(test)]
pub(crate) mod tests;
#[cfg(test)]
mod timed_tests;
#[cfg(test)]
mod waits;

use crate::clock::Clock;
use crate::cpu::{Cpus, Executed};
use crate::explore::Disturbance;
use crate::memory::HostAccesses;
use crate::memory::{HostMemories, SramBytes};
use crate::shared_bus::Bus;
use crate::timeline::Recorder;
use crate::timing::{Parameters, Timed};
use crate::wire::{Frame, Peer, Wire};
use host_driver::DmaMemory;
use tigon2_chip::mac::RxError;
use tigon2_chip::{Cpu, Register};
use tigon2_model::eeprom::Eeprom;
use tigon2_model::{
    Board, BootCodeTooLarge, Card, CpuFault, Effect, Environment, Fault, Inspect, Operation,
    Partner,
};

/// How many times in a row the card may do work before time advances by a cycle.
const WORK_LIMIT: usize = 1024;

/// What became of the frames that arrived at the card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// The card took them.
    pub accepted: u64,
    /// The card dropped them: no link, filter, no room and the like.
    pub dropped: u64,
}

/// What an instruction costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing;

impl Timing {
    /// Cycles until the CPU can issue its next instruction: one, whatever it does.
    #[inline]
    pub fn cycles(self, _executed: &Executed) -> u64 {
        1
    }
}

/// The environment of a call into the card: the parts of `$machine` but the card itself.
macro_rules! environment {
    ($machine:ident) => {
        Environment {
            now: $machine.clock.nanoseconds($machine.cycle),
            sram: &mut $machine.sram,
            host: &mut $machine.host,
            cpus: &mut $machine.cpus,
        }
    };
}
use environment;

/// The card and all that it touches.
pub struct Machine {
    card: Card,
    sram: SramBytes,
    cpus: Cpus,
    host: HostMemories,
    wire: Wire,
    clock: Clock,
    timing: Timing,
    /// The cycle model, if there is one and [`Machine::run`] has not borrowed it.
    timed: Option<Box<Timed>>,
    /// The last poll of each CPU, if instructions take no time.
    unlimited: Option<[Poll; Cpu::MOST]>,
    /// CPUs whose waiting is not executed.
    parked: [Option<Parked>; Cpu::MOST],
    /// CPUs that have executed more than is certain.
    leads: [Lead; Cpu::MOST],
    /// Whether instructions take one cycle and the engines none.
    instant: bool,
    /// The card has changed since the engines last looked for work.
    recheck: bool,
    /// The read channel is bringing bytes of the frame that is being sent; and it was, in this
    /// frame.
    cuts_through: bool,
    was_cut_through: bool,
    /// Nanoseconds that frames had left on the wire when they were cut off, at the least.
    least_left: Option<u64>,
    /// The transmitter begins no frame.
    transmitter_held: bool,
    /// CPUs that were started since the pipelines last looked.
    restarted: [bool; Cpu::MOST],
    cycle: u64,
    /// The first cycle in which each CPU can issue an instruction.
    ready: [u64; Cpu::MOST],
    /// The cycle in which the card or the wire needs attention.
    deadline: u64,
    /// The card has changed since [`Machine::run`] last looked at its stop condition.
    changed: bool,
    interrupt: bool,
    /// The bus, if other devices share it.
    shared_bus: Option<Bus>,
    host_accesses: HostAccesses,
    received: Received,
    /// Where and when each CPU last read its event register.
    polls: [(u32, u64); Cpu::MOST],
    /// No skip is tried before this cycle.
    skip_from: u64,
    /// What the event register of a CPU read that is brought forward.
    past: Option<u32>,
    effects: Vec<Effect>,
    /// Who takes down what happens.
    recorder: Option<Box<Recorder>>,
    /// Which schedule is to be followed instead of the functional clock's own.
    disturbance: Option<Box<Disturbance>>,
    /// Who stops it between two instructions.
    probed: probe::Probed,
}

impl Machine {
    /// A card of a board after power-on: CPUs halted, memory zero, cable plugged.
    pub fn new(board: Board) -> Self {
        let mut machine = Machine {
            sram: SramBytes::new(board.memory.sram_bytes),
            cpus: Cpus::new(&board),
            host: HostMemories::default(),
            wire: Wire::default(),
            clock: Clock::new(board.clock.core_hz),
            timing: Timing,
            timed: None,
            unlimited: None,
            parked: [const { None }; Cpu::MOST],
            leads: Default::default(),
            instant: true,
            recheck: false,
            cuts_through: false,
            was_cut_through: false,
            least_left: None,
            transmitter_held: false,
            restarted: [false; Cpu::MOST],
            cycle: 0,
            ready: [0; Cpu::MOST],
            deadline: 0,
            changed: true,
            interrupt: false,
            shared_bus: None,
            host_accesses: HostAccesses::default(),
            received: Received::default(),
            polls: [(0, 0); Cpu::MOST],
            skip_from: 0,
            past: None,
            effects: Vec::new(),
            recorder: None,
            disturbance: None,
            probed: probe::Probed::default(),
            card: Card::new(board),
        };
        machine.card.device(&mut environment!(machine)).power_on();
        machine.settle();
        machine
    }

    /// The same under the cycle model: what takes time on the board takes as much here.
    /// `seed` decides what varies.
    pub fn timed(board: Board, parameters: Parameters, seed: u64) -> Self {
        let timed = Timed::new(parameters, &board, seed);
        let mut machine = Machine::new(board);
        machine.timed = Some(Box::new(timed));
        machine.instant = false;
        machine.settle();
        machine
    }

    /// The cycle model and what it has counted; `None` if time is not modelled.
    pub fn timing(&self) -> Option<&Timed> {
        self.timed.as_deref()
    }

    /// Cycles since power-on.
    pub fn cycle(&self) -> u64 {
        self.cycle
    }

    /// Nanoseconds since power-on.
    pub fn now(&self) -> u64 {
        self.clock.nanoseconds(self.cycle)
    }

    /// The clock.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// The card, for inspection.
    pub fn card(&self) -> Inspect<'_> {
        self.card.inspect()
    }

    /// Keeps what the card does from now on, for [`Machine::take_operations`].
    pub fn record_operations(&mut self) {
        self.card.record_operations();
    }

    /// What the card has done since this was last asked.
    pub fn take_operations(&mut self) -> Vec<Operation> {
        self.card.take_operations()
    }

    /// The CPUs.
    pub fn cpus(&self) -> &Cpus {
        &self.cpus
    }

    /// The SRAM.
    pub fn sram(&self) -> &SramBytes {
        &self.sram
    }

    /// Whether INTA# is asserted.
    pub fn interrupt(&self) -> bool {
        self.interrupt
    }

    /// The fault that halted a CPU and the instruction that met it, until the CPU is
    /// started again.
    pub fn fault(&self, cpu: Cpu) -> Option<(CpuFault, u32)> {
        self.card
            .inspect()
            .fault(cpu)
            .map(|fault| (fault, self.cpus.core(cpu).pc()))
    }

    /// Puts an image in NIC memory, as a host does through the memory window.
    pub fn load_image(&mut self, address: u32, bytes: &[u8]) {
        self.sram.copy_in(address, bytes);
    }

    /// Puts a program at the start of a CPU's scratch pad.
    pub(crate) fn load_scratch(&mut self, cpu: Cpu, words: &[u32]) {
        let core = self.cpus.core_mut(cpu);
        for (offset, word) in (0..).step_by(4).zip(words) {
            core.set_scratch_word(offset, *word);
        }
    }

    /// The word at an aligned NIC address.
    pub fn word(&self, address: u32) -> u32 {
        u32::from_be_bytes(self.sram.load(address & !3))
    }

    /// Puts a word at an aligned NIC address, as somebody beside the card would.
    pub fn set_word(&mut self, address: u32, word: u32) {
        self.sram.copy_in(address & !3, &word.to_be_bytes());
    }

    /// The host reads a word of BAR 0.
    pub fn bar_read(&mut self, offset: u32) -> u32 {
        self.host_accesses.reads += 1;
        if let Some(timed) = self.timed.take() {
            self.follow_received(&timed);
            self.timed = Some(timed);
        }
        let value = self.card.device(&mut environment!(self)).bar_read(offset);
        self.settle();
        value
    }

    /// The host writes a word of BAR 0.
    pub fn bar_write(&mut self, offset: u32, value: u32) {
        self.host_accesses.writes += 1;
        self.card
            .device(&mut environment!(self))
            .bar_write(offset, value);
        self.note_host_write(offset, value);
        self.settle();
    }

    /// Reads a register as a CPU does, in no time.
    pub fn register_read(&mut self, cpu: Cpu, register: Register) -> u32 {
        let offset = register.offset();
        self.card
            .device(&mut environment!(self))
            .cpu_read(cpu, offset)
    }

    /// Writes a register as a CPU does, in no time.
    pub fn register_write(&mut self, cpu: Cpu, register: Register, value: u32) {
        let offset = register.offset();
        self.card
            .device(&mut environment!(self))
            .cpu_write(cpu, offset, value);
        self.settle();
    }

    /// The host reads configuration space.
    pub fn config_read(&self, offset: usize, out: &mut [u8]) {
        self.card.inspect().config_read(offset, out);
    }

    /// The host writes configuration space.
    pub fn config_write(&mut self, offset: usize, data: &[u8]) {
        self.card
            .device(&mut environment!(self))
            .config_write(offset, data);
        self.settle();
    }

    /// Power-on again, as a reset of the PCI function: everything but the EEPROM, the
    /// mapped host memory and the wire starts anew; time goes on.
    pub fn reset(&mut self) {
        for cpu in self.cpus.all() {
            self.cpus.core_mut(*cpu).halt();
        }
        self.card.device(&mut environment!(self)).power_on();
        self.settle();
    }

    /// Puts code into the boot memory: CPU A runs it from the next reset on.
    ///
    /// # Errors
    /// When it does not fit.
    pub fn set_boot_code(&mut self, code: &[u8]) -> Result<(), BootCodeTooLarge> {
        self.card.set_boot_code(code)
    }

    /// The serial EEPROM, to load or change its contents.
    pub fn eeprom_mut(&mut self) -> &mut Eeprom {
        self.card.eeprom_mut()
    }

    /// Lets the card reach a piece of host memory.
    pub fn map(&mut self, memory: DmaMemory) {
        self.host.map(memory);
    }

    /// Takes a piece of host memory away from the card.
    pub fn unmap(&mut self, memory: &DmaMemory) {
        self.host.unmap(memory.iova());
    }

    /// Takes all host memory away from the card.
    pub fn unmap_all(&mut self) {
        self.host.unmap_all();
    }

    /// Writes the card's MAC address to its EEPROM.
    pub fn set_mac_address(&mut self, address: [u8; 6]) {
        self.card.set_mac_address(address);
    }

    /// Plugs the cable in or pulls it out.
    pub fn set_cable(&mut self, plugged: bool) {
        self.card.set_cable(&mut environment!(self), plugged);
        self.settle();
    }

    /// Puts another partner at the end of the cable.
    pub fn set_partner(&mut self, partner: Partner) {
        self.card.set_partner(&mut environment!(self), partner);
        self.settle();
    }

    /// Asks for faults of the wire: damaged frames, collisions.
    pub fn inject(&mut self, fault: Fault) {
        self.card.inject(fault);
    }

    /// Puts a frame without CRC on the wire towards the card, `at` nanoseconds since
    /// power-on at the earliest. Returns when it will have arrived.
    pub fn send_frame(&mut self, at: u64, frame: Vec<u8>) -> u64 {
        self.send_damaged_frame(at, frame, RxError::NONE)
    }

    /// The same of a frame that arrives with receive errors.
    pub fn send_damaged_frame(&mut self, at: u64, frame: Vec<u8>, error: RxError) -> u64 {
        self.wire
            .set_speed(self.card.inspect().link_megabits(self.now()));
        let arrival = self.wire.send_damaged(at.max(self.now()), frame, error);
        // An idle receiver has looked at an empty wire and sleeps.
        self.recheck = true;
        self.plan();
        arrival
    }

    /// Whether a frame is leaving.
    pub(crate) fn is_sending(&self) -> bool {
        self.card.inspect().is_sending()
    }

    /// Lets the transmitter begin frames, or not: one that has begun goes on.
    pub(crate) fn hold_transmitter(&mut self, held: bool) {
        self.transmitter_held = held;
        self.recheck = true;
        self.settle();
    }

    /// The oldest frame from the card that has not been taken yet.
    pub fn take_frame(&mut self) -> Option<Frame> {
        self.wire.receive()
    }

    /// Frames from the card that have not been taken yet.
    pub fn outgoing_frames(&self) -> usize {
        self.wire.outgoing()
    }

    /// Frames that are on their way to the card or held by the wire.
    pub fn pending_frames(&self) -> usize {
        self.wire.pending()
    }

    /// Nanoseconds for which the frames towards the card were held, in all.
    pub fn held_back(&self) -> u64 {
        self.wire.late()
    }

    /// Frames that had to wait on the wire for room in the card.
    pub fn refused_frames(&self) -> u64 {
        self.wire.refused()
    }

    /// How often the card has reached for host memory that is not mapped.
    pub fn refused_accesses(&mut self) -> u64 {
        self.host_devices().refused()
    }

    /// What became of the frames that arrived so far.
    pub fn received(&self) -> Received {
        self.received
    }

    /// Lets `peer` have the card's frames instead of [`Machine::take_frame`].
    pub fn set_peer(&mut self, peer: Option<Peer>) {
        self.wire.set_peer(peer);
    }
}
