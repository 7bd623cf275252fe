//! The transmit path: host to wire.
//!
//! Hardware reference, section 13. The send ring has the indices of a [`BdRing`] and one
//! behind them:
//!
//! ```text
//! consumed     next       arrived     requested    producer
//!    v           v           v            v            v
//! ---+===========+===========+============+============+---
//!    | data is   |
//!    | being     |
//!    | read      |
//! ```
//!
//! A BD counts as consumed when its data has been read, not when it is on the wire; its
//! buffer is the host's again then.
//!
//! A frame without checksums to make is the MAC's as soon as its last BD was taken: the
//! MAC waits for the data by itself. One with checksums is held in the MAC's ring until it
//! has arrived and was patched, see [`offload`].

mod checksum;
pub mod fault;
mod offload;

use crate::Firmware;
use crate::bd_ring::{BdRing, OutOfRange};
use crate::dma::{read, write, write_words};
use crate::statistics::count;
use crate::{drops, filter, host_events, interrupt, timer};
use host_interface::bd::BdFlags;
use host_interface::extension::{Drop, Extension};
use host_interface::{event, ring};
use tigon2_chip::events::EventBit;
use tigon2_chip::memory::block;
use tigon2_hal::Bus;
use tigon2_hal::assist::{Finished, HostAddress, Transfer};
use tigon2_hal::mac::{TransmitBuffer, TransmitRing};

/// Longest frame that is sent, without CRC: a jumbo frame with a VLAN tag.
pub const FRAME_MAX: u32 = 9018;
/// Room that must be free before a frame is begun, so that its end never reaches what the
/// MAC has not sent (13, step 4).
const ROOM: u32 = FRAME_MAX + 8;

const END: u32 = BdFlags::new().with_end(true).into_bits() as u32;
/// What the frame in work counts as while the rest of it is thrown away: too long.
const SKIPPED: u32 = 1 << 30;
const NOW: u32 = BdFlags::new().with_coalesce_now(true).into_bits() as u32;

/// State of the transmit side.
#[derive(Debug)]
pub struct Send {
    /// The MAC's ring.
    ring: TransmitRing,
    /// Its buffer.
    buffer: TransmitBuffer,
    /// The host's ring.
    bds: BdRing<4>,
    /// Whether the ring is in host memory; else the host writes the copies itself.
    in_host: bool,
    /// Data transfers under way.
    in_flight: u32,
    /// BDs up to here are the host's again.
    consumed: u32,
    /// What the host was told last.
    reported: u32,
    /// BDs consumed since then.
    unreported: u32,
    /// Where the host wants the consumer index, or none.
    index: HostAddress,
    /// BDs after which it is told; 0 for never.
    max_bds: u32,
    /// Microseconds after which it is told.
    ticks: u32,
    /// Whether only those interrupt; else reaching the number of BDs does, too.
    interrupts_by_time: bool,
    /// The index was written without the interrupt.
    silent: bool,
    /// What the host may ask the BDs to have done.
    offers: offload::Offers,
    /// What is to be done to the frame in work; 0 for nothing.
    wants: u32,
    /// Its VLAN tag, if it wants one.
    tag: u32,
    /// Where the frame in work begins in the buffer.
    frame_start: u32,
    /// Its bytes so far; 0 between frames, [`SKIPPED`] if it is thrown away.
    frame_bytes: u32,
    /// Not 0 if a BD asked to be reported at once.
    now: u32,
}

impl Send {
    /// Nothing configured.
    pub const fn new() -> Send {
        const NONE: HostAddress = HostAddress { high: 0, low: 0 };
        Send {
            ring: TransmitRing::new(0),
            buffer: TransmitBuffer::new(0, 0),
            bds: BdRing::new(NONE, 0, 1),
            in_host: true,
            in_flight: 0,
            consumed: 0,
            reported: 0,
            unreported: 0,
            index: NONE,
            max_bds: 0,
            ticks: 0,
            interrupts_by_time: false,
            silent: false,
            offers: offload::Offers::NONE,
            wants: 0,
            tag: 0,
            frame_start: 0,
            frame_bytes: 0,
            now: 0,
        }
    }

    /// Places the MAC's ring in the block with base K.
    pub(crate) fn place(&mut self, block: u32) {
        self.ring = TransmitRing::new(block + block::MAC_TX_RING);
    }
}

impl Default for Send {
    fn default() -> Send {
        Send::new()
    }
}

