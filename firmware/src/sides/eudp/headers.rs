//! The headers of a datagram, without a VLAN tag and without IP options.
//!
//! ```text
//!   0          14   34    42
//!   | Ethernet | IP | UDP | data
//! ```

/// Bytes of an Ethernet header.
pub const ETHERNET: u32 = 14;
/// Bytes of an IP header.
pub const IP: u32 = 20;
/// Bytes of a UDP header.
pub const UDP: u32 = 8;
/// Bytes of all three.
pub const HEADERS: u32 = ETHERNET + IP + UDP;
