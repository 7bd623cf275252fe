//! Returns consumed send BDs to the host and reports them.
//!
//! Hardware reference, section 13, steps 6 and 8. The extension word shows the consumer at once;
//! the index in host memory and the interrupt follow by count or time.

use super::SendPath;
use crate::io::deadline::SlotB;
use crate::io::note::ReadNote;
use crate::io::{IoB, filter};
use crate::memory::shared::{SEND_INDEX, SEND_INTERRUPTS};
use host_interface::bd::destination::UNICAST;
use host_interface::extension::Extension;
use tigon2_chip::events::EventBit;
use tigon2_hal::events::Dispatch;

/// BDs whose data has been read, counted together.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// Their number.
    count: u32,
    /// The notes of their transfers, OR-ed together.
    notes: u32,
    /// Unicast frames among them.
    unicast: u32,
}

impl Sent {
    /// None.
    pub const NONE: Sent = Sent {
        count: 0,
        notes: 0,
        unicast: 0,
    };

    /// Adds one, by the note of its transfer.
    #[inline(always)]
    pub fn add<B: Dispatch>(&mut self, send: &mut SendPath, io: &mut IoB<B>, note: ReadNote) {
        if let Some(start) = note.start() {
            if filter::is_of_group(&mut io.bus, start) {
                count_group(send, io, start);
            } else {
                self.unicast += 1;
            }
        }
        self.count += 1;
        self.notes |= note.word();
    }

    /// Whether there are any.
    #[inline(always)]
    pub const fn any(&self) -> bool {
        self.count != 0
    }
}

/// Counts a sent frame with a group address.
#[inline(never)]
fn count_group<B: Dispatch>(send: &mut SendPath, io: &mut IoB<B>, start: u32) {
    let destination = filter::destination(&mut io.bus, start);
    send.counters.sent(destination, 1);
}

/// Records consumed BDs: updates the extension word at once; the index in host memory and the
/// interrupt follow by count or time.
#[inline(always)]
pub fn consumed<B: Dispatch>(send: &mut SendPath, io: &mut IoB<B>, sent: &Sent) {
    send.counters.sent(UNICAST, sent.unicast);
    send.now |= ReadNote::now_of(sent.notes);
    send.unreported += sent.count;
    // None before these was skipped: skipping waits until no data is being read.
    send.consumed = (send.consumed + sent.count) & send.bds.mask();
    report(send, io);
}

/// Reports consumed BDs if it is time.
#[inline(always)]
pub(super) fn report<B: Dispatch>(send: &mut SendPath, io: &mut IoB<B>) {
    io.bus
        .store(Extension::SendConsumer.nic_address(), send.consumed);
    let full = send.max_bds != 0 && send.unreported >= send.max_bds;
    if send.now != 0 || send.ticks == 0 {
        return io.bus.set(EventBit::UpdateSendConsumer);
    }
    if full && !send.interrupts_by_time {
        return threshold_hit(send, io);
    }
    if !io.is_armed(SlotB::Send) {
        io.arm(SlotB::Send, send.ticks);
    }
    if full {
        threshold_hit(send, io);
    }
}

/// Whether enough BDs were consumed for a report.
#[inline(always)]
fn threshold_hit<B: Dispatch>(send: &mut SendPath, io: &mut IoB<B>) {
    send.counters.threshold_hits += 1;
    io.bus.set(EventBit::UpdateSendConsumer);
}

/// Update Send Consumer. Notifies CPU A for hosts that do not read the index by MMIO or that want
/// the interrupt. With "coalesced update only" an update by the number of BDs is silent (13, steps
/// 6 and 8); the interrupt follows when the time is over.
#[inline(always)]
pub fn update_consumer<B: Dispatch>(send: &mut SendPath, io: &mut IoB<B>) {
    let index = send.consumed;
    let silent = send.interrupts_by_time && send.now == 0 && io.is_armed(SlotB::Send);
    if index != send.reported || send.silent && !silent {
        let interrupts = !silent && send.interrupts;
        if send.has_index {
            SEND_INDEX.set(&io.me, &mut io.bus, index);
        }
        if interrupts {
            send.interrupts_wanted = send.interrupts_wanted.wrapping_add(1);
            SEND_INTERRUPTS.set(&io.me, &mut io.bus, send.interrupts_wanted);
        }
        send.reported = index;
        send.silent = silent;
        if interrupts || send.has_index {
            io.ring_a();
        }
        send.counters.updates = send.counters.updates.wrapping_add(1);
    }
    send.unreported = 0;
    if !silent {
        send.now = 0;
        io.disarm(SlotB::Send);
    }
    io.bus.clear(EventBit::UpdateSendConsumer);
}
