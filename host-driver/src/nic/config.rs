//! The user's configuration of a card.

use std::time::Duration;

use host_interface::gencom::Gencom;
use host_interface::{LinkWord, OperatingMode, ring};

use crate::flash::signature::TrustedKey;

use super::rings::{ChecksumOffload, JumboRing, ReturnRingSize, SendRingPlace, SendRingSize};
use super::sizes::{FRAME_OVERHEAD, SLOT_BYTES};

/// Smallest MTU: the minimum of IPv4.
pub(super) const MIN_MTU: u16 = 68;
/// Largest MTU, with the jumbo ring.
pub const MAX_MTU: u16 = 9000;
/// Largest MTU without the jumbo ring: a frame with a VLAN tag fills a slot.
pub const MAX_STANDARD_MTU: u16 = SLOT_BYTES as u16 - FRAME_OVERHEAD;
/// With a jumbo ring, longer packets go there.
pub(super) const STANDARD_MTU: u16 = 1500;
/// Largest frame of the mini ring: longer ones fill half a standard buffer.
const MAX_MINI: u16 = 1024;
/// Smallest: no frame is shorter.
const MIN_MINI: u16 = 60;

/// Interrupt and update coalescing (Host/NIC software interface, gencom words
/// 630 to 640). A tick is a microsecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Coalescing {
    /// Longest delay from a received frame to its report, in microseconds.
    pub receive_ticks: u32,
    /// Longest delay from a sent BD to its report, in microseconds.
    pub transmit_ticks: u32,
    /// Time from one statistics update to the next, in microseconds.
    pub statistics_ticks: u32,
    /// Most sent BDs in one report.
    pub max_transmit_bds: u32,
    /// Most received BDs in one report.
    pub max_receive_bds: u32,
}

impl Coalescing {
    /// Its words in gencom.
    pub(super) fn words(&self) -> [(Gencom, u32); 5] {
        [
            (Gencom::ReceiveTicks, self.receive_ticks),
            (Gencom::TransmitTicks, self.transmit_ticks),
            (Gencom::StatisticsTicks, self.statistics_ticks),
            (Gencom::TransmitMaxBds, self.max_transmit_bds),
            (Gencom::ReceiveMaxBds, self.max_receive_bds),
        ]
    }
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

/// Where the driver reads the send consumer index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SendConsumer {
    /// From the word in host memory that the card writes by DMA, as kernel drivers do.
    #[default]
    HostMemory,
    /// From the firmware's word on the card, by a register read, as in the papers. A firmware
    /// without that word falls back to host memory.
    Register,
    /// Nowhere: the card writes it to this address on the bus. It is that of another device, which
    /// has the send ring ([`Nic::lend_ring`](super::Nic::lend_ring)); the driver sends nothing.
    At(u64),
}

/// How the driver learns of the card's progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Notice {
    /// By interrupt.
    #[default]
    Interrupt,
    /// By polling the indices in host memory; the card raises no interrupts.
    Polling,
}

/// When the driver returns receive buffers to the card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GiveBack {
    /// When an eighth of a ring's buffers is ready.
    #[default]
    Eighth,
    /// Each time that all received frames have been taken.
    EachTime,
}

/// How the driver passes multicast addresses to the card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MulticastForm {
    /// In the command ring, after the command (12, 13).
    #[default]
    Extended,
    /// In gencom, the older form (08, 09).
    Gencom,
}

/// The requested link: a word for gigabit links and one for 10/100 links (Host/NIC software
/// interface, "Link bits").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkSettings {
    /// Of gigabit links.
    pub gigabit: LinkWord,
    /// Of 10/100 links.
    pub fast: LinkWord,
}

impl LinkSettings {
    /// Its words in gencom.
    pub(super) fn words(&self) -> [(Gencom, u32); 2] {
        [
            (Gencom::GigabitLink, self.gigabit.into_bits()),
            (Gencom::FastLink, self.fast.into_bits()),
        ]
    }

    /// Applies a change to both words.
    #[must_use]
    pub fn map(self, change: impl Fn(LinkWord) -> LinkWord) -> Self {
        Self {
            gigabit: change(self.gigabit),
            fast: change(self.fast),
        }
    }

    /// The same with the link enabled or disabled.
    #[must_use]
    pub fn with_enabled(self, on: bool) -> Self {
        self.map(|word| word.with_enable(on))
    }

