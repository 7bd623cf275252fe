//! The rows of the last datagram's address handle and region, in CPU B's pad.
//!
//! A load of SRAM takes CPU B ten cycles and more while the read channel brings a frame, and a
//! datagram needs sixteen words of both rows. Most datagrams go where the one before went, from the
//! same region.
//!
//! The host does not change a row whose endpoint is open ([`host_interface::eudp`]), so a copy is
//! good until CPU B [forgets](Rows::forget) the endpoint. Only rows that are the endpoint's own are
//! copied, and only while there is a link: CPU A rings CPU B when that goes.

use super::headers::{ETHERNET, IP};
use super::sums::folded;
use crate::memory::layout::EUDP_BLOCK;
use crate::path::send::SendPath;
use host_interface::eudp::{
    HANDLES, HandleWord, REGIONS, RegionWord, Status, handle_word, region_word,
};
use tigon2_chip::HostAddress;
use tigon2_hal::Bus;
use tigon2_hal::schedule::barrier;

/// Both rows.
#[derive(Debug)]
pub struct Rows {
    /// The address handle's.
    pub handle: Handle,
    /// The region's.
    pub region: Region,
}

impl Rows {
    /// None.
    pub const NONE: Rows = Rows {
        handle: Handle::NONE,
        region: Region::NONE,
    };

    /// An endpoint is closed, and the host may change its rows; or the link is gone.
    ///
    /// A datagram in work keeps its headers: another endpoint's may be the one that is closed.
    pub fn forget<B: Bus>(&mut self, bus: &mut B) {
        self.handle.leave(bus);
        self.region.key = 0;
    }
}

/// What names a row: its number and whose it is; 0 for none.
#[inline(always)]
const fn key(number: u32, endpoint: u32) -> u32 {
    number << 16 | (endpoint + 1)
}

/// An address handle's row.
#[derive(Debug)]
pub struct Handle {
    key: u32,
    /// Words 0 to 3 of the headers.
    stations: [u32; 4],
    /// Word 5, with Don't Fragment or without.
    lifetime: u32,
    /// Words 7 and 8.
    addresses: [u32; 2],
    ip_sum: u32,
    udp_sum: u32,
    /// The next identification, and the lower half of word 6.
    next_and_source: u32,
    tag: u32,
}

impl Handle {
    const NONE: Handle = Handle {
        key: 0,
        stations: [0; 4],
        lifetime: 0,
        addresses: [0; 2],
        ip_sum: 0,
        udp_sum: 0,
        next_and_source: 0,
        tag: 0,
    };

    /// Takes row `number` for a datagram.
    ///
    /// # Errors
    /// [`Status`] if there is no such row, it is not the endpoint's, or there is no link.
    #[inline(always)]
    pub fn take<B: Bus>(&mut self, bus: &mut B, number: u32, endpoint: u32) -> Result<(), Status> {
        if self.key == key(number, endpoint) {
            return Ok(());
        }
        self.copy(bus, number, endpoint)
    }

    #[inline(never)]
    fn copy<B: Bus>(&mut self, bus: &mut B, number: u32, endpoint: u32) -> Result<(), Status> {
        if number >= HANDLES {
            return Err(Status::BadDescriptor);
        }
        let row = barrier(EUDP_BLOCK + handle_word(number, HandleWord::Headers));
        let mut word = |word: HandleWord| bus.load(row + word as u32);
        if word(HandleWord::Owner) != endpoint + 1 {
            return Err(Status::BadDescriptor);
        }
        self.leave(bus);
        let mut word = |word: HandleWord| bus.load(row + word as u32);
        self.ip_sum = word(HandleWord::IpSum);
        self.udp_sum = word(HandleWord::UdpSum);
        let identification = word(HandleWord::Identification);
        self.tag = word(HandleWord::Tag);
        let mut header = |offset| bus.load(row + offset);
        self.stations = [header(0), header(4), header(8), header(12)];
        self.lifetime = header(20);
        self.next_and_source = identification << 16 | header(24) & 0xFFFF;
        self.addresses = [header(28), header(32)];
        if !SendPath::has_link(bus) {
            return Err(Status::LinkDown);
        }
        self.key = key(number, endpoint);
        Ok(())
    }

