//! Observing a card: read-only access for tests, reports and monitors.

use super::Card;
use crate::board::Board;
use crate::cpu::CpuFault;
use crate::eeprom::Eeprom;
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

    /// The event register of a CPU: see [`Card::events`].
    pub fn events(self, now: u64, cpu: Cpu) -> u32 {
        self.card.events(now, cpu)
    }

    /// Base of a CPU's spill window: `R[150]` or `R[250]`, in steps of 4 KB.
    pub fn spill_base(self, cpu: Cpu) -> u32 {
        self.card.spill_base(cpu)
    }

    /// Speed of the wire in Mb/s: see [`Card::link_megabits`].
    pub fn link_megabits(self, now: u64) -> u32 {
        self.card.link_megabits(now)
    }
}
