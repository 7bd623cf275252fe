//! Handles a frame that could not be written to the host's memory.
//!
//! Its return BD, which follows the data in the same ring, reports zero bytes. The frame's bytes
//! in the receive buffer are freed like those of a dropped frame. So are those of a frame that an
//! extension has sent to another card.

use super::frame::wrapped;
use super::queues::state::Queues;
use super::state::Receive;
use crate::io::IoA;
use crate::io::note::{WriteKind, WriteNote};
use crate::memory::layout::{RETURN_SLOTS, SPINE};
use host_interface::bd::{BdErrors, BdFlags, ReceiveBdAt};
use host_interface::extension::DropReason;
use tigon2_chip::bits::DmaState;
use tigon2_chip::dma::DmaDescriptorAt;
use tigon2_hal::Bus;
use tigon2_hal::events::Dispatch;

/// Data of a frame; the assist is paused at its descriptor.
pub fn data<B: Dispatch>(receive: &mut Receive, queues: &mut Queues, io: &mut IoA<B>, failed: u32) {
    let IoA {
        bus, write_ring, ..
    } = io;
    let note = |descriptor| WriteNote::of_word(write_ring.note(descriptor));
    let is_last = |descriptor| note(descriptor).kind() == WriteKind::ReceiveData;
    // The last piece of the frame names its return BD.
    let mut last = failed;
    while !is_last(last) {
        match write_ring.behind(last) {
            Some(next) => last = next,
            None => return,
        }
    }
    // A later frame frees what this one took.
    let mut next = write_ring.behind(last);
    let mut later = false;
    while let Some(descriptor) = next {
        later |= is_last(descriptor) || SPINE != 0 && frees(bus, descriptor);
        next = write_ring.behind(descriptor);
    }
    let slot = note(last).slot();
    let last_at = DmaDescriptorAt(last);
    let end = bus.load(last_at.local()) + (bus.load(last_at.length()) & 0xFFFF) + receive.cut;
    let refused = refuse(bus, slot);
    if last == failed && !later && !io.frees_later() {
        io.free_later(wrapped(receive.base, (end + 7) & !7));
        io.await_writes();
    }
    if refused {
        receive.counters.drops.count(DropReason::ReceiveFault);
        if queues.is_open() {
            queues.refused(&mut io.bus, slot);
        } else {
            receive.untidy = RETURN_SLOTS;
        }
    }
}

/// A frame that an extension has sent elsewhere; the assist is paused at its descriptor. Its bytes
/// are freed as if it had been written.
pub fn forwarded<B: Dispatch>(receive: &Receive, io: &mut IoA<B>, failed: u32) {
    let IoA {
        bus, write_ring, ..
    } = io;
    if !frees(bus, failed) {
        return;
    }
    let mut next = write_ring.behind(failed);
    while let Some(descriptor) = next {
        if frees(bus, descriptor) {
            return;
        }
        next = write_ring.behind(descriptor);
    }
    let at = DmaDescriptorAt(failed);
    let end = bus.load(at.local()) + (bus.load(at.length()) & 0xFFFF);
    if !io.frees_later() {
        io.free_later(wrapped(receive.base, (end + 7) & !7));
        io.await_writes();
    }
}

/// Whether a transfer frees its bytes in the receive buffer.
fn frees<B: Dispatch>(bus: &mut B, descriptor: u32) -> bool {
    DmaState::from_bits(bus.load(DmaDescriptorAt(descriptor).state())).free_rx_buffer()
}

/// Sets the length of the return BD at a NIC address to 0. Returns whether it was not 0 before.
fn refuse<B: Bus>(bus: &mut B, slot: u32) -> bool {
    const FLAGS: u32 = BdFlags::new()
        .with_transport_checksum(true)
        .with_ip_checksum(true)
        .with_vlan_tag(true)
        .into_bits() as u32;
    const ERROR: u32 = BdFlags::new().with_error(true).into_bits() as u32;
    const TRUNCATED: u32 = BdErrors::new().with_truncated(true).into_bits() as u32;
    let slot = ReceiveBdAt(slot);
    let length = bus.load(slot.index_and_length());
    bus.store(slot.index_and_length(), length & 0xFFFF_0000);
    let flags = bus.load(slot.kind_and_flags());
    bus.store(slot.kind_and_flags(), flags & !FLAGS | ERROR);
    bus.store(slot.checksums(), 0);
    bus.store(slot.errors_and_vlan(), TRUNCATED << 16);
    length & 0xFFFF != 0
}
