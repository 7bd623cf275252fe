//! Recovery of a DMA channel that stopped with an error.
//!
//! Hardware reference, sections 6.1 and 6.2: the attention events, bit 0 of the channel's state,
//! and the pause of the assist "used round error recovery" (all I). What the channel does after an
//! error is unknown; this code assumes that it stays at its descriptor until software resets it.
//! The host named memory that it does not have, so recovery skips the descriptor, drops what it
//! was for, and continues in both directions.

use super::{SideA, SideB, eudp, spine};
use crate::io::buffer_ring::RingId;
use crate::io::direct;
use crate::io::note::{ReadKind, ReadNote, WriteKind, WriteNote};
use crate::io::recovery::WORDS;
use crate::memory::layout::{EUDP, QUEUES, SPINE, STAGING, STATISTICS, TABLES_END};
use crate::memory::statistics::count;
use crate::path::buffer_fetch::{self, queues};
use crate::path::{receive, send};
use crate::record::log::log_warn;
use crate::record::trace;
use host_interface::event;
use host_interface::trace::Topic;
use spin::{Mutex, MutexGuard};
use tigon2_chip::Register;
use tigon2_chip::bits::{AssistState, DmaState};
use tigon2_chip::dma::DmaDescriptorAt;
use tigon2_hal::events::Dispatch;

/// DMA read attention.
#[inline(never)]
pub fn read_attention<B: Dispatch>(b: &mut SideB<B>) {
    let state = b.io.bus.read(Register::DmaReadState);
    let left = b.io.bus.read(Register::DmaReadLength);
    if is_benign(state, left) {
        let clear = state & !DmaState::ERRORS;
        return b.io.bus.write(Register::DmaReadState, clear);
    }
    if EUDP != 0 {
        eudp::handlers::stop(&b.eudp, &mut b.send, &mut b.io);
    }
    log_warn!("DMA read error {=u32:#x}, {=u32} bytes left", state, left);
    b.send.counters.read_aborts += 1;
    b.io.begin_recovery();
    let paused = pause(&mut b.io.bus);
    if let Some(descriptor) = b.io.read_ring.current(&mut b.io.bus) {
        let note = b.io.read_ring.note(descriptor);
        let kind = ReadNote::of_word(note).kind();
        describe(&mut b.io.bus, 0, state, descriptor, kind as u32);
        match kind {
            _ if EUDP != 0 && ReadNote::of_word(note).is_of_part() => {
                eudp::handlers::failed(&mut b.eudp, &mut b.send, &mut b.io, descriptor);
            }
            ReadKind::Nothing => {
                if SPINE != 0 && ReadNote::of_word(note).is_message() {
                    // It has no serial, so that it is dropped.
                    spine::watch::fetched(&mut b.spine, &mut b.io);
                    let nothing = ReadNote::NOTHING.word();
                    b.io.read_ring.set_note(descriptor, nothing);
                }
                if EUDP != 0
                    && let Some(what) = ReadNote::of_word(note).pulled()
                {
                    let SideB { eudp, send, io, .. } = b;
                    eudp::pulled::failed(eudp, send, io, descriptor, what);
                }
            }
            ReadKind::SendData => send::fault::data(&mut b.send, &mut b.io, descriptor),
            ReadKind::SendBds => bds(b, descriptor, None),
            ReadKind::StandardBds => bds(b, descriptor, Some(RingId::Standard)),
            ReadKind::MiniBds => bds(b, descriptor, Some(RingId::Mini)),
            ReadKind::JumboBds => bds(b, descriptor, Some(RingId::Jumbo)),
            // There are none of the kinds behind this one.
            _ if QUEUES == 0 => {}
            ReadKind::QueueBds => queue_bds(b, descriptor),
            ReadKind::QueueControl => {
                b.io.read_ring
                    .set_note(descriptor, ReadNote::NOTHING.word());
                queues::answer(&mut b.buffer_fetch.queues, &mut b.io, queues::UNREADABLE);
            }
        }
        b.io.read_ring.skip(&mut b.io.bus);
    }
    direct::reset(&mut b.io.bus, direct::READ);
    go_on(&mut b.io.bus, paused);
    b.io.end_recovery();
    if EUDP != 0 {
        eudp::handlers::stopped(&mut b.eudp, &mut b.send, &mut b.io);
    }
}

/// BDs could not be fetched: they are fetched again when the host rings next. Later requests are
/// abandoned as well, so that no BD arrives out of order.
fn bds<B: Dispatch>(b: &mut SideB<B>, failed: u32, ring: Option<RingId>) {
    let kind = ring.map_or(ReadKind::SendBds, RingId::kind);
    let mut next = Some(failed);
    let mut again = true;
    while let Some(descriptor) = next {
        let note = ReadNote::of_word(b.io.read_ring.note(descriptor));
        if note.kind() == kind {
            let nothing = ReadNote::NOTHING.word();
            b.io.read_ring.set_note(descriptor, nothing);
            let local = b.io.bus.load(DmaDescriptorAt(descriptor).local());
            let wanted = match ring {
                None => {
                    send::fault::bds(&mut b.send, local, again);
                    true
                }
                Some(id) => buffer_fetch::given_up(&mut b.buffer_fetch, id, local, again),
            };
            again &= !wanted;
        }
        next = b.io.read_ring.behind(descriptor);
    }
    b.io.post_error();
}

