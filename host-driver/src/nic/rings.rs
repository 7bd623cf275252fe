//! The rings of a card: their kinds, sizes and flags.
//!
//! Host/NIC software interface, "General information block", from "A ring control
//! block" on.

use host_interface::bd::BdFlags;
use host_interface::info::RcbFlags;
use host_interface::ring;
use serde::Serialize;

/// Entries of the send ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SendRingSize {
    /// 128 BDs.
    Entries128,
    /// 256 BDs.
    Entries256,
    /// 512 BDs.
    #[default]
    Entries512,
}

impl SendRingSize {
    /// As a number.
    #[must_use]
    pub const fn entries(self) -> u32 {
        match self {
            Self::Entries128 => 128,
            Self::Entries256 => 256,
            Self::Entries512 => 512,
        }
    }
}

/// Where the send ring is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SendRingPlace {
    /// In host memory; the firmware fetches the BDs by DMA.
    #[default]
    Host,
    /// In the card's memory below 0x4000; the driver writes the BDs through the
    /// window, as older drivers do.
    Card,
}

/// Entries of the receive return ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReturnRingSize {
    /// 1024 BDs, for hosts without a mini ring.
    Entries1024,
    /// 2048 BDs.
    #[default]
    Entries2048,
}

impl ReturnRingSize {
    /// As a number.
    #[must_use]
    pub const fn entries(self) -> u32 {
        match self {
            Self::Entries1024 => ring::RETURN_ENTRIES_SMALL,
            Self::Entries2048 => ring::RETURN_ENTRIES,
        }
    }
}

/// The jumbo receive ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum JumboRing {
    /// With BDs of 32 bytes if the MTU needs it, otherwise none.
    #[default]
    Automatic,
    /// None: the standard ring limits the MTU.
    Off,
    /// BDs of 32 bytes, one buffer each.
    Normal,
    /// BDs of 64 bytes, four buffers each.
    Extended,
}

/// The ring of a receive buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ring {
    /// The standard ring.
    Standard,
    /// The jumbo ring.
    Jumbo,
    /// The mini ring.
    Mini,
}

impl Ring {
    /// The ring in the flags of a return BD, if any.
    pub(super) fn of(flags: BdFlags) -> Option<Self> {
        match (flags.jumbo_ring(), flags.mini_ring()) {
            (false, false) => Some(Self::Standard),
            (true, false) => Some(Self::Jumbo),
            (false, true) => Some(Self::Mini),
            (true, true) => None,
        }
    }

    pub(super) fn flags(self) -> BdFlags {
        BdFlags::new()
            .with_jumbo_ring(self == Self::Jumbo)
            .with_mini_ring(self == Self::Mini)
    }
}

/// Checksums that the card computes, of sent or of received frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChecksumOffload {
    /// Of TCP and UDP.
    pub transport: bool,
    /// Of the IPv4 header.
    pub ip: bool,
    /// The host handles the pseudo-header, and the card leaves it out.
    pub no_pseudo_header: bool,
    /// Also in frames with an IEEE SNAP header.
    pub snap: bool,
}

impl ChecksumOffload {
    /// None at all.
    pub const NONE: Self = Self {
        transport: false,
        ip: false,
        no_pseudo_header: false,
        snap: false,
    };

    /// As Linux `acenic` requests: TCP and UDP without the pseudo-header.
    pub const LINUX: Self = Self {
        transport: true,
        no_pseudo_header: true,
        ..Self::NONE
    };

    /// TCP, UDP and IP, with the pseudo-header computed by the card.
    pub const FULL: Self = Self {
        transport: true,
        ip: true,
        ..Self::NONE
    };

    /// Whether the card computes any.
    #[must_use]
    pub const fn any(self) -> bool {
        self.transport || self.ip
    }

    /// As flags of a ring control block.
    #[must_use]
    pub const fn flags(self) -> RcbFlags {
        RcbFlags::new()
            .with_transport_checksum(self.transport)
            .with_ip_checksum(self.ip)
            .with_no_pseudo_header(self.no_pseudo_header)
            .with_snap_checksum(self.snap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference, "Linux settings": rx RCBs 0x19 with VLAN assist (C).
    #[test]
    fn the_flags_of_linux() {
        let flags = ChecksumOffload::LINUX.flags().with_vlan_assist(true);
        assert_eq!(flags.into_bits(), 0x19);
        assert_eq!(ChecksumOffload::FULL.flags().into_bits(), 0x03);
        assert!(!ChecksumOffload::NONE.any());
    }
}
