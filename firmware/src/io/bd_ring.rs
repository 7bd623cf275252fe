//! A ring of BDs in host memory and its copy in NIC memory.
//!
//! Hardware reference, sections 13 and 14. The host fills BDs and moves its producer; the
//! firmware fetches them in runs without a gap, each BD to the place of its index, and
//! works through them in order:
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
//! Of the send ring one CPU has both parts. The receive BDs are fetched by CPU B and taken
//! by CPU A; where they meet, at `arrived`, is a [shared](crate::memory::shared) word.

use super::note::{ReadKind, ReadNote};
use tigon2_hal::Bus;
use tigon2_hal::assist::{DescriptorRing, Direction, HostAddress, Transfer};

/// A producer index that cannot be; it was ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfRange;

/// Whether a ring with these entries minus one, whose producer is at `before`, may be told
/// `producer`, and whether that moves it; `oldest` is the oldest BD that the host may not
/// reuse yet.
///
/// # Errors
/// [`OutOfRange`] for an index outside of the ring, or one that takes back or overruns
/// what was produced before.
#[inline(always)]
pub fn judge(mask: u32, before: u32, producer: u32, oldest: u32) -> Result<bool, OutOfRange> {
    let ahead = |index: u32| index.wrapping_sub(oldest) & mask;
    if producer > mask || ahead(producer) < ahead(before) {
        return Err(OutOfRange);
    }
    Ok(producer != before)
}

/// The part of a ring of BDs of `1 << SHIFT` bytes that is to be fetched. The chip's CPUs
/// are not known to multiply, so the size is a shift.
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
    /// A ring that the host does not use.
    pub const UNUSED: Fetch<SHIFT> = Fetch::new(HostAddress::NULL, 0, 1);

    /// The empty ring at `host` of `entries` BDs, a power of two, whose copies lie from
    /// NIC address `copies` on.
    pub const fn new(host: HostAddress, copies: u32, entries: u32) -> Fetch<SHIFT> {
        Fetch {
            host,
            copies,
            mask: entries.wrapping_sub(1),
            producer: 0,
            requested: 0,
        }
    }

    /// Takes a producer index that was [judged](judge). Returns whether it moved.
    #[inline(always)]
    pub fn produced(&mut self, producer: u32) -> bool {
        let moved = producer != self.producer;
        self.producer = producer;
        moved
    }

    /// Queues the fetch of one run: the BDs that only the host has, up to the end of the
    /// ring. When it is done, the transfer's note says how far BDs have arrived.
    /// Returns whether all BDs are requested; `false` also when no descriptor is free.
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

    /// BDs from the one whose copy is at NIC address `local` on could not be fetched: they
    /// are requested again when the host's producer moves.
    pub fn request_again(&mut self, local: u32) {
        self.requested = (local.wrapping_sub(self.copies) >> SHIFT) & self.mask;
    }

    /// Forgets all BDs and begins at index 0 again. What is being fetched still arrives.
    pub fn restart(&mut self) {
        self.restart_at(0);
    }

    /// The same, beginning at `next`.
    pub fn restart_at(&mut self, next: u32) {
        self.producer = next & self.mask;
        self.requested = self.producer;
    }
}

/// The part of a ring that has arrived.
#[derive(Clone, Copy, Debug)]
pub struct Take<const SHIFT: u32> {
    /// NIC address of the copies.
    copies: u32,
    /// Entries minus one.
    mask: u32,
    /// The next BD to work on.
    next: u32,
    /// The next BD to arrive.
    arrived: u32,
}

impl<const SHIFT: u32> Take<SHIFT> {
    /// The empty ring of `entries` BDs, a power of two, whose copies lie from NIC address
    /// `copies` on.
    pub const fn new(copies: u32, entries: u32) -> Take<SHIFT> {
        Take {
            copies,
            mask: entries.wrapping_sub(1),
            next: 0,
            arrived: 0,
        }
    }

    /// Entries minus one.
    pub const fn mask(&self) -> u32 {
        self.mask
    }

