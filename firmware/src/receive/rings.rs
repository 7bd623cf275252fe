//! The host's rings of empty buffers: standard, mini and jumbo.
//!
//! Hardware reference, section 14; host/NIC software interface, "Rings". Each is a
//! [`BdRing`] of BDs of 32 bytes. An extended jumbo BD has 64 bytes and takes two places
//! in a ring of twice as many: the indices of the host are doubled, and what this firmware
//! reads of such a BD as of any other lies in its second half.

use crate::bd_ring::{BdRing, OutOfRange};
use crate::config::{Config, RingConfig};
use crate::dma::read;
use crate::layout::{JUMBO_BDS, MINI_BDS, STANDARD_BDS};
use host_interface::bd::BdFlags;
use host_interface::ring::{JUMBO_ENTRIES, MINI_ENTRIES, STANDARD_ENTRIES};
use tigon2_chip::events::EventBit;
use tigon2_hal::Bus;
use tigon2_hal::assist::{DescriptorRing, HostAddress, Read};

/// One of the rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Frames of up to `max_len` bytes.
    Standard,
    /// Small frames.
    Mini,
    /// All that is longer than the standard ring's.
    Jumbo,
}

impl Which {
    /// The event "BDs must be fetched" of the ring (5, C).
    pub const fn event(self) -> EventBit {
        match self {
            Which::Standard => EventBit::StandardReceiveBdReady,
            Which::Mini => EventBit::MiniReceiveBdReady,
            Which::Jumbo => EventBit::JumboReceiveBdReady,
        }
    }
}

/// One ring.
#[derive(Debug)]
pub struct Ring {
    bds: BdRing<5>,
    /// What the return BDs of the ring have in their flags.
    flag: u32,
    /// Longest frame for the ring, without CRC; 0 if the host does not use it.
    longest: u32,
    /// 1 if a BD takes two places.
    doubled: u32,
}

impl Ring {
    const NONE: HostAddress = HostAddress { high: 0, low: 0 };

    const fn unused() -> Ring {
        Ring {
            bds: BdRing::new(Ring::NONE, 0, 1),
            flag: 0,
            longest: 0,
            doubled: 0,
        }
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

    /// Whether no BD is there for a frame.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.bds.is_empty()
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
    pub fn ready(&self) -> u32 {
        self.bds.ready() >> self.doubled
    }

    /// Takes the host's producer index. Returns whether it moved.
    ///
    /// # Errors
    /// [`OutOfRange`] for an index that cannot be.
    pub fn produced(&mut self, producer: u32) -> Result<bool, OutOfRange> {
        if producer > 0xFFFF {
            return Err(OutOfRange);
        }
        self.bds.produced(producer << self.doubled, self.bds.next())
    }

    /// Queues the fetch of one run of BDs; whether all are requested.
    #[inline(always)]
    pub fn fetch<B: Bus>(
        &mut self,
        bus: &mut B,
        descriptors: &mut DescriptorRing<Read>,
        state: u32,
        kind: u32,
    ) -> bool {
        self.bds.fetch(bus, descriptors, state, kind)
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
    /// Fetches of jumbo BDs under way.
    fetching: u32,
    /// How many of them began before the ring was reset: what they bring is not wanted.
    stale: u32,
}

impl Rings {
    /// Not used, any of them.
    pub const fn new() -> Rings {
        Rings {
            standard: Ring::unused(),
            mini: Ring::unused(),
            jumbo: Ring::unused(),
            fetching: 0,
            stale: 0,
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
        let ring = |config: &RingConfig, copies, entries, flag: u16, longest| {
            if config.flags.disabled() || config.address.is_none() {
                return Ring::unused();
            }
            Ring {
                bds: BdRing::new(config.address, copies, entries),
                flag: flag.into(),
                longest,
                doubled: 0,
            }
        };
        let doubled = u32::from(config.jumbo.flags.extended_bd());
        let mut rings = Rings {
            standard: ring(
                &config.standard,
                STANDARD_BDS,
                STANDARD_ENTRIES,
                0,
                config.standard.max_len,
            ),
            mini: ring(
                &config.mini,
                MINI_BDS,
                MINI_ENTRIES,
                mini,
                config.mini.max_len.saturating_sub(crc),
            ),
            jumbo: ring(
                &config.jumbo,
                JUMBO_BDS,
                JUMBO_ENTRIES << doubled,
                jumbo,
                0xFFFF,
            ),
            fetching: 0,
            stale: 0,
        };
        rings.jumbo.doubled = doubled;
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

    /// Like [`Ring::fetch`], with account of what is under way.
    #[inline(always)]
    pub fn fetch_jumbo<B: Bus>(
        &mut self,
        bus: &mut B,
        descriptors: &mut DescriptorRing<Read>,
        state: u32,
    ) -> bool {
        let index = descriptors.next_index();
        let all = self.jumbo.fetch(bus, descriptors, state, read::JUMBO_BDS);
        if descriptors.next_index() != index {
            self.fetching += 1;
        }
        all
    }

    /// The BDs in front of index `after` are in NIC memory; `kind` says of which ring.
    #[inline(always)]
    pub fn arrived(&mut self, kind: u32, after: u32) {
        match kind {
            read::STANDARD_BDS => self.standard.bds.arrived(after),
            read::MINI_BDS => self.mini.bds.arrived(after),
            _ => {
                self.fetching = self.fetching.wrapping_sub(1);
                if self.stale == 0 {
                    self.jumbo.bds.arrived(after);
                } else {
                    self.stale -= 1;
                }
            }
        }
    }

    /// A fetch of BDs, to `local`, comes to nothing; `kind` says of which ring, and `again`
    /// whether it is the first that does. Returns whether its BDs were wanted.
    pub fn given_up(&mut self, kind: u32, local: u32, again: bool) -> bool {
        let ring = match kind {
            read::STANDARD_BDS => &mut self.standard,
            read::MINI_BDS => &mut self.mini,
            _ => {
                self.fetching = self.fetching.wrapping_sub(1);
                if self.stale != 0 {
                    self.stale -= 1;
                    return false;
                }
                &mut self.jumbo
            }
        };
        if again {
            ring.bds.request_again(local);
        }
        true
    }

    /// Forgets all BDs of the jumbo ring; it begins at 0 again.
    pub fn reset_jumbo(&mut self) {
        self.jumbo.bds.restart();
        self.stale = self.fetching;
    }
}

impl Default for Rings {
    fn default() -> Rings {
        Rings::new()
    }
}
