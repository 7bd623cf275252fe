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
//! has arrived and was patched, see `offload`.

mod checksum;
pub mod claim;
mod consumer;
pub mod fault;
mod offload;

use crate::io::IoB;
use crate::io::bd_ring::{BdRing, OutOfRange, Take};
use crate::io::deadline::SlotB;
use crate::io::note::{ReadKind, ReadNote};
use crate::memory::config::Config;
use crate::memory::shared::{LINK_UP, SEND_PRODUCER};
use crate::record::counters::SendCounters;
use consumer::report;
pub use consumer::{Sent, consumed, update_consumer};
use host_interface::bd::{BdFlags, SendBdAt};
use host_interface::extension::DropReason;
use host_interface::ring;
use tigon2_chip::events::EventBit;
use tigon2_chip::memory::block;
use tigon2_hal::assist::{Finished, HostAddress};
use tigon2_hal::events::Dispatch;
use tigon2_hal::mac::{TransmitBuffer, TransmitRing};

/// Longest frame that is sent, without CRC: a jumbo frame with a VLAN tag.
pub const FRAME_MAX: u32 = 9018;
/// Room that must be free before a frame is begun, so that its end never reaches what the
/// MAC has not sent (13, step 4), with what is left out where the buffer ends.
const ROOM: u32 = FRAME_MAX + 8 + checksum::HEADERS;

const END: u32 = BdFlags::new().with_end(true).into_bits() as u32;
/// What the frame in work counts as while the rest of it is thrown away: too long.
const SKIPPED: u32 = 1 << 30;
const NOW: u32 = BdFlags::new().with_coalesce_now(true).into_bits() as u32;
/// Microseconds until a full transmit buffer is looked at again: those in which the wire
/// takes some 6 KB of the hundreds in it.
const AWAITED: u32 = 50;

/// State of the transmit side.
#[derive(Debug)]
pub struct SendPath {
    /// The MAC's ring.
    ring: TransmitRing,
    /// Its buffer.
    buffer: TransmitBuffer,
    /// The host's ring.
    bds: BdRing<4>,
    /// Whether the ring is in host memory; else the host writes the copies itself.
    in_host: bool,
    /// BDs up to here are the host's again.
    consumed: u32,
    /// What the host was told last.
    reported: u32,
    /// BDs consumed since then.
    unreported: u32,
    /// The host's word that was looked at last.
    seen: u32,
    /// Whether the host has an address for the consumer index.
    has_index: bool,
    /// Whether the host wants interrupts for it.
    interrupts: bool,
    /// How often it was to be interrupted.
    interrupts_wanted: u32,
    /// BDs after which it is told; 0 for never.
    max_bds: u32,
    /// Microseconds after which it is told.
    ticks: u32,
    /// Whether only those interrupt; else reaching the number of BDs does, too.
    interrupts_by_time: bool,
    /// The host was told without the interrupt.
    silent: bool,
    /// What the host may ask the BDs to have done.
    offloads: offload::Offloads,
    /// What is to be done to the frame in work.
    requested: offload::Requested,
    /// Where the frame in work begins in the buffer.
    frame_start: u32,
    /// Its bytes so far; 0 between frames, [`SKIPPED`] if it is thrown away.
    frame_bytes: u32,
    /// Not 0 if a BD asked to be reported at once.
    now: u32,
    /// What is counted for each frame.
    pub counters: SendCounters,
}

impl SendPath {
    /// Nothing configured.
    pub const fn new(ring: TransmitRing) -> SendPath {
        SendPath {
            ring,
            buffer: TransmitBuffer::new(0, 0),
            bds: BdRing::new(HostAddress::NULL, 0, 1),
            in_host: true,
            consumed: 0,
            reported: 0,
            unreported: 0,
            seen: 0,
            has_index: false,
            interrupts: false,
            interrupts_wanted: 0,
            max_bds: 0,
            ticks: 0,
            interrupts_by_time: false,
            silent: false,
            offloads: offload::Offloads::NONE,
            requested: offload::Requested::NONE,
            frame_start: 0,
            frame_bytes: 0,
            now: 0,
            counters: SendCounters::new(),
        }
    }

    /// Whether data of BDs is being read.
    #[inline(always)]
    fn is_reading(&self) -> bool {
        self.consumed != self.bds.next()
    }

    /// Places the MAC's ring in the block with base K.
    pub fn place(&mut self, block: u32) {
        self.ring.place(block + block::MAC_TX_RING);
    }
}