/// Takes the configuration; the transmit buffer is what lies between two addresses.
pub fn configure<B: Bus>(firmware: &mut Firmware<B>, base: u32, end: u32) {
    let config = firmware.config;
    let send = &mut firmware.send;
    send.ring.reset(&mut firmware.bus);
    send.buffer = TransmitBuffer::new(base, end);
    let entries = config.send.max_len;
    send.in_host = config.send.flags.host_ring();
    let copies = if send.in_host {
        ring::nic_send_ring(entries).unwrap_or(0)
    } else {
        config.send.address.low
    };
    send.bds = BdRing::new(config.send.address, copies, entries);
    send.index = config.send_consumer;
    send.interrupts_by_time = config.send.flags.coalesced_update_only();
    send.offers = offload::Offers::new(config.send.flags);
}

/// The coalescing words, which drivers also change later.
pub fn set_coalescing<B: Bus>(firmware: &mut Firmware<B>, ticks: u32, max_bds: u32) {
    firmware.send.ticks = ticks;
    firmware.send.max_bds = max_bds;
}

/// BDs that are in NIC memory and not consumed.
pub fn bds_now(send: &Send) -> u32 {
    send.bds.arrived_since(send.consumed)
}

/// The host moved the producer. An index outside of the ring, or one that takes back or
/// overruns what was produced before, is refused.
pub fn host_produced<B: Bus>(firmware: &mut Firmware<B>, producer: u32) {
    let send = &mut firmware.send;
    match send.bds.produced(producer, send.consumed) {
        Err(OutOfRange) => {
            return host_events::post_error(firmware, event::ERROR_BAD_CONFIGURATION);
        }
        Ok(false) => return,
        Ok(true) => {}
    }
    count!(firmware, send_producer_updates);
    let send = &mut firmware.send;
    let event = if send.in_host {
        EventBit::SendBdReady
    } else {
        send.bds.arrived_with_producer();
        EventBit::SendDataReady
    };
    firmware.events.set(&mut firmware.bus, event);
}

/// Send BD ready.
#[inline(always)]
pub fn bd_ready<B: Bus>(firmware: &mut Firmware<B>) {
    let bus = &mut firmware.bus;
    let state = firmware.states.read_words;
    let bds = &mut firmware.send.bds;
    if bds.fetch(bus, &mut firmware.read_ring, state, read::SEND_BDS) {
        firmware.events.clear(bus, EventBit::SendBdReady);
    }
}

/// Send BDs are in NIC memory.
#[inline(always)]
pub fn bds_arrived<B: Bus>(firmware: &mut Firmware<B>, after: u32) {
    firmware.send.bds.arrived(after);
    firmware
        .events
        .set(&mut firmware.bus, EventBit::SendDataReady);
}

/// Send data ready: one BD.
#[inline(always)]
pub fn data_ready<B: Bus>(firmware: &mut Firmware<B>) {
    let send = &mut firmware.send;
    let bus = &mut firmware.bus;
    if send.bds.is_empty() {
        return firmware.events.clear(bus, EventBit::SendDataReady);
    }
    let bd = send.bds.next_address();
    let word = bus.load(bd + 8);
    let length = word >> 16;
    let bytes = send.frame_bytes + length;
    if length == 0 || bytes > FRAME_MAX || !firmware.link.is_up() {
        return skip(firmware, word, length);
    }
    let begins = send.frame_bytes == 0;
    if begins {
        if !send.buffer.has_room(bus, ROOM) {
            fault::reclaim(send, bus);
            return count!(firmware, transmit_buffer_retries);
        }
        if !send.ring.has_room(bus) {
            return count!(firmware, mac_transmit_ring_full);
        }
        if send.offers.any() {
            offload::begin(send, bus, bd, word);
        }
        send.frame_start = send.buffer.position();
    }
    let last = word & END != 0;
    let mut state = if last {
        firmware.states.read_last
    } else {
        firmware.states.read_data
    };
    let mut kind = read::SEND_DATA
        | if begins { read::FIRST } else { 0 }
        | if word & NOW != 0 { read::NOW } else { 0 };
    if send.wants & offload::HELD != 0 {
        state |= offload::state(send.wants, begins, last);
        if last {
            firmware.read_ring.store_sum(bus);
            kind |= offload::kind(send.wants);
        }
    }
    let transfer = Transfer {
        host: HostAddress {
            high: bus.load(bd),
            low: bus.load(bd + 4),
        },
        local: send.buffer.position(),
        length,
        state,
        kind,
        opaque: send.bds.next(),
    };
    if firmware.read_ring.push(bus, &transfer).is_err() {
        return count!(firmware, dma_read_ring_full);
    }
    send.in_flight += 1;
    send.buffer.take(length);
    send.frame_bytes = bytes;
    send.bds.advance();
    if last {
        if send.wants == 0 {
            send.ring.push(bus, send.frame_start, bytes, None);
        } else {
            offload::queue(send, bus, bytes);
        }
        send.buffer.align();
        send.frame_bytes = 0;
        firmware.counters.out_octets.add(bytes);
    }
    if send.bds.is_empty() {
        firmware.events.clear(bus, EventBit::SendDataReady);
    }
}

