//! Reports what RDMA is done with: a datagram alone, two in one transfer, or later.

use super::completion::{Completions, Reporter};
use super::delivery::Work;
use super::pair::DESCRIPTORS;
use crate::io::IoA;
use crate::io::note::WriteNote;
use tigon2_hal::events::Dispatch;

impl Work {
    /// The oldest datagram is complete, for which [pairs are](Pairs::are_for): its completion is held,
    /// or queued with the one that is held, or alone.
    #[inline(never)]
    pub(super) fn complete_long<B: Dispatch>(&mut self, queue: &mut Completions, io: &mut IoA<B>) {
        self.is_unreported = !io.has_write_room(DESCRIPTORS);
        if self.is_unreported {
            return self.flights.stop();
        }
        let Work { flights, pairs, .. } = self;
        let endpoint = flights.oldest().datagram.endpoint;
        let entry = flights.next_entry();
        if pairs.held().is_some() {
            pairs.complete_both(queue, io, &entry);
        } else if flights.has_another_long(endpoint) {
            pairs.hold(io, endpoint, &entry);
        } else {
            queue.complete(io, &entry, WriteNote::QUIET);
        }
        flights.finish_completed();
    }

    /// The datagram behind the one whose completion is held gets none.
    pub(super) fn complete_held<B: Dispatch>(&mut self, reporter: &mut Reporter, io: &mut IoA<B>) {
        if self.pairs.must_complete() {
            self.is_unreported = true;
            self.report(reporter, io);
        }
    }

    /// Reports what is complete: the oldest datagram, or only the one in front of it. It stays
    /// unreported if there is no write descriptor.
    #[inline(never)]
    pub(super) fn report<B: Dispatch>(&mut self, reporter: &mut Reporter, io: &mut IoA<B>) {
        if !self.is_unreported {
            return;
        }
        if !io.has_write_room(DESCRIPTORS) {
            return self.flights.stop();
        }
        self.is_unreported = false;
        let Work { flights, pairs, .. } = self;
        if let Some(endpoint) = pairs.held()
            && let Some(queue) = reporter.queues.get_mut(endpoint as usize)
        {
            pairs.complete(queue, io);
        }
        if pairs.was_due() {
            return flights.go_on();
        }
        let endpoint = flights.oldest().datagram.endpoint;
        if let Some(queue) = reporter.queues.get_mut(endpoint as usize) {
            flights.complete(queue, io, WriteNote::QUIET);
        }
        flights.finish_completed();
    }
}
