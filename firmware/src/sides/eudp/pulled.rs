//! The events of descriptors that CPU B has [pulled](super::pulls): they have come, or will not.

use super::EudpB;
use super::sender::Sender;
use crate::io::IoB;
use crate::io::note::ReadNote;
use crate::path::send::SendPath;
use host_interface::eudp::{DESCRIPTOR_BYTES, DescriptorWord};
use tigon2_chip::dma::DmaDescriptorAt;
use tigon2_hal::events::Dispatch;
use tigon2_hal::schedule::barrier;

/// A descriptor that names too many pieces.
const NONSENSE: u32 = 0xFF << 24;

/// DMA Read Complete: descriptors are in their slots.
#[inline(never)]
pub fn arrived<B: Dispatch>(eudp: &mut EudpB, send: &mut SendPath, io: &mut IoB<B>, what: u32) {
    if let Some(sender) = eudp.0.first_mut() {
        let to_send = sender.pulls.arrived(io, what);
        sender.refilled(to_send, send, io);
    }
}

/// DMA read attention: the transfer at `descriptor` has failed. What its slots would have had is
/// refused when its turn comes.
#[inline(never)]
pub fn failed<B: Dispatch>(
    eudp: &mut EudpB,
    send: &mut SendPath,
    io: &mut IoB<B>,
    descriptor: u32,
    what: u32,
) {
    let at = DmaDescriptorAt(descriptor);
    let bus = &mut io.bus;
    let mut slot = bus.load(at.local());
    let end = slot + (bus.load(at.length()) & 0xFFFF);
    while slot < end {
        bus.store(slot + DescriptorWord::Cookie as u32, 0);
        bus.store(slot + DescriptorWord::To as u32, NONSENSE);
        // A compiler would divide, which the chip cannot.
        slot = barrier(slot + DESCRIPTOR_BYTES);
    }
    io.read_ring.set_note(descriptor, ReadNote::NOTHING.word());
    arrived(eudp, send, io, what);
}

impl Sender {
    /// Descriptors have arrived: those to send are sent, and an endpoint that was waited for is
    /// closed.
    fn refilled<B: Dispatch>(
        &mut self,
        to_send: Option<u32>,
        send: &mut SendPath,
        io: &mut IoB<B>,
    ) {
        if let Some(endpoint) = to_send {
            self.is_supplied_again(endpoint, io);
        }
        self.close_if_asked(send, io);
        self.go_on(send, io);
    }
}
