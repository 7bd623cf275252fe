//! Counters, and the statistics block for the host.
//!
//! What is counted for each frame is kept in the scratch pad and copied to NIC memory
//! each millisecond; what is rare is counted in NIC memory at once. The [`block`] goes to
//! the host by command and at intervals.

mod block;

pub use block::{clear, clear_profile, describe, link_changed, update, write_to};

use crate::layout::{DROP_COUNTS, HANDLER_COUNTS, STATISTICS};
use crate::{Firmware, trace};
use core::mem::offset_of;
use host_interface::bd::destination;
use host_interface::extension::{DROP_COUNT, Drop, Extension};
use host_interface::statistics::{Counter64, Statistics};
use host_interface::trace::Topic;
use tigon2_hal::Bus;

/// Counts one more in a word of the block, named by its field.
macro_rules! count {
    ($firmware:expr, $field:ident) => {
        $crate::statistics::add(
            &mut $firmware.bus,
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
    fn add(&mut self, destination: u8) {
        let [unicast, multicast, broadcast] = &mut self.0;
        match destination {
            destination::BROADCAST => broadcast.add(1),
            destination::MULTICAST => multicast.add(1),
            _ => unicast.add(1),
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

/// What is counted for each frame.
#[derive(Debug)]
pub struct Counters {
    /// Bytes received, without CRC.
    pub in_octets: Counter64,
    /// Bytes sent, without CRC.
    pub out_octets: Counter64,
    received: ByDestination,
    sent: ByDestination,
    /// Frames dropped, in the order of the reasons.
    pub drops: [u32; DROP_COUNT],
    /// Index updates of the send ring.
    pub send_updates: u32,
    /// Index updates of the return ring.
    pub return_updates: u32,
    /// Interrupts raised.
    pub interrupts: u32,
    /// Interrupts not raised.
    pub avoided: u32,
}

impl Counters {
    /// All zero.
    pub const fn new() -> Counters {
        const ZERO: Counter64 = Counter64::new(0);
        Counters {
            in_octets: ZERO,
            out_octets: ZERO,
            received: ByDestination([ZERO; 3]),
            sent: ByDestination([ZERO; 3]),
            drops: [0; DROP_COUNT],
            send_updates: 0,
            return_updates: 0,
            interrupts: 0,
            avoided: 0,
        }
    }

    /// A frame was received.
    #[inline(always)]
    pub fn received(&mut self, destination: u8, bytes: u32) {
        self.in_octets.add(bytes);
        self.received.add(destination);
    }

    /// A frame was sent.
    #[inline(always)]
    pub fn out(&mut self, destination: u8) {
        self.sent.add(destination);
    }

    /// A frame that was counted as sent was not.
    pub fn not_out(&mut self, destination: u8) {
        self.sent.subtract(destination);
    }
}

impl Default for Counters {
    fn default() -> Counters {
        Counters::new()
    }
}

/// Copies what is kept in the scratch pad to NIC memory, where the host can read it.
#[inline(never)]
pub fn publish<B: Bus>(firmware: &mut Firmware<B>) {
    let Firmware {
        bus,
        counts,
        counters,
        idle,
        receive,
        ..
    } = firmware;
    for (address, count) in (HANDLER_COUNTS..).step_by(4).zip(counts.iter()) {
        bus.store(address, *count);
    }
    for (reason, count) in (0..).zip(counters.drops.iter()) {
        let address = DROP_COUNTS + (reason << 2);
        let before = bus.load(address);
        if *count != before {
            bus.store(address, *count);
            trace::record(bus, Topic::Drop, reason, [before, *count, 0, 0]);
        }
    }
    bus.store(Extension::IdleA.nic_address(), *idle);
    set64(bus, offset_of!(Statistics, in_octets), counters.in_octets);
    set64(bus, offset_of!(Statistics, out_octets), counters.out_octets);
    for (offset, value) in (offset_of!(Statistics, in_unicast)..)
        .step_by(8)
        .zip(counters.received.0)
    {
        set64(bus, offset, value);
    }
    for (offset, value) in (offset_of!(Statistics, out_unicast)..)
        .step_by(8)
        .zip(counters.sent.0)
    {
        set64(bus, offset, value);
    }
    set(
        bus,
        offset_of!(Statistics, send_consumer_updates),
        counters.send_updates,
    );
    set(
        bus,
        offset_of!(Statistics, return_producer_updates),
        counters.return_updates,
    );
    set(
        bus,
        offset_of!(Statistics, receive_threshold_hits),
        receive.threshold_hits(),
    );
    set(bus, offset_of!(Statistics, interrupts), counters.interrupts);
    set(
        bus,
        offset_of!(Statistics, avoided_interrupts),
        counters.avoided,
    );
    // Good frames that were dropped, and bad ones; what nobody subscribed to is neither.
    let mut sums = [0u32; 3];
    for (reason, count) in counters.drops.iter().enumerate() {
        let [in_discards, out_discards, out_errors] = &mut sums;
        let sum = match Drop::from_number(reason as u32) {
            Some(Drop::BadFrame | Drop::NotSubscribed | Drop::TooShort) | None => continue,
            Some(Drop::BadSendBd | Drop::SendTooLong | Drop::SendFault) => out_errors,
            Some(reason) if reason.is_send() => out_discards,
            Some(_) => in_discards,
        };
        *sum = sum.wrapping_add(*count);
    }
    let [in_discards, out_discards, out_errors] = sums;
    set(bus, offset_of!(Statistics, in_discards), in_discards);
    set(bus, offset_of!(Statistics, out_discards), out_discards);
    set(bus, offset_of!(Statistics, out_errors), out_errors);
}
