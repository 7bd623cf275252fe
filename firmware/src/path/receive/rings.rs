//! CPU A's view of the host's rings of empty buffers.
//!
//! Hardware reference, section 14; [`buffer_ring`](crate::io::buffer_ring) declares the rings. CPU
//! B fetches their BDs.

use crate::io::bd_ring::{OutOfRange, Take, judge};
use crate::io::buffer_ring::{Geometry, RINGS, RingId, doubled};
use crate::memory::config::Config;
use crate::memory::region::{Taken, TakenBds};
use crate::memory::shared::{OfB, RECEIVE_ARRIVED, Shared};
use host_interface::bd::BdFlags;
use tigon2_hal::Bus;

/// One ring.
#[derive(Debug)]
pub struct BufferRing {
    bds: Take<5>,
    /// CPU B's progress.
    arrived: Shared<OfB>,
    /// The host's producer.
    producer: u32,
    /// The ring's flag in return BDs.
    flag: u32,
    /// Longest frame for the ring, without CRC; 0 if the host does not use it.
    longest: u32,
    /// 1 if a BD takes two entries.
    doubled: u32,
    /// Whether the ring is being reset.
    frozen: bool,
}

impl BufferRing {
    const fn new<const A: u32, const N: u32>(id: RingId, region: Taken<A, N>) -> BufferRing {
        BufferRing {
            bds: Take::new(region),
            arrived: RECEIVE_ARRIVED.of(id as usize),
            producer: 0,
            flag: 0,
            longest: 0,
            doubled: 0,
            frozen: false,
        }
    }

    fn configure(&mut self, config: &Config, id: RingId, flag: u16, longest: u32) {
        if let Some(geometry) = Geometry::of(config, id) {
            self.bds.configure(geometry.entries);
            self.flag = flag.into();
            self.longest = longest;
        }
    }

    /// Longest frame for the ring, without CRC; 0 if the host does not use it.
    #[inline(always)]
    pub const fn longest(&self) -> u32 {
        self.longest
    }

    /// The ring's flag in return BDs.
    #[inline(always)]
    pub const fn flag(&self) -> u32 {
        self.flag
    }

    /// Whether the BDs are extended ones.
    #[inline(always)]
    pub const fn is_extended(&self) -> bool {
        self.doubled != 0
    }

    /// Whether no BD is ready. Reads CPU B's word only when the BDs of the last look are used up.
    #[inline(always)]
    pub fn is_empty<B: Bus>(&mut self, bus: &mut B) -> bool {
        self.bds.is_empty() && !self.look(bus)
    }

    /// Checks whether more have arrived.
    pub fn look<B: Bus>(&mut self, bus: &mut B) -> bool {
        if !self.frozen && self.longest != 0 {
            self.bds.arrived(self.arrived.get(bus));
        }
        !self.bds.is_empty()
    }

    /// The BDs that are ready, none of them extended; reads CPU B's word only if they are fewer
    /// than `most`.
    #[inline(always)]
    pub fn open<B: Bus>(&mut self, bus: &mut B, most: u32) -> Take<5> {
        if self.bds.ready() < most {
            self.look(bus);
        }
        self.bds
    }

    /// Returns what was [opened](Self::open), less what was taken.
    #[inline(always)]
    pub fn close(&mut self, bds: Take<5>) {
        self.bds = bds;
    }

    /// NIC address of the next BD, which is not extended.
    #[inline(always)]
    pub fn next_short(&self) -> u32 {
        self.bds.next_address()
    }

    /// Advances by one entry of the ring; an extended BD takes two.
    #[inline(always)]
    pub fn advance(&mut self) {
        self.bds.advance();
    }

    /// NIC address of the next BD, of the second half of an extended one.
    #[inline(always)]
    pub fn next_address(&self) -> u32 {
        self.bds.next_address() + (self.doubled << 5)
    }

    /// The number of BDs that are ready.
    pub fn ready<B: Bus>(&mut self, bus: &mut B) -> u32 {
        self.look(bus);
        self.bds.ready() >> self.doubled
    }

    /// Takes the host's producer index. Returns the producer for CPU B if it moved.
    ///
    /// # Errors
    /// [`OutOfRange`] for an invalid index.
    pub fn produced(&mut self, producer: u32) -> Result<Option<u32>, OutOfRange> {
        if producer > 0xFFFF {
            return Err(OutOfRange);
        }
        let producer = producer << self.doubled;
        let (mask, oldest) = (self.bds.mask(), self.bds.next());
        let moved = judge(mask, self.producer, producer, oldest)?;
        self.producer = producer;
        Ok(moved.then_some(producer))
    }

    /// The ring is about to be reset: no frame takes its BDs any more.
    pub fn freeze(&mut self) {
        self.frozen = true;
        self.bds.forget();
        self.producer = 0;
    }

    /// Suspends the ring while queues are open. Returns the first BD that was not taken.
    pub fn rest(&mut self) -> u32 {
        self.frozen = true;
        self.bds.forget();
        self.bds.next()
    }

    /// Resumes the ring; its BDs are fetched again.
    pub fn resume(&mut self) {
        self.frozen = false;
    }

    /// The ring was reset; it restarts at 0.
    pub fn restart(&mut self) {
        self.frozen = false;
        self.bds.restart();
    }
}

/// All rings.
#[derive(Debug)]
pub struct BufferRings([BufferRing; RINGS]);

impl BufferRings {
    /// No ring in use.
    pub const fn new(regions: TakenBds) -> BufferRings {
        BufferRings([
            BufferRing::new(RingId::Standard, regions.standard),
            BufferRing::new(RingId::Mini, regions.mini),
            BufferRing::new(RingId::Jumbo, regions.jumbo),
        ])
    }

    /// Takes the configuration; `crc` bytes of the CRC are delivered.
    ///
    /// `max_len` of the standard ring is its longest frame without CRC (14, step 3). That of the
    /// mini ring is the size of its buffers, which have to hold a CRC as well. That of the jumbo
    /// ring means nothing (Linux: 0): its BDs carry their sizes.
    pub fn configure(&mut self, config: &Config, crc: u32) {
        let jumbo = BdFlags::new().with_jumbo_ring(true).into_bits();
        let mini = BdFlags::new().with_mini_ring(true).into_bits();
        let longest = config.standard.max_len;
        let longest_mini = config.mini.max_len.saturating_sub(crc);
        let BufferRings([of_standard, of_mini, of_jumbo]) = self;
        of_standard.configure(config, RingId::Standard, 0, longest);
        of_mini.configure(config, RingId::Mini, mini, longest_mini);
        of_jumbo.configure(config, RingId::Jumbo, jumbo, 0xFFFF);
        of_jumbo.doubled = doubled(config);
    }

    /// One of them.
    #[inline(always)]
    pub const fn get(&self, id: RingId) -> &BufferRing {
        id.in_array(&self.0)
    }

    /// One of them, to take BDs from.
    #[inline(always)]
    pub const fn get_mut(&mut self, id: RingId) -> &mut BufferRing {
        id.in_array_mut(&mut self.0)
    }
}
