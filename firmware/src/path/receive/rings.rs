//! The host's rings of empty buffers, as CPU A gives them to frames.
//!
//! Hardware reference, section 14; [`buffer_ring`](crate::io::buffer_ring) says which they
//! are. CPU B fetches the BDs.

use crate::io::bd_ring::{OutOfRange, Take, judge};
use crate::io::buffer_ring::{Geometry, RINGS, RingId, doubled};
use crate::memory::config::Config;
use crate::memory::shared::{OfB, RECEIVE_ARRIVED, Shared};
use host_interface::bd::BdFlags;
use tigon2_hal::Bus;

/// One ring.
#[derive(Debug)]
pub struct BufferRing {
    bds: Take<5>,
    /// How far CPU B has fetched.
    arrived: Shared<OfB>,
    /// The host's producer.
    producer: u32,
    /// What the return BDs of the ring have in their flags.
    flag: u32,
    /// Longest frame for the ring, without CRC; 0 if the host does not use it.
    longest: u32,
    /// 1 if a BD takes two places.
    doubled: u32,
    /// Whether the ring is being reset.
    frozen: bool,
}

impl BufferRing {
    const fn unused(id: RingId) -> BufferRing {
        BufferRing {
            bds: Take::new(0, 1),
            arrived: RECEIVE_ARRIVED.of(id as usize),
            producer: 0,
            flag: 0,
            longest: 0,
            doubled: 0,
            frozen: false,
        }
    }

    fn configured(config: &Config, id: RingId, flag: u16, longest: u32) -> BufferRing {
        let mut ring = BufferRing::unused(id);
        if let Some(geometry) = Geometry::of(config, id) {
            ring.bds = geometry.take();
            ring.flag = flag.into();
            ring.longest = longest;
        }
        ring
    }

    /// Longest frame for the ring, without CRC; 0 if the host does not use it.
    #[inline(always)]
    pub const fn longest(&self) -> u32 {
        self.longest
    }

    /// What the return BDs of the ring have in their flags.
    #[inline(always)]
    pub const fn flag(&self) -> u32 {
        self.flag
    }

    /// Whether the BDs are extended ones.
    #[inline(always)]
    pub const fn is_extended(&self) -> bool {
        self.doubled != 0
    }

    /// Whether no BD is there for a frame. CPU B's word is read only when the BDs that
    /// were there at the last look are used up.
    #[inline(always)]
    pub fn is_empty<B: Bus>(&mut self, bus: &mut B) -> bool {
        self.bds.is_empty() && !self.look(bus)
    }

    /// Looks whether more have arrived.
    pub fn look<B: Bus>(&mut self, bus: &mut B) -> bool {
        if !self.frozen && self.longest != 0 {
            self.bds.arrived(self.arrived.get(bus));
        }
        !self.bds.is_empty()
    }

    /// The BDs that are there, none of them extended ones; CPU B's word is read only if they
    /// are fewer than `most`.
    #[inline(always)]
    pub fn open<B: Bus>(&mut self, bus: &mut B, most: u32) -> Take<5> {
        if self.bds.ready() < most {
            self.look(bus);
        }
        self.bds
    }

    /// What was [opened](Self::open), less what was taken of it.
    #[inline(always)]
    pub fn close(&mut self, bds: Take<5>) {
        self.bds = bds;
    }

    /// NIC address of the next BD, which is no extended one.
    #[inline(always)]
    pub fn next_short(&self) -> u32 {
        self.bds.next_address()
    }

    /// Goes on by one place of the ring; an extended BD takes two.
    #[inline(always)]
    pub fn advance(&mut self) {
        self.bds.advance();
    }

    /// NIC address of the next BD, of the second half of an extended one.
    #[inline(always)]
    pub fn next_address(&self) -> u32 {
        self.bds.next_address() + (self.doubled << 5)
    }

    /// BDs that are there.
    pub fn ready<B: Bus>(&mut self, bus: &mut B) -> u32 {
        self.look(bus);
        self.bds.ready() >> self.doubled
    }

    /// Takes the host's producer index. Returns the producer for CPU B if it moved.
    ///
    /// # Errors
    /// [`OutOfRange`] for an index that cannot be.
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

    /// The ring is to be reset: its BDs are for no frame any more.
    pub fn freeze(&mut self) {
        self.frozen = true;
        self.bds.forget();
        self.producer = 0;
    }

    /// The ring rests while queues are open. Returns the first BD that was not taken.
    pub fn rest(&mut self) -> u32 {
        self.frozen = true;
        self.bds.forget();
        self.bds.next()
    }

    /// The ring is used again; its BDs are fetched anew.
    pub fn resume(&mut self) {
        self.frozen = false;
    }

    /// The ring was reset; it begins at 0 again.
    pub fn restart(&mut self) {
        self.frozen = false;
        self.bds.restart();
    }
}

/// All of them.
#[derive(Debug)]
pub struct BufferRings([BufferRing; RINGS]);

impl BufferRings {
    /// Not used, any of them.
    pub const fn new() -> BufferRings {
        BufferRings([
            BufferRing::unused(RingId::Standard),
            BufferRing::unused(RingId::Mini),
            BufferRing::unused(RingId::Jumbo),
        ])
    }

    /// As the host configured them, `crc` bytes of the CRC being delivered.
    ///
    /// `max_len` of the standard ring is its longest frame without CRC (14, step 3). That
    /// of the mini ring is the size of its buffers, which a CRC has to fit in as well. That
    /// of the jumbo ring says nothing (Linux: 0): its BDs say how much they take.
    pub fn configured(config: &Config, crc: u32) -> BufferRings {
        let jumbo = BdFlags::new().with_jumbo_ring(true).into_bits();
        let mini = BdFlags::new().with_mini_ring(true).into_bits();
        let longest = config.standard.max_len;
        let longest_mini = config.mini.max_len.saturating_sub(crc);
        let mut rings = BufferRings([
            BufferRing::configured(config, RingId::Standard, 0, longest),
            BufferRing::configured(config, RingId::Mini, mini, longest_mini),
            BufferRing::configured(config, RingId::Jumbo, jumbo, 0xFFFF),
        ]);
        rings.get_mut(RingId::Jumbo).doubled = doubled(config);
        rings
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

impl Default for BufferRings {
    fn default() -> BufferRings {
        BufferRings::new()
    }
}
