//! The address filter.
//!
//! Hardware reference, section 10.3: the MAC accepts broadcasts, its own address, multicasts by
//! hash, and everything in promiscuous mode.

use tigon2_chip::mac::{MacStatistic, multicast_hash_bit, multicast_hash_position};

const BROADCAST: [u8; 6] = [0xFF; 6];

/// The kind of a frame's destination address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// One station.
    Unicast,
    /// A group.
    Multicast,
    /// All stations.
    Broadcast,
}

impl FrameKind {
    /// The kind of a destination address.
    pub fn of(destination: &[u8; 6]) -> Self {
        if *destination == BROADCAST {
            FrameKind::Broadcast
        } else if destination[0] & 1 != 0 {
            FrameKind::Multicast
        } else {
            FrameKind::Unicast
        }
    }

    /// The counter of accepted frames of this kind (10.5, C).
    pub fn accepted(self) -> MacStatistic {
        match self {
            FrameKind::Unicast => MacStatistic::AcceptedUnicast,
            FrameKind::Multicast => MacStatistic::AcceptedMulticast,
            FrameKind::Broadcast => MacStatistic::AcceptedBroadcast,
        }
    }

    /// The counter of frames of this kind that the filter drops (10.5, C).
    pub fn dropped(self) -> MacStatistic {
        match self {
            FrameKind::Unicast => MacStatistic::DroppedUnicast,
            FrameKind::Multicast | FrameKind::Broadcast => MacStatistic::DroppedMulticast,
        }
    }
}

/// The addresses that the MAC accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// `R[208]`: bits 15:0 are the first two bytes.
    pub station_high: u32,
    /// `R[20C]`: the last four bytes.
    pub station_low: u32,
    /// `R[228..234]`, most significant word first.
    pub hash: [u32; 4],
}

impl Filter {
    /// The station address.
    pub fn station(&self) -> [u8; 6] {
        let [_, _, a, b] = self.station_high.to_be_bytes();
        let [c, d, e, f] = self.station_low.to_be_bytes();
        [a, b, c, d, e, f]
    }

    /// Whether a frame to `destination` is for this card.
    pub fn accepts(&self, destination: &[u8; 6]) -> bool {
        match FrameKind::of(destination) {
            FrameKind::Broadcast => true,
            FrameKind::Unicast => *destination == self.station(),
            FrameKind::Multicast => {
                let (word, mask) = multicast_hash_position(multicast_hash_bit(destination));
                self.hash[word] & mask != 0
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter() -> Filter {
        Filter {
            station_high: 0xFFFF_0060,
            station_low: 0xCF20_1234,
            hash: [0; 4],
        }
    }

    /// Reference 10.3 and 10.4: broadcast, and the own address from R[208] bits 15:0 and
    /// R[20C] (C).
    #[test]
    fn broadcast_and_the_own_address() {
        let filter = filter();
        assert!(filter.accepts(&BROADCAST));
        assert!(filter.accepts(&[0x00, 0x60, 0xCF, 0x20, 0x12, 0x34]));
        assert!(!filter.accepts(&[0x00, 0x60, 0xCF, 0x20, 0x12, 0x35]));
        assert!(!filter.accepts(&[0x01, 0x00, 0x5E, 0x00, 0x00, 0x01]));
    }

    /// Reference 10.3 and 10.4: bit n of the hash is bit (n mod 32) of R[234 - 4 * (n / 32)]; all ones
    /// take all multicast (C).
    #[test]
    fn multicast_by_hash() {
        let address = [0x01, 0x00, 0x5E, 0x00, 0x00, 0x01];
        let n = multicast_hash_bit(&address);
        let mut filter = filter();
        filter.hash[3 - usize::from(n) / 32] = 1 << (n % 32);
        assert!(filter.accepts(&address));
        let others = (2..=255u8).map(|last| [0x01, 0x00, 0x5E, 0x00, 0x00, last]);
        let taken = others.filter(|other| filter.accepts(other)).count();
        assert!(taken < 16, "{taken} of 254 fall on the same of 128 bits");
        filter.hash = [u32::MAX; 4];
        assert!((0..=255).all(|last| filter.accepts(&[0x33, 0x33, 0, 0, 0, last])));
    }
}
