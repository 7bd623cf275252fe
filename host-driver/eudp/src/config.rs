//! How endpoints are opened, and when their frames leave.

use host_interface::eudp::Checksum;
use std::net::Ipv4Addr;

/// Descriptors of a queue in an endpoint's process, unless it wants more or fewer.
pub const DESCRIPTORS: u32 = 256;
/// Descriptors that a process writes to NIC memory itself, unless it wants more or fewer.
pub const PUSHED: u32 = 8;

/// What an endpoint is opened with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointConfig {
    /// Its station on the wire.
    pub station: [u8; 6],
    /// Its address.
    pub address: Ipv4Addr,
    /// Its port.
    pub port: u16,
    /// Its VLAN, 1 to 4094: the card puts the tag into its frames, and gives it frames of this VLAN
    /// alone. `None` for frames without a tag.
    pub vlan: Option<u16>,
    /// Bytes of an IP packet that the wire takes, without a tag.
    pub mtu: u32,
    /// How its datagrams' checksum is made.
    pub checksum: Checksum,
    /// The source whose fragmented datagrams may begin with any fragment: one that comes before the
    /// UDP header is put into this endpoint's next buffer on trial. If that is wrong, or if two
    /// endpoints of an address have the same, the datagram is lost. Without it, a datagram whose
    /// first fragment does not come first is for the [`Pool`](crate::Pool); if there is none, it is
    /// left to the host's kernel. [`Checksum::Leading`] sends that one first.
    pub connected: Option<Ipv4Addr>,
    /// Descriptors that each of its two queues has in its memory: a power of two, from [`SLOTS`](crate::SLOTS)
    /// to [`DESCRIPTORS_MAX`](crate::DESCRIPTORS_MAX). Those of `SLOTS` at a time have a slot in NIC memory.
    pub descriptors: u32,
    /// With so many outstanding in a queue, further ones are left to the card to pull; no more than
    /// `SLOTS` count. The fewer, the less a burst takes of the bus; the first ones wait for a pull.
    pub pushed: u32,
}

impl Default for EndpointConfig {
    /// Of no station: queues of [`DESCRIPTORS`], packets of 1500 bytes, datagrams with a checksum.
    fn default() -> EndpointConfig {
        EndpointConfig {
            station: [0; 6],
            address: Ipv4Addr::UNSPECIFIED,
            port: 0,
            vlan: None,
            mtu: 1500,
            checksum: Checksum::Full,
            connected: None,
            descriptors: DESCRIPTORS,
            pushed: PUSHED,
        }
    }
}

/// When frames leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CutThrough {
    /// When they are whole. An engine whose frames take no time knows nothing else.
    #[default]
    Off,
    /// When as many bytes are there as the firmware's tables say, by the frame's length and the
    /// card's bus; the rest is watched.
    OfBus,
    /// When this many bytes of them are there, and the rest is watched.
    Lead(u32),
}
