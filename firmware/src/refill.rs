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

use crate::SideB;
use crate::bd_ring::Fetch;
use crate::config::Config;
use crate::dma::read;
use crate::receive::rings::{Geometry, Which};
use crate::shared::{RECEIVE_ARRIVED, RECEIVE_PRODUCERS, STARVED};
use tigon2_chip::events::EventBit;
use tigon2_hal::assist::DescriptorRing;
use tigon2_hal::events::Dispatch;

/// The host's rings of empty buffers, as CPU B knows them.
#[derive(Debug)]
pub struct Refill {
    standard: Fetch<5>,
    mini: Fetch<5>,
    jumbo: Fetch<5>,
    /// Whether the host uses the ring.
    uses_mini: bool,
    uses_jumbo: bool,
    /// Fetches of jumbo BDs under way.
    fetching: u32,
    /// How many of them began before the ring was reset: what they bring is not wanted.
    stale: u32,
}

impl Refill {
    /// Nothing configured.
    pub const fn new() -> Refill {
        Refill {
            standard: Fetch::UNUSED,
            mini: Fetch::UNUSED,
            jumbo: Fetch::UNUSED,
            uses_mini: false,
            uses_jumbo: false,
            fetching: 0,
            stale: 0,
        }
    }

    /// As the host configured the rings.
    pub fn configured(config: &Config) -> Refill {
        let mut refill = Refill::new();
        let fetch = |which| Geometry::of(config, which).map(Geometry::fetch);
        if let Some(ring) = fetch(Which::Standard) {
            refill.standard = ring;
        }
        if let Some(ring) = fetch(Which::Mini) {
            refill.mini = ring;
            refill.uses_mini = true;
        }
        if let Some(ring) = fetch(Which::Jumbo) {
            refill.jumbo = ring;
            refill.uses_jumbo = true;
        }
        refill
    }
}

impl Default for Refill {
    fn default() -> Refill {
        Refill::new()
    }
}

/// CPU A has rung: producers may have moved.
#[inline(always)]
pub fn host_produced<B: Dispatch>(b: &mut SideB<B>) {
    let [standard, mini, jumbo] = RECEIVE_PRODUCERS;
    let Refill {
        uses_mini,
        uses_jumbo,
        ..
    } = b.refill;
    if b.refill.standard.produced(standard.get(&mut b.bus)) {
        b.bus.set(EventBit::StandardReceiveBdReady);
    }
    if uses_mini && b.refill.mini.produced(mini.get(&mut b.bus)) {
        b.bus.set(EventBit::MiniReceiveBdReady);
    }
    if uses_jumbo && b.refill.jumbo.produced(jumbo.get(&mut b.bus)) {
        b.bus.set(EventBit::JumboReceiveBdReady);
    }
}

/// Standard receive BD ready.
#[inline(always)]
pub fn standard_bd_ready<B: Dispatch>(b: &mut SideB<B>) {
    fetch(b, Which::Standard);
}

/// Mini receive BD ready.
#[inline(always)]
pub fn mini_bd_ready<B: Dispatch>(b: &mut SideB<B>) {
    fetch(b, Which::Mini);
}

/// Jumbo receive BD ready.
#[inline(always)]
pub fn jumbo_bd_ready<B: Dispatch>(b: &mut SideB<B>) {
    let before = b.read_ring.next_index();
    fetch(b, Which::Jumbo);
    if b.read_ring.next_index() != before {
        b.refill.fetching += 1;
    }
}

/// Queues the fetch of one run of BDs of a ring.
#[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_b.text"))]
#[inline(never)]
fn fetch<B: Dispatch>(b: &mut SideB<B>, which: Which) {
    let (ring, kind, event) = match which {
        Which::Standard => (
            &mut b.refill.standard,
            read::STANDARD_BDS,
            EventBit::StandardReceiveBdReady,
        ),
        Which::Mini => (
            &mut b.refill.mini,
            read::MINI_BDS,
            EventBit::MiniReceiveBdReady,
        ),
        Which::Jumbo => (
            &mut b.refill.jumbo,
            read::JUMBO_BDS,
            EventBit::JumboReceiveBdReady,
        ),
    };
    let descriptors: &mut DescriptorRing<_> = &mut b.read_ring;
    if ring.fetch(&mut b.bus, descriptors, b.states.words, kind) {
        b.bus.clear(event);
    } else {
        // As for send BDs.
        b.bus.set(EventBit::DmaReadComplete);
    }
}

/// BDs are in NIC memory up to index `after`; `kind` says of which ring.
#[inline(always)]
pub fn arrived<B: Dispatch>(b: &mut SideB<B>, kind: u32, after: u32) {
    let [standard, mini, jumbo] = RECEIVE_ARRIVED;
    let cell = match kind {
        read::STANDARD_BDS => standard,
        read::MINI_BDS => mini,
        _ => {
            b.refill.fetching = b.refill.fetching.wrapping_sub(1);
            if b.refill.stale != 0 {
                b.refill.stale -= 1;
                return;
            }
            jumbo
        }
    };
    cell.set(&b.me, &mut b.bus, after);
    #[cfg(feature = "lanes")]
    tigon2_hal::requests::Words::WRITE.wake(&mut b.bus);
    // Behind that store: CPU A looks once more when it has said that it waits.
    if STARVED.get(&mut b.bus) != 0 {
        b.ring();
    }
}

/// A fetch of BDs, to `local`, comes to nothing; `kind` says of which ring, and `again`
/// whether it is the first that does. Returns whether its BDs were wanted.
pub fn given_up<B: Dispatch>(b: &mut SideB<B>, kind: u32, local: u32, again: bool) -> bool {
    let refill = &mut b.refill;
    let ring = match kind {
        read::STANDARD_BDS => &mut refill.standard,
        read::MINI_BDS => &mut refill.mini,
        _ => {
            refill.fetching = refill.fetching.wrapping_sub(1);
            if refill.stale != 0 {
                refill.stale -= 1;
                return false;
            }
            &mut refill.jumbo
        }
    };
    if again {
        ring.request_again(local);
    }
    true
}

/// Forgets all BDs of the jumbo ring; it begins at 0 again. CPU A has shared that the
/// producer is 0.
pub fn reset_jumbo<B: Dispatch>(b: &mut SideB<B>) {
    b.refill.jumbo.restart();
    b.refill.stale = b.refill.fetching;
    b.bus.clear(EventBit::JumboReceiveBdReady);
    let [.., jumbo] = RECEIVE_ARRIVED;
    jumbo.set(&b.me, &mut b.bus, 0);
}
