//! CPU B's part of the receive path: fetching the host's receive BDs.
//!
//! Hardware reference, section 14. CPU A validates the host's producers and shares them. CPU B
//! fetches the BDs to the slots from which CPU A takes them, and then shares the rings' own
//! producers in return:
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
use crate::memory::layout::{EUDP, QUEUES};
use crate::memory::region::FilledBds;
use crate::memory::shared::{CLASSIC_NEXT, RECEIVE_ARRIVED, RECEIVE_PRODUCERS, STARVED};
use queues::QueueFetch;
use tigon2_chip::events::EventBit;
use tigon2_hal::events::Dispatch;

/// The host uses the mini ring.
const MINI: u32 = 1;
/// The host uses the jumbo ring.
const JUMBO: u32 = 2;
/// The rings are suspended because queues are open.
const RESTS: u32 = 1 << 31;

/// CPU B's view of the host's rings of empty buffers.
#[derive(Debug)]
pub struct BufferFetch {
    rings: [Fetch<5>; RINGS],
    /// What there is besides the standard ring, as bits: [`MINI`], [`JUMBO`], [`RESTS`].
    besides: u32,
    /// Fetches of jumbo BDs in flight.
    fetching: u32,
    /// How many of them began before the ring was reset: their BDs are discarded.
    stale: u32,
    /// The receive queues.
    pub queues: QueueFetch,
}

impl BufferFetch {
    /// Nothing configured.
    pub const fn new(regions: FilledBds) -> BufferFetch {
        BufferFetch {
            rings: [
                Fetch::new(regions.standard),
                Fetch::new(regions.mini),
                Fetch::new(regions.jumbo),
            ],
            besides: 0,
            fetching: 0,
            stale: 0,
            queues: QueueFetch::new(),
        }
    }

    /// Takes the configuration.
    pub fn configure(&mut self, config: &Config) {
        for (ring, id) in self.rings.iter_mut().zip(RingId::ALL) {
            if let Some(Geometry { host, entries }) = Geometry::of(config, id) {
                ring.configure(host, entries);
            }
        }
        let mini = if config.mini.is_used() { MINI } else { 0 };
        let jumbo = if config.jumbo.is_used() { JUMBO } else { 0 };
        self.besides = mini | jumbo;
    }

    /// Whether the rings are suspended because queues are open.
    #[inline(always)]
    const fn rests(&self) -> bool {
        QUEUES != 0 && self.besides & RESTS != 0
    }

    /// Records the end of a fetch of jumbo BDs; `false` if it began before the ring was reset.
    fn jumbo_ended(&mut self) -> bool {
        self.fetching = self.fetching.wrapping_sub(1);
        let stale = self.stale != 0;
        if stale {
            self.stale -= 1;
        }
        !stale
    }
}

/// CPU A has rung: checks whether producers have moved.
#[inline(always)]
pub fn host_produced<B: Dispatch>(fetch: &mut BufferFetch, io: &mut IoB<B>) {
    let besides = fetch.besides;
    if besides != 0 {
        if fetch.rests() {
            return queues::producers_moved(&mut fetch.queues, io);
        }
        if besides & MINI != 0 {
            produced(fetch, io, RingId::Mini);
        }
        if besides & JUMBO != 0 {
            produced(fetch, io, RingId::Jumbo);
        }
    }
    produced(fetch, io, RingId::Standard);
}

#[inline(always)]
fn produced<B: Dispatch>(fetch: &mut BufferFetch, io: &mut IoB<B>, id: RingId) {
    let producer = RECEIVE_PRODUCERS.of(id as usize).get(&mut io.bus);
    if id.in_array_mut(&mut fetch.rings).produced(producer) {
        io.bus.set(id.event());
    }
}

/// Standard Receive BD Ready.
#[inline(always)]
pub fn standard_bd_ready<B: Dispatch>(fetch: &mut BufferFetch, io: &mut IoB<B>) {
    fetch_some(fetch, io, RingId::Standard);
}

