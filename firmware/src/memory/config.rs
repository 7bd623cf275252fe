//! The host's configuration: gencom and the general information block.
//!
//! The firmware reads it once at start, into NIC memory, and validates it there. The handlers
//! later use the copies in their own state, which the host cannot change.

use crate::memory::layout::INFORMATION;
use host_interface::extension::BadConfig;
use host_interface::gencom::Gencom;
use host_interface::info::{InformationAt, RcbFlags, RingControlBlockAt};
use host_interface::{OperatingMode, ring};
use tigon2_chip::Register;
use tigon2_chip::bits::PciState;
use tigon2_chip::memory::{FIRMWARE_BASE, NIC_SEND_RING};
use tigon2_hal::Bus;
use tigon2_hal::assist::HostAddress;

/// The copy of the general information block.
const BLOCK: InformationAt = InformationAt(INFORMATION);

/// One ring, from its control block.
#[derive(Clone, Copy, Debug)]
pub struct RingConfig {
    /// Where the ring lies in host memory.
    pub address: HostAddress,
    /// Entries or bytes, depending on the ring.
    pub max_len: u32,
    /// The flags.
    pub flags: RcbFlags,
}

impl RingConfig {
    const NONE: RingConfig = RingConfig {
        address: HostAddress::NULL,
        max_len: 0,
        flags: RcbFlags::new(),
    };

    fn load<B: Bus>(bus: &mut B, block: u32) -> RingConfig {
        let block = RingControlBlockAt(block);
        let word = bus.load(block.max_len_and_flags());
        RingConfig {
            address: bus.load_host_address(block.address()),
            max_len: word >> 16,
            flags: RcbFlags::from_bits(word as u16),
        }
    }

    /// Whether the host uses the ring: it is not disabled and has an address.
    pub const fn is_used(&self) -> bool {
        !self.flags.disabled() && !self.address.is_null()
    }

    /// The flags that must be equal for all receive rings.
    pub const fn offloads(&self) -> u16 {
        self.flags.into_bits() & RcbFlags::RECEIVE_CONSISTENCY
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

impl Config {
    /// Nothing configured.
    pub const fn new() -> Config {
        Config {
            mode: OperatingMode::new(),
            information: HostAddress::NULL,
            events: RingConfig::NONE,
            send: RingConfig::NONE,
            standard: RingConfig::NONE,
            jumbo: RingConfig::NONE,
            mini: RingConfig::NONE,
            receive_return: RingConfig::NONE,
            event_producer: HostAddress::NULL,
            return_producer: HostAddress::NULL,
            send_consumer: HostAddress::NULL,
            refresh: HostAddress::NULL,
        }
    }

    /// Loads the part in gencom, which is needed to fetch the rest.
    pub fn load_gencom<B: Bus>(&mut self, bus: &mut B) {
        self.mode = OperatingMode::from_bits(bus.load(Gencom::OperatingMode.nic_address()));
        self.information = HostAddress {
            high: bus.load(Gencom::InfoHigh.nic_address()),
            low: bus.load(Gencom::InfoLow.nic_address()),
        };
    }

    /// Loads the part in the general information block, after it was fetched.
    ///
    /// # Errors
    /// [`BadConfig`] when the firmware cannot work with it.
    pub fn load_information<B: Bus>(&mut self, bus: &mut B) -> Result<(), BadConfig> {
        self.events = RingConfig::load(bus, BLOCK.event());
        self.send = RingConfig::load(bus, BLOCK.send());
        self.standard = RingConfig::load(bus, BLOCK.standard());
        self.jumbo = RingConfig::load(bus, BLOCK.jumbo());
        self.mini = RingConfig::load(bus, BLOCK.mini());
        self.receive_return = RingConfig::load(bus, BLOCK.receive_return());
        self.event_producer = bus.load_host_address(BLOCK.event_producer());
        self.return_producer = bus.load_host_address(BLOCK.return_producer());
        self.send_consumer = bus.load_host_address(BLOCK.send_consumer());
        self.refresh = bus.load_host_address(BLOCK.refresh_statistics());
        self.judge(PciState::from_bits(bus.read(Register::PciState)))
    }

    /// Checks whether the firmware can work with it; `pci` is the PCI state register.
    fn judge(&self, pci: PciState) -> Result<(), BadConfig> {
        if self.events.address.is_null() || self.event_producer.is_null() {
            return Err(BadConfig::NoEventRing);
        }
        self.judge_send()?;
        self.judge_receive(pci)?;
        let misaligned = [
            self.events.address,
            self.event_producer,
            self.send.address,
            self.standard.address,
            self.jumbo.address,
            self.mini.address,
            self.receive_return.address,
            self.return_producer,
            self.send_consumer,
            self.refresh,
        ]
        .into_iter()
        .any(|address| address.low & 3 != 0);
        if misaligned {
            return Err(BadConfig::Misaligned);
        }
        Ok(())
    }

    fn judge_send(&self) -> Result<(), BadConfig> {
        let entries = self.send.max_len;
        if ring::nic_send_ring(entries).is_none() {
            return Err(BadConfig::SendRingSize);
        }
        let HostAddress { high, low } = self.send.address;
        if self.send.flags.host_ring() {
            return if self.send.address.is_null() {
                Err(BadConfig::NoSendRing)
            } else {
                Ok(())
            };
        }
        // Reference 12 (C): an address in NIC memory, within the window that the map has for it.
        let room = NIC_SEND_RING..FIRMWARE_BASE;
        let inside = high == 0 && room.contains(&low) && FIRMWARE_BASE - low >= entries << 4;
        if inside && low & 7 == 0 {
            Ok(())
        } else {
            Err(BadConfig::NicSendRing)
        }
    }

    fn judge_receive(&self, pci: PciState) -> Result<(), BadConfig> {
        /// An Ethernet header and something behind it.
        const FRAME_MIN: u32 = 60;
        if !self.standard.is_used() {
            return Err(BadConfig::NoStandardRing);
        }
        if self.standard.max_len < FRAME_MIN {
            return Err(BadConfig::StandardRingSize);
        }
        let mini = self.mini.is_used();
        if mini && !(1..=self.standard.max_len).contains(&self.mini.max_len) {
            return Err(BadConfig::MiniRingSize);
        }
        if self.receive_return.address.is_null() || self.return_producer.is_null() {
            return Err(BadConfig::NoReturnRing);
        }
        match ring::return_entries(self.receive_return.max_len as u16) {
            Some(ring::RETURN_ENTRIES_SMALL) if mini => return Err(BadConfig::ReturnRingSize),
            Some(_) => {}
            None => return Err(BadConfig::ReturnRingSize),
        }
        // Reference 12 (C): all used rings have the same offloads.
        let offloads = self.standard.offloads();
        if [&self.jumbo, &self.mini]
            .into_iter()
            .any(|ring| ring.is_used() && ring.offloads() != offloads)
        {
            return Err(BadConfig::InconsistentFlags);
        }
        // Reference 9, R[5C] (C): vendor firmware refuses it as well.
        let checksums =
            self.standard.flags.transport_checksum() || self.standard.flags.ip_checksum();
        if checksums && pci.byte_enables() {
            return Err(BadConfig::ByteEnables);
        }
        Ok(())
    }
}

impl Default for Config {
    fn default() -> Config {
        Config::new()
    }
}
