//! The statistics block for the host, from what each side counts.
//!
//! Each side counts for itself, and each word has one writer. The sides keep per-frame counts in
//! the scratch pad and copy them to NIC memory each hundredth of a second; CPU A counts rare
//! events in NIC memory directly. The `block` goes to the host by command and at intervals; for a
//! command CPU B copies its part first.

mod block;

pub use block::{clear, clear_profile, describe, follow_link, update, write_to};

use super::spine::watch;
use super::{SideA, SideB};
use crate::memory::layout::{DROP_COUNTS, HANDLER_COUNTS, SPINE};
use crate::memory::statistics::{set, set64};
use crate::path::send;
use crate::record::counters::{ByDestination, SendCounters};
use crate::record::drops::{RECEIVE, SEND};
use crate::record::trace;
use core::mem::offset_of;
use host_interface::extension::{DropReason, Extension, HANDLER_COUNT, HANDLERS};
use host_interface::statistics::Statistics;
use host_interface::trace::Topic;
use tigon2_hal::Bus;
use tigon2_hal::events::Dispatch;

/// The counts that CPU A publishes.
const COUNTED_A: [u8; count(false)] = counted(false);
/// The counts that CPU B publishes.
const COUNTED_B: [u8; count(true)] = counted(true);

const fn count(on_b: bool) -> usize {
    let (mut index, mut count) = (0, 0);
    while index < HANDLERS.len() {
        count += (HANDLERS[index].runs_on_b() == on_b) as usize;
        index += 1;
    }
    count
}

const fn counted<const N: usize>(on_b: bool) -> [u8; N] {
    let mut counted = [0; N];
    let (mut index, mut count) = (0, 0);
    while index < HANDLERS.len() {
        if HANDLERS[index].runs_on_b() == on_b {
            counted[count] = HANDLERS[index] as u8;
            count += 1;
        }
        index += 1;
    }
    counted
}

/// Copies CPU A's counts from its scratch pad to NIC memory, where the host can read them.
#[inline(never)]
pub fn publish_a<B: Dispatch>(a: &mut SideA<B>) {
    let SideA {
        io,
        counts,
        receive,
        ..
    } = a;
    let (bus, counters) = (&mut io.bus, &receive.counters);
    let (interrupts, avoided) = io.interrupt.counts();
    publish_runs(bus, &COUNTED_A, counts);
    publish_drops(bus, counters.drops.of(RECEIVE));
    let idle = bus.core(|core| core.idle);
    bus.store(Extension::IdleA.nic_address(), idle);
    set64(bus, offset_of!(Statistics, in_octets), counters.octets);
    publish_frames(bus, offset_of!(Statistics, in_unicast), &counters.frames);
    for (offset, value) in [
        (
            offset_of!(Statistics, return_producer_updates),
            counters.return_updates,
        ),
        (
            offset_of!(Statistics, receive_threshold_hits),
            receive.threshold_hits(),
        ),
        (offset_of!(Statistics, interrupts), interrupts),
        (offset_of!(Statistics, avoided_interrupts), avoided),
    ] {
        set(bus, offset, value);
    }
    // Good frames that were dropped. Bad frames and frames without a subscriber count elsewhere.
    let discards = counters
        .drops
        .of(RECEIVE)
        .fold(0, |sum: u32, (reason, count)| {
            let good = !matches!(
                reason,
                DropReason::BadFrame | DropReason::NotSubscribed | DropReason::TooShort
            );
            if good { sum.wrapping_add(count) } else { sum }
        });
    set(bus, offset_of!(Statistics, in_discards), discards);
}