    /// The VLAN tag of its frames, in bits 31:16; 0 for none.
    #[inline(always)]
    pub const fn tag(&self) -> u32 {
        self.tag
    }

    /// The sum of the pseudo-header and of the UDP header of a datagram of `bytes` with that header.
    #[inline(always)]
    pub const fn udp_sum(&self, port: u32, bytes: u32) -> u32 {
        self.udp_sum + port + (bytes << 1)
    }

    /// The identification of the next datagram.
    #[inline(always)]
    pub const fn identify(&mut self) -> u32 {
        let number = self.next_and_source >> 16;
        self.next_and_source = self.next_and_source.wrapping_add(1 << 16);
        number
    }

    /// Another row takes its place: this one counts on from here.
    fn leave<B: Bus>(&mut self, bus: &mut B) {
        if self.key != 0 {
            let row = EUDP_BLOCK + handle_word(self.key >> 16, HandleWord::Identification);
            bus.store(row, self.next_and_source >> 16);
        }
        self.key = 0;
    }

    /// Stores the headers of a datagram that is one frame, all but its sum: `payload` is the UDP header
    /// and its data.
    #[inline(always)]
    pub fn put_whole<B: Bus>(&mut self, bus: &mut B, to: u32, port: u32, payload: u32) {
        let packet = (IP + payload) << 16 | self.identify();
        self.put(bus, to, packet, 0);
        bus.store(to + ETHERNET + IP + 2, port << 16 | payload);
    }

    /// Stores the headers of an IP packet to the frame at `to`: its length in bits 31:16 of
    /// `packet`, its identification in bits 15:0, and the halfword of its fragment's place.
    #[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_b.endpoints"))]
    #[inline(never)]
    pub fn put<B: Bus>(&self, bus: &mut B, to: u32, packet: u32, fragment: u32) {
        let sum = self.ip_sum + (packet >> 16) + (packet & 0xFFFF) + fragment;
        let sum = !folded(sum) << 16;
        let [a, b, c, d] = self.stations;
        let [e, f] = self.addresses;
        bus.store(to, a);
        bus.store(to + 4, b);
        bus.store(to + 8, c);
        bus.store(to + 12, d);
        bus.store(to + 16, packet);
        bus.store(to + 20, fragment << 16 | self.lifetime);
        bus.store(to + 24, sum | self.next_and_source & 0xFFFF);
        bus.store(to + 28, e);
        bus.store(to + 32, f);
    }
}

/// A region's row.
#[derive(Debug)]
pub struct Region {
    key: u32,
    host: HostAddress,
    bytes: u32,
}

impl Region {
    const NONE: Region = Region {
        key: 0,
        host: HostAddress { high: 0, low: 0 },
        bytes: 0,
    };

    /// The host address of `length` bytes of region `number`, if there is such a region, it is the
    /// endpoint's, and it has them.
    #[inline(always)]
    pub fn of<B: Bus>(
        &mut self,
        bus: &mut B,
        (number, endpoint): (u32, u32),
        offset: u32,
        length: u32,
    ) -> Option<HostAddress> {
        if self.key != key(number, endpoint) && !self.copy(bus, number, endpoint) {
            return None;
        }
        if offset > self.bytes || length > self.bytes - offset || length == 0 {
            return None;
        }
        Some(self.host.plus(offset))
    }