/// Takes the configuration; the transmit buffer is what lies between two addresses.
pub fn configure<B: Dispatch>(
    send: &mut SendPath,
    io: &mut IoB<B>,
    config: &Config,
    base: u32,
    end: u32,
) {
    send.ring.reset(&mut io.bus);
    send.buffer = TransmitBuffer::new(base, end);
    let entries = config.send.max_len;
    send.in_host = config.send.flags.host_ring();
    let copies = if send.in_host {
        ring::nic_send_ring(entries).unwrap_or(0)
    } else {
        config.send.address.low
    };
    send.bds = BdRing::new(config.send.address, copies, entries);
    send.has_index = !config.send_consumer.is_null();
    send.interrupts = !config.mode.no_transmit_interrupts();
    send.interrupts_by_time = config.send.flags.coalesced_update_only();
    send.offloads = offload::Offloads::new(config.send.flags);
}

/// The coalescing words, which drivers also change later.
pub fn set_coalescing(send: &mut SendPath, ticks: u32, max_bds: u32) {
    send.ticks = ticks;
    send.max_bds = max_bds;
}

/// BDs that are in NIC memory and not consumed.
pub fn bds_now(send: &SendPath) -> u32 {
    send.bds.arrived_since(send.consumed)
}

/// The host may have moved the producer. An index outside of the ring, or one that takes
/// back or overruns what was produced before, is refused.
#[inline(always)]
pub fn host_produced<B: Dispatch>(send: &mut SendPath, io: &mut IoB<B>) {
    let producer = SEND_PRODUCER.get(&mut io.bus);
    if producer == send.seen {
        return;
    }
    send.seen = producer;
    match send.bds.produced(producer, send.consumed) {
        Err(OutOfRange) => return io.post_error(),
        Ok(false) => return,
        Ok(true) => {}
    }
    send.counters.producer_updates += 1;
    let event = if send.in_host {
        EventBit::SendBdReady
    } else {
        send.bds.arrived_with_producer();
        EventBit::SendDataReady
    };
    io.bus.set(event);
}

/// Send BD ready.
#[inline(always)]
pub fn bd_ready<B: Dispatch>(send: &mut SendPath, io: &mut IoB<B>) {
    let state = io.states.words;
    let bds = &mut send.bds;
    if bds.fetch(&mut io.bus, &mut io.read_ring, state, ReadKind::SendBds) {
        io.bus.clear(EventBit::SendBdReady);
    } else {
        // There may be no descriptor, and what frees some may wait for data to go first.
        io.bus.set(EventBit::DmaReadComplete);
    }
}

/// Send BDs are in NIC memory.
#[inline(always)]
pub fn bds_arrived<B: Dispatch>(send: &mut SendPath, io: &mut IoB<B>, after: u32) {
    send.bds.arrived(after);
    io.bus.set(EventBit::SendDataReady);
}

/// Send data ready: some BDs.
#[inline(always)]
pub fn data_ready<B: Dispatch>(send: &mut SendPath, io: &mut IoB<B>) {
    let stop = queue_some(send, io);
    io.bus.set(EventBit::DmaReadComplete);
    if stop == Stop::Empty {
        io.bus.clear(EventBit::SendDataReady);
    } else if stop != Stop::Later {
        goes_no_further(send, io, stop);
    }
}

/// There is a BD that cannot be taken.
#[inline(never)]
fn goes_no_further<B: Dispatch>(send: &mut SendPath, io: &mut IoB<B>, stop: Stop) {
    if stop == Stop::Full {
        fault::reclaim(send, &mut io.bus);
        io.bus.clear(EventBit::SendDataReady);
        // The MAC has no event for what it has sent.
        if !io.is_armed(SlotB::Room) {
            io.arm(SlotB::Room, AWAITED);
        }
    } else {
        skip(send, io);
    }
}

/// Some transfers were looked at: where CPU B is alone with them, the next ones are left
/// until the BDs that wait have had their turn. Looking costs the more for each, the fewer
/// they are.
#[inline(always)]
pub fn data_first<B: Dispatch>(send: &SendPath, io: &mut IoB<B>) {
    if !send.bds.is_empty() && !io.bus.core(|core| core.is_alone()) {
        io.bus.clear(EventBit::DmaReadComplete);
    }
}

/// Why a run of BDs ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// There is no BD.
    Empty,
    /// There may be one, but others are to have their turn.
    Later,
    /// There is one, but the transmit buffer is full.
    Full,
    /// There is one that cannot be sent.
    Unfit,
}

