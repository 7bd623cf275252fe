//! The host's rings of empty buffers: standard, mini and jumbo.
//!
//! Hardware reference, section 14; host/NIC software interface, "Rings". Each is a
//! ring of BDs of 32 bytes. An extended jumbo BD has 64 bytes and takes two places
//! in a ring of twice as many: the indices of the host are doubled, and what this firmware
//! reads of such a BD as of any other lies in its second half.
//!
//! CPU B fetches the BDs, see [`refill`](crate::refill); this is what CPU A does with them.

use crate::bd_ring::{Fetch, OutOfRange, Take, judge};
use crate::config::Config;
use crate::layout::{JUMBO_BDS, MINI_BDS, STANDARD_BDS};
use crate::shared::{OfB, RECEIVE_ARRIVED, Shared};
use host_interface::bd::BdFlags;
use host_interface::ring::{JUMBO_ENTRIES, MINI_ENTRIES, STANDARD_ENTRIES};
use tigon2_chip::events::EventBit;
use tigon2_hal::Bus;
use tigon2_hal::assist::HostAddress;

/// One of the rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Frames of up to `max_len` bytes.
    Standard = 0,
    /// Small frames.
    Mini = 1,
    /// All that is longer than the standard ring's.
    Jumbo = 2,
}

impl Which {
    /// All of them, in their order in shared words.
    pub const ALL: [Which; 3] = [Which::Standard, Which::Mini, Which::Jumbo];

    /// The event "BDs must be fetched" of the ring (5, C).
    pub const fn event(self) -> EventBit {
        match self {
            Which::Standard => EventBit::StandardReceiveBdReady,
            Which::Mini => EventBit::MiniReceiveBdReady,
            Which::Jumbo => EventBit::JumboReceiveBdReady,
        }
    }

    /// The ring's one of words that each ring has one of.
    #[inline(always)]
    pub const fn of<T: Copy>(self, words: [T; 3]) -> T {
        let [standard, mini, jumbo] = words;
        match self {
            Which::Standard => standard,
            Which::Mini => mini,
            Which::Jumbo => jumbo,
        }
    }
}

/// Where a ring and the copies of its BDs are, and its entries.
#[derive(Clone, Copy, Debug)]
pub struct Geometry {
    host: HostAddress,
    copies: u32,
    entries: u32,
}

impl Geometry {
    /// Of a ring as the host configured it, if it uses it.
    pub fn of(config: &Config, which: Which) -> Option<Geometry> {
        let (ring, copies, entries) = match which {
            Which::Standard => (&config.standard, STANDARD_BDS, STANDARD_ENTRIES),
            Which::Mini => (&config.mini, MINI_BDS, MINI_ENTRIES),
            Which::Jumbo => (&config.jumbo, JUMBO_BDS, JUMBO_ENTRIES << doubled(config)),
        };
        ring.is_used().then_some(Geometry {
            host: ring.address,
            copies,
            entries,
        })
    }

    /// The part of the ring that is to be fetched.
    pub fn fetch(self) -> Fetch<5> {
        Fetch::new(self.host, self.copies, self.entries)
    }
}

/// 1 if a jumbo BD takes two places.
fn doubled(config: &Config) -> u32 {
    u32::from(config.jumbo.flags.extended_bd())
}

/// One ring.
#[derive(Debug)]
pub struct Ring {
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

impl Ring {
    const fn unused(which: Which) -> Ring {
        Ring {
            bds: Take::new(0, 1),
            arrived: which.of(RECEIVE_ARRIVED),
            producer: 0,
            flag: 0,
            longest: 0,
            doubled: 0,
            frozen: false,
        }
    }

    fn configured(config: &Config, which: Which, flag: u16, longest: u32) -> Ring {
        let mut ring = Ring::unused(which);
        if let Some(Geometry {
            copies, entries, ..
        }) = Geometry::of(config, which)
        {
            ring.bds = Take::new(copies, entries);
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

    /// Others have taken the BDs in front of `next`.
    #[cfg(feature = "lanes")]
    pub fn taken_up_to(&mut self, next: u32) {
        self.bds.taken_up_to(next);
    }

    /// Entries minus one.
    #[cfg(feature = "lanes")]
    pub const fn mask(&self) -> u32 {
        self.bds.mask()
    }

    /// The ring is to be reset: its BDs are for no frame any more.
    pub fn freeze(&mut self) {
        self.frozen = true;
        self.bds.forget();
        self.producer = 0;
    }

    /// The ring was reset; it begins at 0 again.
    pub fn restart(&mut self) {
        self.frozen = false;
        self.bds.restart();
    }
}

/// All three.
#[derive(Debug)]
pub struct Rings {
    /// Frames of up to `max_len` bytes.
    pub standard: Ring,
    /// Small frames.
    pub mini: Ring,
    /// All that is longer than the standard ring's.
    pub jumbo: Ring,
}

impl Rings {
    /// Not used, any of them.
    pub const fn new() -> Rings {
        Rings {
            standard: Ring::unused(Which::Standard),
            mini: Ring::unused(Which::Mini),
            jumbo: Ring::unused(Which::Jumbo),
        }
    }

    /// As the host configured them, `crc` bytes of the CRC being handed on.
    ///
    /// `max_len` of the standard ring is its longest frame without CRC (14, step 3). That
    /// of the mini ring is the size of its buffers, which a CRC has to fit in as well. That
    /// of the jumbo ring says nothing (Linux: 0): its BDs say how much they take.
    pub fn configured(config: &Config, crc: u32) -> Rings {
        let jumbo = BdFlags::new().with_jumbo_ring(true).into_bits();
        let mini = BdFlags::new().with_mini_ring(true).into_bits();
        let longest = config.standard.max_len;
        let longest_mini = config.mini.max_len.saturating_sub(crc);
        let mut rings = Rings {
            standard: Ring::configured(config, Which::Standard, 0, longest),
            mini: Ring::configured(config, Which::Mini, mini, longest_mini),
            jumbo: Ring::configured(config, Which::Jumbo, jumbo, 0xFFFF),
        };
        rings.jumbo.doubled = doubled(config);
        rings
    }

    /// One of them.
    #[inline(always)]
    pub fn get(&mut self, which: Which) -> &mut Ring {
        match which {
            Which::Standard => &mut self.standard,
            Which::Mini => &mut self.mini,
            Which::Jumbo => &mut self.jumbo,
        }
    }
}

impl Default for Rings {
    fn default() -> Rings {
        Rings::new()
    }
}
