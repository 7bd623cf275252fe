//! Counters, and the statistics block for the host.
//!
//! Each side counts for itself, and each word has one writer. What is counted for each frame
//! is kept in the scratch pad and copied to NIC memory each hundredth of a second; what is rare is
//! counted by CPU A in NIC memory at once. The `block` goes to the host by command and at
//! intervals; for a command CPU B copies its part first.

mod block;

pub use block::{clear, clear_profile, describe, link_changed, update, write_to};

use crate::drops::{Drops, RECEIVE, SEND};
use crate::events::{COUNTED_A, COUNTED_B};
use crate::layout::{DROP_COUNTS, HANDLER_COUNTS, STATISTICS};
use crate::{SideA, SideB, trace};
use core::mem::offset_of;
use host_interface::bd::destination;
use host_interface::extension::{Drop, Extension, HANDLER_COUNT};
use host_interface::statistics::{Counter64, Statistics};
use host_interface::trace::Topic;
use tigon2_hal::Bus;
use tigon2_hal::events::Dispatch;

const ZERO: Counter64 = Counter64::new(0);

/// Counts one more in a word of the block, named by its field.
macro_rules! count {
    ($a:expr, $field:ident) => {
        $crate::statistics::add(
            &mut $a.bus,
            core::mem::offset_of!(host_interface::statistics::Statistics, $field),
        )
    };
}
pub(crate) use count;

/// Counts one more in the word at a byte offset of the block.
pub fn add<B: Bus>(bus: &mut B, offset: usize) {
    let address = STATISTICS + offset as u32;
    let value = bus.load(address).wrapping_add(1);
    bus.store(address, value);
}

/// Sets the word at a byte offset of the block.
fn set<B: Bus>(bus: &mut B, offset: usize, value: u32) {
    bus.store(STATISTICS + offset as u32, value);
}

fn set64<B: Bus>(bus: &mut B, offset: usize, value: Counter64) {
    set(bus, offset, value.high);
    set(bus, offset + 4, value.low);
}

/// Frames by destination: unicast, multicast, broadcast.
#[derive(Clone, Copy, Debug)]
struct ByDestination([Counter64; 3]);

impl ByDestination {
    #[inline(always)]
    fn add(&mut self, destination: u8, frames: u32) {
        let [unicast, multicast, broadcast] = &mut self.0;
        match destination {
            destination::BROADCAST => broadcast.add(frames),
            destination::MULTICAST => multicast.add(frames),
            _ => unicast.add(frames),
        }
    }

    fn subtract(&mut self, destination: u8) {
        let [unicast, multicast, broadcast] = &mut self.0;
        match destination {
            destination::BROADCAST => broadcast.subtract(1),
            destination::MULTICAST => multicast.subtract(1),
            _ => unicast.subtract(1),
        }
    }
}

/// What is counted on CPU A's side.
#[derive(Debug)]
pub struct CountersA {
    /// Bytes received, without CRC.
    in_octets: Counter64,
    received: ByDestination,
    /// Frames dropped.
    pub drops: Drops,
    /// Index updates of the return ring.
    pub return_updates: u32,
    /// Interrupts raised.
    pub interrupts: u32,
    /// Interrupts not raised.
    pub avoided: u32,
}

impl CountersA {
    /// All zero.
    pub const fn new() -> CountersA {
        CountersA {
            in_octets: ZERO,
            received: ByDestination([ZERO; 3]),
            drops: Drops::new(),
            return_updates: 0,
            interrupts: 0,
            avoided: 0,
        }
    }

    /// Frames with this destination were received, of so many bytes together.
    #[inline(always)]
    pub fn received(&mut self, destination: u8, frames: u32, bytes: u32) {
        self.in_octets.add(bytes);
        self.received.add(destination, frames);
    }
}

impl Default for CountersA {
    fn default() -> CountersA {
        CountersA::new()
    }
}

/// What is counted on CPU B's side.
#[derive(Debug)]
pub struct CountersB {
    /// Bytes sent, without CRC.
    pub out_octets: Counter64,
    sent: ByDestination,
    /// Frames dropped.
    pub drops: Drops,
    /// Index updates of the send ring.
    pub updates: u32,
    /// Moves of the host's send producer.
    pub producer_updates: u32,
    /// Updates because the number of BDs was reached.
    pub threshold_hits: u32,
    /// Frames that found the transmit buffer full, each time.
    pub buffer_retries: u32,
    /// Frames that found the MAC's ring full.
    pub mac_ring_full: u32,
    /// Transfers that found no read descriptor.
    pub read_ring_full: u32,
    /// Errors of the read channel.
    pub read_aborts: u32,
}

impl CountersB {
    /// All zero.
    pub const fn new() -> CountersB {
        CountersB {
            out_octets: ZERO,
            sent: ByDestination([ZERO; 3]),
            drops: Drops::new(),
            updates: 0,
            producer_updates: 0,
            threshold_hits: 0,
            buffer_retries: 0,
            mac_ring_full: 0,
            read_ring_full: 0,
            read_aborts: 0,
        }
    }

    /// Frames with this destination were sent.
    #[inline(always)]
    pub fn out(&mut self, destination: u8, frames: u32) {
        self.sent.add(destination, frames);
    }

    /// A frame that was counted as sent was not.
    pub fn not_out(&mut self, destination: u8) {
        self.sent.subtract(destination);
    }
}

impl Default for CountersB {
    fn default() -> CountersB {
        CountersB::new()
    }
}

