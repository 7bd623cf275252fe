//! The transmit path: host to wire.
//!
//! Hardware reference, section 13. The send ring has the indices of a [`BdRing`] and one more:
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
//! A BD is consumed when its data has been read, not when the frame is on the wire; the host may
//! then reuse its buffer.
//!
//! A frame without checksum offload goes to the MAC as soon as its last BD was taken: the MAC
//! waits for the data by itself. A frame with checksum offload is held in the MAC's ring until its
//! data has arrived and was patched, see `offload`.

mod checksum;
pub mod claim;
mod consumer;
pub mod early;
pub mod fault;
mod offload;
pub mod own;

use crate::io::IoB;
use crate::io::bd_ring::{BdRing, OutOfRange, Take};
use crate::io::deadline::SlotB;
use crate::io::note::{ReadKind, ReadNote};
use crate::memory::config::Config;
use crate::memory::layout::{EUDP, SPINE};
use crate::memory::region::SendBds;
use crate::memory::shared::{LINK_UP, SEND_PRODUCER};
use crate::record::counters::SendCounters;
use consumer::report;
pub use consumer::{Sent, consumed, update_consumer};
use host_interface::bd::{BdFlags, SendBdAt};
use host_interface::extension::DropReason;
use host_interface::ring;
use tigon2_chip::events::EventBit;
use tigon2_chip::memory::block;
use tigon2_hal::assist::Finished;
use tigon2_hal::events::Dispatch;
use tigon2_hal::mac::{TransmitBuffer, TransmitRing};

/// Longest frame that is sent, without CRC: a jumbo frame with a VLAN tag.
pub const FRAME_MAX: u32 = 9018;
/// Room that must be free before a frame begins, so that its end never reaches unsent data (13,
/// step 4), including the bytes skipped at the end of the buffer.
const ROOM: u32 = FRAME_MAX + 8 + checksum::HEADERS;

const END: u32 = BdFlags::new().with_end(true).into_bits() as u32;
/// The length of the current frame while its remaining BDs are skipped: too long.
const SKIPPED: u32 = 1 << 30;
const NOW: u32 = BdFlags::new().with_coalesce_now(true).into_bits() as u32;
/// Microseconds until a full transmit buffer is checked again: in that time the wire takes some 6
/// KB of the hundreds in it.
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
    /// Whether the ring is in host memory; otherwise the host writes the copies itself.
    in_host: bool,
    /// BDs before this index belong to the host again.
    consumed: u32,
    /// The last reported index.
    reported: u32,
    /// BDs consumed since then.
    unreported: u32,
    /// The last value of the host's producer word.
    seen: u32,
    /// Whether the host has an address for the consumer index.
    has_index: bool,
    /// Whether the host wants interrupts for it.
    interrupts: bool,
    /// How many interrupts were requested.
    interrupts_wanted: u32,
    /// BDs after which the index is reported; 0 for never.
    max_bds: u32,
    /// Microseconds after which the index is reported.
    ticks: u32,
    /// Whether only the time raises an interrupt; otherwise the number of BDs does as well.
    interrupts_by_time: bool,
    /// Whether the last report was without the interrupt.
    silent: bool,
    /// The offloads that BDs may request.
    offloads: offload::Offloads,
    /// The offloads of the current frame.
    requested: offload::Requested,
    /// Where the current frame begins in the buffer.
    frame_start: u32,
    /// Its bytes so far; 0 between frames, [`SKIPPED`] while it is discarded, or, with SPINE, while
    /// the path is lent.
    frame_bytes: u32,
    /// Not 0 if a BD requested a report at once.
    now: u32,
    /// Whether somebody else has the path, see [`early`].
    lent: [u32; EUDP + SPINE],
    /// Per-frame counters.
    pub counters: SendCounters,
}

