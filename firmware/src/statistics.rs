//! Counters, and the statistics block for the host.
//!
//! What is counted for each frame is kept in the scratch pad and copied to NIC memory
//! each millisecond; what is rare is counted in NIC memory at once. The block goes to the
//! host by command and at intervals.

use crate::dma::write;
use crate::layout::{DROP_COUNTS, HANDLER_COUNTS, STATISTICS};
use crate::{Firmware, host_events};
use core::mem::offset_of;
use host_interface::bd::destination;
use host_interface::event::EventCode;
use host_interface::extension::{DROP_COUNT, DROPS, Extension};
use host_interface::gencom::Gencom;
use host_interface::statistics::{BYTES, Counter64, Statistics};
use tigon2_chip::memory::{MAC_STATISTICS, MAC_STATISTICS_BYTES};
use tigon2_hal::Bus;
use tigon2_hal::assist::{Full, HostAddress, Transfer};

/// Counts one more in a word of the block, named by its field.
macro_rules! count {
    ($firmware:expr, $field:ident) => {
        $crate::statistics::add(
            &mut $firmware.bus,
            core::mem::offset_of!(host_interface::statistics::Statistics, $field),
        )
    };
}
pub(crate) use count;

/// Counts one more in the word at a byte offset of the block.
pub fn add<B: Bus>(bus: &mut B, offset: usize) {
    let address = STATISTICS + offset as u32;
    let value = bus.load(address).wrapping_add(1);
    bus.store(address, value);
}

/// Sets the word at a byte offset of the block.
fn set<B: Bus>(bus: &mut B, offset: usize, value: u32) {
    bus.store(STATISTICS + offset as u32, value);
}

fn set64<B: Bus>(bus: &mut B, offset: usize, value: Counter64) {
    set(bus, offset, value.high);
    set(bus, offset + 4, value.low);
}

/// Frames by destination: unicast, multicast, broadcast.
#[derive(Clone, Copy, Debug)]
struct ByDestination([Counter64; 3]);

impl ByDestination {
    #[inline(always)]
    fn add(&mut self, destination: u8) {
        let [unicast, multicast, broadcast] = &mut self.0;
        match destination {
            destination::BROADCAST => broadcast.add(1),
            destination::MULTICAST => multicast.add(1),
            _ => unicast.add(1),
        }
    }
}

/// What is counted for each frame.
#[derive(Debug)]
pub struct Counters {
    /// Bytes received, without CRC.
    pub in_octets: Counter64,
    /// Bytes sent, without CRC.
    pub out_octets: Counter64,
    received: ByDestination,
    sent: ByDestination,
    /// Frames dropped, in the order of the reasons.
    pub drops: [u32; DROP_COUNT],
    /// Index updates of the send ring.
    pub send_updates: u32,
    /// Index updates of the return ring.
    pub return_updates: u32,
    /// Interrupts raised.
    pub interrupts: u32,
    /// Interrupts not raised.
    pub avoided: u32,
}

impl Counters {
    /// All zero.
    pub const fn new() -> Counters {
        const ZERO: Counter64 = Counter64::new(0);
        Counters {
            in_octets: ZERO,
            out_octets: ZERO,
            received: ByDestination([ZERO; 3]),
            sent: ByDestination([ZERO; 3]),
            drops: [0; DROP_COUNT],
            send_updates: 0,
            return_updates: 0,
            interrupts: 0,
            avoided: 0,
        }
    }

    /// A frame was received.
    #[inline(always)]
    pub fn received(&mut self, destination: u8, bytes: u32) {
        self.in_octets.add(bytes);
        self.received.add(destination);
    }

    /// A frame was sent.
    #[inline(always)]
    pub fn out(&mut self, destination: u8) {
        self.sent.add(destination);
    }
}

impl Default for Counters {
    fn default() -> Counters {
        Counters::new()
    }
}

/// Copies what is kept in the scratch pad to NIC memory, where the host can read it.
#[inline(never)]
pub fn publish<B: Bus>(firmware: &mut Firmware<B>) {
    let Firmware {
        bus,
        counts,
        counters,
        idle,
        receive,
        ..
    } = firmware;
    for (address, count) in (HANDLER_COUNTS..).step_by(4).zip(counts.iter()) {
        bus.store(address, *count);
    }
    for (address, count) in (DROP_COUNTS..).step_by(4).zip(counters.drops.iter()) {
        bus.store(address, *count);
    }
    bus.store(Extension::IdleA.nic_address(), *idle);
    set64(bus, offset_of!(Statistics, in_octets), counters.in_octets);
    set64(bus, offset_of!(Statistics, out_octets), counters.out_octets);
    for (offset, value) in (offset_of!(Statistics, in_unicast)..)
        .step_by(8)
        .zip(counters.received.0)
    {
        set64(bus, offset, value);
    }
    for (offset, value) in (offset_of!(Statistics, out_unicast)..)
        .step_by(8)
        .zip(counters.sent.0)
    {
        set64(bus, offset, value);
    }
    set(
        bus,
        offset_of!(Statistics, send_consumer_updates),
        counters.send_updates,
    );
    set(
        bus,
        offset_of!(Statistics, return_producer_updates),
        counters.return_updates,
    );
    set(
        bus,
        offset_of!(Statistics, receive_threshold_hits),
        receive.threshold_hits(),
    );
    set(bus, offset_of!(Statistics, interrupts), counters.interrupts);
    set(
        bus,
        offset_of!(Statistics, avoided_interrupts),
        counters.avoided,
    );
    let (mut incoming, mut outgoing) = (0u32, 0u32);
    for (reason, count) in DROPS.iter().zip(counters.drops.iter()) {
        let discards = if reason.is_send() {
            &mut outgoing
        } else {
            &mut incoming
        };
        *discards = discards.wrapping_add(*count);
    }
    set(bus, offset_of!(Statistics, in_discards), incoming);
    set(bus, offset_of!(Statistics, out_discards), outgoing);
}

