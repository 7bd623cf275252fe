//! Parts of SRAM as values with one owner.
//!
//! [`layout`](super::layout) places each table. A ring or list takes ownership of its memory as a
//! [`Region`], and each region exists once: whoever owns the ring owns the memory, and no other
//! ring can be built there.
//!
//! ```text
//! Regions::of_sram()
//!   .a   return BDs, staging                      -> CPU A's side
//!   .b   send BDs                                 -> CPU B's side
//!   standard, mini, jumbo BDs, in two ends:
//!   .b   Filled: CPU B fetches BDs to there
//!   .a   Taken:  CPU A takes them from there
//! ```
//!
//! The receive queues have no regions of their own: while they are open they borrow the space of
//! classic mode, whose rings are idle meanwhile. Their rings overlay the copies of the receive BDs
//! ([`StandardBds`], [`JumboBds`], [`MiniBds`]), and the tables of their hashes overlay the slots
//! of the return BDs ([`ReturnBds`]). `layout` therefore has them as constants
//! ([`QUEUE_RINGS`](super::layout::QUEUE_RINGS), [`HASH_TABLES`](super::layout::HASH_TABLES)).
//! When the queues close, the firmware fetches the BDs again and clears the slots.
//!
//! Two rings over one region do not compile:
//!
//! ```compile_fail,E0382
//! use tigon_firmware::memory::region::Regions;
//! use tigon_firmware::path::receive::returns::ReturnQueue;
//!
//! let mine = Regions::of_sram().a;
//! let first = ReturnQueue::new(mine.return_bds);
//! let second = ReturnQueue::new(mine.return_bds);
//! ```
//!
//! Nor does a ring over another table's region, or over a forged one:
//!
//! ```compile_fail,E0308
//! use tigon_firmware::memory::region::Regions;
//! use tigon_firmware::path::receive::returns::ReturnQueue;
//!
//! let ring = ReturnQueue::new(Regions::of_sram().a.staging);
//! ```
//!
//! ```compile_fail,E0423
//! use tigon_firmware::memory::layout::{RETURN_BDS, RETURN_BYTES};
//! use tigon_firmware::memory::region::Region;
//!
//! let forged: Region<RETURN_BDS, RETURN_BYTES> = Region(());
//! ```
//!
//! ```
//! use tigon_firmware::memory::region::Regions;
//! use tigon_firmware::path::receive::returns::ReturnQueue;
//!
//! let ring = ReturnQueue::new(Regions::of_sram().a.return_bds);
//! ```

use super::layout::{
    JUMBO_BDS, JUMBO_BYTES, MINI_BDS, MINI_BYTES, RETURN_BDS, RETURN_BYTES, SEND_BDS, SEND_BYTES,
    STAGING, STAGING_BYTES, STANDARD_BDS, STANDARD_BYTES, TRACE, TRACE_BYTES,
};

/// `BYTES` of SRAM from NIC address `ADDRESS` on, with one owner.
#[derive(Debug)]
pub struct Region<const ADDRESS: u32, const BYTES: u32>(());

impl<const ADDRESS: u32, const BYTES: u32> Region<ADDRESS, BYTES> {
    /// NIC address of the first byte.
    pub const ADDRESS: u32 = ADDRESS;
    /// The number of bytes.
    pub const BYTES: u32 = BYTES;

    const fn mint() -> Self {
        Region(())
    }

    /// The two ends of a ring: one CPU fills it, the other takes entries.
    pub const fn ends(self) -> (Filled<ADDRESS, BYTES>, Taken<ADDRESS, BYTES>) {
        (Filled(()), Taken(()))
    }

    /// NIC address of the first byte.
    #[inline(always)]
    pub const fn address(&self) -> u32 {
        ADDRESS
    }

    /// A region of no table, for tests of rings and lists.
    #[cfg(test)]
    pub(crate) const fn of_test() -> Self {
        Region(())
    }
}

/// The filling end of a ring's region.
#[derive(Debug)]
pub struct Filled<const ADDRESS: u32, const BYTES: u32>(());

