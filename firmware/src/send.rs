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
mod consumer;
pub mod fault;
mod offload;

use crate::bd_ring::{BdRing, OutOfRange, Take};
use crate::config::Config;
use crate::dma::read;
use crate::shared::{LINK_UP, SEND_PRODUCER};
use crate::{SideB, doorbell, timer};
use consumer::tell;
pub use consumer::{Sent, consumed, update_consumer};
use host_interface::bd::BdFlags;
use host_interface::extension::Drop;
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
/// From that flag to [`read::NOW`].
const NOW_SHIFT: u32 = NOW.trailing_zeros() - read::NOW.trailing_zeros();

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
    offers: offload::Offers,
    /// What is to be done to the frame in work.
    wishes: offload::Wishes,
    /// Where the frame in work begins in the buffer.
    frame_start: u32,
    /// Its bytes so far; 0 between frames, [`SKIPPED`] if it is thrown away.
    frame_bytes: u32,
    /// Not 0 if a BD asked to be reported at once.
    now: u32,
}

impl Send {
    /// Nothing configured.
    pub const fn new(ring: TransmitRing) -> Send {
        const NONE: HostAddress = HostAddress { high: 0, low: 0 };
        Send {
            ring,
            buffer: TransmitBuffer::new(0, 0),
            bds: BdRing::new(NONE, 0, 1),
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
            offers: offload::Offers::NONE,
            wishes: offload::Wishes::NONE,
            frame_start: 0,
            frame_bytes: 0,
            now: 0,
        }
    }

    /// Whether data of BDs is being read.
    #[inline(always)]
    fn is_reading(&self) -> bool {
        self.consumed != self.bds.next()
    }

    /// Places the MAC's ring in the block with base K.
    pub(crate) fn place(&mut self, block: u32) {
        self.ring.place(block + block::MAC_TX_RING);
    }
}

/// Takes the configuration; the transmit buffer is what lies between two addresses.
pub fn configure<B: Dispatch>(b: &mut SideB<B>, config: &Config, base: u32, end: u32) {
    let send = &mut b.send;
    send.ring.reset(&mut b.bus);
    send.buffer = TransmitBuffer::new(base, end);
    let entries = config.send.max_len;
    send.in_host = config.send.flags.host_ring();
    let copies = if send.in_host {
        ring::nic_send_ring(entries).unwrap_or(0)
    } else {
        config.send.address.low
    };
    send.bds = BdRing::new(config.send.address, copies, entries);
    send.has_index = !config.send_consumer.is_none();
    send.interrupts = !config.mode.no_transmit_interrupts();
    send.interrupts_by_time = config.send.flags.coalesced_update_only();
    send.offers = offload::Offers::new(config.send.flags);
}

/// The coalescing words, which drivers also change later.
pub fn set_coalescing<B: Dispatch>(b: &mut SideB<B>, ticks: u32, max_bds: u32) {
    b.send.ticks = ticks;
    b.send.max_bds = max_bds;
}

/// BDs that are in NIC memory and not consumed.
pub fn bds_now(send: &Send) -> u32 {
    send.bds.arrived_since(send.consumed)
}

/// The host may have moved the producer. An index outside of the ring, or one that takes
/// back or overruns what was produced before, is refused.
#[inline(always)]
pub fn host_produced<B: Dispatch>(b: &mut SideB<B>) {
    let producer = SEND_PRODUCER.get(&mut b.bus);
    let send = &mut b.send;
    if producer == send.seen {
        return;
    }
    send.seen = producer;
    match send.bds.produced(producer, send.consumed) {
        Err(OutOfRange) => return doorbell::post_error(b),
        Ok(false) => return,
        Ok(true) => {}
    }
    b.counters.producer_updates += 1;
    let event = if send.in_host {
        EventBit::SendBdReady
    } else {
        send.bds.arrived_with_producer();
        #[cfg(feature = "lanes")]
        return crate::lanes::send_arrived(b, producer);
        #[cfg(not(feature = "lanes"))]
        EventBit::SendDataReady
    };
    b.bus.set(event);
}

/// Send BD ready.
#[inline(always)]
pub fn bd_ready<B: Dispatch>(b: &mut SideB<B>) {
    let bus = &mut b.bus;
    let state = b.states.words;
    let bds = &mut b.send.bds;
    if bds.fetch(bus, &mut b.read_ring, state, read::SEND_BDS) {
        b.bus.clear(EventBit::SendBdReady);
    } else {
        // There may be no descriptor, and what frees some may wait for data to go first.
        b.bus.set(EventBit::DmaReadComplete);
    }
}

/// Send BDs are in NIC memory.
#[inline(always)]
pub fn bds_arrived<B: Dispatch>(b: &mut SideB<B>, after: u32) {
    b.send.bds.arrived(after);
    #[cfg(feature = "lanes")]
    crate::lanes::send_arrived(b, after);
    #[cfg(not(feature = "lanes"))]
    b.bus.set(EventBit::SendDataReady);
}

/// Send data ready: some BDs.
#[inline(always)]
pub fn data_ready<B: Dispatch>(b: &mut SideB<B>) {
    let stop = queue_some(b);
    b.bus.set(EventBit::DmaReadComplete);
    if stop == Stop::Empty {
        b.bus.clear(EventBit::SendDataReady);
    } else if stop != Stop::Later {
        goes_no_further(b, stop);
    }
}

