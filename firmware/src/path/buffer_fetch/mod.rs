//! CPU B's part of the receive path: fetching the BDs that the host gives.
//!
//! Hardware reference, section 14. CPU A judges the host's producers and shares them; the
//! BDs are fetched to the places where CPU A takes them, and when they are there, the
//! rings' own producers are shared in return:
//!
//! ```text
//! host --mailbox--> A --RECEIVE_PRODUCERS--> B --fetch--> NIC memory
//!                   A <--RECEIVE_ARRIVED---- B <--done----'
//! ```

pub mod queues;

use crate::io::IoB;
use crate::io::bd_ring::Fetch;
use crate::io::buffer_ring::{Geometry, RINGS, RingId};
use crate::memory::config::Config;
use crate::memory::layout::QUEUES;
use crate::memory::shared::{CLASSIC_NEXT, RECEIVE_ARRIVED, RECEIVE_PRODUCERS, STARVED};
use queues::QueueFetch;
use tigon2_chip::events::EventBit;
use tigon2_hal::events::Dispatch;

/// The host's rings of empty buffers, as CPU B knows them.
#[derive(Debug)]
pub struct BufferFetch {
    rings: [Fetch<5>; RINGS],
    /// Whether the host uses the ring; it uses the standard ring.
    uses_mini: bool,
    uses_jumbo: bool,
    /// Fetches of jumbo BDs under way.
    fetching: u32,
    /// How many of them began before the ring was reset: what they bring is not wanted.
    stale: u32,
    /// Whether the rings rest, while queues are open.
    rests: bool,
    /// The receive queues.
    pub queues: QueueFetch,
}

impl BufferFetch {
    /// Nothing configured.
    pub const fn new() -> BufferFetch {
        BufferFetch {
            rings: [Fetch::UNUSED; RINGS],
            uses_mini: false,
            uses_jumbo: false,
            fetching: 0,
            stale: 0,
            rests: false,
            queues: QueueFetch::new(),
        }
    }

    /// As the host configured the rings.
    pub fn configured(config: &Config) -> BufferFetch {
        let mut fetch = BufferFetch::new();
        for id in RingId::ALL {
            if let Some(geometry) = Geometry::of(config, id) {
                *id.in_array_mut(&mut fetch.rings) = geometry.fetch();
            }
        }
        fetch.uses_mini = config.mini.is_used();
        fetch.uses_jumbo = config.jumbo.is_used();
        fetch
    }

    /// A fetch of jumbo BDs has ended; `false` if it began before the ring was reset.
    fn jumbo_ended(&mut self) -> bool {
        self.fetching = self.fetching.wrapping_sub(1);
        let stale = self.stale != 0;
        if stale {
            self.stale -= 1;
        }
        !stale
    }
}

impl Default for BufferFetch {
    fn default() -> BufferFetch {
        BufferFetch::new()
    }
}

/// CPU A has rung: producers may have moved.
#[inline(always)]
pub fn host_produced<B: Dispatch>(fetch: &mut BufferFetch, io: &mut IoB<B>) {
    if QUEUES != 0 && fetch.rests {
        return queues::producers_moved(&mut fetch.queues, io);
    }
    let (uses_mini, uses_jumbo) = (fetch.uses_mini, fetch.uses_jumbo);
    produced(fetch, io, RingId::Standard);
    if uses_mini {
        produced(fetch, io, RingId::Mini);
    }
    if uses_jumbo {
        produced(fetch, io, RingId::Jumbo);
    }
}

#[inline(always)]
fn produced<B: Dispatch>(fetch: &mut BufferFetch, io: &mut IoB<B>, id: RingId) {
    let producer = RECEIVE_PRODUCERS.of(id as usize).get(&mut io.bus);
    if id.in_array_mut(&mut fetch.rings).produced(producer) {
        io.bus.set(id.event());
    }
}

