//! A frame that leaves while it is still being fetched, and one that is looked at while it arrives:
//! bytes move when they move.
//!
//! ```text
//!   read channel   ======= beat by beat =======>      TX buffer
//!   transmitter           8 bytes each access  ======>         wire
//! ```
//!
//! As long as nobody looks at memory between the beginning and the end of a transfer or of a frame,
//! all bytes may move at once; so they do, for speed. While the read channel brings bytes of the very
//! frame that is being sent, this module moves both sides access by access. A transmitter that
//! overtakes the bus then sends what stood in the TX buffer before, and says nothing of it.
//!
//! A frame that arrives is stored as far as it has come when a CPU reads `R[C4]`, when the write
//! channel begins a transfer and when the host looks. Who looks behind `R[C4]` finds old bytes.

use super::{Environment, Machine, environment};
use crate::timing::Timed;
use crate::timing::mac::MacEngine;
use tigon2_chip::Register;
use tigon2_model::Direction;

impl Machine {
    /// A transfer or a frame has begun.
    pub(super) fn look_for_cut_through(&mut self, mac: &MacEngine) {
        if !self.card.inspect().cuts_through() {
            self.cuts_through = false;
            return;
        }
        self.cuts_through = true;
        self.was_cut_through = true;
        self.fetch(mac.fetched());
    }

    /// The SRAM port has been given away: what it has moved is there.
    pub(super) fn follow_cut_through(&mut self, timed: &Timed) {
        if let Some(transfer) = self.card.inspect().dma_transfer(Direction::Read) {
            let arrived = timed.dma.arrived(&transfer);
            self.card
                .stages(&mut environment!(self))
                .dma_moved(Direction::Read, arrived);
        }
        self.fetch(timed.mac.fetched());
    }

    /// The transfer is about to end.
    pub(super) fn end_cut_through_transfer(&mut self, mac: &MacEngine) {
        self.fetch(mac.fetched());
        self.cuts_through = false;
    }

    /// The frame is about to have left.
    pub(super) fn end_cut_through(&mut self) {
        self.cuts_through = false;
        if std::mem::take(&mut self.was_cut_through) {
            self.fetch(u64::MAX);
        }
    }

    /// The other end of the line is about to look at the frame that leaves: what the transmitter has read
    /// of it is known, also when no transfer brings any more.
    pub(super) fn follow_sent(&mut self) {
        if self.was_cut_through
            && let Some(fetched) = self.timed.as_ref().map(|timed| timed.mac.fetched())
        {
            self.fetch(fetched);
        }
    }

    /// The transmitter was reset within its frame.
    pub(super) fn cut_frame(&mut self, timed: &mut Timed, cycle: u64) {
        let left = self.clock.nanoseconds(timed.mac.left(cycle));
        self.least_left = Some(self.least_left.map_or(left, |least| least.min(left)));
        timed.mac.cut(cycle, &mut timed.port);
        self.wire.cut(self.now());
        self.cuts_through = false;
        self.was_cut_through = false;
        self.note_sent(cycle);
    }

    /// Nanoseconds until the end of its CRC that a frame had left on the wire when firmware cut it
    /// off: the least of all that were. None if time is not modelled, or none was cut off.
    pub fn least_left_at_cut(&self) -> Option<u64> {
        self.least_left
    }

    /// Somebody is about to look at the frame that arrives: what has come of it is there.
    pub(super) fn follow_received(&mut self, timed: &Timed) {
        if !self.card.inspect().is_receiving() {
            return;
        }
        let Some((frame, _)) = self.wire.next_frame() else {
            return;
        };
        self.card
            .stages(&mut environment!(self))
            .received_so_far(frame, timed.mac.stored() as usize);
    }

    /// The same of a register's reader.
    #[inline]
    pub(super) fn follow_read(&mut self, timed: &Timed, offset: u32) {
        if offset == Register::RxProducer.offset() {
            self.follow_received(timed);
        }
    }

    fn fetch(&mut self, bytes: u64) {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        self.card
            .stages(&mut environment!(self))
            .transmit_fetched(bytes);
    }
}