    /// The same with frames looped back at the card's own end of the cable.
    #[must_use]
    pub fn with_loopback(self, on: bool) -> Self {
        self.map(|word| word.with_loopback(on))
    }

    /// The same with PAUSE frames sent and obeyed, or not.
    #[must_use]
    pub fn with_flow_control(self, send: bool, obey: bool) -> Self {
        self.map(|word| {
            word.with_transmit_flow_control(send)
                .with_receive_flow_control(obey)
                .with_negotiate_flow_control(send || obey)
        })
    }
}

impl Default for LinkSettings {
    /// Everything, negotiated: Linux' words.
    fn default() -> Self {
        let all = LinkWord::new()
            .with_enable(true)
            .with_autonegotiate(true)
            .with_negotiate_flow_control(true)
            .with_receive_flow_control(true)
            .with_transmit_flow_control(true)
            .with_full_duplex(true)
            .with_speed_1000(true)
            .with_speed_100(true)
            .with_speed_10(true);
        Self {
            gigabit: all,
            fast: all,
        }
    }
}

/// All settings; [`Config::default`] suits a TAP bridge at 1500 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// Largest packet, without the Ethernet header: 68 to [`MAX_MTU`], without jumbo
    /// ring to [`MAX_STANDARD_MTU`].
    pub mtu: u16,
    /// Entries of the send ring.
    pub send_ring: SendRingSize,
    /// Where the send ring is.
    pub send_ring_place: SendRingPlace,
    /// Buffers kept in the standard ring, 1 to 511.
    pub receive_buffers: u16,
    /// The jumbo receive ring.
    pub jumbo: JumboRing,
    /// Buffers kept in the jumbo ring, 1 to 255.
    pub jumbo_buffers: u16,
    /// Longest frame (without CRC) for the mini receive ring, 60 to 1024; None disables the mini
    /// ring.
    pub mini: Option<u16>,
    /// Buffers kept in the mini ring, 1 to 1023.
    pub mini_buffers: u16,
    /// When buffers are returned to the card.
    pub give_back: GiveBack,
    /// Entries of the receive return ring; 2048 with a mini ring.
    pub return_ring: ReturnRingSize,
    /// Checksums that the card computes for sent frames on request.
    pub send_checksums: ChecksumOffload,
    /// Checksums that the card computes for received frames.
    pub receive_checksums: ChecksumOffload,
    /// Whether the card inserts the VLAN tags of sent frames on request, and strips those of
    /// received frames.
    pub vlan: bool,
    /// Operating mode; the driver sets the byte-order bits.
    pub mode: OperatingMode,
    /// The requested link.
    pub link: LinkSettings,
    /// Coalescing.
    pub coalescing: Coalescing,
    /// Whether the number of sent BDs also raises interrupts; otherwise only the time does, and a
    /// nearly full ring at once.
    pub send_interrupts_by_count: bool,
    /// Where the send consumer index is read.
    pub send_consumer: SendConsumer,
    /// Interrupt or polling.
    pub notice: Notice,
    /// How multicast addresses are passed.
    pub multicast: MulticastForm,
    /// Share of the packet memory for transmission, in 64ths.
    pub transmit_share: u8,
    /// KB of packet memory that the firmware is to reserve for extensions beside its arena: a multiple
    /// of 4, up to 256 on a card with 1 MB. Only firmware that the driver loads and that loads
    /// extensions does; any other one refuses to start.
    pub arena: u16,
    /// The firmware's trace mask; 0 traces nothing.
    pub trace_mask: u32,
    /// The key that must have signed the card's own firmware, see [`TrustedKey::required`]. None:
    /// only an image on trial is checked, with the key of [`TrustedKey::from_environment`].
    pub required_key: Option<TrustedKey>,
    /// Timeout of the firmware's start.
    pub firmware_timeout: Duration,
    /// Timeout of a command.
    pub command_timeout: Duration,
    /// Time without progress after which the card is considered stuck.
    pub watchdog: Duration,
}