    #[inline(never)]
    fn copy<B: Bus>(&mut self, bus: &mut B, number: u32, endpoint: u32) -> bool {
        if number >= REGIONS {
            return false;
        }
        let row = barrier(EUDP_BLOCK + region_word(number, RegionWord::High));
        let mut word = |word: RegionWord| bus.load(row + word as u32);
        if word(RegionWord::Owner) != endpoint + 1 {
            return false;
        }
        self.host.high = word(RegionWord::High);
        self.host.low = word(RegionWord::Low);
        self.bytes = word(RegionWord::Bytes);
        self.key = key(number, endpoint);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::shared::LINK_UP;
    use crate::memory::words::Words;

    /// Handles and regions 0 and 1 are endpoint 1's.
    fn sram() -> Words {
        let mut bus = Words::default();
        bus.store(LINK_UP.address(), 1);
        for number in 0..2 {
            let row = EUDP_BLOCK + handle_word(number, HandleWord::Headers);
            bus.store(row, 0x0200_0000 + number);
            bus.store(row + HandleWord::Owner as u32, 2);
            bus.store(row + HandleWord::Identification as u32, 0xFFFF);
            let row = EUDP_BLOCK + region_word(number, RegionWord::High);
            bus.store(row + RegionWord::Low as u32, 0x1000 * (number + 1));
            bus.store(row + RegionWord::Bytes as u32, 100);
            bus.store(row + RegionWord::Owner as u32, 2);
        }
        bus
    }

    #[test]
    fn a_row_that_is_known_is_its_owners_alone() {
        let (mut bus, mut rows) = (sram(), Rows::NONE);
        let bad = Err(Status::BadDescriptor);
        for _ in 0..2 {
            assert_eq!(rows.handle.take(&mut bus, 0, 0), bad);
            assert_eq!(rows.handle.take(&mut bus, 0, 1), Ok(()));
            assert_eq!(rows.handle.take(&mut bus, 0, 2), bad);
            assert_eq!(rows.handle.take(&mut bus, HANDLES, 1), bad);
            assert_eq!(rows.region.of(&mut bus, (0, 0), 0, 1), None);
            let low = rows.region.of(&mut bus, (0, 1), 40, 60);
            assert_eq!(low.map(|host| host.low), Some(0x1000 + 40));
            for (offset, length) in [(40, 61), (0, 0), (101, 1), (u32::MAX, 2)] {
                assert_eq!(rows.region.of(&mut bus, (0, 1), offset, length), None);
            }
            assert_eq!(rows.region.of(&mut bus, (0, 2), 0, 1), None);
            assert_eq!(rows.region.of(&mut bus, (REGIONS, 1), 0, 1), None);
        }
    }

    #[test]
    fn identifications_go_on_where_a_row_has_left() {
        let (mut bus, mut rows) = (sram(), Rows::NONE);
        let mut next = |rows: &mut Rows, number| {
            rows.handle.take(&mut bus, number, 1).expect("it is there");
            rows.handle.identify()
        };
        let numbers = [0, 0, 1, 0].map(|number| next(&mut rows, number));
        assert_eq!(numbers, [0xFFFF, 0, 0xFFFF, 1]);
        rows.forget(&mut bus);
        rows.handle.take(&mut bus, 0, 1).expect("it is there");
        assert_eq!(rows.handle.identify(), 2);
    }

    #[test]
    fn a_row_is_looked_at_again_when_it_was_forgotten() {
        let (mut bus, mut rows) = (sram(), Rows::NONE);
        rows.handle.take(&mut bus, 0, 1).expect("it is there");
        rows.region.of(&mut bus, (0, 1), 0, 1).expect("it is there");
        let row = EUDP_BLOCK + handle_word(0, HandleWord::Headers);
        bus.store(row, 7);
        bus.store(EUDP_BLOCK + region_word(0, RegionWord::Low), 0x7000);
        rows.forget(&mut bus);
        // A datagram in work may still need its headers.
        assert_eq!(rows.handle.stations[0], 0x0200_0000);
        rows.handle.take(&mut bus, 0, 1).expect("it is there");
        assert_eq!(rows.handle.stations[0], 7);
        let host = rows.region.of(&mut bus, (0, 1), 0, 1);
        assert_eq!(host.map(|host| host.low), Some(0x7000));

        rows.forget(&mut bus);
        bus.store(LINK_UP.address(), 0);
        for _ in 0..2 {
            assert_eq!(rows.handle.take(&mut bus, 0, 1), Err(Status::LinkDown));
        }
    }
}
