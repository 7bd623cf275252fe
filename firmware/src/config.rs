//! What the host configured: gencom and the general information block.
//!
//! Read once at start, into NIC memory, and judged there: what is used later are the
//! copies in the handlers' state, which the host cannot change.

use crate::layout::INFORMATION;
use host_interface::gencom::Gencom;
use host_interface::info::RcbFlags;
use host_interface::{OperatingMode, ring};
use tigon2_hal::Bus;
use tigon2_hal::assist::HostAddress;

/// Offsets in the general information block, in bytes.
mod offset {
    use core::mem::offset_of;
    use host_interface::info::GeneralInformationBlock as Block;

    pub const EVENT: u32 = offset_of!(Block, event) as u32;
    pub const SEND: u32 = offset_of!(Block, send) as u32;
    pub const STANDARD: u32 = offset_of!(Block, standard) as u32;
    pub const JUMBO: u32 = offset_of!(Block, jumbo) as u32;
    pub const MINI: u32 = offset_of!(Block, mini) as u32;
    pub const RETURN: u32 = offset_of!(Block, receive_return) as u32;
    pub const EVENT_PRODUCER: u32 = offset_of!(Block, event_producer) as u32;
    pub const RETURN_PRODUCER: u32 = offset_of!(Block, return_producer) as u32;
    pub const SEND_CONSUMER: u32 = offset_of!(Block, send_consumer) as u32;
    pub const REFRESH: u32 = offset_of!(Block, refresh_statistics) as u32;
}

/// One ring as its control block says.
#[derive(Clone, Copy, Debug)]
pub struct RingConfig {
    /// Where the ring is.
    pub address: HostAddress,
    /// Entries or bytes, as the ring has it.
    pub max_len: u32,
    /// The flags.
    pub flags: RcbFlags,
}

impl RingConfig {
    const NONE: RingConfig = RingConfig {
        address: HostAddress { high: 0, low: 0 },
        max_len: 0,
        flags: RcbFlags::new(),
    };

    fn load<B: Bus>(bus: &mut B, offset: u32) -> RingConfig {
        let base = INFORMATION + offset;
        let word = bus.load(base + 8);
        RingConfig {
            address: HostAddress {
                high: bus.load(base),
                low: bus.load(base + 4),
            },
            max_len: word >> 16,
            flags: RcbFlags::from_bits(word as u16),
        }
    }
}

/// What the host configured.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Operating mode.
    pub mode: OperatingMode,
    /// The general information block, which begins with the statistics.
    pub information: HostAddress,
    /// Event ring.
    pub events: RingConfig,
    /// Send ring.
    pub send: RingConfig,
    /// Standard receive ring.
    pub standard: RingConfig,
    /// Jumbo receive ring.
    pub jumbo: RingConfig,
    /// Mini receive ring.
    pub mini: RingConfig,
    /// Receive return ring.
    pub receive_return: RingConfig,
    /// Where the event producer index goes.
    pub event_producer: HostAddress,
    /// Where the receive return producer index goes.
    pub return_producer: HostAddress,
    /// Where the send consumer index goes, or 0.
    pub send_consumer: HostAddress,
    /// Where refreshed statistics go, or 0.
    pub refresh: HostAddress,
}

/// What is wrong with a configuration: the argument of the fatal report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum BadConfig {
    /// No general information block.
    NoInformation = 1,
    /// No event ring or no place for its index.
    NoEventRing = 2,
    /// The send ring has a size that no ring has, or no address.
    SendRing = 3,
    /// The standard ring has no address or takes no frame.
    StandardRing = 4,
    /// The return ring has a size that no ring has, or no place for its index.
    ReturnRing = 5,
    /// SRAM is too small.
    Memory = 6,
}

impl Config {
    /// Nothing configured.
    pub const fn new() -> Config {
        const NONE: HostAddress = HostAddress { high: 0, low: 0 };
        Config {
            mode: OperatingMode::new(),
            information: NONE,
            events: RingConfig::NONE,
            send: RingConfig::NONE,
            standard: RingConfig::NONE,
            jumbo: RingConfig::NONE,
            mini: RingConfig::NONE,
            receive_return: RingConfig::NONE,
            event_producer: NONE,
            return_producer: NONE,
            send_consumer: NONE,
            refresh: NONE,
        }
    }

    /// The part that is in gencom: needed to fetch the rest.
    pub fn load_gencom<B: Bus>(&mut self, bus: &mut B) {
        self.mode = OperatingMode::from_bits(bus.load(Gencom::OperatingMode.nic_address()));
        self.information = HostAddress {
            high: bus.load(Gencom::InfoHigh.nic_address()),
            low: bus.load(Gencom::InfoLow.nic_address()),
        };
    }

    /// The part that is in the general information block, after it was fetched.
    ///
    /// # Errors
    /// [`BadConfig`] when the firmware could not work with it.
    pub fn load_information<B: Bus>(&mut self, bus: &mut B) -> Result<(), BadConfig> {
        self.events = RingConfig::load(bus, offset::EVENT);
        self.send = RingConfig::load(bus, offset::SEND);
        self.standard = RingConfig::load(bus, offset::STANDARD);
        self.jumbo = RingConfig::load(bus, offset::JUMBO);
        self.mini = RingConfig::load(bus, offset::MINI);
        self.receive_return = RingConfig::load(bus, offset::RETURN);
        self.event_producer = pointer(bus, offset::EVENT_PRODUCER);
        self.return_producer = pointer(bus, offset::RETURN_PRODUCER);
        self.send_consumer = pointer(bus, offset::SEND_CONSUMER);
        self.refresh = pointer(bus, offset::REFRESH);
        self.judge()
    }

    fn judge(&self) -> Result<(), BadConfig> {
        if self.events.address.is_none() || self.event_producer.is_none() {
            return Err(BadConfig::NoEventRing);
        }
        let send = ring::nic_send_ring(self.send.max_len);
        if send.is_none() || (self.send.flags.host_ring() && self.send.address.is_none()) {
            return Err(BadConfig::SendRing);
        }
        if !self.send.flags.host_ring() && send != Some(self.send.address.low) {
            return Err(BadConfig::SendRing);
        }
        if self.standard.address.is_none() || self.standard.max_len == 0 {
            return Err(BadConfig::StandardRing);
        }
        let no_return = self.receive_return.address.is_none() || self.return_producer.is_none();
        if no_return || ring::return_entries(self.receive_return.max_len as u16).is_none() {
            return Err(BadConfig::ReturnRing);
        }
        Ok(())
    }

    /// Whether a control block asks for what this firmware does not do: checksums, VLAN
    /// tags, the jumbo and mini rings. It works without them and says so in an event.
    pub fn asks_for_more(&self) -> bool {
        let used = |ring: &RingConfig| !ring.flags.disabled() && !ring.address.is_none();
        let offload = |ring: &RingConfig| {
            used(ring) && ring.flags.into_bits() & RcbFlags::RECEIVE_CONSISTENCY != 0
        };
        offload(&self.send) || offload(&self.standard) || used(&self.jumbo) || used(&self.mini)
    }
}

impl Default for Config {
    fn default() -> Config {
        Config::new()
    }
}

fn pointer<B: Bus>(bus: &mut B, offset: u32) -> HostAddress {
    let base = INFORMATION + offset;
    HostAddress {
        high: bus.load(base),
        low: bus.load(base + 4),
    }
}