/// The taking end of a ring's region.
#[derive(Debug)]
pub struct Taken<const ADDRESS: u32, const BYTES: u32>(());

/// Declares the regions and checks that they do not overlap.
macro_rules! regions {
    ($( $(#[$doc:meta])* $type:ident: $address:ident, $bytes:ident; )+) => {
        $( $(#[$doc])* pub type $type = Region<$address, $bytes>; )+

        const _: () = {
            let all: &[(u32, u32)] = &[$( ($type::ADDRESS, $type::BYTES), )+];
            let mut index = 0;
            while index < all.len() {
                let (address, bytes) = all[index];
                assert!(address.is_multiple_of(8) && bytes.is_multiple_of(8));
                assert!(index == 0 || all[index - 1].0 + all[index - 1].1 <= address);
                index += 1;
            }
        };
    };
}

regions! {
    /// The send BDs in NIC memory; the ring lies at its end.
    SendBds: SEND_BDS, SEND_BYTES;
    /// Return BDs on their way to the host.
    ReturnBds: RETURN_BDS, RETURN_BYTES;
    /// Copies of the standard receive BDs.
    StandardBds: STANDARD_BDS, STANDARD_BYTES;
    /// Copies of the jumbo receive BDs.
    JumboBds: JUMBO_BDS, JUMBO_BYTES;
    /// Copies of the mini receive BDs.
    MiniBds: MINI_BDS, MINI_BYTES;
    /// Payloads of small transfers to the host.
    Staging: STAGING, STAGING_BYTES;
    /// The trace.
    Trace: TRACE, TRACE_BYTES;
}

/// The regions that CPU B fetches receive BDs into.
#[derive(Debug)]
pub struct FilledBds {
    /// Those of the standard ring.
    pub standard: Filled<STANDARD_BDS, STANDARD_BYTES>,
    /// Those of the mini ring.
    pub mini: Filled<MINI_BDS, MINI_BYTES>,
    /// Those of the jumbo ring.
    pub jumbo: Filled<JUMBO_BDS, JUMBO_BYTES>,
}

/// The regions that CPU A takes receive BDs from.
#[derive(Debug)]
pub struct TakenBds {
    /// Those of the standard ring.
    pub standard: Taken<STANDARD_BDS, STANDARD_BYTES>,
    /// Those of the mini ring.
    pub mini: Taken<MINI_BDS, MINI_BYTES>,
    /// Those of the jumbo ring.
    pub jumbo: Taken<JUMBO_BDS, JUMBO_BYTES>,
}

/// The regions of CPU A.
#[derive(Debug)]
pub struct RegionsA {
    /// Return BDs on their way to the host.
    pub return_bds: ReturnBds,
    /// Receive BDs.
    pub receive_bds: TakenBds,
    /// Payloads of small transfers to the host.
    pub staging: Staging,
}

/// The regions of CPU B.
#[derive(Debug)]
pub struct RegionsB {
    /// The send BDs.
    pub send_bds: SendBds,
    /// Receive BDs.
    pub receive_bds: FilledBds,
}

/// All of one card's SRAM that rings and lists use.
#[derive(Debug)]
pub struct Regions {
    /// The regions of CPU A.
    pub a: RegionsA,
    /// The regions of CPU B.
    pub b: RegionsB,
    /// The trace, which both CPUs write, one at a time.
    pub trace: Trace,
}

impl Regions {
    /// The regions of a card's SRAM. Call it once for each card, at start.
    pub const fn of_sram() -> Regions {
        let (standard, standard_taken) = StandardBds::mint().ends();
        let (mini, mini_taken) = MiniBds::mint().ends();
        let (jumbo, jumbo_taken) = JumboBds::mint().ends();
        Regions {
            a: RegionsA {
                return_bds: Region::mint(),
                receive_bds: TakenBds {
                    standard: standard_taken,
                    mini: mini_taken,
                    jumbo: jumbo_taken,
                },
                staging: Region::mint(),
            },
            b: RegionsB {
                send_bds: Region::mint(),
                receive_bds: FilledBds {
                    standard,
                    mini,
                    jumbo,
                },
            },
            trace: Region::mint(),
        }
    }
}
