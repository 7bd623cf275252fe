//! Which frames are for this card: the address filter.
//!
//! Hardware reference, sections 10.3 and 10.4. The MAC knows its own address and a
//! 128-bit hash of multicast addresses; what passes the hash by chance is sorted out here
//! by the exact list, which lies in NIC memory. Addresses that find no room in the list
//! are counted: while there are any, every multicast is taken.

use crate::memory::layout::{MULTICAST_ENTRIES, MULTICAST_LIST};
use host_interface::bd::destination::{BROADCAST, MULTICAST, UNICAST};
use tigon2_chip::Register;
use tigon2_chip::bits::MacRxState;
use tigon2_chip::mac::{multicast_hash_bit, multicast_hash_position};
use tigon2_hal::Bus;

const HASH: [Register; 4] = [
    Register::MulticastHash0,
    Register::MulticastHash1,
    Register::MulticastHash2,
    Register::MulticastHash3,
];

/// A multicast address of the list, in the two words that commands bring it in.
#[repr(C)]
struct MulticastEntry {
    /// Bits 15:0 are its first two bytes.
    high: u32,
    /// Its last four.
    low: u32,
}

tigon2_chip::place! {
    /// An entry of the list in NIC memory.
    MulticastEntryAt: MulticastEntry { high, low }
}

/// The bit of a frame's first word that says that it is for a group.
pub(crate) const GROUP: u32 = 0x0100_0000;

/// Whether a frame at a word address of a packet buffer is for a group of stations.
#[inline(always)]
pub fn is_of_group<B: Bus>(bus: &mut B, start: u32) -> bool {
    bus.load(start) & GROUP != 0
}

/// What a frame at a word address of a packet buffer is addressed to.
#[inline(always)]
pub fn destination<B: Bus>(bus: &mut B, start: u32) -> u8 {
    let word = bus.load(start);
    if word & GROUP == 0 {
        UNICAST
    } else if word == u32::MAX && bus.load_half(start + 4) == u16::MAX {
        BROADCAST
    } else {
        MULTICAST
    }
}

/// Whether the first half of an address, two bytes in bits 15:0, is that of a group.
pub const fn is_multicast(high: u32) -> bool {
    high & 0x0100 != 0
}

/// What is accepted besides the card's own address and broadcasts.
#[derive(Debug)]
pub struct Filter {
    /// Everything.
    promiscuous: bool,
    /// Every multicast.
    all_multicast: bool,
    /// Addresses in the list.
    count: u32,
    /// Addresses that were added and found no room in the list.
    unlisted: u32,
}

impl Filter {
    /// Nothing.
    pub const fn new() -> Filter {
        Filter {
            promiscuous: false,
            all_multicast: false,
            count: 0,
            unlisted: 0,
        }
    }

    /// Whether a multicast frame at `start` is wanted.
    pub fn takes<B: Bus>(&self, bus: &mut B, start: u32) -> bool {
        if self.promiscuous || self.every_multicast() {
            return true;
        }
        let word = bus.load(start);
        let half = bus.load_half(start + 4);
        let high = word >> 16;
        let low = word << 16 | u32::from(half);
        self.find(bus, high, low).is_some()
    }

    /// Whether multicast frames are taken whatever their address.
    const fn every_multicast(&self) -> bool {
        self.all_multicast || self.unlisted != 0
    }

    /// Whether every frame is taken.
    pub const fn is_promiscuous(&self) -> bool {
        self.promiscuous
    }

    fn find<B: Bus>(&self, bus: &mut B, high: u32, low: u32) -> Option<u32> {
        let end = MULTICAST_LIST + (self.count << 3);
        let mut entry = MULTICAST_LIST;
        while entry != end {
            let address = MulticastEntryAt(entry);
            if bus.load(address.high()) == high && bus.load(address.low()) == low {
                return Some(entry);
            }
            entry += 8;
        }
        None
    }

    /// Adds a multicast address. A list that is full gives up exactness: every multicast
    /// is accepted until as many addresses that are not in it were deleted again.
    pub fn add<B: Bus>(&mut self, bus: &mut B, high: u32, low: u32) {
        let high = high & 0xFFFF;
        if self.find(bus, high, low).is_some() {
            return;
        }
        if self.count == MULTICAST_ENTRIES {
            self.unlisted = self.unlisted.saturating_add(1);
        } else {
            let entry = MulticastEntryAt(MULTICAST_LIST + (self.count << 3));
            bus.store(entry.high(), high);
            bus.store(entry.low(), low);
            self.count += 1;
        }
        self.write_hash(bus);
    }

    /// Deletes a multicast address. The hash is made anew from the others, so that one
    /// with the same hash bit stays.
    pub fn delete<B: Bus>(&mut self, bus: &mut B, high: u32, low: u32) {
        match self.find(bus, high & 0xFFFF, low) {
            Some(entry) => {
                self.count -= 1;
                let entry = MulticastEntryAt(entry);
                let last = MulticastEntryAt(MULTICAST_LIST + (self.count << 3));
                let (high, low) = (bus.load(last.high()), bus.load(last.low()));
                bus.store(entry.high(), high);
                bus.store(entry.low(), low);
            }
            None => self.unlisted = self.unlisted.saturating_sub(1),
        }
        self.write_hash(bus);
    }

    /// Accepts every multicast, or those of the list.
    pub fn set_all_multicast<B: Bus>(&mut self, bus: &mut B, on: bool) {
        self.all_multicast = on;
        self.write_hash(bus);
    }

    /// Accepts every frame, or those that are addressed here.
    pub fn set_promiscuous<B: Bus>(&mut self, bus: &mut B, on: bool) {
        self.promiscuous = on;
        let bit = MacRxState::new().with_promiscuous(true).into_bits();
        // Attentions are write 1 to clear: they are left as they are.
        bus.modify(
            Register::MacRxState,
            bit | MacRxState::ATTENTION,
            if on { bit } else { 0 },
        );
    }

    /// The bit that keeps `R[220]` promiscuous when it is written as a whole.
    pub const fn state(&self) -> MacRxState {
        MacRxState::new().with_promiscuous(self.promiscuous)
    }

    fn write_hash<B: Bus>(&self, bus: &mut B) {
        let mut hash = [if self.every_multicast() { u32::MAX } else { 0 }; 4];
        for index in 0..self.count {
            let entry = MulticastEntryAt(MULTICAST_LIST + (index << 3));
            let [_, _, a, b] = bus.load(entry.high()).to_be_bytes();
            let [c, d, e, f] = bus.load(entry.low()).to_be_bytes();
            let (word, mask) = multicast_hash_position(multicast_hash_bit(&[a, b, c, d, e, f]));
            if let Some(word) = hash.get_mut(word) {
                *word |= mask;
            }
        }
        for (register, word) in HASH.into_iter().zip(hash) {
            bus.write(register, word);
        }
    }
}

impl Default for Filter {
    fn default() -> Filter {
        Filter::new()
    }
}

/// Gives the MAC the station address that gencom holds.
pub fn set_station<B: Bus>(bus: &mut B) {
    use host_interface::gencom::Gencom;
    let high = bus.load(Gencom::MacAddressHigh.nic_address()) & 0xFFFF;
    let low = bus.load(Gencom::MacAddressLow.nic_address());
    bus.write(Register::StationAddressHigh, high);
    bus.write(Register::StationAddressLow, low);
    bus.write(Register::BackoffSeed, low);
}