/// A BD that cannot be sent, and the others of its frame. What was read of the frame
/// stays behind the MAC's producer and is overwritten by the next one.
#[inline(never)]
fn skip<B: Bus>(firmware: &mut Firmware<B>, word: u32, length: u32) {
    let so_far = firmware.send.frame_bytes;
    if so_far != SKIPPED {
        let reason = if length == 0 {
            Drop::BadSendBd
        } else if so_far + length > FRAME_MAX {
            Drop::SendTooLong
        } else {
            Drop::LinkDown
        };
        drops::count(firmware, reason);
        if reason != Drop::LinkDown {
            host_events::post_error(firmware, event::ERROR_BAD_CONFIGURATION);
        }
    }
    let send = &mut firmware.send;
    if so_far != 0 && so_far != SKIPPED {
        send.buffer.rewind(send.frame_start);
    }
    send.frame_bytes = if word & END == 0 { SKIPPED } else { 0 };
    send.bds.advance();
    if send.bds.is_empty() {
        firmware
            .events
            .clear(&mut firmware.bus, EventBit::SendDataReady);
    }
    if send.in_flight == 0 {
        send.unreported += 1;
        send.consumed = send.bds.next();
        consumed(firmware);
    }
}

/// The last data of a frame that is held in the MAC's ring has been read.
#[inline(always)]
pub fn held_arrived<B: Bus>(firmware: &mut Firmware<B>, done: &Finished) {
    offload::arrived(&mut firmware.send, &mut firmware.bus, done);
}

/// The data of a BD has been read.
#[inline(always)]
pub fn data_read<B: Bus>(firmware: &mut Firmware<B>, done: &Finished) {
    if done.kind & read::FIRST != 0 {
        let start = done.local(&mut firmware.bus);
        let destination = filter::destination(&mut firmware.bus, start);
        firmware.counters.out(destination);
    }
    let send = &mut firmware.send;
    send.now |= done.kind & read::NOW;
    send.in_flight -= 1;
    send.unreported += 1;
    // With nothing under way, BDs that were skipped behind this one are done as well.
    send.consumed = if send.in_flight == 0 {
        send.bds.next()
    } else {
        send.bds.after(done.opaque)
    };
}

/// BDs were consumed: the extension word says so at once, the index in host memory and
/// the interrupt follow by count or time.
#[inline(always)]
pub fn consumed<B: Bus>(firmware: &mut Firmware<B>) {
    let send = &mut firmware.send;
    firmware
        .bus
        .store(Extension::SendConsumer.nic_address(), send.consumed);
    let full = send.max_bds != 0 && send.unreported >= send.max_bds;
    if send.now != 0 || send.ticks == 0 {
        return firmware
            .events
            .set(&mut firmware.bus, EventBit::UpdateSendConsumer);
    }
    if full && !send.interrupts_by_time {
        return threshold_hit(firmware);
    }
    if !firmware.deadlines.send.is_armed() {
        let ticks = send.ticks;
        timer::arm_send(firmware, ticks);
    }
    if full {
        threshold_hit(firmware);
    }
}

/// So many BDs were consumed that the host is to be told.
#[inline(always)]
fn threshold_hit<B: Bus>(firmware: &mut Firmware<B>) {
    count!(firmware, send_threshold_hits);
    firmware
        .events
        .set(&mut firmware.bus, EventBit::UpdateSendConsumer);
}

/// Update send consumer. With "coalesced update only" the update by number of BDs is
/// silent (13, steps 6 and 8); the interrupt comes when the time is up.
#[inline(always)]
pub fn update_consumer<B: Bus>(firmware: &mut Firmware<B>) {
    let send = &mut firmware.send;
    let index = send.consumed;
    let silent = send.interrupts_by_time && send.now == 0 && firmware.deadlines.send.is_armed();
    if index != send.reported || send.silent && !silent {
        let place = send.index;
        let interrupts = !silent && firmware.interrupt.for_send;
        if place.is_none() {
            if interrupts {
                interrupt::raise(firmware);
            }
        } else {
            let kind = if silent {
                write::QUIET
            } else {
                write::SEND_INDEX
            };
            if write_words(firmware, place, &[index, 0], kind).is_err() {
                // What frees descriptors has a lower priority.
                return firmware.hold(EventBit::UpdateSendConsumer);
            }
        }
        let counters = &mut firmware.counters;
        counters.send_updates = counters.send_updates.wrapping_add(1);
        firmware.send.reported = index;
        firmware.send.silent = silent;
    }
    firmware.send.unreported = 0;
    if !silent {
        firmware.send.now = 0;
        firmware.deadlines.send.disarm();
    }
    firmware
        .events
        .clear(&mut firmware.bus, EventBit::UpdateSendConsumer);
}