/// There is a BD that cannot be taken.
#[inline(never)]
fn goes_no_further<B: Dispatch>(b: &mut SideB<B>, stop: Stop) {
    if stop == Stop::Full {
        fault::reclaim(&mut b.send, &mut b.bus);
        b.bus.clear(EventBit::SendDataReady);
        timer::await_room(b);
    } else {
        skip(b);
    }
}

/// Some transfers were looked at: where CPU B is alone with them, the next ones are left
/// until the BDs that wait have had their turn. Looking costs the more for each, the fewer
/// they are.
#[inline(always)]
pub fn data_first<B: Dispatch>(b: &mut SideB<B>) {
    if !b.send.bds.is_empty() && !b.bus.core(|core| core.is_alone()) {
        b.bus.clear(EventBit::DmaReadComplete);
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
fn queue_some<B: Dispatch>(b: &mut SideB<B>) -> Stop {
    /// BDs of one run: more save little, and what frees resources waits.
    const BDS: u32 = 16;
    let SideB {
        bus,
        send,
        read_ring,
        states,
        counters,
        ..
    } = b;
    let mut queue = read_ring.open();
    let mut frames = send.ring.open();
    let mut buffer = send.buffer;
    let mut bds: Take<4> = *send.bds;
    let (mut start, mut so_far) = (send.frame_start, send.frame_bytes);
    let mut wishes = send.wishes;
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
        let word = bus.load(bd + 8);
        // The BD before this one; the load has waited for its stores.
        queue.tell(bus);
        let length = word >> 16;
        let bytes = so_far + length;
        if length == 0 || bytes > FRAME_MAX || !passes {
            break Stop::Unfit;
        }
        let mut note = read::SEND_DATA | (word & NOW) >> NOW_SHIFT;
        let begins = so_far == 0;
        if begins {
            if !buffer.has_room(bus, ROOM) {
                counters.buffer_retries += 1;
                break Stop::Full;
            }
            wishes.wants = send.offers.of(word) | frames.held();
            if wishes.wants != 0 {
                wishes = offload::begin(&send.offers, &frames, &mut buffer, bus, bd, word);
            }
            start = buffer.position();
            note |= start << read::START_SHIFT | read::FIRST;
        }
        let descriptor = queue.next();
        descriptor.local(bus, buffer.position());
        let last = word & END != 0;
        let mut state = if last { states.last } else { states.data };
        if wishes.wants & offload::HELD != 0 {
            state |= offload::state(wishes.wants, begins, last);
            if last {
                queue.store_sum(bus);
                note |= offload::kind(wishes.wants);
            }
        }
        bds.advance();
        descriptor.length(bus, length);
        let host = HostAddress {
            high: bus.load(bd),
            low: bus.load(bd + 4),
        };
        descriptor.state(bus, state);
        left -= 1;
        if last {
            if wishes.wants == 0 {
                frames.push(bus, start, bytes, None);
            } else {
                offload::queue(wishes, &mut frames, bus, start, bytes);
            }
            buffer.take_last(length);
            so_far = 0;
            octets += bytes;
        } else {
            buffer.take(length);
            so_far = bytes;
        }
        descriptor.host(bus, host);
        queue.commit(bus, note);
    };
    queue.settle(bus);
    frames.close(bus);
    send.buffer = buffer;
    *send.bds = bds;
    send.frame_start = start;
    send.frame_bytes = so_far;
    send.wishes = wishes;
    counters.out_octets.add(octets);
    stop
}

/// A BD that cannot be sent, and the others of its frame. What was read of the frame
/// stays behind the MAC's producer and is overwritten by the next one. Those in front of it
/// have to be consumed first: the event stays on, and what sees them read goes before it.
#[inline(never)]
fn skip<B: Dispatch>(b: &mut SideB<B>) {
    if b.send.is_reading() {
        return;
    }
    let word = b.bus.load(b.send.bds.next_address() + 8);
    let length = word >> 16;
    let so_far = b.send.frame_bytes;
    if so_far != SKIPPED {
        let reason = if length == 0 {
            Drop::BadSendBd
        } else if so_far + length > FRAME_MAX {
            Drop::SendTooLong
        } else {
            Drop::LinkDown
        };
        b.counters.drops.count(reason);
        if reason != Drop::LinkDown {
            doorbell::post_error(b);
        }
    }
    let send = &mut b.send;
    if so_far != 0 && so_far != SKIPPED {
        send.buffer.rewind(send.frame_start);
    }
    send.frame_bytes = if word & END == 0 { SKIPPED } else { 0 };
    send.bds.advance();
    send.unreported += 1;
    send.consumed = send.bds.next();
    tell_rarely(b);
}

/// As [`tell`], off the packet path.
#[inline(never)]
fn tell_rarely<B: Dispatch>(b: &mut SideB<B>) {
    tell(b);
}

/// The last data of a frame that is held in the MAC's ring has been read.
#[inline(always)]
pub fn held_arrived<B: Dispatch>(b: &mut SideB<B>, done: &Finished) {
    offload::arrived(&mut b.send, &mut b.bus, done);
}
