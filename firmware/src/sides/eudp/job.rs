//! The descriptor in work: what it names, judged once, and copied from.
//!
//! A process may write whatever it likes into its descriptors, at any time. So all words of one are
//! taken once; what they say is judged, and only what was judged is used.

use super::flags::{self, GATHERED, LEADS, WANTS_SUM};
use super::headers::{IP, UDP};
use super::pieces::{Piece, Pieces};
use super::rows::{Handle, Rows};
use crate::memory::layout::EUDP_BLOCK;
use host_interface::eudp::{
    Checksum, DATAGRAM_MAX, DescriptorWord, EndpointWord, Status, endpoint_word, handle_of,
    pieces_of, port_of,
};
use tigon2_chip::HostAddress;
use tigon2_hal::Bus;

/// The least that every IP host takes.
const LEAST_MTU: u32 = 576;
/// The most that a frame has room for.
const MOST_MTU: u32 = 9000;

/// The bit of a [`shape`] that says that datagrams have a UDP checksum.
pub const SUMMED: u32 = 1 << 31;
/// That which says that the fragment with it leaves first.
const LEADING: u32 = 1 << 30;
/// The others.
pub const MOST: u32 = 0xFFFF;

/// What an endpoint's row says of its datagrams: the bytes of an IP packet's payload, and two bits.
pub fn shape<B: Bus>(bus: &mut B, endpoint: u32) -> u32 {
    let of = |word| EUDP_BLOCK + endpoint_word(endpoint, word);
    let mtu = bus.load(of(EndpointWord::Mtu)).clamp(LEAST_MTU, MOST_MTU);
    let checksum = match bus.load(of(EndpointWord::Checksum)) {
        full if full == Checksum::Full as u32 => SUMMED,
        leading if leading == Checksum::Leading as u32 => SUMMED | LEADING,
        _ => 0,
    };
    (mtu - IP) | checksum
}

/// The next descriptor.
#[derive(Clone, Copy, Debug)]
pub struct Next {
    /// Whose it is.
    pub endpoint: u32,
    /// Its NIC address.
    pub descriptor: u32,
    /// Its endpoint's [`shape`](shape).
    pub shape: u32,
    /// Its number.
    pub number: u32,
}

impl Next {
    /// Bytes of an IP packet's payload that a frame takes.
    #[inline(always)]
    pub(super) const fn most(&self) -> u32 {
        self.shape & MOST
    }

    /// Whether the datagram has a UDP checksum.
    #[inline(always)]
    pub(super) const fn is_summed(&self) -> bool {
        self.shape & SUMMED != 0
    }
}

/// A descriptor to send, judged.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// Whose it is.
    pub endpoint: u32,
    /// NIC address of the descriptor.
    pub descriptor: u32,
    /// Its number.
    pub number: u32,
    /// Bytes of data.
    pub length: u32,
    /// Where these are.
    pub pieces: Pieces,
    /// Bytes of an IP packet's payload that a frame takes.
    pub most: u32,
    /// The destination's port and the datagram's length, as in the UDP header.
    pub udp: u32,
    /// The sum of the pseudo-header and of the UDP header.
    pub udp_sum: u32,
    /// The flags of frames whose data has to be fetched: of that with the UDP header, and of others.
    pub flags: [u32; 2],
    /// The identification of its packets.
    pub identification: u32,
    /// Where the next frame begins in the IP payload, whose first 8 bytes are the UDP header.
    pub at: u32,
    /// Whether frames are still to come.
    pub is_left: bool,
}

impl Job {
    /// None.
    pub const NONE: Job = Job {
        endpoint: 0,
        descriptor: 0,
        number: 0,
        length: 0,
        pieces: Pieces::NONE,
        most: 0,
        udp: 0,
        udp_sum: 0,
        flags: [0; 2],
        identification: 0,
        at: 0,
        is_left: false,
    };

    /// Takes a descriptor of several pieces.
    ///
    /// # Errors
    /// [`Status`].
    #[inline(always)]
    pub fn take<B: Bus>(
        &mut self,
        bus: &mut B,
        next: &Next,
        rows: &mut Rows,
    ) -> Result<(), Status> {
        let descriptor = next.descriptor;
        let to = bus.load(descriptor + DescriptorWord::To as u32);
        let length = bus.load(descriptor + DescriptorWord::Length as u32) & 0xFFFF;
        let count = pieces_of(to);
        let there = self.pieces.take(bus, next.endpoint, descriptor, count)?;
        // Data in the descriptor is no job's ([`Other`](super::whole::Other)). The process may have
        // written the descriptor again since it was judged to be one.
        let fits = length <= DATAGRAM_MAX && there != 0 && there == length;
        if !fits {
            return Err(Status::BadDescriptor);
        }
        rows.handle.take(bus, handle_of(to), next.endpoint)?;
        self.begin(next, port_of(to), length, &mut rows.handle);
        Ok(())
    }

