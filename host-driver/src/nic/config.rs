//! What a user may choose about a card.

use std::time::Duration;

use host_interface::ring;

use super::memory::{FRAME_OVERHEAD, SLOT_BYTES};

/// Smallest MTU: what IPv4 needs.
const MIN_MTU: u16 = 68;
/// Largest MTU: a frame with a VLAN tag fills a slot. (The jumbo ring is not used.)
pub const MAX_MTU: u16 = SLOT_BYTES as u16 - FRAME_OVERHEAD;

/// Interrupt and update coalescing (Host/NIC software interface, gencom words
/// 630 to 640). A tick is a microsecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Coalescing {
    /// Longest time from a received frame to the host's notice, in microseconds.
    pub receive_ticks: u32,
    /// Longest time from a sent BD to the host's notice, in microseconds.
    pub transmit_ticks: u32,
    /// Time from one statistics update to the next, in microseconds.
    pub statistics_ticks: u32,
    /// Sent BDs that are told at the latest together.
    pub max_transmit_bds: u32,
    /// Received BDs that are told at the latest together.
    pub max_receive_bds: u32,
}

impl Default for Coalescing {
    fn default() -> Self {
        Self {
            receive_ticks: 60,
            transmit_ticks: 400,
            statistics_ticks: 1_000_000,
            max_transmit_bds: 64,
            max_receive_bds: 16,
        }
    }
}

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

/// Where the driver reads how far the card has sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SendConsumer {
    /// From the word in host memory that the card writes by DMA, as kernel drivers do.
    #[default]
    HostMemory,
    /// From the firmware's word on the card, by a register read, as in the papers.
    /// With a firmware that has no such word, host memory is used after all.
    Register,
}

/// How the driver learns that the card has done something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Notice {
    /// By interrupt.
    #[default]
    Interrupt,
    /// By looking at the indices in host memory; the card raises no interrupts.
    Polling,
}

/// All choices; [`Config::default`] is right for a TAP bridge at 1500 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// Largest packet, without the Ethernet header: 68 to [`MAX_MTU`].
    pub mtu: u16,
    /// Entries of the send ring.
    pub send_ring: SendRingSize,
    /// Receive buffers kept with the card, 1 to 511.
    pub receive_buffers: u16,
    /// Coalescing.
    pub coalescing: Coalescing,
    /// Where the send consumer index is read.
    pub send_consumer: SendConsumer,
    /// Interrupt or polling.
    pub notice: Notice,
    /// Share of the packet memory that is for transmission, in 64ths.
    pub transmit_share: u8,
    /// Time for the firmware to come up.
    pub firmware_timeout: Duration,
    /// Time for a command to be carried out.
    pub command_timeout: Duration,
    /// Time without progress after which the card counts as stuck.
    pub watchdog: Duration,
}

impl Config {
    /// The same choices, each brought to the nearest that is possible.
    #[must_use]
    pub(super) fn within_limits(mut self) -> Self {
        self.mtu = self.mtu.clamp(MIN_MTU, MAX_MTU);
        self.receive_buffers = self
            .receive_buffers
            .clamp(1, ring::STANDARD_ENTRIES as u16 - 1);
        self.transmit_share = self.transmit_share.clamp(1, 63);
        self
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            mtu: 1500,
            send_ring: SendRingSize::default(),
            receive_buffers: 400,
            coalescing: Coalescing::default(),
            send_consumer: SendConsumer::default(),
            notice: Notice::default(),
            transmit_share: 21,
            firmware_timeout: Duration::from_secs(3),
            command_timeout: Duration::from_secs(1),
            watchdog: Duration::from_secs(2),
        }
    }
}
