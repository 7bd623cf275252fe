//! The statistics block: 256 words for the host.
//!
//! Host/NIC software interface, "Statistics block". RFC 1213, 1573 and 1643 define the MIB
//! counters; section 10.5 of the hardware reference defines those of the MAC.

use super::{is_of_b, publish_a};
use crate::io::Busy;
use crate::io::note::WriteNote;
use crate::memory::layout::{DROP_COUNTS, HANDLER_COUNTS, PROFILE, STATISTICS};
use crate::memory::statistics::{count, get, set};
use crate::record::counters::ReceiveCounters;
use crate::record::drops::RECEIVE;
use crate::sides::SideA;
use core::mem::offset_of;
use host_interface::event::EventCode;
use host_interface::extension::{Extension, HANDLER_COUNT, State};
use host_interface::gencom::Gencom;
use host_interface::statistics::{BYTES, Statistics};
use tigon2_chip::mac::MacStatistic;
use tigon2_chip::memory::{MAC_STATISTICS, MAC_STATISTICS_BYTES};
use tigon2_hal::assist::{HostAddress, Transfer};
use tigon2_hal::events::Dispatch;

/// The interface's description: 32 characters.
const UNIPROCESSOR: [u32; 8] = words(b"tigon-rs uniprocessor, Tigon II\0");
const PARALLEL: [u32; 8] = words(b"tigon-rs parallel, Tigon II\0\0\0\0\0");

/// Characters as big-endian words.
const fn words(text: &[u8; 32]) -> [u32; 8] {
    let mut words = [0; 8];
    let mut index = 0;
    while index < text.len() {
        words[index / 4] = words[index / 4] << 8 | text[index] as u32;
        index += 1;
    }
    words
}

/// RFC 1573: true and "up" are 1, false and "down" are 2.
const fn one_or_two(yes: bool) -> u32 {
    if yes { 1 } else { 2 }
}

/// Clears all counters of CPU A and of the MAC, and fills in the description of the interface.
#[inline(never)]
pub fn clear<B: Dispatch>(a: &mut SideA<B>) {
    a.receive.counters = ReceiveCounters::new();
    a.io.interrupt.clear_counts();
    let bus = &mut a.io.bus;
    let alone = bus.core(|core| core.is_alone());
    let description = if alone { &UNIPROCESSOR } else { &PARALLEL };
    let last_change = get(bus, offset_of!(Statistics, if_last_change));
    for offset in (0..BYTES).step_by(4).filter(|offset| !is_of_b(*offset)) {
        set(bus, offset, 0);
    }
    for (reason, _) in a.receive.counters.drops.of(RECEIVE) {
        bus.store(DROP_COUNTS + (reason.number() << 2), 0);
    }
    for address in (MAC_STATISTICS..MAC_STATISTICS + MAC_STATISTICS_BYTES).step_by(4) {
        bus.store(address, 0);
    }
    set(bus, offset_of!(Statistics, if_last_change), last_change);
    for (offset, word) in (offset_of!(Statistics, description)..)
        .step_by(4)
        .zip(description)
    {
        set(bus, offset, *word);
    }
    describe(a);
}

/// Restarts the profile: it counts the runs of each handler from here on.
pub fn clear_profile<B: Dispatch>(a: &mut SideA<B>) {
    publish_a(a);
    for offset in (0..4 * HANDLER_COUNT as u32).step_by(4) {
        let count = a.io.bus.load(HANDLER_COUNTS + offset);
        a.io.bus.store(PROFILE + offset, count);
    }
}

/// Fills in the description of the interface.
pub fn describe<B: Dispatch>(a: &mut SideA<B>) {
    /// ifType of RFC 1213: ethernet-csmacd.
    const ETHERNET: u32 = 6;
    /// RFC 1573: no traps report link changes.
    const TRAPS_DISABLED: u32 = 2;
    let up = one_or_two(a.link.is_up());
    let (speed, high_speed) = a.link.speed();
    let promiscuous = one_or_two(a.io.filter.is_promiscuous());
    let bus = &mut a.io.bus;
    let stack_up = bus.load(Extension::State.nic_address()) == State::StackUp as u32;
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
    for (offset, value) in [
        (offset_of!(Statistics, if_type), ETHERNET),
        (offset_of!(Statistics, if_speed), speed),
        (offset_of!(Statistics, high_speed), high_speed),
        (
            offset_of!(Statistics, if_admin_status),
            one_or_two(stack_up),
        ),
        (offset_of!(Statistics, if_operational_status), up),
        (offset_of!(Statistics, connector_present), up),
        (offset_of!(Statistics, promiscuous), promiscuous),
        (offset_of!(Statistics, link_trap_enable), TRAPS_DISABLED),
    ] {
        set(bus, offset, value);
    }
}