/// Queues the data of some BDs. What changes is kept in variables of its own in here, so
/// that it is in registers; what limits the run is looked at in front of it; and the words
/// of a descriptor are written with other work in between, while the SRAM port is busy.
#[inline(always)]
fn queue_some<B: Dispatch>(send: &mut SendPath, io: &mut IoB<B>) -> Stop {
    /// BDs of one run: more save little, and what frees resources waits.
    const BDS: u32 = 16;
    let IoB {
        bus,
        read_ring,
        states,
        ..
    } = io;
    let counters = &mut send.counters;
    let mut queue = read_ring.open();
    let mut frames = send.ring.open();
    let mut buffer = send.buffer;
    let mut bds: Take<4> = *send.bds;
    let (mut start, mut so_far) = (send.frame_start, send.frame_bytes);
    let mut requested = send.requested;
    let mut octets = 0;
    let passes = LINK_UP.get(bus) != 0;
    let mut left = bds.ready().min(BDS);
    if left > queue.free() {
        left = queue.free();
        counters.read_ring_full += 1;
    }
    // A BD takes one of the MAC's descriptors at most.
    let free = frames.free(bus, left);
    if left > free {
        left = free;
        counters.mac_ring_full += 1;
    }
    let stop = loop {
        if left == 0 {
            break if bds.is_empty() {
                Stop::Empty
            } else {
                Stop::Later
            };
        }
        let bd = bds.next_address();
        let word = bus.load(SendBdAt(bd).length_and_flags());
        let length = word >> 16;
        let bytes = so_far + length;
        if length == 0 || bytes > FRAME_MAX || !passes {
            break Stop::Unfit;
        }
        let mut note = ReadNote::data(word, NOW);
        let begins = so_far == 0;
        if begins {
            if !buffer.has_room(bus, ROOM) {
                counters.buffer_retries += 1;
                break Stop::Full;
            }
            requested.flags = send.offloads.of(word) | frames.held();
            if requested.flags != 0 {
                requested = offload::begin(&send.offloads, &frames, &mut buffer, bus, bd, word);
            }
            start = buffer.position();
            note = note.first(start);
        }
        let descriptor = queue.next();
        descriptor.local(bus, buffer.position());
        let last = word & END != 0;
        let mut state = if last { states.last } else { states.data };
        if requested.flags & offload::HELD != 0 {
            state |= offload::state(requested.flags, begins, last);
            if last {
                queue.store_sum(bus);
                note = note.held(requested.flags);
            }
        }
        bds.advance();
        descriptor.length(bus, length);
        let host = bus.load_host_address(SendBdAt(bd).address());
        descriptor.state(bus, state);
        left -= 1;
        if last {
            if requested.flags == 0 {
                frames.push(bus, start, bytes, None);
            } else {
                offload::queue(requested, &mut frames, bus, start, bytes);
            }
            buffer.take_last(length);
            so_far = 0;
            octets += bytes;
        } else {
            buffer.take(length);
            so_far = bytes;
        }
        descriptor.host(bus, host);
        queue.commit(note.word());
        queue.tell(bus);
    };
    frames.close(bus);
    send.buffer = buffer;
    *send.bds = bds;
    send.frame_start = start;
    send.frame_bytes = so_far;
    send.requested = requested;
    send.counters.octets.add(octets);
    stop
}

/// A BD that cannot be sent, and the others of its frame. What was read of the frame
/// stays behind the MAC's producer and is overwritten by the next one. Those in front of it
/// have to be consumed first: the event stays on, and what sees them read goes before it.
#[inline(never)]
fn skip<B: Dispatch>(send: &mut SendPath, io: &mut IoB<B>) {
    if send.is_reading() {
        return;
    }
    let bd = SendBdAt(send.bds.next_address());
    let word = io.bus.load(bd.length_and_flags());
    let length = word >> 16;
    let so_far = send.frame_bytes;
    if so_far != SKIPPED {
        let reason = if length == 0 {
            DropReason::BadSendBd
        } else if so_far + length > FRAME_MAX {
            DropReason::SendTooLong
        } else {
            DropReason::LinkDown
        };
        send.counters.drops.count(reason);
        if reason != DropReason::LinkDown {
            io.post_error();
        }
    }
    if so_far != 0 && so_far != SKIPPED {
        send.buffer.rewind(send.frame_start);
    }
    send.frame_bytes = if word & END == 0 { SKIPPED } else { 0 };
    send.bds.advance();
    send.unreported += 1;
    send.consumed = send.bds.next();
    report_rarely(send, io);
}

/// As [`report`], off the packet path.
#[inline(never)]
fn report_rarely<B: Dispatch>(send: &mut SendPath, io: &mut IoB<B>) {
    report(send, io);
}

/// The last data of a frame that is held in the MAC's ring has been read.
#[inline(always)]
pub fn held_arrived<B: Dispatch>(send: &mut SendPath, io: &mut IoB<B>, done: &Finished) {
    offload::arrived(send, &mut io.bus, done);
}