/// Copies what CPU A keeps in its scratch pad to NIC memory, where the host can read it.
#[inline(never)]
pub fn publish_a<B: Dispatch>(a: &mut SideA<B>) {
    let SideA {
        bus,
        counts,
        counters,
        receive,
        ..
    } = a;
    publish_runs(bus, &COUNTED_A, counts);
    publish_drops(bus, counters.drops.of(RECEIVE));
    let idle = bus.core(|core| core.idle);
    bus.store(Extension::IdleA.nic_address(), idle);
    set64(bus, offset_of!(Statistics, in_octets), counters.in_octets);
    publish_frames(bus, offset_of!(Statistics, in_unicast), &counters.received);
    for (offset, value) in [
        (
            offset_of!(Statistics, return_producer_updates),
            counters.return_updates,
        ),
        (
            offset_of!(Statistics, receive_threshold_hits),
            receive.threshold_hits(),
        ),
        (offset_of!(Statistics, interrupts), counters.interrupts),
        (offset_of!(Statistics, avoided_interrupts), counters.avoided),
    ] {
        set(bus, offset, value);
    }
    // Good frames that were dropped; bad ones and what nobody subscribed to are others.
    let discards = counters
        .drops
        .of(RECEIVE)
        .fold(0, |sum: u32, (reason, count)| {
            let good = !matches!(
                reason,
                Drop::BadFrame | Drop::NotSubscribed | Drop::TooShort
            );
            if good { sum.wrapping_add(count) } else { sum }
        });
    set(bus, offset_of!(Statistics, in_discards), discards);
}

/// Copies what CPU B keeps in its scratch pad to NIC memory.
#[inline(never)]
pub fn publish_b<B: Dispatch>(b: &mut SideB<B>) {
    let send_bds = crate::send::bds_now(&b.send);
    let SideB {
        bus,
        counts,
        counters,
        ..
    } = b;
    publish_runs(bus, &COUNTED_B, counts);
    publish_drops(bus, counters.drops.of(SEND));
    let (idle, alone) = bus.core(|core| (core.idle, core.is_alone()));
    if !alone {
        bus.store(Extension::IdleB.nic_address(), idle);
    }
    set64(bus, offset_of!(Statistics, out_octets), counters.out_octets);
    publish_frames(bus, offset_of!(Statistics, out_unicast), &counters.sent);
    // Frames that were dropped because of what is wrong with them, and good ones.
    let mut sums = [0u32; 2];
    for (reason, count) in counters.drops.of(SEND) {
        let [errors, discards] = &mut sums;
        let sum = match reason {
            Drop::BadSendBd | Drop::SendTooLong | Drop::SendFault => errors,
            _ => discards,
        };
        *sum = sum.wrapping_add(count);
    }
    let [errors, discards] = sums;
    let values = [
        counters.updates,
        counters.producer_updates,
        counters.threshold_hits,
        counters.buffer_retries,
        counters.mac_ring_full,
        counters.read_ring_full,
        counters.read_aborts,
        send_bds,
        send_bds,
        errors,
        discards,
    ];
    for (offset, value) in WORDS_OF_B.into_iter().zip(values) {
        set(bus, offset, value);
    }
}

/// The words of the block that CPU B writes, besides the counters of frames and bytes.
const WORDS_OF_B: [usize; 11] = [
    offset_of!(Statistics, send_consumer_updates),
    offset_of!(Statistics, send_producer_updates),
    offset_of!(Statistics, send_threshold_hits),
    offset_of!(Statistics, transmit_buffer_retries),
    offset_of!(Statistics, mac_transmit_ring_full),
    offset_of!(Statistics, dma_read_ring_full),
    offset_of!(Statistics, dma_read_master_aborts),
    offset_of!(Statistics, send_bds),
    offset_of!(Statistics, total_send_bds),
    offset_of!(Statistics, out_errors),
    offset_of!(Statistics, out_discards),
];

/// Whether CPU B writes the word of the block at a byte offset.
fn is_of_b(offset: usize) -> bool {
    /// 64-bit counters: bytes, and frames of three kinds.
    const OCTETS: usize = offset_of!(Statistics, out_octets);
    const FRAMES: usize = offset_of!(Statistics, out_unicast);
    (OCTETS..OCTETS + 8).contains(&offset)
        || (FRAMES..FRAMES + 24).contains(&offset)
        || WORDS_OF_B.contains(&offset)
}

/// CPU B counts from zero on.
pub fn clear_b<B: Dispatch>(b: &mut SideB<B>) {
    b.counters = CountersB::new();
    for (reason, _) in b.counters.drops.of(SEND) {
        b.bus.store(DROP_COUNTS + (reason.number() << 2), 0);
    }
    publish_b(b);
}

/// How often the handlers of a side ran.
fn publish_runs<B: Bus>(bus: &mut B, side: &[u8], counts: &[u32; HANDLER_COUNT]) {
    for index in side {
        if let Some(count) = counts.get(usize::from(*index)) {
            bus.store(HANDLER_COUNTS + (u32::from(*index) << 2), *count);
        }
    }
}

/// Frames that one side dropped; what is new is traced.
fn publish_drops<B: Dispatch>(bus: &mut B, drops: impl Iterator<Item = (Drop, u32)>) {
    for (reason, count) in drops {
        let address = DROP_COUNTS + (reason.number() << 2);
        let before = bus.load(address);
        if count != before {
            bus.store(address, count);
            let arguments = [before, count, 0, 0];
            trace::record(bus, Topic::Drop, reason.number(), arguments);
        }
    }
}

fn publish_frames<B: Bus>(bus: &mut B, offset: usize, frames: &ByDestination) {
    for (offset, value) in (offset..).step_by(8).zip(frames.0) {
        set64(bus, offset, value);
    }
}
