//! The receive path: wire to host.
//!
//! Hardware reference, section 14. A frame takes the next BD of the host's standard ring,
//! see [`BdRing`], and costs two transfers: its data, and the return BD behind it. The
//! return producer index follows by count or time.

use crate::Firmware;
use crate::bd_ring::{BdRing, OutOfRange};
use crate::dma::{read, write, write_words};
use crate::layout::STANDARD_BDS;
use crate::statistics::count;
use crate::{drops, filter, host_events, timer};
use host_interface::bd::{BdErrors, BdFlags};
use host_interface::event;
use host_interface::extension::Drop;
use host_interface::gencom::Gencom;
use host_interface::ring::{STANDARD_ENTRIES, return_entries};
use tigon2_chip::Register;
use tigon2_chip::events::EventBit;
use tigon2_chip::memory::{PACKET_MEMORY_END, block};
use tigon2_hal::Bus;
use tigon2_hal::assist::{HostAddress, Transfer};
use tigon2_hal::mac::{ReceiveRing, ReceivedFrame};

/// Bytes of the CRC, which the MAC leaves on the frame.
const CRC: u32 = 4;
/// Bytes of an Ethernet header.
const HEADER: u32 = 14;
const END: u32 = BdFlags::new().with_end(true).into_bits() as u32;
const ERROR: u32 = BdFlags::new().with_error(true).into_bits() as u32;
const TRUNCATED: u32 = BdErrors::new().with_truncated(true).into_bits() as u32;
/// Errors of the MAC that the host is not bothered with: short frames are complete all
/// the same, and vendor firmware ignores the flag (10.3).
const HARMLESS: u32 = BdErrors::new().with_runt(true).into_bits() as u32;

/// State of the receive side.
#[derive(Debug)]
pub struct Receive {
    /// The MAC's ring.
    ring: ReceiveRing,
    /// Start of the receive buffer.
    base: u32,
    /// The host's standard ring.
    standard: BdRing<5>,
    /// Longest frame that the ring takes, without CRC.
    ring_longest: u32,
    /// Longest frame that is accepted, without CRC.
    longest: u32,
    /// Bytes of a frame that are not handed on: the CRC, unless the host wants it.
    cut: u32,
    /// Whether the host wants bad frames too.
    bad_frames: bool,
    /// Whether the host's stack takes frames.
    stack_up: bool,
    /// Data transfers under way.
    in_flight: u32,
    /// Where the receive buffer is free up to once nothing is under way; 0: no matter.
    freed: u32,
    /// The host's return ring.
    returns: HostAddress,
    /// Its entries minus one.
    return_mask: u32,
    /// The next entry.
    return_producer: u32,
    /// The host's consumer index when it was last read.
    return_consumer: u32,
    /// Where the host wants the return producer index.
    index: HostAddress,
    /// What the host was told last.
    reported: u32,
    /// Return BDs since then.
    unreported: u32,
    /// Return BDs after which it is told; 0 for never.
    max_bds: u32,
    /// Microseconds after which it is told.
    ticks: u32,
}

impl Receive {
    /// Nothing configured.
    pub const fn new() -> Receive {
        const NONE: HostAddress = HostAddress { high: 0, low: 0 };
        Receive {
            ring: ReceiveRing::new(0),
            base: 0,
            standard: BdRing::new(NONE, STANDARD_BDS, STANDARD_ENTRIES),
            ring_longest: 0,
            longest: 0,
            cut: CRC,
            bad_frames: false,
            stack_up: false,
            in_flight: 0,
            freed: 0,
            returns: NONE,
            return_mask: 0,
            return_producer: 0,
            return_consumer: 0,
            index: NONE,
            reported: 0,
            unreported: 0,
            max_bds: 0,
            ticks: 0,
        }
    }

    /// Places the MAC's ring in the block with base K.
    pub(crate) fn place(&mut self, block: u32) {
        self.ring = ReceiveRing::new(block + block::MAC_RX_RING);
    }

    /// Where the frame behind `frame` starts: at the next 8 bytes, round the end of the
    /// buffer (10.3, C).
    fn end_of(&self, frame: &ReceivedFrame) -> u32 {
        let end = (frame.start + frame.length + 7) & !7;
        if end >= PACKET_MEMORY_END {
            end - (PACKET_MEMORY_END - self.base)
        } else {
            end
        }
    }
}

impl Default for Receive {
    fn default() -> Receive {
        Receive::new()
    }
}

