//! Send BDs whose data was read: the host gets them back, and is told.
//!
//! Hardware reference, section 13, steps 6 and 8. The extension word says at once how far
//! they are; the index in host memory and the interrupt follow by number or time.

use crate::dma::read;
use crate::shared::{SEND_INDEX, SEND_INTERRUPTS};
use crate::{SideB, filter, timer};
use host_interface::bd::destination::UNICAST;
use host_interface::extension::Extension;
use tigon2_chip::events::EventBit;
use tigon2_hal::events::Dispatch;

/// BDs whose data has been read, in one go.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// How many.
    count: u32,
    /// The notes of their transfers, together.
    notes: u32,
    /// Frames among them that are for one station.
    unicast: u32,
}

impl Sent {
    /// None.
    pub const NONE: Sent = Sent {
        count: 0,
        notes: 0,
        unicast: 0,
    };

    /// So many, of so many frames.
    #[cfg(feature = "lanes")]
    pub const fn of(count: u32, frames: u32) -> Sent {
        Sent {
            count,
            notes: 0,
            unicast: frames,
        }
    }

    /// One more, by the note of its transfer.
    #[inline(always)]
    pub fn add<B: Dispatch>(&mut self, b: &mut SideB<B>, note: u32) {
        if note & read::FIRST != 0 {
            let start = note >> read::START_SHIFT & !7;
            if filter::is_of_group(&mut b.bus, start) {
                count_group(b, start);
            } else {
                self.unicast += 1;
            }
        }
        self.count += 1;
        self.notes |= note;
    }

    /// Whether there are any.
    #[inline(always)]
    pub const fn any(&self) -> bool {
        self.count != 0
    }
}

/// A frame for a group was sent.
#[inline(never)]
fn count_group<B: Dispatch>(b: &mut SideB<B>, start: u32) {
    let destination = filter::destination(&mut b.bus, start);
    b.counters.out(destination, 1);
}

/// BDs were consumed: the extension word says so at once, the index in host memory and
/// the interrupt follow by count or time.
#[inline(always)]
pub fn consumed<B: Dispatch>(b: &mut SideB<B>, sent: &Sent) {
    let send = &mut b.send;
    b.counters.out(UNICAST, sent.unicast);
    send.now |= sent.notes & read::NOW;
    send.unreported += sent.count;
    // None was skipped in front of these: skipping waits until nothing is being read.
    send.consumed = (send.consumed + sent.count) & send.bds.mask();
    tell(b);
}

/// The host may be told of what was consumed.
#[inline(always)]
pub(super) fn tell<B: Dispatch>(b: &mut SideB<B>) {
    let send = &mut b.send;
    b.bus
        .store(Extension::SendConsumer.nic_address(), send.consumed);
    let full = send.max_bds != 0 && send.unreported >= send.max_bds;
    if send.now != 0 || send.ticks == 0 {
        return b.bus.set(EventBit::UpdateSendConsumer);
    }
    if full && !send.interrupts_by_time {
        return threshold_hit(b);
    }
    if !b.deadlines.send.is_armed() {
        let ticks = send.ticks;
        timer::arm_send(b, ticks);
    }
    if full {
        threshold_hit(b);
    }
}

/// So many BDs were consumed that the host is to be told.
#[inline(always)]
fn threshold_hit<B: Dispatch>(b: &mut SideB<B>) {
    b.counters.threshold_hits += 1;
    b.bus.set(EventBit::UpdateSendConsumer);
}

/// Update send consumer. What is left to do is word to CPU A, for hosts that do not read
/// the index by MMIO or want the interrupt. With "coalesced update only" the update by
/// number of BDs is silent (13, steps 6 and 8); the interrupt comes when the time is up.
#[inline(always)]
pub fn update_consumer<B: Dispatch>(b: &mut SideB<B>) {
    let send = &mut b.send;
    let index = send.consumed;
    let silent = send.interrupts_by_time && send.now == 0 && b.deadlines.send.is_armed();
    if index != send.reported || send.silent && !silent {
        let interrupts = !silent && send.interrupts;
        if send.has_index {
            SEND_INDEX.set(&b.me, &mut b.bus, index);
        }
        if interrupts {
            send.interrupts_wanted = send.interrupts_wanted.wrapping_add(1);
            SEND_INTERRUPTS.set(&b.me, &mut b.bus, send.interrupts_wanted);
        }
        send.reported = index;
        send.silent = silent;
        if interrupts || send.has_index {
            b.ring();
        }
        b.counters.updates = b.counters.updates.wrapping_add(1);
    }
    b.send.unreported = 0;
    if !silent {
        b.send.now = 0;
        b.deadlines.send.disarm();
    }
    b.bus.clear(EventBit::UpdateSendConsumer);
}
