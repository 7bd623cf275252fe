//! A ring of BDs in host memory and its copy in NIC memory.
//!
//! Hardware reference, sections 13 and 14. The host fills BDs and advances its producer; the
//! firmware fetches them in contiguous runs, each BD to the slot of its index, and processes them
//! in order:
//!
//! ```text
//!   next       arrived     requested    producer
//!    v            v            v            v
//! ---+============+============+============+---
//!    | BDs are in | BDs are    | only the   |
//!    | NIC memory | being      | host has   |
//!    |            | fetched    | them       |
//!    '--- Take ---'--------- Fetch ---------'
//! ```
//!
//! One CPU has both parts of the send ring. CPU B fetches the receive BDs and CPU A takes them;
//! the index between them, `arrived`, is a [shared](crate::memory::shared) word.

use super::note::{ReadKind, ReadNote};
use crate::memory::region::{Filled, Region, Taken};
use tigon2_hal::Bus;
use tigon2_hal::assist::{DescriptorRing, Direction, HostAddress, Transfer};

/// An invalid producer index; it was ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfRange;

/// Checks a producer index that the host reports for a ring with `mask + 1` entries whose producer
/// is at `before`. Returns whether it moves the producer; `oldest` is the oldest BD that the host
/// may not reuse yet.
/// # Errors
/// [`OutOfRange`] for an index outside of the ring, or one that moves backwards or overruns BDs in
/// use.
#[inline(always)]
pub fn judge(mask: u32, before: u32, producer: u32, oldest: u32) -> Result<bool, OutOfRange> {
    let ahead = |index: u32| index.wrapping_sub(oldest) & mask;
    if producer > mask || ahead(producer) < ahead(before) {
        return Err(OutOfRange);
    }
    Ok(producer != before)
}

/// The fetching half of a ring of BDs of `1 << SHIFT` bytes. The chip's CPUs are not known to
/// multiply, so the size is a shift.
#[derive(Debug)]
pub struct Fetch<const SHIFT: u32> {
    /// The ring in host memory.
    host: HostAddress,
    /// NIC address of the copies.
    copies: u32,
    /// Entries minus one.
    mask: u32,
    /// The host's producer index.
    producer: u32,
    /// The next BD to fetch.
    requested: u32,
}

impl<const SHIFT: u32> Fetch<SHIFT> {
    /// A ring that the host does not use yet, with its copies in a region.
    pub const fn new<const A: u32, const N: u32>(_region: Filled<A, N>) -> Fetch<SHIFT> {
        Fetch {
            host: HostAddress::NULL,
            copies: A,
            mask: 0,
            producer: 0,
            requested: 0,
        }
    }

    /// Configures the ring at `host` with `entries` BDs, a power of two.
    pub fn configure(&mut self, host: HostAddress, entries: u32) {
        self.host = host;
        self.mask = entries.wrapping_sub(1);
    }

    /// Takes a producer index that [`judge`] accepted. Returns whether it moved.
    #[inline(always)]
    pub fn produced(&mut self, producer: u32) -> bool {
        let moved = producer != self.producer;
        self.producer = producer;
        moved
    }

    /// Queues the fetch of one run: the BDs that only the host has, up to the end of the ring. The
    /// transfer's note records how far BDs have arrived when it completes. Returns whether all BDs
    /// are requested; `false` also when no descriptor is free.
    #[inline(always)]
    pub fn fetch<B: Bus, D: Direction>(
        &mut self,
        bus: &mut B,
        descriptors: &mut DescriptorRing<D>,
        state: u32,
        kind: ReadKind,
    ) -> bool {
        let wanted = self.producer.wrapping_sub(self.requested) & self.mask;
        if wanted == 0 {
            return true;
        }
        let to_end = self.mask + 1 - self.requested;
        let count = if wanted < to_end { wanted } else { to_end };
        let after = (self.requested + count) & self.mask;
        let offset = self.requested << SHIFT;
        let transfer = Transfer {
            host: self.host.plus(offset),
            local: self.copies + offset,
            length: count << SHIFT,
            state,
            note: ReadNote::bds(kind, after).word(),
        };
        if descriptors.push(bus, &transfer).is_err() {
            return false;
        }
        self.requested = after;
        after == self.producer
    }

    /// The BDs from the one with its copy at NIC address `local` on could not be fetched: requests
    /// them again when the host's producer moves.
    pub fn request_again(&mut self, local: u32) {
        self.requested = (local.wrapping_sub(self.copies) >> SHIFT) & self.mask;
    }

    /// Discards all BDs and restarts at index 0. Fetches in flight still arrive.
    pub fn restart(&mut self) {
        self.restart_at(0);
    }

    /// Discards all BDs and restarts at `next`.
    pub fn restart_at(&mut self, next: u32) {
        self.producer = next & self.mask;
        self.requested = self.producer;
    }
}

/// The consuming half of a ring: the BDs that have arrived.
#[derive(Clone, Copy, Debug)]
pub struct Take<const SHIFT: u32> {
    /// NIC address of the copies.
    copies: u32,
    /// Entries minus one.
    mask: u32,
    /// The next BD to process.
    next: u32,
    /// The next BD to arrive.
    arrived: u32,
}