/// Takes the configuration; the receive buffer begins at `base`.
pub fn configure<B: Bus>(firmware: &mut Firmware<B>, base: u32) {
    let config = firmware.config;
    let receive = &mut firmware.receive;
    receive.ring.reset(&mut firmware.bus);
    receive.base = base;
    let host = config.standard.address;
    receive.standard = BdRing::new(host, STANDARD_BDS, STANDARD_ENTRIES);
    receive.ring_longest = config.standard.max_len;
    receive.cut = if config.mode.include_crc() { 0 } else { CRC };
    receive.bad_frames = config.mode.bad_frames();
    receive.returns = config.receive_return.address;
    let entries = return_entries(config.receive_return.max_len as u16).unwrap_or(1);
    receive.return_mask = entries - 1;
    receive.index = config.return_producer;
}

/// The coalescing words, which drivers also change later.
pub fn set_coalescing<B: Bus>(firmware: &mut Firmware<B>, ticks: u32, max_bds: u32) {
    firmware.receive.ticks = ticks;
    firmware.receive.max_bds = max_bds;
}

/// The longest frame that the interface takes, without CRC; 0 leaves it to the ring.
pub fn set_longest<B: Bus>(firmware: &mut Firmware<B>, mtu: u32) {
    let receive = &mut firmware.receive;
    let unlimited = mtu == 0 || mtu > receive.ring_longest;
    receive.longest = if unlimited { receive.ring_longest } else { mtu };
}

/// Whether the host's stack takes frames. What arrives while it does not is dropped.
pub fn set_stack<B: Bus>(firmware: &mut Firmware<B>, up: bool) {
    firmware.receive.stack_up = up;
    firmware.unmask(EventBit::ReceiveComplete);
}

/// The host moved the producer of the standard ring. An index outside of the ring, or one
/// that takes back or overruns what was produced before, is refused.
pub fn host_produced<B: Bus>(firmware: &mut Firmware<B>, producer: u32) {
    let ring = &mut firmware.receive.standard;
    match ring.produced(producer, ring.next()) {
        Err(OutOfRange) => host_events::post_error(firmware, event::ERROR_BAD_CONFIGURATION),
        Ok(false) => {}
        Ok(true) => firmware
            .events
            .set(&mut firmware.bus, EventBit::StandardReceiveBdReady),
    }
}

/// Receive BD ready.
#[inline(always)]
pub fn bd_ready<B: Bus>(firmware: &mut Firmware<B>) {
    let bus = &mut firmware.bus;
    let state = firmware.states.read_words;
    let ring = &mut firmware.receive.standard;
    if ring.fetch(bus, &mut firmware.read_ring, state, read::STANDARD_BDS) {
        firmware.events.clear(bus, EventBit::StandardReceiveBdReady);
    }
}

/// Receive BDs are in NIC memory.
#[inline(always)]
pub fn bds_arrived<B: Bus>(firmware: &mut Firmware<B>, after: u32) {
    firmware.receive.standard.arrived(after);
    firmware.unmask(EventBit::ReceiveComplete);
}

/// Receive complete: one frame.
#[inline(always)]
pub fn frame<B: Bus>(firmware: &mut Firmware<B>) {
    let Some(frame) = firmware.receive.ring.oldest(&mut firmware.bus) else {
        return;
    };
    let receive = &mut firmware.receive;
    let bus = &mut firmware.bus;
    let errors = frame.errors & !HARMLESS;
    let length = frame.length.wrapping_sub(CRC);
    let destination = filter::destination(bus, frame.start);
    if let Some(reason) = judge(receive, &firmware.link, bus, &frame, errors, destination) {
        return drop(firmware, &frame, reason);
    }
    if receive.standard.is_empty() {
        // The event stays on, so it is held back until BDs arrive.
        count!(firmware, no_receive_bds);
        return firmware.hold(EventBit::ReceiveComplete);
    }
    let after = (receive.return_producer + 1) & receive.return_mask;
    if after == receive.return_consumer {
        let consumer = bus.load(Gencom::ReceiveReturnConsumer.nic_address());
        receive.return_consumer = consumer & receive.return_mask;
        if after == receive.return_consumer {
            // The host says nothing when it has read entries: housekeeping looks again.
            count!(firmware, no_return_space);
            return firmware.hold(EventBit::ReceiveComplete);
        }
    }
    if !firmware.write_ring.has_room(2) {
        return;
    }

    let bd = receive.standard.next_address();
    let host = HostAddress {
        high: bus.load(bd),
        low: bus.load(bd + 4),
    };
    let index_and_room = bus.load(bd + 8);
    let kind_and_flags = bus.load(bd + 12);
    let opaque = bus.load(bd + 28);
    let room = index_and_room & 0xFFFF;
    let wanted = frame.length - receive.cut;
    let truncated = wanted > room;
    let bytes = if truncated { room } else { wanted };
    let mut flags = kind_and_flags | END | u32::from(destination) << 5;
    let mut flaws = errors;
    if truncated {
        flaws |= TRUNCATED;
    }
    if flaws != 0 {
        flags |= ERROR;
    }

    if bytes != 0 {
        let transfer = Transfer {
            host,
            local: frame.start,
            length: bytes,
            state: firmware.states.write_data,
            kind: write::RECEIVE_DATA,
            opaque: receive.standard.next(),
        };
        // There is room for two, see above.
        if firmware.write_ring.push(bus, &transfer).is_err() {
            return;
        }
        receive.in_flight += 1;
        receive.freed = 0;
    } else {
        receive.freed = receive.end_of(&frame);
    }
    receive.standard.advance();
    receive.ring.release(bus);
    let entry = receive.returns.plus(receive.return_producer << 5);
    receive.return_producer = after;
    let words = [
        host.high,
        host.low,
        index_and_room & 0xFFFF_0000 | bytes,
        flags,
        0,
        flaws << 16,
        0,
        opaque,
    ];
    if write_words(firmware, entry, &words, write::QUIET).is_err() {
        return;
    }
    if truncated {
        drops::count(firmware, Drop::BufferTooSmall);
    }
    firmware.counters.received(destination, length);
    returned(firmware);
}