/// Standard receive BD ready.
#[inline(always)]
pub fn standard_bd_ready<B: Dispatch>(fetch: &mut BufferFetch, io: &mut IoB<B>) {
    fetch_some(fetch, io, RingId::Standard);
}

/// Mini receive BD ready.
#[inline(always)]
pub fn mini_bd_ready<B: Dispatch>(fetch: &mut BufferFetch, io: &mut IoB<B>) {
    if QUEUES != 0 && fetch.rests {
        return queues::fetch_some(&mut fetch.queues, io);
    }
    fetch_some(fetch, io, RingId::Mini);
}

/// Jumbo receive BD ready.
#[inline(always)]
pub fn jumbo_bd_ready<B: Dispatch>(fetch: &mut BufferFetch, io: &mut IoB<B>) {
    let before = io.read_ring.next_index();
    fetch_some(fetch, io, RingId::Jumbo);
    if io.read_ring.next_index() != before {
        fetch.fetching += 1;
    }
}

/// Queues the fetch of one run of BDs of a ring.
#[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_b.text"))]
#[inline(never)]
fn fetch_some<B: Dispatch>(fetch: &mut BufferFetch, io: &mut IoB<B>, id: RingId) {
    let ring = id.in_array_mut(&mut fetch.rings);
    let state = io.states.words;
    if ring.fetch(&mut io.bus, &mut io.read_ring, state, id.kind()) {
        io.bus.clear(id.event());
    } else {
        // As for send BDs.
        io.bus.set(EventBit::DmaReadComplete);
    }
}

/// BDs of a ring are in NIC memory up to index `after`.
#[inline(always)]
pub fn arrived<B: Dispatch>(fetch: &mut BufferFetch, io: &mut IoB<B>, id: RingId, after: u32) {
    if id == RingId::Jumbo && !fetch.jumbo_ended() {
        return;
    }
    let arrived = RECEIVE_ARRIVED.of(id as usize);
    arrived.set(&io.me, &mut io.bus, after);
    // Behind that store: CPU A looks once more when it has said that it waits.
    if STARVED.get(&mut io.bus) != 0 {
        io.ring_a();
    }
}

/// A fetch of BDs of a ring, to `local`, comes to nothing; `again` if it is the first that
/// does. Returns whether its BDs were wanted.
pub fn given_up(fetch: &mut BufferFetch, id: RingId, local: u32, again: bool) -> bool {
    if id == RingId::Jumbo && !fetch.jumbo_ended() {
        return false;
    }
    if again {
        id.in_array_mut(&mut fetch.rings).request_again(local);
    }
    true
}

/// The rings rest: what was requested of them still arrives, nothing more is fetched.
pub fn rest<B: Dispatch>(fetch: &mut BufferFetch, io: &mut IoB<B>) {
    fetch.rests = true;
    for id in RingId::ALL {
        io.bus.clear(id.event());
    }
}

/// The rings are used again: all that CPU A has not taken is fetched once more, since other
/// things were in its place.
pub fn resume<B: Dispatch>(fetch: &mut BufferFetch, io: &mut IoB<B>) {
    fetch.rests = false;
    for id in RingId::ALL {
        let next = CLASSIC_NEXT.of(id as usize).get(&mut io.bus);
        id.in_array_mut(&mut fetch.rings).restart_at(next);
        let arrived = RECEIVE_ARRIVED.of(id as usize);
        arrived.set(&io.me, &mut io.bus, next);
    }
    host_produced(fetch, io);
}

/// Forgets all BDs of the jumbo ring; it begins at 0 again. CPU A has shared that the
/// producer is 0.
pub fn reset_jumbo<B: Dispatch>(fetch: &mut BufferFetch, io: &mut IoB<B>) {
    RingId::Jumbo.in_array_mut(&mut fetch.rings).restart();
    fetch.stale = fetch.fetching;
    io.bus.clear(EventBit::JumboReceiveBdReady);
    let arrived = RECEIVE_ARRIVED.of(RingId::Jumbo as usize);
    arrived.set(&io.me, &mut io.bus, 0);
}