/// BDs of a queue could not be fetched: handled as those of a classic ring.
fn queue_bds<B: Dispatch>(b: &mut SideB<B>, failed: u32) {
    let note = |b: &SideB<B>, descriptor| ReadNote::of_word(b.io.read_ring.note(descriptor));
    let number = note(b, failed).queue();
    let local = b.io.bus.load(failed + 8);
    let mut next = Some(failed);
    while let Some(descriptor) = next {
        let note = note(b, descriptor);
        if note.kind() == ReadKind::QueueBds && note.queue() == number {
            let nothing = ReadNote::NOTHING.word();
            b.io.read_ring.set_note(descriptor, nothing);
        }
        next = b.io.read_ring.behind(descriptor);
    }
    queues::given_up(&mut b.buffer_fetch.queues, number, local);
    b.io.post_error();
}

/// DMA write attention.
#[inline(never)]
pub fn write_attention<B: Dispatch>(a: &mut SideA<B>) {
    let state = a.io.bus.read(Register::DmaWriteState);
    let left = a.io.bus.read(Register::DmaWriteLength);
    if is_benign(state, left) {
        let clear = state & !DmaState::ERRORS;
        return a.io.bus.write(Register::DmaWriteState, clear);
    }
    log_warn!("DMA write error {=u32:#x}, {=u32} bytes left", state, left);
    a.io.begin_recovery();
    let paused = pause(&mut a.io.bus);
    count!(a.io.bus, dma_write_master_aborts);
    if let Some(descriptor) = a.io.write_ring.current(&mut a.io.bus) {
        let note = a.io.write_ring.note(descriptor);
        let kind = WriteNote::of_word(note).kind();
        describe(&mut a.io.bus, 1, state, descriptor, kind as u32);
        let reported = written(a, descriptor, kind);
        a.io.write_ring.skip(&mut a.io.bus);
        direct::reset(&mut a.io.bus, direct::WRITE);
        go_on(&mut a.io.bus, paused);
        a.io.end_recovery();
        if reported {
            a.io.post_error(event::ERROR_BAD_CONFIGURATION);
        }
    } else {
        direct::reset(&mut a.io.bus, direct::WRITE);
        go_on(&mut a.io.bus, paused);
        a.io.end_recovery();
    }
}

/// A write to the host failed. Returns whether to report it: events that do not reach the host are
/// not reported.
fn written<B: Dispatch>(a: &mut SideA<B>, descriptor: u32, kind: WriteKind) -> bool {
    let note = WriteNote::of_word(a.io.write_ring.note(descriptor));
    if EUDP != 0 && note.is_of_datagram() {
        eudp::events::failed(&mut a.io, descriptor);
        return false;
    }
    let bus = &mut a.io.bus;
    let at = DmaDescriptorAt(descriptor);
    let (local, length) = (bus.load(at.local()), bus.load(at.length()) & 0xFFFF);
    match kind {
        WriteKind::SendIndex
        | WriteKind::ReturnIndex
        | WriteKind::EventIndex
        | WriteKind::QueueStatus => {
            let quiet = WriteNote::QUIET.word();
            a.io.write_ring.set_note(descriptor, quiet);
            a.io.has_ended();
            kind != WriteKind::EventIndex
        }
        WriteKind::Quiet | WriteKind::ReceiveData => {
            // The receive buffer lies after all tables.
            if local >= TABLES_END {
                if SPINE != 0 && note.is_of_extension() {
                    receive::fault::forwarded(&a.receive, &mut a.io, descriptor);
                    return false;
                }
                receive::fault::data(&mut a.receive, &mut a.queues, &mut a.io, descriptor);
                return true;
            }
            // An event, or the seed of a frame's sum: the frame's data reports the error.
            !((STAGING..STATISTICS).contains(&local) && length <= 8)
        }
    }
}

/// The end of a transfer at a 4 GB boundary is benign and cleared (6.1, I).
fn is_benign(state: u32, left: u32) -> bool {
    state & DmaState::ERRORS == DmaState::BOUNDARY_4GB && left == 0
}

/// The assist, which works on the rings of both CPUs: one of them at a time recovers. Nobody takes it
/// with endpoints or extensions, which have [words](crate::io::recovery) for that.
static ASSIST: Mutex<()> = Mutex::new(());

/// Has the assist load no descriptor. Its register and what else recovery touches are not one
/// CPU's alone: they are while it recovers, or has the guard.
fn pause<B: Dispatch>(bus: &mut B) -> Option<MutexGuard<'static, ()>> {
    let guard = if WORDS { None } else { Some(ASSIST.lock()) };
    let bit = AssistState::new().with_pause(true).into_bits();
    bus.modify(Register::AssistState, bit, bit);
    guard
}

fn go_on<B: Dispatch>(bus: &mut B, _paused: Option<MutexGuard<'static, ()>>) {
    let bit = AssistState::new().with_pause(true).into_bits();
    bus.modify(Register::AssistState, bit, 0);
}

/// Traces the failed transfer of a kind.
fn describe<B: Dispatch>(bus: &mut B, direction: u32, state: u32, descriptor: u32, kind: u32) {
    let host = bus.load_host_address(DmaDescriptorAt(descriptor).host());
    let arguments = [state, host.high, host.low, kind];
    trace::record(bus, Topic::Dma, direction, arguments);
}
