//! DMA rings that other CPUs fill: what CPU A and CPU B ask these to queue for them.
//!
//! On a board beyond the chip the CPUs behind CPU B fill the descriptor rings with the data
//! of frames ([`tigon2_chip::beyond`], docs/beyond.md). What CPU A and CPU B have to move,
//! an index or some BDs, they leave in a ring of requests of the same form in SRAM; whose
//! turn it is at the channel copies them over:
//!
//! ```text
//! CPU A, CPU B --put--> requests ..#### --copy, in their turn--> descriptor ring
//!                            TAKEN^   ^PRODUCED     PLACED[n]: the how manieth descriptor
//! ```
//!
//! Descriptors are counted from the start on. COMMITTED of them the channel may see; how
//! many it has moved follows from that and its consumer register, since the ring holds 64.
//! Each word has one writer at a time: PRODUCED its CPU, the others who has the turn.

use crate::Bus;
use tigon2_chip::beyond;
use tigon2_chip::events::SOFTWARE_BITS;
use tigon2_chip::memory::REGISTERS_BASE;
use tigon2_chip::{Cpu, Register};

/// Where all this is in SRAM: between image and tables.
pub const BASE: u32 = 0x1_8000;
/// Bytes of a direction.
const BYTES: u32 = 0x1000;
/// Descriptors of a ring.
const ENTRIES: u32 = 64;

/// The words of one direction, by the address of the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words(u32);

impl Words {
    /// Host to NIC.
    pub const READ: Words = Words(BASE);
    /// NIC to host.
    pub const WRITE: Words = Words(BASE + BYTES);

    /// Offset behind the last request.
    pub const fn produced(self) -> u32 {
        self.0
    }
    /// Offset behind the last request that was copied.
    pub const fn taken(self) -> u32 {
        self.0 + 4
    }
    /// Descriptors that the channel may see, from the start on.
    pub const fn committed(self) -> u32 {
        self.0 + 8
    }
    /// The number of the CPU whose turn it is.
    pub const fn turn(self) -> u32 {
        self.0 + 12
    }
    /// Further words of who has the turn.
    pub const fn state(self) -> u32 {
        self.0 + 0x20
    }
    /// Where the descriptor of the request at an offset is, in descriptors from the start.
    pub const fn placed(self, offset: u32) -> u32 {
        self.0 + 0x100 + (offset >> 3)
    }
    /// The requests.
    pub const fn ring(self) -> u32 {
        self.0 + 0x800
    }
    /// All words, for who clears them.
    pub fn all(self) -> impl Iterator<Item = u32> {
        (self.0..self.0 + BYTES).step_by(4)
    }

    /// Has the CPU whose turn it is look. The load orders what was stored before.
    #[inline(always)]
    pub fn wake<B: Bus>(self, bus: &mut B) {
        let cpu = bus.load(self.turn());
        let first = REGISTERS_BASE + beyond::event(Cpu::C) - (Cpu::C as u32) * 16;
        bus.store(first + (cpu << 4), SOFTWARE_BITS);
    }

    /// How many descriptors the channel has moved, from the start on: at least.
    #[inline(always)]
    pub fn moved<B: Bus>(self, bus: &mut B, consumer: Register) -> u32 {
        // In this order: a newer consumer makes it fewer, never more.
        let committed = bus.load(self.committed());
        let consumer = bus.read(consumer) >> 5;
        committed.wrapping_sub(committed.wrapping_sub(consumer) & (ENTRIES - 1))
    }

    /// The offset behind the last request from `reference` on that is among `moved`.
    #[inline(always)]
    pub fn done<B: Bus>(self, bus: &mut B, reference: u32, moved: u32) -> u32 {
        let taken = bus.load(self.taken());
        let mut at = reference;
        while at != taken && moved.wrapping_sub(bus.load(self.placed(at))) as i32 > 0 {
            at = (at + 32) & (32 * ENTRIES - 1);
        }
        at
    }
}