impl Config {
    /// The same settings, each limited to its range.
    #[must_use]
    pub(super) fn within_limits(mut self) -> Self {
        let max_mtu = match self.jumbo {
            JumboRing::Off => MAX_STANDARD_MTU,
            _ => MAX_MTU,
        };
        self.mtu = self.mtu.clamp(MIN_MTU, max_mtu);
        if self.jumbo == JumboRing::Automatic {
            self.jumbo = if self.mtu > MAX_STANDARD_MTU {
                JumboRing::Normal
            } else {
                JumboRing::Off
            };
        }
        let within = |count: u16, entries: u32| count.clamp(1, entries as u16 - 1);
        self.receive_buffers = within(self.receive_buffers, ring::STANDARD_ENTRIES);
        self.jumbo_buffers = within(self.jumbo_buffers, ring::JUMBO_ENTRIES);
        self.mini_buffers = within(self.mini_buffers, ring::MINI_ENTRIES);
        self.mini = self.mini.map(|bytes| bytes.clamp(MIN_MINI, MAX_MINI));
        if self.mini.is_some() {
            self.return_ring = ReturnRingSize::Entries2048;
        }
        self.transmit_share = self.transmit_share.clamp(1, 63);
        self
    }

    /// Longest frame of the standard ring, without CRC but with a VLAN tag.
    pub(super) fn standard_frame(&self) -> u16 {
        let mtu = match self.jumbo {
            JumboRing::Normal | JumboRing::Extended => STANDARD_MTU,
            JumboRing::Automatic | JumboRing::Off => self.mtu,
        };
        mtu + FRAME_OVERHEAD
    }

    /// Largest MTU for the rings of this configuration.
    pub(super) fn largest_mtu(&self) -> u16 {
        if self.has_jumbo() {
            MAX_MTU
        } else {
            MAX_STANDARD_MTU
        }
    }

    /// True if there is a jumbo ring.
    pub(super) fn has_jumbo(&self) -> bool {
        matches!(self.jumbo, JumboRing::Normal | JumboRing::Extended)
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            mtu: STANDARD_MTU,
            send_ring: SendRingSize::default(),
            send_ring_place: SendRingPlace::default(),
            receive_buffers: 400,
            jumbo: JumboRing::default(),
            jumbo_buffers: 64,
            mini: None,
            mini_buffers: 256,
            give_back: GiveBack::default(),
            return_ring: ReturnRingSize::default(),
            send_checksums: ChecksumOffload::NONE,
            receive_checksums: ChecksumOffload::NONE,
            vlan: false,
            mode: OperatingMode::new()
                .with_warn(true)
                .with_no_jumbo_fragments(true)
                .with_fatal(true),
            link: LinkSettings::default(),
            coalescing: Coalescing::default(),
            send_interrupts_by_count: false,
            send_consumer: SendConsumer::default(),
            notice: Notice::default(),
            multicast: MulticastForm::default(),
            transmit_share: 21,
            arena: 0,
            trace_mask: 0,
            required_key: None,
            firmware_timeout: Duration::from_secs(3),
            command_timeout: Duration::from_secs(1),
            watchdog: Duration::from_secs(2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_mtu_brings_the_jumbo_ring_unless_it_is_forbidden() {
        let large = Config {
            mtu: 9000,
            ..Config::default()
        };
        let with = large.within_limits();
        assert_eq!((with.mtu, with.jumbo), (9000, JumboRing::Normal));
        assert_eq!(with.standard_frame(), 1518);
        let without = Config {
            jumbo: JumboRing::Off,
            ..large
        }
        .within_limits();
        assert_eq!((without.mtu, without.jumbo), (2030, JumboRing::Off));
        assert_eq!(without.standard_frame(), 2048);
    }

    #[test]
    fn what_cannot_be_becomes_the_nearest_that_can() {
        let config = Config {
            mtu: u16::MAX,
            receive_buffers: 0,
            jumbo_buffers: 1000,
            mini: Some(0),
            mini_buffers: u16::MAX,
            return_ring: ReturnRingSize::Entries1024,
            transmit_share: 200,
            ..Config::default()
        }
        .within_limits();
        assert_eq!((config.mtu, config.receive_buffers), (9000, 1));
        assert_eq!((config.jumbo_buffers, config.mini_buffers), (255, 1023));
        assert_eq!((config.mini, config.transmit_share), (Some(60), 63));
        assert_eq!(config.return_ring, ReturnRingSize::Entries2048);
    }

    /// Reference, "Linux settings": both link words 0x70AF0000 (C).
    #[test]
    fn the_default_wish_is_that_of_linux() {
        assert_eq!(LinkSettings::default().gigabit.into_bits(), 0x70AF_0000);
        let loopback = LinkSettings::default().with_loopback(true);
        assert_eq!(loopback.fast.into_bits(), 0x70AF_4000);
        let deaf = LinkSettings::default().with_flow_control(false, false);
        assert_eq!(deaf.gigabit.into_bits(), 0x600F_0000);
    }
}
