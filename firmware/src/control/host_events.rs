//! The event ring: what the firmware reports to the host.
//!
//! Host/NIC software interface, "Events". An event takes two transfers in one ring, the entry and
//! then the producer index, so the host never sees an index without its entry. Events that find no
//! room wait in the [outbox](crate::io::outbox).

use crate::io::IoA;
use crate::io::note::{WriteKind, WriteNote};
use crate::memory::config::Config;
use crate::memory::last_event::LAST_EVENT;
use crate::memory::statistics::count;
use crate::record::trace;
use host_interface::gencom::Gencom;
use host_interface::ring::{EVENT_BYTES, EVENT_ENTRIES, advance};
use host_interface::trace::Topic;
use tigon2_hal::Bus;
use tigon2_hal::events::Dispatch;

/// State of the event ring.
#[derive(Debug)]
pub struct HostEvents {
    /// The next entry.
    producer: u32,
    /// Events of the outbox that were already counted as delayed.
    delayed: usize,
    /// Error events that CPU B requested and CPU A has posted.
    errors_of_b: u32,
}

impl HostEvents {
    /// Nothing reported yet.
    pub const fn new() -> HostEvents {
        HostEvents {
            producer: 0,
            delayed: 0,
            errors_of_b: 0,
        }
    }

    /// Whether CPU B has requested more error events, by its count, than were posted.
    #[inline(always)]
    pub const fn is_behind(&self, errors_of_b: u32) -> bool {
        self.errors_of_b != errors_of_b
    }

    /// Posts an error event for each one that CPU B has counted.
    pub fn follow<B: Dispatch>(&mut self, io: &mut IoA<B>, errors_of_b: u32, code: u16) {
        while self.errors_of_b != errors_of_b {
            self.errors_of_b = self.errors_of_b.wrapping_add(1);
            io.post_error(code);
        }
    }
}

impl Default for HostEvents {
    fn default() -> HostEvents {
        HostEvents::new()
    }
}

/// Prepares the state that reporting a fatal error needs (`record::fatal`), if the host's event
/// ring is usable.
pub fn prepare<B: Dispatch>(io: &mut IoA<B>, config: &Config) {
    let ring = config.events.address;
    let index = config.event_producer;
    let usable = !ring.is_null() && !index.is_null() && (ring.low | index.low) & 3 == 0;
    let state = if usable { io.states.words } else { 0 };
    io.bus.store(LAST_EVENT.state(), state);
    io.bus.store(LAST_EVENT.producer(), 0);
}

/// Records that the host has received an event; `local` is the NIC address of its index.
pub fn reported<B: Bus>(bus: &mut B, local: u32) {
    let index = bus.load(local);
    bus.store(LAST_EVENT.producer(), index);
}

/// Why events wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// The host has to read its ring first.
    Ring,
    /// No write descriptors are free.
    Descriptors,
}

/// Sends waiting events as far as there is room. Counts each event that finds none once.
#[inline(never)]
pub fn send<B: Dispatch>(events: &mut HostEvents, io: &mut IoA<B>, config: &Config) {
    let Err(held) = send_waiting(events, io, config) else {
        return;
    };
    let waiting = io.outbox.len();
    for _ in events.delayed..waiting {
        match held {
            Held::Ring => count!(io.bus, event_ring_full),
            Held::Descriptors => count!(io.bus, event_producer_ring_full),
        }
        count!(io.bus, events_delayed);
    }
    events.delayed = waiting;
}

/// Sends waiting events as far as there is room.
///
/// # Errors
/// [`Held`] says why events are still waiting.
pub fn send_waiting<B: Dispatch>(
    events: &mut HostEvents,
    io: &mut IoA<B>,
    config: &Config,
) -> Result<(), Held> {
    while let Some(word) = io.outbox.oldest() {
        let producer = events.producer;
        let next = advance(producer, 1, EVENT_ENTRIES);
        let consumer = io.bus.load(Gencom::EventConsumer.nic_address());
        if next == consumer {
            return Err(Held::Ring);
        }
        if !io.has_write_room(2) {
            return Err(Held::Descriptors);
        }
        let entry = config.events.address.plus(producer * EVENT_BYTES);
        let index = WriteNote::of(WriteKind::EventIndex);
        io.put_words(entry, &[word, 0], WriteNote::QUIET);
        io.put_words(config.event_producer, &[next, 0], index);
        let arguments = [word, producer, 0, 0];
        trace::record(&mut io.bus, Topic::Event, word >> 24, arguments);
        events.producer = next;
        events.delayed = events.delayed.saturating_sub(1);
        io.outbox.sent();
    }
    Ok(())
}
