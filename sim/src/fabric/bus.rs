//! The PCI bus between cards: arbitration, and what one card writes to another.
//!
//! ```text
//!   host memory ── bridge ──┬────────────┬────────────┐  one transaction at a time
//!                        card 0       card 1      frame buffer
//! ```
//!
//! The arbiter gives the grant to the next card that asks, in turn; when another card gets the bus,
//! nobody drives it for a clock. While one card has the bus, or none can ask, all cards run to the
//! end of that time; while several ask, they run cycle by cycle. A card that nobody competes with
//! has the same times as one that is alone.
//!
//! A card reaches what the host has [allowed](Fabric::allow) it and nothing else: ranges of another
//! card's BAR 0 (registers, mailboxes, the window), to write to; frame buffers. What it writes to a
//! card is there when its transfer has ended. Word values stay what they are in transfers without
//! byte swap (hardware reference, 6.4).
//!
//! Each target has its own [latency](super::Bus). It is that of the transfer's first address; a slow target
//! keeps the bus for as long, so others wait for it, but their transactions take no longer.
//!
//! Not modelled:
//!
//! - what a write to another card's window takes of that card's SRAM port
//! - targets that end a transaction early, refuse it, or insert waits between its beats
//! - reads of another card's BAR

#[cfg(test)]
mod tests;

use super::{Fabric, Locked};
use crate::memory::{Allowed, HostAccesses, Target, Traffic};
use crate::shared_bus;
use crate::timing::Fine;
use crate::timing::dma::BusRequest;
use host_driver::DmaMemory;
use std::ops::Range;

/// Where the first frame buffer lies, and how far the next one is.
const FRAME_BUFFERS: u64 = 0xD000_0000;
const FRAME_BUFFER_DISTANCE: u64 = 0x0400_0000;
/// Bytes of a BAR 0.
const BAR_BYTES: u32 = 0x4000;

/// Who had the grant last.
#[derive(Debug, Default)]
pub(super) struct Arbiter {
    last: usize,
}

impl Fabric {
    /// Address on the bus of a card's BAR 0.
    pub const fn bar(card: usize) -> u64 {
        shared_bus::bar(card)
    }

    /// Lets card `from` write to a range of the BAR 0 of card `to`, from now on.
    ///
    /// # Panics
    /// If there is no such card, or no such range.
    pub fn allow(&self, from: usize, to: usize, range: Range<u32>) {
        assert!(self.bus.is_some() && to < self.slots.len() && from != to);
        assert!(range.start < range.end && range.end <= BAR_BYTES);
        self.slots[from].lock().host_devices().allow(Allowed {
            address: Fabric::bar(to) + u64::from(range.start),
            bytes: u64::from(range.end - range.start),
            card: to,
            offset: range.start,
        });
    }

    /// Takes all that card `from` may do to card `to` away.
    pub fn forbid(&self, from: usize, to: usize) {
        self.slots[from].lock().host_devices().forbid(to);
    }

    /// Puts a frame buffer of so many bytes on the bus, for card `from` to write to; returns it.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn frame_buffer(
        &self,
        number: usize,
        bytes: usize,
        from: &[usize],
    ) -> std::io::Result<DmaMemory> {
        let address = FRAME_BUFFERS + number as u64 * FRAME_BUFFER_DISTANCE;
        let pixels = DmaMemory::new(bytes, address)?;
        for card in from {
            let mut machine = self.slots[*card].lock();
            machine.map_frame_buffer(number, pixels.clone());
        }
        Ok(pixels)
    }

    /// What a card's DMA has said to a target.
    pub fn traffic(&self, from: usize, to: Target) -> Traffic {
        self.slots[from].lock().host_devices().traffic(to)
    }

    /// Accesses of a card's DMA to what the host has not allowed.
    pub fn refused(&self, from: usize) -> u64 {
        self.slots[from].lock().host_devices().refused()
    }

    /// The host's accesses to a card.
    pub fn host_accesses(&self, to: usize) -> HostAccesses {
        self.slots[to].lock().host_accesses()
    }

    /// Hands over what cards have written to each other.
    pub(super) fn deliver(&self, cards: &mut Locked<'_>) {
        if self.bus.is_none() {
            return;
        }
        for from in 0..cards.len() {
            for posted in cards[from].host_devices().take_posted() {
                cards[posted.card].write_by_peer(&posted);
            }
        }
    }

    /// Gives the grant to one card at most; returns the cycle up to which that holds.
    pub(super) fn arbitrate(&self, cards: &mut Locked<'_>) -> u64 {
        if self.bus.is_none() {
            return u64::MAX;
        }
        let requests: Vec<_> = cards.iter().map(|card| card.bus_request()).collect();
        let cycle = cards.iter().map(|card| card.cycle()).min().unwrap_or(0);
        let mut arbiter = self.arbiter.lock().unwrap_or_else(|held| held.into_inner());
        // In turn, behind the last one.
        let turns = (1..=cards.len()).map(|turn| (arbiter.last + turn) % cards.len());
        let asks = |card: &usize| requests[*card] == BusRequest::Asks;
        let next = turns.clone().find(asks);
        let (granted, free, until) = match holder(&requests) {
            Some((_, BusRequest::Has(until))) => (None, Fine::default(), until),
            Some((holder, BusRequest::Ends { free, more })) => match next {
                Some(next) => (Some(next), free, cycle + 1),
                None => (more.then_some(holder), Fine::default(), cycle + 1),
            },
            _ => match next {
                Some(next) => (Some(next), Fine::default(), cycle + 1),
                None => {
                    let soonest = |card: usize| match requests[card] {
                        BusRequest::Not(at) => at,
                        _ => cycle,
                    };
                    let first = turns.min_by_key(|card| soonest(*card));
                    // What it begins then may be a write to another card.
                    let until = first.map_or(u64::MAX, soonest).saturating_add(1);
                    (first, Fine::default(), until)
                }
            },
        };
        let used: Vec<_> = cards
            .iter()
            .map(|card| card.bus_free_for_others())
            .collect();
        for (number, card) in cards.iter_mut().enumerate() {
            let others = used
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != number);
            let free = others.map(|(_, free)| *free).fold(free, Fine::max);
            card.grant_bus(granted == Some(number), free);
        }
        if let Some(granted) = granted {
            arbiter.last = granted;
        }
        let writes = cards.iter().filter_map(|card| card.peer_write_ends());
        writes.map(|at| at + 1).fold(until, u64::min).max(cycle + 1)
    }
}

/// The card that has the bus.
fn holder(requests: &[BusRequest]) -> Option<(usize, BusRequest)> {
    let has =
        |request: &BusRequest| matches!(request, BusRequest::Has(_) | BusRequest::Ends { .. });
    let mut all = requests.iter().copied().enumerate();
    all.find(|(_, request)| has(request))
}
