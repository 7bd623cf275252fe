//! Receive Complete, on several CPUs for different frames at once.

use super::turn::{Lane, Published, Setting};
use super::worker::Worker;
use crate::io::buffer_ring::RingId;
use crate::io::filter::GROUP;
use crate::memory::layout::{MINI_BDS, RETURN_BDS, RETURN_SLOTS, STANDARD_BDS};
use crate::memory::shared::RECEIVE_ARRIVED;
use crate::path::receive::frame::{CRC, HEADER};
use crate::path::receive::{Taken, flags_of, return_offset};
use host_interface::bd::destination::{BROADCAST, MULTICAST, UNICAST};
use host_interface::bd::{BdErrors, BdFlags, ReceiveBdAt};
use host_interface::extension::DropReason;
use tigon2_chip::Register;
use tigon2_chip::events::EventBit;
use tigon2_chip::memory::block::MAC_RX_RING_BYTES;
use tigon2_hal::assist::Transfer;
use tigon2_hal::events::Dispatch;

/// Frames of one run.
const FRAMES: usize = 8;
/// Transfers of their return BDs at most.
const RETURNS: u32 = 2;
/// Has this lane run again, though no event of the MAC says so.
pub const AGAIN: EventBit = EventBit::SendBdReady;
const MINI: u32 = BdFlags::new().with_mini_ring(true).into_bits() as u32;

/// Flag, and flaws beside the VLAN tag, of a frame that its buffer does not hold.
const CUT: (u32, u32) = (
    BdFlags::new().with_error(true).into_bits() as u32,
    (BdErrors::new().with_truncated(true).into_bits() as u32) << 16,
);

/// A frame that has its BD.
#[derive(Clone, Copy, Debug)]
pub struct Planned {
    /// NIC address of the BD; 0: the frame is dropped.
    bd: u32,
    /// Length with CRC, and errors above it.
    status: u32,
}

/// The frames of a run, with the worker's state.
pub type Plan = [Planned; FRAMES];

impl Planned {
    /// None.
    pub const NONE: Plan = [Planned { bd: 0, status: 0 }; FRAMES];
}

/// Runs if the turn is here.
#[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_w.text"))]
#[inline(never)]
pub fn run<B: Dispatch>(w: &mut Worker<B>) {
    let Worker {
        bus,
        settings,
        receive: lane,
        receive_ring: ring,
        receive_plan: plan,
        starved: is_starved,
        ..
    } = w;
    if !lane.take(bus) {
        bus.clear(EventBit::ReceiveComplete);
        return bus.clear(AGAIN);
    }
    let ring = *ring;
    let first = lane.count;
    let mut room = lane.room(bus.read(Register::AssistWriteConsumer));
    let asks = lane.take_requests(bus, &mut room);
    let [mac, standard, mini, returns] = lane.at;
    let (mut at, mut next_standard, mut next_mini) = (mac, standard, mini);
    let producer = bus.read(Register::RxDescriptorProducer) & (MAC_RX_RING_BYTES - 1) & !7;
    let (mut planned, mut accepted) = (0, 0);
    let mut starved = false;
    if at != producer {
        let window = Setting::Window.get(bus);
        let window_bytes = Setting::WindowBytes.get(bus);
        let mini_bytes = Setting::MiniBytes.get(bus);
        let standard_bds = RECEIVE_ARRIVED.of(RingId::Standard as usize).get(bus);
        let mini_bds = RECEIVE_ARRIVED.of(RingId::Mini as usize).get(bus);
        for place in plan.iter_mut() {
            if at == producer || room < accepted + 1 + RETURNS {
                break;
            }
            let status = bus.load(ring + at + 4);
            // Errors make it longer than any frame.
            let length = status.wrapping_sub(CRC);
            let mut bd = 0;
            if length.wrapping_sub(window) < window_bytes {
                starved = next_standard == standard_bds;
                bd = STANDARD_BDS + (next_standard << 5);
                if !starved {
                    next_standard = (next_standard + 1) & settings.standard_mask;
                }
            } else if length.wrapping_sub(HEADER) < mini_bytes {
                starved = next_mini == mini_bds;
                bd = MINI_BDS + (next_mini << 5);
                if !starved {
                    next_mini = (next_mini + 1) & settings.mini_mask;
                }
            }
            if starved {
                break;
            }
            if bd == 0 {
                Published::WRITE.dropped(bus, why(status, window_bytes));
            }
            *place = Planned { bd, status };
            planned += 1;
            accepted += u32::from(bd != 0);
            at = (at + 8) & (MAC_RX_RING_BYTES - 1);
        }
    }
    // Requests that found no room, with nothing else to be called for.
    if asks {
        bus.set(AGAIN);
    } else {
        bus.clear(AGAIN);
    }
    *is_starved = starved;
    if starved {
        // CPU B wakes whose turn it is when BDs have come.
        bus.clear(EventBit::ReceiveComplete);
    } else {
        bus.set(EventBit::ReceiveComplete);
    }
    let data = lane.count;
    let to_end = RETURN_SLOTS - (returns & (RETURN_SLOTS - 1));
    let head = accepted.min(to_end);
    let segments = u32::from(head != 0) + u32::from(accepted != head);
    lane.count = data.wrapping_add(accepted + segments);
    lane.at = [
        at,
        next_standard,
        next_mini,
        (returns + accepted) & settings.return_mask,
    ];
    let (end, [.., producer_behind]) = (lane.count, lane.at);
    if planned == 0 && end == first {
        return;
    }
    // The event goes off unless there is more.
    bus.write(Register::RxDescriptorReference, ring + at);
    let waits = at != producer && !starved && planned == FRAMES;
    if waits && lane.has_others() {
        bus.clear(EventBit::ReceiveComplete);
        bus.clear(AGAIN);
        lane.pass(bus);
    }

    let octets = fill(
        bus,
        settings,
        lane.ring,
        ring,
        plan.iter().take(planned),
        (mac, returns, data),
    );
    let mut count = data.wrapping_add(accepted);
    let mut entry = returns;
    for part in [head, accepted - head] {
        if part != 0 {
            let descriptor = Lane::descriptor(lane.ring, count);
            let host = settings.returns.plus(entry << 5);
            let local = RETURN_BDS + return_offset(entry);
            let transfer = Transfer {
                host,
                local,
                length: part << 5,
                state: settings.write_words,
                note: 0,
            };
            descriptor.fill(bus, &transfer);
            count = count.wrapping_add(1);
            entry = (entry + part) & settings.return_mask;
        }
    }

    lane.await_commit(bus, first);
    let published = Published::WRITE;
    published.count(bus, accepted, octets);
    bus.write(Register::AssistWriteProducer, (end & 63) << 5);
    bus.write(Register::RxDescriptorConsumer, ring + at);
    bus.store(published.first(), producer_behind);
    bus.store(published.second(), next_standard);
    bus.store(published.third(), next_mini);
    lane.committed(bus, end);
    if accepted != 0 {
        super::ring_a(bus);
    }
}