/// Why a frame is not for the host, if it is not.
#[inline(always)]
fn judge<B: Bus>(
    receive: &Receive,
    link: &crate::link::Link,
    bus: &mut B,
    frame: &ReceivedFrame,
    errors: u32,
    destination: u8,
) -> Option<Drop> {
    if !receive.stack_up {
        return Some(Drop::StackDown);
    }
    if errors != 0 && !receive.bad_frames {
        return Some(Drop::BadFrame);
    }
    if frame.length < HEADER + CRC {
        return Some(Drop::TooShort);
    }
    if frame.length - CRC > receive.longest {
        return Some(Drop::TooLong);
    }
    let multicast = destination == host_interface::bd::destination::MULTICAST;
    if multicast && !link.filter.takes(bus, frame.start) {
        return Some(Drop::NotSubscribed);
    }
    None
}

/// Lets a frame go. Its bytes may only be freed when no older frame is being read from
/// the buffer any more; the next frame that is handed on frees them as well.
#[inline(never)]
fn drop<B: Bus>(firmware: &mut Firmware<B>, frame: &ReceivedFrame, reason: Drop) {
    drops::count(firmware, reason);
    if reason == Drop::BadFrame {
        count!(firmware, in_errors);
    }
    let receive = &mut firmware.receive;
    receive.freed = receive.end_of(frame);
    receive.ring.release(&mut firmware.bus);
    free(firmware);
}

/// Frees what dropped frames took, if nothing older is being read.
#[inline(always)]
fn free<B: Bus>(firmware: &mut Firmware<B>) {
    let receive = &mut firmware.receive;
    if receive.in_flight == 0 && receive.freed != 0 {
        firmware.bus.write(Register::RxConsumer, receive.freed);
        receive.freed = 0;
    }
}

/// The data of a frame has been written.
#[inline(always)]
pub fn data_written<B: Bus>(firmware: &mut Firmware<B>) {
    firmware.receive.in_flight -= 1;
    free(firmware);
}

/// A return BD is on its way: its index follows by count or time.
#[inline(always)]
fn returned<B: Bus>(firmware: &mut Firmware<B>) {
    let receive = &mut firmware.receive;
    receive.unreported += 1;
    let full = receive.max_bds != 0 && receive.unreported >= receive.max_bds;
    if full || receive.ticks == 0 {
        firmware
            .events
            .set(&mut firmware.bus, EventBit::UpdateReceiveReturnProducer);
    } else if !firmware.deadlines.receive.is_armed() {
        let ticks = receive.ticks;
        timer::arm_receive(firmware, ticks);
    }
}

/// Update receive return producer.
#[inline(always)]
pub fn update_producer<B: Bus>(firmware: &mut Firmware<B>) {
    let index = firmware.receive.return_producer;
    if index != firmware.receive.reported {
        let place = firmware.receive.index;
        if write_words(firmware, place, &[index, 0], write::RETURN_INDEX).is_err() {
            // What frees descriptors has a lower priority.
            return firmware.hold(EventBit::UpdateReceiveReturnProducer);
        }
        firmware.receive.reported = index;
        firmware.counters.return_updates = firmware.counters.return_updates.wrapping_add(1);
    }
    firmware.receive.unreported = 0;
    firmware.deadlines.receive.disarm();
    firmware
        .events
        .clear(&mut firmware.bus, EventBit::UpdateReceiveReturnProducer);
}

/// Looks again at a frame that found no room in the return ring.
pub fn retry<B: Bus>(firmware: &mut Firmware<B>) {
    let receive = &firmware.receive;
    if !receive.standard.is_empty() || !receive.stack_up {
        firmware.unmask(EventBit::ReceiveComplete);
    }
}