/// Copies CPU B's counts from its scratch pad to NIC memory.
#[inline(never)]
pub fn publish_b<B: Dispatch>(b: &mut SideB<B>) {
    if SPINE != 0 {
        for piece in 0..PIECES_OF_B {
            publish_piece_of_b(b, piece);
        }
        return;
    }
    let send_bds = send::bds_now(&b.send);
    let SideB {
        io, counts, send, ..
    } = b;
    let (bus, counters) = (&mut io.bus, &send.counters);
    publish_runs(bus, &COUNTED_B, counts);
    publish_drops(bus, counters.drops.of(SEND));
    let (idle, alone) = bus.core(|core| (core.idle, core.is_alone()));
    if !alone {
        bus.store(Extension::IdleB.nic_address(), idle);
    }
    set64(bus, offset_of!(Statistics, out_octets), counters.octets);
    publish_frames(bus, offset_of!(Statistics, out_unicast), &counters.frames);
    // Dropped frames: bad ones and good ones.
    let mut sums = [0u32; 2];
    for (reason, count) in counters.drops.of(SEND) {
        let [errors, discards] = &mut sums;
        let sum = match reason {
            DropReason::BadSendBd | DropReason::SendTooLong | DropReason::SendFault => errors,
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

/// Pieces in which CPU B copies its counts where it looks after extensions meanwhile: one in each
/// turn of housekeeping, as many as there are turns between two copies.
pub const PIECES_OF_B: u32 = 10;

/// Copies a piece of CPU B's counts, and looks after extensions behind it. One function with an arm
/// for each piece.
#[inline(never)]
pub fn publish_piece_of_b<B: Dispatch>(b: &mut SideB<B>, piece: u32) {
    let send_bds = send::bds_now(&b.send);
    let SideB {
        io,
        counts,
        send,
        spine,
        ..
    } = b;
    let (bus, counters) = (&mut io.bus, &send.counters);
    let drops = |from: usize| counters.drops.of(SEND).skip(from).take(DROPS_AT_ONCE);
    // Word by word: to copy a table of them takes longer than all the rest.
    match piece {
        0 => {
            set(
                bus,
                offset_of!(Statistics, send_consumer_updates),
                counters.updates,
            );
            set(
                bus,
                offset_of!(Statistics, send_producer_updates),
                counters.producer_updates,
            );
            set(
                bus,
                offset_of!(Statistics, transmit_buffer_retries),
                counters.buffer_retries,
            );
        }
        1 => {
            set(
                bus,
                offset_of!(Statistics, send_threshold_hits),
                counters.threshold_hits,
            );
            set(
                bus,
                offset_of!(Statistics, mac_transmit_ring_full),
                counters.mac_ring_full,
            );
            set(
                bus,
                offset_of!(Statistics, dma_read_ring_full),
                counters.read_ring_full,
            );
        }
        2 => {
            set(
                bus,
                offset_of!(Statistics, dma_read_master_aborts),
                counters.read_aborts,
            );
            set(bus, offset_of!(Statistics, send_bds), send_bds);
            set(bus, offset_of!(Statistics, total_send_bds), send_bds);
        }
        3 => {
            let mut sums = [0u32; 2];
            for (reason, count) in counters.drops.of(SEND) {
                let [errors, discards] = &mut sums;
                let sum = match reason {
                    DropReason::BadSendBd | DropReason::SendTooLong | DropReason::SendFault => {
                        errors
                    }
                    _ => discards,
                };
                *sum = sum.wrapping_add(count);
            }
            let [errors, discards] = sums;
            set(bus, offset_of!(Statistics, out_errors), errors);
            set(bus, offset_of!(Statistics, out_discards), discards);
        }
        4 => {
            let idle = bus.core(|core| core.idle);
            bus.store(Extension::IdleB.nic_address(), idle);
            set64(bus, offset_of!(Statistics, out_octets), counters.octets);
        }
        5 => {
            let [unicast, multicast, broadcast] = &counters.frames.0;
            let first = offset_of!(Statistics, out_unicast);
            set64(bus, first, *unicast);
            set64(bus, first + 8, *multicast);
            set64(bus, first + 16, *broadcast);
        }
        6 | 7 => {
            // These take longest: a look between two halves, too.
            let first = (piece as usize - 6) * 2 * DROPS_AT_ONCE;
            publish_drops(&mut io.bus, drops(first));
            watch::glance(spine, io);
            publish_drops(&mut io.bus, drops(first + DROPS_AT_ONCE));
        }
        piece => {
            let half = COUNTED_B.len() / 2;
            let (front, rest) = COUNTED_B.split_at(half);
            publish_runs(bus, if piece == 8 { front } else { rest }, counts);
        }
    }
    watch::glance(spine, io);
}

/// Drop counts of half a piece.
const DROPS_AT_ONCE: usize = SEND.len().div_ceil(4);

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

/// Clears the counts of CPU B.
pub fn clear_b<B: Dispatch>(b: &mut SideB<B>) {
    b.send.counters = SendCounters::new();
    for (reason, _) in b.send.counters.drops.of(SEND) {
        b.io.bus.store(DROP_COUNTS + (reason.number() << 2), 0);
    }
    publish_b(b);
}

/// Publishes how often the handlers of a side ran.
fn publish_runs<B: Bus>(bus: &mut B, side: &[u8], counts: &[u32; HANDLER_COUNT]) {
    for index in side {
        if let Some(count) = counts.get(usize::from(*index)) {
            bus.store(HANDLER_COUNTS + (u32::from(*index) << 2), *count);
        }
    }
}

/// Publishes the frames that one side dropped, and traces new drops.
fn publish_drops<B: Dispatch>(bus: &mut B, drops: impl Iterator<Item = (DropReason, u32)>) {
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