/// All counters to zero, those of the MAC too; what describes the interface is filled in.
#[inline(never)]
pub fn clear<B: Bus>(firmware: &mut Firmware<B>) {
    firmware.counters = Counters::new();
    let bus = &mut firmware.bus;
    for address in (STATISTICS..STATISTICS + BYTES as u32).step_by(4) {
        bus.store(address, 0);
    }
    for address in (MAC_STATISTICS..MAC_STATISTICS + MAC_STATISTICS_BYTES).step_by(4) {
        bus.store(address, 0);
    }
    describe(firmware);
}

/// Fills in what describes the interface.
pub fn describe<B: Bus>(firmware: &mut Firmware<B>) {
    /// ifType of RFC 1213: ethernet-csmacd.
    const ETHERNET: u32 = 6;
    let up = firmware.link.is_up();
    let (speed, high_speed) = firmware.link.speed();
    let bus = &mut firmware.bus;
    for (offset, word) in [
        (offset_of!(Statistics, if_index), Gencom::InterfaceIndex),
        (offset_of!(Statistics, if_mtu), Gencom::InterfaceMtu),
        (
            offset_of!(Statistics, physical_address),
            Gencom::MacAddressHigh,
        ),
        (
            offset_of!(Statistics, physical_address) + 4,
            Gencom::MacAddressLow,
        ),
    ] {
        let value = bus.load(word.nic_address());
        set(bus, offset, value);
    }
    let up_or_down = if up { 1 } else { 2 };
    set(bus, offset_of!(Statistics, if_type), ETHERNET);
    set(bus, offset_of!(Statistics, if_speed), speed);
    set(bus, offset_of!(Statistics, high_speed), high_speed);
    set(bus, offset_of!(Statistics, if_admin_status), 1);
    set(
        bus,
        offset_of!(Statistics, if_operational_status),
        up_or_down,
    );
    set(bus, offset_of!(Statistics, connector_present), up_or_down);
}

/// The link went up or down.
pub fn link_changed<B: Bus>(firmware: &mut Firmware<B>) {
    describe(firmware);
}

/// Copies the MAC's own counters into the block.
fn gather<B: Bus>(bus: &mut B) {
    use tigon2_chip::mac::MacStatistic as Mac;
    for (offset, statistic) in [
        (offset_of!(Statistics, fcs_errors), Mac::CrcErrors),
        (
            offset_of!(Statistics, mac_dropped_unicast),
            Mac::DroppedUnicast,
        ),
        (
            offset_of!(Statistics, mac_dropped_multicast),
            Mac::DroppedMulticast,
        ),
        (
            offset_of!(Statistics, mac_flow_control),
            Mac::DroppedFlowControl,
        ),
        (
            offset_of!(Statistics, mac_dropped_no_space),
            Mac::DroppedNoSpace,
        ),
        (offset_of!(Statistics, mac_collisions), Mac::Collisions),
    ] {
        let value = bus.load(statistic.nic_address());
        set(bus, offset, value);
    }
}

/// Queues the block for the host.
///
/// # Errors
/// [`Full`] when no write descriptor is free.
pub fn write_to<B: Bus>(firmware: &mut Firmware<B>, host: HostAddress) -> Result<(), Full> {
    publish(firmware);
    gather(&mut firmware.bus);
    let transfer = Transfer {
        host,
        local: STATISTICS,
        length: BYTES as u32,
        state: firmware.states.write_words,
        kind: write::QUIET,
        opaque: 0,
    };
    firmware.write_ring.push(&mut firmware.bus, &transfer)
}

/// Queues the block and the event that tells of it.
///
/// # Errors
/// [`Full`] when no write descriptor is free.
pub fn update<B: Bus>(firmware: &mut Firmware<B>) -> Result<(), Full> {
    write_to(firmware, firmware.config.information)?;
    count!(firmware, event_statistics_updated);
    host_events::post(firmware, EventCode::StatisticsUpdated, 0);
    Ok(())
}