    /// The BDs in front of index `after` are in NIC memory.
    #[inline(always)]
    pub fn arrived(&mut self, after: u32) {
        self.arrived = after;
    }

    /// Forgets all BDs and begins at index 0 again.
    pub fn restart(&mut self) {
        self.next = 0;
        self.arrived = 0;
    }

    /// Forgets the BDs that have arrived.
    pub fn forget(&mut self) {
        self.arrived = self.next;
    }

    /// How many BDs are there to work on.
    pub fn ready(&self) -> u32 {
        self.arrived.wrapping_sub(self.next) & self.mask
    }

    /// BDs in NIC memory from index `oldest` on.
    pub fn arrived_since(&self, oldest: u32) -> u32 {
        self.arrived.wrapping_sub(oldest) & self.mask
    }

    /// Whether no BD is there to work on.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.next == self.arrived
    }

    /// Index of the next BD to work on.
    #[inline(always)]
    pub fn next(&self) -> u32 {
        self.next
    }

    /// NIC address of that BD.
    #[inline(always)]
    pub fn next_address(&self) -> u32 {
        self.copies + (self.next << SHIFT)
    }

    /// Goes on by `count` BDs.
    #[inline(always)]
    pub fn pass(&mut self, count: u32) {
        self.next = (self.next + count) & self.mask;
    }

    /// Goes on to the BD behind it.
    #[inline(always)]
    pub fn advance(&mut self) {
        self.next = self.after(self.next);
    }

    /// The index behind `index`.
    #[inline(always)]
    pub fn after(&self, index: u32) -> u32 {
        (index + 1) & self.mask
    }
}

/// Both parts, where one CPU has them.
#[derive(Debug)]
pub struct BdRing<const SHIFT: u32> {
    fetch: Fetch<SHIFT>,
    take: Take<SHIFT>,
}

impl<const SHIFT: u32> BdRing<SHIFT> {
    /// The empty ring at `host` of `entries` BDs, a power of two, whose copies lie from
    /// NIC address `copies` on.
    pub const fn new(host: HostAddress, copies: u32, entries: u32) -> BdRing<SHIFT> {
        BdRing {
            fetch: Fetch::new(host, copies, entries),
            take: Take::new(copies, entries),
        }
    }

    /// The host's producer index as it was taken last.
    #[inline(always)]
    pub fn producer(&self) -> u32 {
        self.fetch.producer
    }

    /// Takes the host's producer index; `oldest` is the oldest BD that the host may not
    /// reuse yet. Returns whether the producer moved.
    ///
    /// # Errors
    /// [`OutOfRange`], see [`judge`].
    #[inline(always)]
    pub fn produced(&mut self, producer: u32, oldest: u32) -> Result<bool, OutOfRange> {
        let moved = judge(self.fetch.mask, self.fetch.producer, producer, oldest)?;
        self.fetch.producer = producer;
        Ok(moved)
    }

    /// Takes all that was produced as arrived: the host wrote the copies itself.
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
mod tests {
    use super::*;
    use tigon2_chip::Register;
    use tigon2_hal::resources::Resources;

    const HOST: HostAddress = HostAddress {
        high: 1,
        low: 0xFFFF_FFC0,
    };

    const KIND: ReadKind = ReadKind::StandardBds;

    fn ring() -> BdRing<5> {
        BdRing::new(HOST, 0x1_C000, 8)
    }

    /// The descriptors that were queued, and nothing else.
    struct Descriptors([u32; 64 * 8]);

    impl Descriptors {
        /// Host address, local address and length of descriptor `n`.
        fn get(&self, n: usize) -> [u32; 4] {
            [0, 1, 2, 3].map(|word| self.0[8 * n + word])
        }
    }