/// Mini Receive BD Ready.
#[inline(always)]
pub fn mini_bd_ready<B: Dispatch>(fetch: &mut BufferFetch, io: &mut IoB<B>) {
    if fetch.rests() {
        return queues::fetch_some(&mut fetch.queues, io);
    }
    fetch_some(fetch, io, RingId::Mini);
}

/// Jumbo Receive BD Ready.
#[inline(always)]
pub fn jumbo_bd_ready<B: Dispatch>(fetch: &mut BufferFetch, io: &mut IoB<B>) {
    if EUDP != 0 {
        // It is in SRAM, and must not call what endpoints' code may have replaced.
        return fetch_slowly(fetch, io, RingId::Jumbo);
    }
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
    fetch_run(fetch, io, id);
}

/// The same in SRAM, while something else has the scratch pad.
#[inline(never)]
pub fn fetch_slowly<B: Dispatch>(fetch: &mut BufferFetch, io: &mut IoB<B>, id: RingId) {
    let before = io.read_ring.next_index();
    fetch_run(fetch, io, id);
    if id == RingId::Jumbo && io.read_ring.next_index() != before {
        fetch.fetching += 1;
    }
}

#[inline(always)]
fn fetch_run<B: Dispatch>(fetch: &mut BufferFetch, io: &mut IoB<B>, id: RingId) {
    let ring = id.in_array_mut(&mut fetch.rings);
    let state = io.states.words;
    if ring.fetch(&mut io.bus, &mut io.read_ring, state, id.kind()) {
        io.bus.clear(id.event());
    } else {
        // As for send BDs.
        io.bus.set(EventBit::DmaReadComplete);
    }
}

/// Records that BDs of a ring are in NIC memory up to index `after`.
#[inline(always)]
pub fn arrived<B: Dispatch>(fetch: &mut BufferFetch, io: &mut IoB<B>, id: RingId, after: u32) {
    if id == RingId::Jumbo && !fetch.jumbo_ended() {
        return;
    }
    let arrived = RECEIVE_ARRIVED.of(id as usize);
    arrived.set(&io.me, &mut io.bus, after);
    // After that store: CPU A checks once more when it has announced that it waits.
    if STARVED.get(&mut io.bus) != 0 {
        io.ring_a();
    }
}

/// A fetch of BDs to `local` has failed; `again` marks the first that did. Returns whether its BDs
/// were wanted.
pub fn given_up(fetch: &mut BufferFetch, id: RingId, local: u32, again: bool) -> bool {
    if id == RingId::Jumbo && !fetch.jumbo_ended() {
        return false;
    }
    if again {
        id.in_array_mut(&mut fetch.rings).request_again(local);
    }
    true
}

/// Suspends the rings: fetches in flight still arrive, nothing more is fetched.
pub fn rest<B: Dispatch>(fetch: &mut BufferFetch, io: &mut IoB<B>) {
    fetch.besides |= RESTS;
    for id in RingId::ALL {
        io.bus.clear(id.event());
    }
}

/// Resumes the rings: fetches everything that CPU A has not taken once more, because the queues
/// used its place.
pub fn resume<B: Dispatch>(fetch: &mut BufferFetch, io: &mut IoB<B>) {
    fetch.besides &= !RESTS;
    for id in RingId::ALL {
        let next = CLASSIC_NEXT.of(id as usize).get(&mut io.bus);
        id.in_array_mut(&mut fetch.rings).restart_at(next);
        let arrived = RECEIVE_ARRIVED.of(id as usize);
        arrived.set(&io.me, &mut io.bus, next);
    }
    host_produced(fetch, io);
}

/// Discards all BDs of the jumbo ring and restarts it at 0. CPU A has already set the shared
/// producer to 0.
pub fn reset_jumbo<B: Dispatch>(fetch: &mut BufferFetch, io: &mut IoB<B>) {
    RingId::Jumbo.in_array_mut(&mut fetch.rings).restart();
    fetch.stale = fetch.fetching;
    io.bus.clear(EventBit::JumboReceiveBdReady);
    let arrived = RECEIVE_ARRIVED.of(RingId::Jumbo as usize);
    arrived.set(&io.me, &mut io.bus, 0);
}
