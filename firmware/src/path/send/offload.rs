//! Offloads that the host may request for a frame: checksums and a VLAN tag.
//!
//! Hardware reference, section 13. The control block lists the offloads that a driver may request,
//! and the flags of a frame's first BD request them: drivers set the checksum flags in all BDs of
//! a frame, but the VLAN flag only in the first. Flags that the control block does not offer are
//! ignored.
//!
//! A frame with a checksum to compute is held in the MAC's ring until its last fragment, and with
//! it the channel's sum, has arrived. The frames after it are held as well, since they leave in
//! order.

use super::SendPath;
use super::checksum::{self, HEADERS, Wanted};
use crate::io::note::ReadNote;
use crate::io::states::Sum;
use host_interface::bd::{BdFlags, SendBdAt};
use host_interface::info::RcbFlags;
use tigon2_hal::Bus;
use tigon2_hal::assist::Finished;
use tigon2_hal::mac::{Frames, TransmitBuffer};

const TRANSPORT: u32 = BdFlags::new().with_transport_checksum(true).into_bits() as u32;
const IP: u32 = BdFlags::new().with_ip_checksum(true).into_bits() as u32;
const VLAN: u32 = BdFlags::new().with_vlan_tag(true).into_bits() as u32;
/// A flag of a frame: it is held in the MAC's ring. No BD has this flag.
pub const HELD: u32 = 1 << 31;
const SUMS: u32 = TRANSPORT | IP;
// A note has two bits for them.
const _: () = assert!(SUMS == 3);

/// The offloads that the control block offers.
#[derive(Clone, Copy, Debug)]
pub struct Offloads {
    /// BD flags that are obeyed.
    flags: u32,
    no_pseudo_header: bool,
    snap: bool,
}

impl Offloads {
    /// Nothing.
    pub const NONE: Offloads = Offloads::new(RcbFlags::new());

    /// From the send ring's control block.
    pub const fn new(flags: RcbFlags) -> Offloads {
        let offered = BdFlags::new()
            .with_transport_checksum(flags.transport_checksum())
            .with_ip_checksum(flags.ip_checksum())
            .with_vlan_tag(flags.vlan_assist());
        Offloads {
            flags: offered.into_bits() as u32,
            no_pseudo_header: flags.no_pseudo_header(),
            snap: flags.snap_checksum(),
        }
    }

    /// The offered offloads that a BD with this third word requests.
    #[inline(always)]
    pub const fn of(&self, word: u32) -> u32 {
        word & self.flags
    }
}

/// The offloads of a frame whose first BD is at `bd` and has `word` as its third word; the
/// transmit buffer and the MAC's ring have room.
#[inline(always)]
pub fn begin<B: Bus>(
    offloads: &Offloads,
    frames: &Frames<'_>,
    buffer: &mut TransmitBuffer,
    bus: &mut B,
    bd: u32,
    word: u32,
) -> Requested {
    let mut flags = word & offloads.flags;
    if flags & SUMS != 0 {
        buffer.keep_together(HEADERS);
        flags |= HELD;
    }
    if frames.held() != 0 {
        flags |= HELD;
    }
    let tag = if flags & VLAN != 0 {
        bus.load(SendBdAt(bd).vlan()) & 0xFFFF
    } else {
        0
    };
    Requested { flags, tag }
}

/// The offloads of a frame.
#[derive(Clone, Copy, Debug)]
pub struct Requested {
    /// BD flags, and [`HELD`]; 0 for nothing.
    pub flags: u32,
    /// Its VLAN tag, if it has one to insert.
    tag: u32,
}

impl Requested {
    /// Nothing.
    pub const NONE: Requested = Requested { flags: 0, tag: 0 };
}

/// Additional bits of a fragment's state word, for a frame that is held.
#[inline(always)]
pub fn state(flags: u32, begins: bool, last: bool) -> u32 {
    if flags & SUMS == 0 {
        return 0;
    }
    Sum::ON | if begins { Sum::BEGINS } else { 0 } | if last { Sum::STORED } else { 0 }
}

/// All data of a frame with offloads is queued: `length` bytes from `start` on.
#[inline(always)]
pub fn queue<B: Bus>(
    requested: Requested,
    frames: &mut Frames<'_>,
    bus: &mut B,
    start: u32,
    length: u32,
) {
    let tag = (requested.flags & VLAN != 0).then_some(requested.tag);
    if requested.flags & HELD != 0 {
        frames.hold(bus, start, length, tag);
    } else {
        frames.push(bus, start, length, tag);
    }
}

/// The last data of the oldest held frame has arrived.
#[inline(always)]
pub fn arrived<B: Bus>(send: &mut SendPath, bus: &mut B, done: &Finished) {
    let sums = ReadNote::of_word(done.note).sums();
    if sums != 0 {
        let wanted = Wanted {
            ip: sums & IP != 0,
            transport: sums & TRANSPORT != 0,
            no_pseudo_header: send.offloads.no_pseudo_header,
            snap: send.offloads.snap,
        };
        let (frame, length) = send.ring.oldest_held(bus);
        let sum = done.sum(bus);
        checksum::patch(bus, &send.buffer, frame, length, sum, wanted);
    }
    send.ring.release(bus);
}
