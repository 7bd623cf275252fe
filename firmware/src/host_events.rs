//! The event ring: what the firmware tells the host.
//!
//! Host/NIC software interface, "Events". An event is two transfers, the entry and the
//! producer index, in this order in one ring, so the host never sees an index without its
//! entry. What finds no room waits in a short queue.

use crate::SideA;
use crate::dma::{has_write_room, write, write_words};
use crate::layout::LAST_EVENT;
use crate::log::log_warn;
use crate::statistics::count;
use crate::trace;
use host_interface::event::{Event, EventCode};
use host_interface::gencom::Gencom;
use host_interface::ring::{EVENT_BYTES, EVENT_ENTRIES, advance};
use host_interface::trace::Topic;
use tigon2_hal::events::Dispatch;

/// Events that can wait, a power of two.
const WAITING: u32 = 8;

/// State of the event ring.
#[derive(Debug)]
pub struct HostEvents {
    /// The next entry of the host's ring.
    producer: u32,
    /// Events that wait for room.
    waiting: [u32; WAITING as usize],
    /// Position of the oldest of them.
    first: u32,
    /// How many there are.
    count: u32,
    /// Errors that CPU B wanted told of and that were.
    pub(crate) errors_of_b: u32,
}

impl HostEvents {
    /// Nothing told yet.
    pub const fn new() -> HostEvents {
        HostEvents {
            producer: 0,
            waiting: [0; WAITING as usize],
            first: 0,
            count: 0,
            errors_of_b: 0,
        }
    }
}

impl Default for HostEvents {
    fn default() -> HostEvents {
        HostEvents::new()
    }
}

/// Keeps ready what an event needs that tells of the end, see [`fatal`](crate::fatal):
/// from now on, if the host's event ring can be used.
pub fn prepare<B: Dispatch>(a: &mut SideA<B>) {
    let config = &a.config;
    let ring = config.events.address;
    let index = config.event_producer;
    let usable = !ring.is_none() && !index.is_none() && (ring.low | index.low) & 3 == 0;
    let state = if usable { a.states.words } else { 0 };
    a.bus.store(LAST_EVENT, state);
    a.bus.store(LAST_EVENT + 4, 0);
}

/// The host has been told of an event; `local` is where its index lies.
pub fn told<B: Dispatch>(bus: &mut B, local: u32) {
    let index = bus.load(local);
    bus.store(LAST_EVENT + 4, index);
}

/// Tells the host that something is wrong; `code` is one of the error codes.
#[inline(never)]
pub fn post_error<B: Dispatch>(a: &mut SideA<B>, code: u16) {
    count!(a, event_error);
    post(a, EventCode::Error, code);
}

/// Tells the host of an event, now or when there is room. With the queue full the event
/// is lost and counted: the host has not read its ring for long.
#[inline(never)]
pub fn post<B: Dispatch>(a: &mut SideA<B>, event: EventCode, code: u16) {
    let [word, _] = Event::new(event, code).pack();
    let queue = &mut a.host_events;
    if queue.count == WAITING {
        log_warn!("event {=u32:#x} lost", word);
        count!(a, event_ring_full);
        return;
    }
    let place = (queue.first + queue.count) & (WAITING - 1);
    if let Some(slot) = queue.waiting.get_mut(place as usize) {
        *slot = word;
        queue.count += 1;
    }
    match send_waiting(a) {
        Ok(()) => return,
        Err(Held::Ring) => count!(a, event_ring_full),
        Err(Held::Descriptors) => count!(a, event_producer_ring_full),
    }
    count!(a, events_delayed);
}

/// Why events wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// The host has to read its ring first.
    Ring,
    /// No write descriptors are free.
    Descriptors,
}

/// Sends what waits, as far as there is room.
///
/// # Errors
/// [`Held`] says why events are left.
pub fn send_waiting<B: Dispatch>(a: &mut SideA<B>) -> Result<(), Held> {
    while a.host_events.count != 0 {
        let producer = a.host_events.producer;
        let next = advance(producer, 1, EVENT_ENTRIES);
        let consumer = a.bus.load(Gencom::EventConsumer.nic_address());
        if next == consumer {
            return Err(Held::Ring);
        }
        if !has_write_room(a, 2) {
            return Err(Held::Descriptors);
        }
        let first = a.host_events.first;
        let word = match a.host_events.waiting.get(first as usize) {
            Some(word) => *word,
            None => return Ok(()),
        };
        let entry = a.config.events.address.plus(producer * EVENT_BYTES);
        let place = a.config.event_producer;
        // There is room for both, see above.
        if write_words(a, entry, &[word, 0], write::QUIET).is_err()
            || write_words(a, place, &[next, 0], write::EVENT_INDEX).is_err()
        {
            return Err(Held::Descriptors);
        }
        let arguments = [word, producer, 0, 0];
        trace::record(&mut a.bus, Topic::Event, word >> 24, arguments);
        a.host_events.producer = next;
        a.host_events.first = (first + 1) & (WAITING - 1);
        a.host_events.count -= 1;
    }
    Ok(())
}