    impl Bus for Descriptors {
        fn read(&mut self, _: Register) -> u32 {
            0
        }
        fn write(&mut self, _: Register, _: u32) {}
        fn load(&mut self, address: u32) -> u32 {
            self.0[address as usize / 4]
        }
        fn store(&mut self, address: u32, value: u32) {
            self.0[address as usize / 4] = value;
        }
        fn load_half(&mut self, _: u32) -> u16 {
            unreachable!("descriptors are words")
        }
        fn store_half(&mut self, _: u32, _: u16) {
            unreachable!("descriptors are words")
        }
        fn load_byte(&mut self, _: u32) -> u8 {
            unreachable!("descriptors are words")
        }
        fn store_byte(&mut self, _: u32, _: u8) {
            unreachable!("descriptors are words")
        }
    }

    #[test]
    fn a_producer_only_goes_on_and_never_past_the_oldest() {
        let mut ring = ring();
        assert_eq!(ring.produced(8, 0), Err(OutOfRange));
        assert_eq!(ring.produced(u32::MAX, 0), Err(OutOfRange));
        assert_eq!(ring.produced(0, 0), Ok(false));
        assert_eq!(ring.produced(5, 0), Ok(true));
        assert_eq!(ring.produced(4, 0), Err(OutOfRange), "takes back");
        assert_eq!(ring.produced(5, 0), Ok(false));
        // Round the end, up to the one in front of the oldest.
        assert_eq!(ring.produced(3, 3), Err(OutOfRange), "overruns");
        assert_eq!(ring.produced(2, 3), Ok(true));
        assert_eq!(ring.produced(7, 3), Err(OutOfRange), "takes back");
        assert_eq!(ring.produced(3, 4), Ok(true));
    }

    /// Reference 6.1: a transfer is one run of addresses.
    #[test]
    fn bds_are_fetched_in_runs_to_the_place_of_their_index() {
        let mut bus = Descriptors([0; 64 * 8]);
        let mut queue = DescriptorRing::new(Resources::of_chip().read);
        let mut ring = ring();
        assert!(ring.fetch(&mut bus, &mut queue, 9, KIND), "nothing to do");
        assert_eq!(ring.produced(6, 0), Ok(true));
        assert!(ring.fetch(&mut bus, &mut queue, 9, KIND));
        assert_eq!(bus.get(0), [1, 0xFFFF_FFC0, 0x1_C000, 6 * 32]);
        assert_eq!(queue.note(0), ReadNote::bds(KIND, 6).word());
        assert!(ring.is_empty());
        ring.arrived(6);
        for index in 0..6 {
            assert!(!ring.is_empty());
            assert_eq!(ring.next(), index);
            assert_eq!(ring.next_address(), 0x1_C000 + 32 * index);
            ring.advance();
        }
        assert!(ring.is_empty());

        assert_eq!(ring.produced(3, 6), Ok(true));
        assert!(
            !ring.fetch(&mut bus, &mut queue, 9, KIND),
            "the rest follows"
        );
        assert_eq!(bus.get(1), [2, 0x80, 0x1_C0C0, 2 * 32]);
        assert_eq!(queue.note(32), ReadNote::bds(KIND, 0).word());
        assert!(ring.fetch(&mut bus, &mut queue, 9, KIND));
        assert_eq!(bus.get(2), [1, 0xFFFF_FFC0, 0x1_C000, 3 * 32]);
        assert_eq!(queue.note(64), ReadNote::bds(KIND, 3).word());
        ring.arrived(3);
        ring.advance();
        ring.advance();
        assert_eq!((ring.next(), ring.next_address()), (0, 0x1_C000));
    }

    #[test]
    fn without_a_descriptor_nothing_counts_as_requested() {
        let mut bus = Descriptors([0; 64 * 8]);
        let mut queue = DescriptorRing::new(Resources::of_chip().read);
        let other = Transfer {
            host: HOST,
            local: 0,
            length: 8,
            state: 0,
            note: 0,
        };
        while queue.push(&mut bus, &other).is_ok() {}
        let mut ring = ring();
        assert_eq!(ring.produced(4, 0), Ok(true));
        assert!(!ring.fetch(&mut bus, &mut queue, 9, KIND));
        let mut room = DescriptorRing::new(Resources::of_chip().read);
        assert!(ring.fetch(&mut bus, &mut room, 9, KIND));
        assert_eq!(bus.get(0)[3], 4 * 32);
    }
}