impl<const SHIFT: u32> Take<SHIFT> {
    /// A placeholder that belongs to no ring, for a copy that is yet to be made.
    pub(crate) const NONE: Take<SHIFT> = Take {
        copies: 0,
        mask: 0,
        next: 0,
        arrived: 0,
    };

    /// A ring that the host does not use yet, with its copies in a region.
    pub const fn new<const A: u32, const N: u32>(_region: Taken<A, N>) -> Take<SHIFT> {
        Take {
            copies: A,
            mask: 0,
            next: 0,
            arrived: 0,
        }
    }

    /// Configures the ring with `entries` BDs, a power of two.
    pub fn configure(&mut self, entries: u32) {
        self.mask = entries.wrapping_sub(1);
    }

    /// Entries minus one.
    pub const fn mask(&self) -> u32 {
        self.mask
    }

    /// Records that the BDs in front of index `after` are in NIC memory.
    #[inline(always)]
    pub fn arrived(&mut self, after: u32) {
        self.arrived = after;
    }

    /// Discards all BDs and restarts at index 0.
    pub fn restart(&mut self) {
        self.next = 0;
        self.arrived = 0;
    }

    /// Discards the BDs that have arrived.
    pub fn forget(&mut self) {
        self.arrived = self.next;
    }

    /// The number of BDs that are ready to process.
    pub fn ready(&self) -> u32 {
        self.arrived.wrapping_sub(self.next) & self.mask
    }

    /// The number of BDs in NIC memory from index `oldest` on.
    pub fn arrived_since(&self, oldest: u32) -> u32 {
        self.arrived.wrapping_sub(oldest) & self.mask
    }

    /// Whether no BD is ready.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.next == self.arrived
    }

    /// The index of the next BD to process.
    #[inline(always)]
    pub fn next(&self) -> u32 {
        self.next
    }

    /// NIC address of that BD.
    #[inline(always)]
    pub fn next_address(&self) -> u32 {
        self.copies + (self.next << SHIFT)
    }

    /// Advances by `count` BDs.
    #[inline(always)]
    pub fn pass(&mut self, count: u32) {
        self.next = (self.next + count) & self.mask;
    }

    /// Advances to the next BD.
    #[inline(always)]
    pub fn advance(&mut self) {
        self.next = self.after(self.next);
    }

    /// The index that follows `index`.
    #[inline(always)]
    pub fn after(&self, index: u32) -> u32 {
        (index + 1) & self.mask
    }
}

/// Both halves, for a ring that one CPU handles alone.
#[derive(Debug)]
pub struct BdRing<const SHIFT: u32> {
    fetch: Fetch<SHIFT>,
    take: Take<SHIFT>,
}

impl<const SHIFT: u32> BdRing<SHIFT> {
    /// A ring that the host does not use yet, whose copies lie in a region.
    pub const fn new<const A: u32, const N: u32>(region: Region<A, N>) -> BdRing<SHIFT> {
        let (filled, taken) = region.ends();
        BdRing {
            fetch: Fetch::new(filled),
            take: Take::new(taken),
        }
    }

    /// Configures the ring at `host` with `entries` BDs, a power of two, and its copies from NIC
    /// address `copies` on: the host chooses the place in the region.
    pub fn configure(&mut self, host: HostAddress, copies: u32, entries: u32) {
        self.fetch.configure(host, entries);
        self.fetch.copies = copies;
        self.take.configure(entries);
        self.take.copies = copies;
    }

    /// The host's producer index as it was last taken.
    #[inline(always)]
    pub fn producer(&self) -> u32 {
        self.fetch.producer
    }

    /// Takes the host's producer index; `oldest` is the oldest BD that the host may not reuse yet.
    /// Returns whether the producer moved.
    ///
    /// # Errors
    /// [`OutOfRange`], see [`judge`].
    #[inline(always)]
    pub fn produced(&mut self, producer: u32, oldest: u32) -> Result<bool, OutOfRange> {
        let moved = judge(self.fetch.mask, self.fetch.producer, producer, oldest)?;
        self.fetch.producer = producer;
        Ok(moved)
    }

    /// Treats everything up to the producer as arrived: the host wrote the copies itself.
    #[inline(always)]
    pub fn arrived_with_producer(&mut self) {
        self.fetch.requested = self.fetch.producer;
        self.take.arrived(self.fetch.producer);
    }

    /// See [`Fetch::fetch`].
    #[inline(always)]
    pub fn fetch<B: Bus, D: Direction>(
        &mut self,
        bus: &mut B,
        descriptors: &mut DescriptorRing<D>,
        state: u32,
        kind: ReadKind,
    ) -> bool {
        self.fetch.fetch(bus, descriptors, state, kind)
    }

    /// See [`Fetch::request_again`].
    pub fn request_again(&mut self, local: u32) {
        self.fetch.request_again(local);
    }
}

impl<const SHIFT: u32> core::ops::Deref for BdRing<SHIFT> {
    type Target = Take<SHIFT>;

    #[inline(always)]
    fn deref(&self) -> &Take<SHIFT> {
        &self.take
    }
}

impl<const SHIFT: u32> core::ops::DerefMut for BdRing<SHIFT> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Take<SHIFT> {
        &mut self.take
    }
}

#[cfg(test)]
mod tests;
