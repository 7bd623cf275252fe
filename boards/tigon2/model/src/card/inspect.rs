//! Observing a card: everything that can be read without changing it.
//!
//! Tests, reports and monitors read registers, log and EEPROM; engines read events, deadlines and
//! what the DMA channels and the transmitter are about to do.

use super::{Card, DmaWork};
use crate::board::Board;
use crate::cpu::CpuFault;
use crate::dma::{Direction, Transfer};
use crate::eeprom::Eeprom;
use crate::environment::Sram;
use crate::memory::SramMap;
use crate::partner::Partner;
use crate::undefined::UndefinedLog;
use tigon2_chip::Cpu;
use tigon2_chip::phy::PhyMode;

/// A read-only view of the card: [`Card::inspect`].
#[derive(Clone, Copy, Debug)]
pub struct Inspect<'a> {
    card: &'a Card,
}

impl<'a> Inspect<'a> {
    pub(super) fn new(card: &'a Card) -> Inspect<'a> {
        Inspect { card }
    }

    /// The board of this card.
    pub fn board(self) -> &'a Board {
        &self.card.board
    }

    /// The fault that halted a CPU, until it is started again.
    pub fn fault(self, cpu: Cpu) -> Option<CpuFault> {
        self.card.cpus[cpu.index()].fault()
    }

    /// Whether a CPU is halted.
    pub fn halted(self, cpu: Cpu) -> bool {
        self.card.cpus[cpu.index()].halted()
    }

    /// Undefined accesses since power-on.
    pub fn undefined(self) -> &'a UndefinedLog {
        &self.card.undefined
    }

    /// The level of INTA#.
    pub fn interrupt_level(self) -> bool {
        self.card.interrupt.level()
    }

    /// The physical SRAM address that a CPU reaches at `address` (SRAM, alias or spill
    /// window), `None` if there is no SRAM.
    pub fn sram_address(self, cpu: Cpu, address: u32) -> Option<u32> {
        self.card.map.decode(address, self.card.spill_base(cpu))
    }

    /// The serial EEPROM.
    pub fn eeprom(self) -> &'a Eeprom {
        &self.card.eeprom
    }

    /// The link partner.
    pub fn partner(self) -> Partner {
        self.card.link.partner()
    }

    /// Whether frames pass between card and wire.
    pub fn carries_frames(self, now: u64) -> bool {
        self.card.link.carries_frames(now)
    }

    /// The mode of a copper link that is up; `None` on fibre.
    pub fn copper_mode(self, now: u64) -> Option<PhyMode> {
        self.card.link.copper_mode(now)
    }

    /// The event register of a CPU, without side effect: `R[60]`, `R[70]` (5), or one of
    /// [those beyond](tigon2_chip::beyond).
    #[inline]
    pub fn events(self, now: u64, cpu: Cpu) -> u32 {
        self.card.events(now, cpu)
    }

    /// How many timer references of a CPU (`R[58]`, `R[78]`) were reached already when they were
    /// written: silicon may compare for equality, so firmware writes none (7).
    pub fn late_references(self, cpu: Cpu) -> u64 {
        self.card.timers.late_references(cpu)
    }

    /// How often TxPrd or RxCon has moved back since the last reset, while the MAC was enabled (10.2):
    /// the MAC would send, or write over, what it must not.
    pub fn moved_back(self) -> u64 {
        self.card.mac.moved_back()
    }

    /// Base of a CPU's spill window: `R[150]` or `R[250]`, in steps of 4 KB.
    pub fn spill_base(self, cpu: Cpu) -> u32 {
        self.card.spill_base(cpu)
    }

    /// Speed of the wire in Mb/s: 10, 100 or 1000. Without a link it is 1000.
    #[inline]
    pub fn link_megabits(self, now: u64) -> u32 {
        self.card.link_megabits(now)
    }

    /// The next time after `now` at which something changes by itself: an event register, or held
    /// work that may continue.
    #[inline]
    pub fn next_deadline(self, now: u64) -> Option<u64> {
        self.card.next_deadline(now)
    }

    /// The next time after `now` at which the event register of a CPU changes by itself.
    #[inline]
    pub fn event_deadline(self, now: u64, cpu: Cpu) -> Option<u64> {
        self.card.event_deadline(now, cpu)
    }

    /// The next time after `now` at which held work may continue.
    #[inline]
    pub fn work_deadline(self, now: u64) -> Option<u64> {
        self.card.work_deadline(now)
    }

    /// What [`dma_begin`](super::Stages::dma_begin) would begin now.
    #[inline]
    pub fn dma_work(self, direction: Direction) -> DmaWork {
        self.card.dma_work(direction)
    }

    /// The transfer that a channel has begun but not completed.
    #[inline]
    pub fn dma_transfer(self, direction: Direction) -> Option<Transfer> {
        self.card.dma_transfer(direction)
    }

    /// How many transfers a channel has begun since the card was created. It distinguishes the
    /// current transfer from an equal one that begins later.
    #[inline]
    pub fn dma_begun(self, direction: Direction) -> u64 {
        self.card.dma_begun(direction)
    }

    /// The current bytes of the transfer to the host that the write channel has begun.
    #[inline]
    pub fn dma_bytes(self, sram: &dyn Sram) -> Option<Vec<u8>> {
        self.card.dma_bytes(sram)
    }

    /// Whether the read channel is bringing bytes of the frame that is being sent.
    #[inline]
    pub fn cuts_through(self) -> bool {
        self.card.cuts_through()
    }

    /// The frame that is being sent to the other end of the wire, as far as it is known: none in
    /// loopback or without a link.
    #[inline]
    pub fn sending(self, now: u64) -> Option<&'a [u8]> {
        self.card.sending(now)
    }

    /// Whether a frame is being sent.
    #[inline]
    pub fn is_sending(self) -> bool {
        self.card.is_sending()
    }

    /// Whether a frame is arriving, as its engine has said.
    #[inline]
    pub fn is_receiving(self) -> bool {
        self.card.is_receiving()
    }

    /// Whether the partner may send. A card that sends pause frames (`R[200]` bit 8) silences a
    /// partner that supports pause while the receiver is stopped or nearly full; otherwise the card
    /// accepts frames while it has room and drops the rest.
    #[inline]
    pub fn can_receive(self) -> bool {
        self.card.can_receive()
    }

    /// Frames that the engine's wire accepts, see [`set_wire_room`](Card::set_wire_room).
    #[inline]
    pub fn wire_room(self) -> Option<u32> {
        self.card.wire_room()
    }

    /// Whether [`drain_effects`](Card::drain_effects) would return anything.
    #[inline]
    pub fn has_effects(self) -> bool {
        self.card.has_effects()
    }

    /// The mapping of NIC addresses to installed SRAM.
    #[inline]
    pub fn sram_map(self) -> SramMap {
        self.card.sram_map()
    }

    /// Reads configuration space; `interrupt status` is live, and bytes after the first 256 read as
    /// ones.
    #[inline]
    pub fn config_read(self, offset: usize, out: &mut [u8]) {
        self.card.config_read(offset, out);
    }
}
