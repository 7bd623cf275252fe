//! What follows when a transfer is done.
//!
//! Hardware reference, sections 6, 13 and 14. Only here all [kinds](crate::io::note) of
//! transfers are known: each has an arm.

use super::{SideA, SideB};
use crate::control::host_events;
use crate::io::IoA;
use crate::io::buffer_ring::RingId;
use crate::io::note::{ReadKind, ReadNote, WriteKind, WriteNote};
use crate::memory::layout::QUEUES;
use crate::path::buffer_fetch::{self, queues};
use crate::path::send::{self, Sent};
use tigon2_chip::events::EventBit;
use tigon2_hal::assist::{Finished, Walk};
use tigon2_hal::events::Dispatch;

/// DMA read complete.
#[inline(always)]
pub fn read_complete<B: Dispatch>(b: &mut SideB<B>) {
    let mut walk = b.io.read_ring.finished(&mut b.io.bus);
    let mut sent = Sent::NONE;
    while let Some(done) = b.io.read_ring.take(&mut walk) {
        let note = ReadNote::of_word(done.note);
        if !note.is_plain_data() {
            others(b, done);
            if note.kind() != ReadKind::SendData {
                continue;
            }
        }
        sent.add(&mut b.send, &mut b.io, note);
    }
    b.io.read_ring.acknowledge(&mut b.io.bus, walk);
    send::data_first(&b.send, &mut b.io);
    if sent.any() {
        send::consumed(&mut b.send, &mut b.io, &sent);
    }
}

/// Something else than the data of a frame that needs nothing more.
#[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_b.text"))]
#[inline(never)]
fn others<B: Dispatch>(b: &mut SideB<B>, done: Finished) {
    let SideB {
        io,
        send,
        buffer_fetch,
        ..
    } = b;
    let note = ReadNote::of_word(done.note);
    let ring = match note.kind() {
        ReadKind::Nothing => return,
        ReadKind::SendData => return send::held_arrived(send, io, &done),
        ReadKind::SendBds => return send::bds_arrived(send, io, note.after()),
        ReadKind::StandardBds => RingId::Standard,
        ReadKind::MiniBds => RingId::Mini,
        ReadKind::JumboBds => RingId::Jumbo,
        ReadKind::QueueBds | ReadKind::QueueControl => {
            if QUEUES != 0 {
                queues::arrived(&mut buffer_fetch.queues, io, note);
            }
            return;
        }
    };
    buffer_fetch::arrived(buffer_fetch, io, ring, note.after());
}

/// DMA write complete. Most transfers are data and return BDs, which need nothing more: the
/// event is held back unless somebody [awaits](IoA::await_writes) the end of one.
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
}

/// Looks for indices among the transfers that are done. Returns whether the host is to be
/// interrupted for one.
#[inline(always)]
fn indices<B: Dispatch>(io: &mut IoA<B>, walk: &mut Walk) -> bool {
    let mut interrupt = false;
    while let Some(done) = io.write_ring.take(walk) {
        match WriteNote::of_word(done.note).kind() {
            WriteKind::Quiet | WriteKind::ReceiveData => continue,
            WriteKind::SendIndex => interrupt |= io.interrupt.for_send,
            WriteKind::ReturnIndex | WriteKind::QueueStatus => {
                interrupt |= io.interrupt.for_receive;
            }
            WriteKind::EventIndex => {
                let local = done.local(&mut io.bus);
                host_events::reported(&mut io.bus, local);
                interrupt |= io.interrupt.for_events;
            }
        }
        io.has_ended();
    }
    interrupt
}