/// Why a frame that is for no ring is dropped.
const fn why(status: u32, window_bytes: u32) -> DropReason {
    if window_bytes == 0 {
        DropReason::StackDown
    } else if status >> 16 != 0 {
        DropReason::BadFrame
    } else if status < HEADER + CRC {
        DropReason::TooShort
    } else {
        DropReason::TooLong
    }
}

/// Fills the descriptors and return BDs of frames; returns their bytes.
#[inline(always)]
fn fill<'a, B: Dispatch>(
    bus: &mut B,
    settings: &super::worker::Settings,
    descriptors: u32,
    ring: u32,
    plan: impl Iterator<Item = &'a Planned>,
    (mut mac, mut entry, mut count): (u32, u32, u32),
) -> u32 {
    let mut octets = 0;
    for Planned { bd, status } in plan {
        if *bd != 0 {
            let start = bus.load(ring + mac);
            let taken = Taken::new(bus, *bd);
            let wanted = (status & 0xFFFF) - settings.cut;
            let bytes = wanted.min(taken.room());
            let head = bus.load(start);
            let destination = if head & GROUP == 0 {
                UNICAST
            } else if head == u32::MAX {
                BROADCAST
            } else {
                MULTICAST
            };
            let flag = if *bd >= MINI_BDS { MINI } else { 0 };
            let (cut, flaws) = if wanted > bytes { CUT } else { (0, 0) };
            let slot = RETURN_BDS + return_offset(entry);
            taken.stage(bus, slot, bytes);
            let staged = ReceiveBdAt(slot);
            bus.store(staged.kind_and_flags(), flags_of(flag | cut, destination));
            bus.store(staged.errors_and_vlan(), flaws);
            let descriptor = Lane::descriptor(descriptors, count);
            let transfer = Transfer {
                host: taken.host,
                local: start,
                length: bytes,
                state: settings.write_data,
                note: 0,
            };
            descriptor.fill(bus, &transfer);
            octets += wanted;
            entry += 1;
            count = count.wrapping_add(1);
        }
        mac = (mac + 8) & (MAC_RX_RING_BYTES - 1);
    }
    octets
}
