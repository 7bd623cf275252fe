//! The address filter: which frames the card accepts.
//!
//! Hardware reference, sections 10.3 and 10.4. The MAC knows its own address and a
//! 128-bit hash of multicast addresses; what passes the hash by chance is sorted out here
//! by the exact list. Addresses that find no room in the list
//! are counted: while there are any, every multicast is taken.

use heapless::Vec;
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

/// Multicast addresses that there is room for.
const LISTED: usize = 64;

/// Multicast addresses, each in the two words that commands bring it in: bits 15:0 of the first
/// are its first two bytes. 520 bytes, which on the chip lie in SRAM.
pub type MulticastList = Vec<[u32; 2], LISTED>;

/// The group bit in a frame's first word.
pub(crate) const GROUP: u32 = 0x0100_0000;

/// Whether the frame at a word address of a packet buffer has a group address.
#[inline(always)]
pub fn is_of_group<B: Bus>(bus: &mut B, start: u32) -> bool {
    bus.load(start) & GROUP != 0
}

/// The kind of destination of the frame at a word address of a packet buffer.
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

/// Whether the first two bytes of an address, in bits 15:0, are those of a group address.
pub const fn is_multicast(high: u32) -> bool {
    high & 0x0100 != 0
}

/// What the card accepts besides its own address and broadcasts.
#[derive(Debug)]
pub struct Filter {
    /// Everything.
    promiscuous: bool,
    /// Every multicast.
    all_multicast: bool,
    /// The addresses.
    list: &'static mut MulticastList,
    /// Addresses that were added and found no room in the list.
    unlisted: u32,
}

impl Filter {
    /// Nothing. The list is the filter's own.
    pub const fn new(list: &'static mut MulticastList) -> Filter {
        Filter {
            promiscuous: false,
            all_multicast: false,
            list,
            unlisted: 0,
        }
    }

    /// Whether the filter accepts the multicast frame at `start`.
    pub fn takes<B: Bus>(&self, bus: &mut B, start: u32) -> bool {
        if self.promiscuous || self.every_multicast() {
            return true;
        }
        let word = bus.load(start);
        let half = bus.load_half(start + 4);
        let high = word >> 16;
        let low = word << 16 | u32::from(half);
        self.list.contains(&[high, low])
    }

    /// Whether the filter accepts multicast frames of any address.
    const fn every_multicast(&self) -> bool {
        self.all_multicast || self.unlisted != 0
    }

    /// Whether the filter accepts every frame.
    pub const fn is_promiscuous(&self) -> bool {
        self.promiscuous
    }

    /// Adds a multicast address. A list that is full gives up exactness: every multicast
    /// is accepted until as many addresses that are not in it were deleted again.
    pub fn add<B: Bus>(&mut self, bus: &mut B, high: u32, low: u32) {
        let address = [high & 0xFFFF, low];
        if self.list.contains(&address) {
            return;
        }
        if self.list.push(address).is_err() {
            self.unlisted = self.unlisted.saturating_add(1);
        }
        self.write_hash(bus);
    }

    /// Deletes a multicast address. Rebuilds the hash from the remaining addresses, so that one
    /// with the same hash bit stays.
    pub fn delete<B: Bus>(&mut self, bus: &mut B, high: u32, low: u32) {
        let address = [high & 0xFFFF, low];
        match self.list.iter().position(|entry| *entry == address) {
            Some(index) => _ = self.list.swap_remove(index),
            None => self.unlisted = self.unlisted.saturating_sub(1),
        }
        self.write_hash(bus);
    }

    /// Accepts every multicast, or only those of the list.
    pub fn set_all_multicast<B: Bus>(&mut self, bus: &mut B, on: bool) {
        self.all_multicast = on;
        self.write_hash(bus);
    }

    /// Accepts every frame, or only those for this card.
    pub fn set_promiscuous<B: Bus>(&mut self, bus: &mut B, on: bool) {
        self.promiscuous = on;
        let bit = MacRxState::new().with_promiscuous(true).into_bits();
        // Attentions are write 1 to clear: this write leaves them unchanged.
        bus.modify(
            Register::MacRxState,
            bit | MacRxState::ATTENTION,
            if on { bit } else { 0 },
        );
    }

    /// The bit that keeps `R[220]` promiscuous when the whole register is written.
    pub const fn state(&self) -> MacRxState {
        MacRxState::new().with_promiscuous(self.promiscuous)
    }

    fn write_hash<B: Bus>(&self, bus: &mut B) {
        let mut hash = [if self.every_multicast() { u32::MAX } else { 0 }; 4];
        for [high, low] in self.list.iter() {
            let [_, _, a, b] = high.to_be_bytes();
            let [c, d, e, f] = low.to_be_bytes();
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

/// Gives the MAC the station address from gencom.
pub fn set_station<B: Bus>(bus: &mut B) {
    use host_interface::gencom::Gencom;
    let high = bus.load(Gencom::MacAddressHigh.nic_address()) & 0xFFFF;
    let low = bus.load(Gencom::MacAddressLow.nic_address());
    bus.write(Register::StationAddressHigh, high);
    bus.write(Register::StationAddressLow, low);
    bus.write(Register::BackoffSeed, low);
}
