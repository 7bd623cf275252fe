//! The return ring: the return BDs of several frames in one transfer.
//!
//! The firmware builds them in a ring in NIC memory beside the host's ring, so that those of
//! consecutive frames are contiguous in both:
//!
//! ```text
//!                   queued      producer
//!                     v            v
//! host's ring   ...+==+============+--------      entries
//! slots         ...+==+============+--------      modulo 128
//!   on their way or    | data is    |
//!   there              | queued     |
//! ```
//!
//! A slot is free again when its BD has been moved, and 128 slots are enough. A BD that was not
//! moved either follows the data of its frame in the descriptor ring, which has 64 entries, or
//! that data is done. In the latter case it is among the BD transfers that follow the data of one
//! run, or it waits for such a transfer; neither group exceeds `MANY` plus the frames of a run,
//! `FRAMES`. Frames without data are queued by themselves.

use super::frame::FRAMES;
use crate::io::IoA;
use crate::io::note::WriteNote;
use crate::memory::config::Config;
use crate::memory::layout::RETURN_SLOTS;
use crate::memory::region::ReturnBds;
use host_interface::gencom::Gencom;
use host_interface::ring::return_entries;
use tigon2_hal::Bus;
use tigon2_hal::assist::{HostAddress, Transfer};
use tigon2_hal::events::Dispatch;

/// Transfers for the return BDs of a run and of those that waited: each moves [`MANY`], except the
/// last one and another one where the slots wrap.
pub(super) const TRANSFERS: u32 = (FRAMES + MANY - 1).div_ceil(MANY) + 1;

/// The most return BDs of one transfer. Fewer wait for more, as long as they are not
/// [reported](super::index): the host reads none before.
pub(super) const MANY: u32 = 8;
// See above: slots for the descriptor ring, for one run, and for BDs that wait.
const _: () = assert!(64 + FRAMES + MANY <= RETURN_SLOTS);

/// Byte offset of the slot for an entry of the host's ring.
#[inline(always)]
const fn offset(entry: u32) -> u32 {
    (entry & (RETURN_SLOTS - 1)) << 5
}

/// The host's return ring, and the slots of its BDs.
#[derive(Debug)]
pub struct ReturnQueue {
    /// The ring in host memory.
    host: HostAddress,
    /// Its entries minus one.
    mask: u32,
    /// The next entry.
    producer: u32,
    /// The next entry whose BD is not queued.
    queued: u32,
    /// The host's consumer index when it was last read.
    consumer: u32,
    /// Whether the host has ever written that word.
    consumer_is_told: bool,
    /// Where return BDs are made.
    slots: u32,
}

impl ReturnQueue {
    /// Nothing configured; the slots lie in a region.
    pub const fn new(region: ReturnBds) -> ReturnQueue {
        ReturnQueue {
            host: HostAddress::NULL,
            mask: 0,
            producer: 0,
            queued: 0,
            consumer: 0,
            consumer_is_told: false,
            slots: region.address(),
        }
    }

    /// Takes the configuration.
    pub fn configure<B: Bus>(&mut self, bus: &mut B, config: &Config) {
        self.host = config.receive_return.address;
        let entries = return_entries(config.receive_return.max_len as u16).unwrap_or(1);
        self.mask = entries - 1;
        self.clear_slots(bus);
    }

    /// Clears the words that are not written for each frame.
    #[inline(never)]
    pub fn clear_slots<B: Bus>(&self, bus: &mut B) {
        for word in (0..RETURN_SLOTS * 32).step_by(4) {
            bus.store(self.slots + word, 0);
        }
    }

    /// The next entry.
    #[inline(always)]
    pub const fn producer(&self) -> u32 {
        self.producer
    }

    /// NIC address at which the next return BD is made.
    #[inline(always)]
    pub const fn slot(&self) -> u32 {
        self.slot_of(self.producer)
    }

    #[inline(always)]
    const fn slot_of(&self, entry: u32) -> u32 {
        self.slots + offset(entry)
    }

    /// Records that a return BD was built.
    #[inline(always)]
    pub const fn made(&mut self) {
        self.producer = (self.producer + 1) & self.mask;
    }

    /// Begins to build several.
    #[inline(always)]
    pub const fn open(&self) -> Made {
        Made {
            slots: self.slots,
            mask: self.mask,
            producer: self.producer,
        }
    }

    /// Records that they were built.
    #[inline(always)]
    pub const fn close(&mut self, made: Made) {
        self.producer = made.producer;
    }

    /// Free entries by the host's consumer index when it was last read.
    #[inline(always)]
    pub const fn known_room(&self) -> u32 {
        self.consumer.wrapping_sub(self.producer + 1) & self.mask
    }

    /// Whether the host has not read the entry after the next one. Reads the host's consumer index
    /// only if it had not at the last look.
    #[inline(always)]
    pub fn is_full<B: Bus>(&mut self, bus: &mut B) -> bool {
        let after = (self.producer + 1) & self.mask;
        if after != self.consumer {
            return false;
        }
        let consumer = bus.load(Gencom::ReceiveReturnConsumer.nic_address());
        self.consumer = consumer & self.mask;
        // Linux never reports how far it has read, and need not: it returns a buffer only after its
        // return BD, and there are fewer buffers than entries.
        self.consumer_is_told |= consumer != 0;
        after == self.consumer && self.consumer_is_told
    }

    /// Return BDs that are built but not queued.
    #[inline(always)]
    pub(super) fn waiting(&self) -> u32 {
        self.producer.wrapping_sub(self.queued) & self.mask
    }

    /// The transfer of some of them, up to the end of the slots, which is the end of the host's
    /// ring as well.
    #[inline(always)]
    fn next_run(&mut self, state: u32) -> Transfer {
        let first = self.queued;
        let to_end = RETURN_SLOTS - (first & (RETURN_SLOTS - 1));
        let count = self.waiting().min(to_end).min(MANY);
        self.queued = (first + count) & self.mask;
        Transfer {
            host: self.host.plus(first << 5),
            local: self.slot_of(first),
            length: count << 5,
            state,
            note: WriteNote::QUIET.word(),
        }
    }
}

/// Consecutive return BDs under construction; kept in registers.
#[derive(Clone, Copy, Debug)]
pub struct Made {
    slots: u32,
    mask: u32,
    producer: u32,
}

impl Made {
    /// Nowhere.
    pub const NONE: Made = Made {
        slots: 0,
        mask: 0,
        producer: 0,
    };

    /// NIC address of the next slot.
    #[inline(always)]
    pub const fn slot(&self) -> u32 {
        self.slots + offset(self.producer)
    }

    /// The index behind the next slot.
    #[inline(always)]
    pub const fn after(&self) -> u32 {
        (self.producer + 1) & self.mask
    }

    /// Advances to that index.
    #[inline(always)]
    pub const fn set(&mut self, producer: u32) {
        self.producer = producer;
    }
}

/// Queues the return BDs of the frames whose data is queued, until fewer than `enough` are left.
/// There is room for [`TRANSFERS`].
#[inline(always)]
pub(super) fn queue<B: Dispatch>(returns: &mut ReturnQueue, io: &mut IoA<B>, enough: u32) {
    while returns.waiting() >= enough {
        run(returns, io);
    }
}

#[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_a.text"))]
#[inline(never)]
fn run<B: Dispatch>(returns: &mut ReturnQueue, io: &mut IoA<B>) {
    let transfer = returns.next_run(io.states.words);
    io.write_ring.put(&mut io.bus, &transfer);
}
