//! The event ring: what the firmware tells the host.
//!
//! Host/NIC software interface, "Events". An event is two transfers, the entry and the
//! producer index, in this order in one ring, so the host never sees an index without its
//! entry. What finds no room waits in a short queue.

use crate::Firmware;
use crate::dma::{write, write_words};
use crate::layout::LAST_EVENT;
use crate::log::log_warn;
use crate::statistics::count;
use crate::trace;
use host_interface::event::{Event, EventCode};
use host_interface::gencom::Gencom;
use host_interface::ring::{EVENT_BYTES, EVENT_ENTRIES, advance};
use host_interface::trace::Topic;
use tigon2_hal::Bus;

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
}

impl HostEvents {
    /// Nothing told yet.
    pub const fn new() -> HostEvents {
        HostEvents {
            producer: 0,
            waiting: [0; WAITING as usize],
            first: 0,
            count: 0,
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
pub fn prepare<B: Bus>(firmware: &mut Firmware<B>) {
    let config = &firmware.config;
    let ring = config.events.address;
    let index = config.event_producer;
    let usable = !ring.is_none() && !index.is_none() && (ring.low | index.low) & 3 == 0;
    let state = if usable {
        firmware.states.write_words
    } else {
        0
    };
    firmware.bus.store(LAST_EVENT, state);
    firmware.bus.store(LAST_EVENT + 4, 0);
}

/// The host has been told of an event; `local` is where its index lies.
pub fn told<B: Bus>(bus: &mut B, local: u32) {
    let index = bus.load(local);
    bus.store(LAST_EVENT + 4, index);
}

/// Tells the host that something is wrong; `code` is one of the error codes.
#[inline(never)]
pub fn post_error<B: Bus>(firmware: &mut Firmware<B>, code: u16) {
    count!(firmware, event_error);
    post(firmware, EventCode::Error, code);
}

/// Tells the host of an event, now or when there is room. With the queue full the event
/// is lost and counted: the host has not read its ring for long.
#[inline(never)]
pub fn post<B: Bus>(firmware: &mut Firmware<B>, event: EventCode, code: u16) {
    let [word, _] = Event::new(event, code).pack();
    let queue = &mut firmware.host_events;
    if queue.count == WAITING {
        log_warn!("event {=u32:#x} lost", word);
        count!(firmware, event_ring_full);
        return;
    }
    let place = (queue.first + queue.count) & (WAITING - 1);
    if let Some(slot) = queue.waiting.get_mut(place as usize) {
        *slot = word;
        queue.count += 1;
    }
    match send_waiting(firmware) {
        Ok(()) => return,
        Err(Held::Ring) => count!(firmware, event_ring_full),
        Err(Held::Descriptors) => count!(firmware, event_producer_ring_full),
    }
    count!(firmware, events_delayed);
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
pub fn send_waiting<B: Bus>(firmware: &mut Firmware<B>) -> Result<(), Held> {
    while firmware.host_events.count != 0 {
        let producer = firmware.host_events.producer;
        let next = advance(producer, 1, EVENT_ENTRIES);
        let consumer = firmware.bus.load(Gencom::EventConsumer.nic_address());
        if next == consumer {
            return Err(Held::Ring);
        }
        if !firmware.write_ring.has_room(2) {
            return Err(Held::Descriptors);
        }
        let first = firmware.host_events.first;
        let word = match firmware.host_events.waiting.get(first as usize) {
            Some(word) => *word,
            None => return Ok(()),
        };
        let entry = firmware.config.events.address.plus(producer * EVENT_BYTES);
        let place = firmware.config.event_producer;
        // There is room for both, see above.
        if write_words(firmware, entry, &[word, 0], write::QUIET).is_err()
            || write_words(firmware, place, &[next, 0], write::EVENT_INDEX).is_err()
        {
            return Err(Held::Descriptors);
        }
        let arguments = [word, producer, 0, 0];
        trace::record(&mut firmware.bus, Topic::Event, word >> 24, arguments);
        firmware.host_events.producer = next;
        firmware.host_events.first = (first + 1) & (WAITING - 1);
        firmware.host_events.count -= 1;
    }
    Ok(())
}
