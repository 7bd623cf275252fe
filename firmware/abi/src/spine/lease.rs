//! Leases: ranges of the PCI bus that the host lets a domain's handlers write to.
//!
//! SPINE paper, section 5.1: an extension moves each scan line of a video from the frame that it came
//! in to the frame buffer, by a transfer of its own. A handler names bytes of its frame and an offset
//! in its domain's lease; the firmware holds both against the frame's and the lease's bytes when
//! the transfer is noted, so a handler cannot write elsewhere. The lease is the host's to give and to
//! take: when [`Command::Lease`](super::Command::Lease) is answered with
//! [`Done`](super::Outcome::Done), the new one counts, and nothing is written by the old one any more.
//!
//! ```text
//! peer page
//! +0x180  by the host: a lease for each domain, LEASE_BYTES      LeaseWord
//! +0x1C0  the same as they count, by the firmware
//! +0x200  transfers that the run in work has noted: to, from, bytes
//! +0x230  how many these are; what the firmware alone knows
//! ```

use super::DOMAINS;
use super::peer::{MESSAGES_AT, RING_WORDS, RingWord};
use tigon2_chip::table;

/// Offset in the peer page of the leases as the host asks for them.
pub const LEASES: u32 = 0x180;
/// Bytes of a lease.
pub const LEASE_BYTES: u32 = 16;
/// Offset of the leases that count.
pub const CURRENT: u32 = LEASES + DOMAINS * LEASE_BYTES;
/// Offset of the transfers that the run in work has noted.
pub const NOTED: u32 = CURRENT + DOMAINS * LEASE_BYTES;
/// Transfers of a run, at most.
pub const TRANSFERS: u32 = 4;
/// Bytes of a transfer that is noted: offset in the lease, NIC address of the data, bytes.
pub const NOTED_BYTES: u32 = 12;
/// Offset of the word that says how many were noted.
pub const NOTED_COUNT: u32 = NOTED + TRANSFERS * NOTED_BYTES;
/// Offset of the firmware's own words: of the frame in work and its lease; and the leases that were
/// withdrawn while transfers may be under way.
pub const WORK: u32 = NOTED_COUNT + 4;
/// Bytes of a lease, at most: offsets have no carry then.
pub const LONGEST: u32 = 1 << 30;

table! {
    /// A word of a lease, by its offset.
    pub enum LeaseWord: u32 {
        /// Address on the bus, upper half.
        High = 0x00,
        /// Lower half.
        Low = 0x04,
        /// Bytes; 0 for no lease.
        Bytes = 0x08,
    }
}

/// Offset in the peer page of the lease that the host asks for.
pub const fn asked(domain: u32) -> u32 {
    LEASES + domain * LEASE_BYTES
}

/// Offset in the peer page of the lease that counts.
pub const fn current(domain: u32) -> u32 {
    CURRENT + domain * LEASE_BYTES
}

const _: () = {
    assert!(RING_WORDS + RingWord::Producer as u32 + 4 <= LEASES);
    assert!(WORK + 16 <= MESSAGES_AT);
};