    /// Takes a descriptor of one piece, `length` bytes at `host`, which was judged.
    #[inline(never)]
    pub fn take_piece(
        &mut self,
        next: &Next,
        port: u32,
        host: HostAddress,
        length: u32,
        handle: &mut Handle,
    ) {
        let bytes = length;
        self.pieces.set_only(Piece { host, bytes });
        self.begin(next, port, length, handle);
    }

    /// Takes what a descriptor says beside its pieces.
    #[inline(always)]
    fn begin(&mut self, next: &Next, port: u32, length: u32, handle: &mut Handle) {
        self.endpoint = next.endpoint;
        self.descriptor = next.descriptor;
        self.number = next.number;
        self.length = length;
        self.udp = port << 16 | (UDP + length);
        self.udp_sum = handle.udp_sum(port, UDP + length);
        self.identification = handle.identify();
        self.most = next.most();
        self.at = 0;
        self.is_left = true;
        let is_split = UDP + length > self.most;
        self.flags = flags(next.shape, is_split);
        if is_split {
            self.split();
        }
    }

    /// Chooses the first one of several frames: that with the UDP header, or, if its checksum is known
    /// last, the one behind it.
    #[inline(always)]
    fn split(&mut self) {
        // Only what more follows has to be a multiple of 8.
        self.most &= !7;
        if self.ends_with_header() {
            self.at = self.most;
        }
    }

    /// Bytes of the IP packet's payload in the frame that comes next.
    #[inline(always)]
    pub fn payload(&self) -> u32 {
        self.most.min(UDP + self.length - self.at)
    }

    /// Whether packets of the datagram come behind this one, in its own order.
    #[inline(always)]
    pub const fn is_followed(&self) -> bool {
        self.at + self.most < UDP + self.length
    }

    /// Whether the frame before the next one is that with the UDP header, which gets the sum of all.
    #[inline(always)]
    pub const fn is_behind_lead(&self) -> bool {
        self.flags[0] & LEADS != 0 && self.at == self.most
    }

    /// Whether the frame with the UDP header is the last one.
    #[inline(always)]
    const fn ends_with_header(&self) -> bool {
        self.flags[1] & flags::SUMMED != 0
    }

    /// The frame is on its way, which [is followed](Self::is_followed) or not: another one comes next.
    /// Returns whether there is one.
    #[inline(always)]
    pub fn advance(&mut self, is_followed: bool) -> bool {
        self.is_left = if self.ends_with_header() {
            self.at != 0
        } else {
            is_followed
        };
        self.at = if is_followed { self.at + self.most } else { 0 };
        self.is_left
    }
}

/// [`Job::flags`] of an endpoint's [`shape`](shape()) for a datagram of one frame or of several.
const fn flags(shape: u32, is_split: bool) -> [u32; 2] {
    const SUM: u32 = flags::SUMMED | WANTS_SUM;
    if shape & SUMMED == 0 {
        [0; 2]
    } else if shape & LEADING == 0 || !is_split {
        [SUM, flags::SUMMED]
    } else {
        [SUM | GATHERED | LEADS, 0]
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use crate::memory::words::Words;
    use crate::sides::eudp::rows::Rows;
    use host_interface::eudp::{HandleWord, handle_word};
    use std::vec::Vec;

    fn frames(length: u32, checksum: u32) -> Vec<(u32, u32, bool)> {
        let mut job = Job {
            length,
            flags: flags(checksum, true),
            most: 1480,
            ..Job::NONE
        };
        if UDP + length > job.most {
            job.split();
        }
        let mut frames = Vec::new();
        loop {
            frames.push((job.at, job.payload(), job.is_followed()));
            let is_followed = job.is_followed();
            if !job.advance(is_followed) {
                return frames;
            }
        }
    }

    #[test]
    fn a_datagram_is_split_where_the_wire_wants_it() {
        let two = [(0, 1480, true), (1480, 1, false)];
        assert_eq!(frames(0, 0), [(0, 8, false)]);
        assert_eq!(frames(1472, SUMMED), [(0, 1480, false)]);
        assert_eq!(frames(1473, 0), two);
        assert_eq!(frames(1473, SUMMED | LEADING), two);
        assert_eq!(frames(65_507, 0).len(), 45);
    }

    /// The UDP header is the last to leave when its checksum needs all data.
    #[test]
    fn the_sum_is_known_last() {
        let three = [(1480, 1480, true), (2960, 48, false), (0, 1480, true)];
        assert_eq!(frames(3000, SUMMED), three);
    }

    /// A process can write a descriptor again after it was judged to be a job.
    #[test]
    fn data_in_the_descriptor_is_refused() {
        for length in [0, 3] {
            let mut bus = Words::default();
            let next = Next {
                endpoint: 1,
                descriptor: 0x4000,
                shape: 1480,
                number: 0,
            };
            let owner = EUDP_BLOCK + handle_word(0, HandleWord::Owner);
            bus.store(owner, next.endpoint + 1);
            bus.store(next.descriptor + DescriptorWord::Length as u32, length);
            let mut job = Job::NONE;
            let mut rows = Rows::NONE;
            let judged = job.take(&mut bus, &next, &mut rows);
            assert_eq!(judged, Err(Status::BadDescriptor), "{length}");
        }
    }
}