/// Updates the block after a possible change of the link.
#[inline(never)]
pub fn follow_link<B: Dispatch>(a: &mut SideA<B>) {
    if !a.link.take_changed() {
        return;
    }
    let now = a.housekeeping.hundredths();
    set(&mut a.io.bus, offset_of!(Statistics, if_last_change), now);
    describe(a);
}

/// Gathers the counts that are kept elsewhere: the MAC's own counters, BDs, handlers.
fn gather<B: Dispatch>(a: &mut SideA<B>) {
    use MacStatistic as Mac;
    let receive_bds = a.receive.bds_now(&mut a.io.bus);
    let bus = &mut a.io.bus;
    for (offset, statistic) in [
        (offset_of!(Statistics, fcs_errors), Mac::CrcErrors),
        (
            offset_of!(Statistics, deferred_transmissions),
            Mac::Deferrals,
        ),
        (offset_of!(Statistics, late_collisions), Mac::LateCollisions),
        (
            offset_of!(Statistics, excessive_collisions),
            Mac::ExcessCollisions,
        ),
        (
            offset_of!(Statistics, internal_transmit_errors),
            Mac::Underruns,
        ),
        (
            offset_of!(Statistics, carrier_sense_errors),
            Mac::CarrierSenseErrors,
        ),
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
    collisions(bus);
    let aborts = get(bus, offset_of!(Statistics, mac_aborts));
    set(bus, offset_of!(Statistics, internal_receive_errors), aborts);
    let [standard, jumbo, mini] = receive_bds;
    for (offset, value) in [
        (offset_of!(Statistics, receive_bds), standard),
        (offset_of!(Statistics, jumbo_receive_bds), jumbo),
        (offset_of!(Statistics, mini_receive_bds), mini),
        (
            offset_of!(Statistics, total_receive_bds),
            standard + jumbo + mini,
        ),
    ] {
        set(bus, offset, value);
    }
    for index in 0..HANDLER_COUNT as u32 {
        let count = bus.load(HANDLER_COUNTS + (index << 2));
        let begin = bus.load(PROFILE + (index << 2));
        let offset = offset_of!(Statistics, profile) + ((index as usize) << 2);
        set(bus, offset, count.wrapping_sub(begin));
    }
}

/// Copies the collision histogram and its sums of RFC 1643: frames sent after one collision, and
/// after more.
fn collisions<B: Dispatch>(bus: &mut B) {
    let first = MacStatistic::Collisions1.nic_address();
    let histogram = offset_of!(Statistics, collision_histogram);
    let mut sum = 0u32;
    for bin in 0..15 {
        let frames = bus.load(first + (bin << 2));
        set(bus, histogram + ((bin as usize) << 2), frames);
        if bin == 0 {
            let offset = offset_of!(Statistics, single_collision_frames);
            set(bus, offset, frames);
        } else {
            sum = sum.wrapping_add(frames);
        }
    }
    set(bus, offset_of!(Statistics, multiple_collision_frames), sum);
}

/// Queues the block for the host.
///
/// # Errors
/// [`Busy`] when no write descriptor is free.
pub fn write_to<B: Dispatch>(a: &mut SideA<B>, host: HostAddress) -> Result<(), Busy> {
    if !a.io.has_write_room(1) {
        return Err(Busy);
    }
    publish_a(a);
    describe(a);
    gather(a);
    let transfer = Transfer {
        host,
        local: STATISTICS,
        length: BYTES as u32,
        state: a.io.states.words,
        note: WriteNote::QUIET.word(),
    };
    a.io.write_ring.put(&mut a.io.bus, &transfer);
    Ok(())
}

/// Queues the block and the event that announces it.
///
/// # Errors
/// [`Busy`] when no write descriptor is free.
pub fn update<B: Dispatch>(a: &mut SideA<B>) -> Result<(), Busy> {
    if !a.io.has_write_room(1) {
        return Err(Busy);
    }
    // The block already counts the event.
    count!(a.io.bus, event_statistics_updated);
    write_to(a, a.config.information)?;
    a.io.post(EventCode::StatisticsUpdated, 0);
    Ok(())
}
