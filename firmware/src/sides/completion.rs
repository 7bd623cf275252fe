//! Actions on completed transfers.
//!
//! Hardware reference, sections 6, 13 and 14. Only this module knows all [kinds](crate::io::note)
//! of transfers, and has an arm for each.

use super::{SideA, SideB, eudp, spine};
use crate::control::host_events;
use crate::io::IoA;
use crate::io::buffer_ring::RingId;
use crate::io::note::{ReadKind, ReadNote, WriteKind, WriteNote};
use crate::memory::layout::{EUDP, QUEUES, SPINE};
use crate::path::buffer_fetch::{self, queues};
use crate::path::send::{self, Sent};
use tigon2_chip::events::EventBit;
use tigon2_hal::assist::{Finished, Walk};
use tigon2_hal::events::Dispatch;
use tigon2_hal::schedule::barrier;

/// DMA Read Complete.
#[inline(always)]
pub fn read_complete<B: Dispatch>(b: &mut SideB<B>) {
    let mut sent = Sent::NONE;
    let mut walk = b.io.read_ring.finished(&mut b.io.bus);
    while let Some(done) = b.io.read_ring.take(&mut walk) {
        let note = ReadNote::of_word(done.note);
        if !note.is_plain_data() {
            if SPINE != 0 && note.is_message() {
                spine::watch::fetched(&mut b.spine, &mut b.io);
                continue;
            }
            others(b, done);
            if note.kind() != ReadKind::SendData {
                continue;
            }
        }
        sent.add(&mut b.send, &mut b.io, note);
    }
    b.io.read_ring.acknowledge(&mut b.io.bus, walk);
    send::data_first(&mut b.io);
    if sent.any() {
        send::consumed(&mut b.send, &mut b.io, &sent);
    }
}

/// What has arrived but parts of endpoints' frames, in SRAM, while endpoints have the scratch pad.
/// Returns whether it was not an endpoint's.
#[inline(never)]
pub fn read_slowly<B: Dispatch>(b: &mut SideB<B>, done: Finished) -> bool {
    let note = ReadNote::of_word(done.note);
    if note.is_of_part() {
        // A piece's part is there with its last one.
        return false;
    }
    if EUDP != 0
        && let Some(queue) = note.pulled()
    {
        eudp::pulled::arrived(&mut b.eudp, &mut b.send, &mut b.io, queue);
        return false;
    }
    read_for_host(b, done);
    true
}

/// The same of the host's.
#[inline(never)]
fn read_for_host<B: Dispatch>(b: &mut SideB<B>, done: Finished) {
    let note = ReadNote::of_word(done.note);
    let mut sent = Sent::NONE;
    if !note.is_plain_data() {
        act(b, done);
    }
    if note.kind() == ReadKind::SendData {
        sent.add(&mut b.send, &mut b.io, note);
        send::consumed(&mut b.send, &mut b.io, &sent);
    }
}

/// Handles everything except data of frames that needs no further action.
#[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_b.text"))]
#[inline(never)]
fn others<B: Dispatch>(b: &mut SideB<B>, done: Finished) {
    act(b, done);
}

#[inline(always)]
fn act<B: Dispatch>(b: &mut SideB<B>, done: Finished) {
    let SideB {
        io,
        send,
        buffer_fetch,
        ..
    } = b;
    let note = ReadNote::of_word(done.note);
    // The kinds of each run first, and apart: the compiler makes a match of so many kinds a jump
    // table in SRAM.
    if note.kind() == ReadKind::SendBds {
        return send::bds_arrived(send, io, note.after());
    }
    let note = ReadNote::of_word(barrier(note.word()));
    let ring = if note.kind() == ReadKind::StandardBds {
        RingId::Standard
    } else {
        match ReadNote::of_word(barrier(note.word())).kind() {
            ReadKind::SendData => return send::held_arrived(send, io, &done),
            ReadKind::MiniBds => RingId::Mini,
            ReadKind::JumboBds => RingId::Jumbo,
            ReadKind::QueueBds | ReadKind::QueueControl => {
                if QUEUES != 0 {
                    queues::arrived(&mut buffer_fetch.queues, io, note);
                }
                return;
            }
            ReadKind::Nothing | ReadKind::SendBds | ReadKind::StandardBds => return,
        }
    };
    buffer_fetch::arrived(buffer_fetch, io, ring, note.after());
}

/// DMA Write Complete. Most transfers are data and return BDs, which need no further action: the
/// event stays masked unless someone [awaits](IoA::await_writes) a completion.
#[inline(always)]
pub fn write_complete<B: Dispatch>(a: &mut SideA<B>) {
    let io = &mut a.io;
    let mut walk = io.write_ring.finished(&mut io.bus);
    let mut interrupt = false;
    if io.awaits_end() {
        interrupt = indices(io, &mut walk);
    } else {
        walk.pass();
    }
    io.write_ring.acknowledge(&mut io.bus, walk);
    io.free();
    io.try_held_again();
    if !io.awaits_anything() {
        io.bus.clear(EventBit::DmaWriteComplete);
    }
    if interrupt {
        io.raise_interrupt();
    }
    eudp::events::written(&mut a.receive, &mut a.eudp, &mut a.io);
}

/// Looks for indices among the completed transfers. Returns whether one of them requests an
/// interrupt.
#[inline(always)]
fn indices<B: Dispatch>(io: &mut IoA<B>, walk: &mut Walk) -> bool {
    let mut interrupt = false;
    while let Some(done) = io.write_ring.take(walk) {
        let note = WriteNote::of_word(done.note);
        if EUDP != 0 && note.is_datagram() {
            let sum = done.sum(&mut io.bus);
            io.note_datagram(sum);
            io.has_ended();
            continue;
        }
        let kind = note.kind();
        match kind {
            WriteKind::Quiet | WriteKind::ReceiveData => continue,
            WriteKind::EventIndex => {
                let local = done.local(&mut io.bus);
                host_events::reported(&mut io.bus, local);
            }
            WriteKind::SendIndex | WriteKind::ReturnIndex | WriteKind::QueueStatus => {}
        }
        interrupt |= io.interrupt.follows(kind);
        io.has_ended();
    }
    interrupt
}