impl SendPath {
    /// Nothing configured.
    pub const fn new(ring: TransmitRing, region: SendBds) -> SendPath {
        SendPath {
            ring,
            buffer: TransmitBuffer::new(0, 0),
            bds: BdRing::new(region),
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
            lent: [0; EUDP + SPINE],
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

/// Takes the configuration; the transmit buffer lies between two addresses.
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
    send.bds.configure(config.send.address, copies, entries);
    send.has_index = !config.send_consumer.is_null();
    send.interrupts = !config.mode.no_transmit_interrupts();
    send.interrupts_by_time = config.send.flags.coalesced_update_only();
    send.offloads = offload::Offloads::new(config.send.flags);
}

/// The coalescing words, which drivers may change at run time.
pub fn set_coalescing(send: &mut SendPath, ticks: u32, max_bds: u32) {
    send.ticks = ticks;
    send.max_bds = max_bds;
}

/// BDs that are in NIC memory and not consumed.
pub fn bds_now(send: &SendPath) -> u32 {
    send.bds.arrived_since(send.consumed)
}

/// The host may have moved the producer. Rejects an index outside of the ring, or one that moves
/// backwards or overruns BDs in use.
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

/// Send BD Ready.
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

/// Send Data Ready: handles some BDs.
#[inline(always)]
pub fn data_ready<B: Dispatch>(send: &mut SendPath, io: &mut IoB<B>) {
    if EUDP != 0 && send.is_lent() {
        io.bus.set(EventBit::DmaReadComplete);
        return send.wait_for_path(io);
    }
    let stop = queue_some(send, io);
    io.bus.set(EventBit::DmaReadComplete);
    if stop == Stop::Empty {
        io.bus.clear(EventBit::SendDataReady);
    } else if stop != Stop::Later {
        goes_no_further(send, io, stop);
    }
}

/// A BD is waiting that cannot be taken now.
#[inline(never)]
fn goes_no_further<B: Dispatch>(send: &mut SendPath, io: &mut IoB<B>, stop: Stop) {
    if stop == Stop::Full {
        fault::reclaim(send, &mut io.bus);
        io.bus.clear(EventBit::SendDataReady);
        // The MAC raises no event for sent frames.
        if !io.is_armed(SlotB::Room) {
            io.arm(SlotB::Room, AWAITED);
        }
    } else if SPINE != 0 && send.is_lent() {
        send.wait_for_path(io);
    } else {
        skip(send, io);
    }
}

/// After some transfers were retired: where CPU B is alone with them, it leaves the next ones
/// until the waiting BDs have had their turn, if they are to have one: while the transmit buffer is
/// full or the path is lent they have none. Retiring few at a time costs more for each.
#[inline(always)]
pub fn data_first<B: Dispatch>(io: &mut IoB<B>) {
    // Firmware with extensions is never alone.
    let alone = SPINE == 0 && io.bus.core(|core| core.is_alone());
    if !alone && io.bus.is_set(EventBit::SendDataReady) {
        io.bus.clear(EventBit::DmaReadComplete);
    }
}

/// Why a run of BDs ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// There is no BD.
    Empty,
    /// More BDs may be there, but other work has its turn.
    Later,
    /// There is one, but the transmit buffer is full.
    Full,
    /// The next BD cannot be sent.
    Unfit,
}

/// Queues the data of some BDs. One loop in one function: local variables hold the changing state,
/// so that it stays in registers; limits are checked before the run; and other work separates the
/// writes of a descriptor's words, while the SRAM port is busy.
#[inline(always)]
fn queue_some<B: Dispatch>(send: &mut SendPath, io: &mut IoB<B>) -> Stop {
    /// BDs of one run: more save little and delay what frees resources.
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
        queue.notify(bus);
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

/// Skips a BD that cannot be sent, and the others of its frame. The part of the frame that was
/// read stays behind the MAC's producer, and the next frame overwrites it. Earlier BDs have to be
/// consumed first: the event stays set, and the handler that retires them has a higher priority.
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
