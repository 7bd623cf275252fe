//! Send Data Ready, on several CPUs for different frames at once.

use super::SEND_ARRIVED;
use super::turn::{Lane, Published};
use super::worker::Worker;
use crate::memory::shared::LINK_UP;
use crate::path::send::FRAME_MAX;
use host_interface::bd::BdFlags;
use host_interface::extension::DropReason;
use tigon2_chip::Register;
use tigon2_chip::events::EventBit;
use tigon2_chip::memory::block::MAC_TX_RING_BYTES;
use tigon2_hal::Bus;
use tigon2_hal::assist::{HostAddress, Transfer};
use tigon2_hal::events::Dispatch;

/// A run ends with the frame that has this BD of it.
const ENOUGH: usize = 8;
/// BDs of a run at most, a power of two. A frame of more is dropped.
const MOST: usize = 32;
const END: u32 = BdFlags::new().with_end(true).into_bits() as u32;

/// Length and flags of the BDs of a run; 0: nothing is to be moved. It stays with the
/// worker's state: clearing it would cost more than a frame.
pub type Plan = [u32; MOST];

/// Nothing planned.
pub const NOTHING: Plan = [0; MOST];

/// The transmit buffer, a ring, and where the next frame begins in it.
#[derive(Clone, Copy)]
struct Place {
    base: u32,
    end: u32,
    at: u32,
}

impl Place {
    /// Free bytes in front of what the MAC has not sent.
    #[inline(always)]
    fn room<B: Bus>(self, bus: &mut B) -> u32 {
        let consumer = bus.read(Register::TxConsumer);
        if consumer > self.at {
            consumer - self.at
        } else {
            (self.end - self.base) - (self.at - consumer)
        }
    }

    /// Goes on by some bytes, round the end.
    #[inline(always)]
    fn advance(&mut self, bytes: u32) {
        self.at += bytes;
        if self.at >= self.end {
            self.at -= self.end - self.base;
        }
    }
}

/// Why a frame of these BDs is dropped.
#[cold]
fn why(passes: bool, frame: &[u32]) -> DropReason {
    if !passes {
        DropReason::LinkDown
    } else if frame.iter().any(|word| word >> 16 == 0) {
        DropReason::BadSendBd
    } else {
        DropReason::SendTooLong
    }
}

/// Runs if the turn is here. The event stays on while there is something that has to wait.
#[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_w.text"))]
#[inline(never)]
pub fn run<B: Dispatch>(w: &mut Worker<B>) {
    let Worker {
        bus,
        settings,
        send: lane,
        send_ring,
        send_plan: plan,
        ..
    } = w;
    if !lane.take(bus) {
        return bus.clear(EventBit::SendDataReady);
    }
    let first = lane.count;
    let mut room = lane.room(bus.read(Register::AssistReadConsumer));
    let asks = lane.take_requests(bus, &mut room);
    // `rest`: the frame in work is dropped, and its end has not come.
    let [mac, bd, position, mut rest] = lane.at;
    let begins = Place {
        base: settings.buffer,
        end: settings.buffer_end,
        at: if position == 0 {
            settings.buffer
        } else {
            position
        },
    };
    let (bds, mask) = (settings.send_bds, settings.send_mask);
    let arrived = bus.load(SEND_ARRIVED);
    // What is taken: BDs, up to this one; frames, up to this place.
    let (mut planned, mut next) = (0, bd);
    let (mut place, mut frames, mut octets) = (begins, 0, 0);
    let mut waits = asks;
    if next != arrived {
        let passes = LINK_UP.get(bus) != 0;
        let consumer = bus.read(Register::TxDescriptorConsumer) & !7;
        let free = (consumer.wrapping_sub(mac + 8) & (MAC_TX_RING_BYTES - 1)) >> 3;
        let mut space = place.room(bus);
        let (mut count, mut entry) = (0, next);
        let (mut bytes, mut empty) = (0, !passes || rest != 0);
        while entry != arrived && count < MOST {
            let word = bus.load(bds + (entry << 4) + 8);
            if let Some(planned) = plan.get_mut(count) {
                *planned = word;
            }
            count += 1;
            entry = (entry + 1) & mask;
            bytes += word >> 16;
            empty |= word >> 16 == 0;
            if word & END == 0 {
                continue;
            }
            let taken = (bytes + 7) & !7;
            if count as u32 > room {
                waits = true;
                break;
            }
            if empty || bytes > FRAME_MAX {
                let frame = plan.get_mut(planned..count).unwrap_or_default();
                if rest == 0 {
                    Published::READ.dropped(bus, why(passes, frame));
                }
                // It counts as sent, and is not.
                frame.fill(0);
                rest = 0;
            } else {
                if frames + 1 >= free || taken >= space {
                    waits = true;
                    break;
                }
                space -= taken;
                place.advance(taken);
                frames += 1;
                octets += bytes;
            }
            (planned, next) = (count, entry);
            (bytes, empty) = (0, !passes);
            if count >= ENOUGH {
                break;
            }
        }
        if count == MOST && planned < ENOUGH {
            // No end among so many: the next run begins with this frame, and drops it.
            if planned != 0 || MOST as u32 > room {
                waits = true;
            } else {
                if rest == 0 {
                    Published::READ.dropped(bus, DropReason::BadSendBd);
                }
                plan.fill(0);
                (planned, next, rest) = (MOST, entry, 1);
            }
        }
    }
    let data = lane.count;
    let end = data.wrapping_add(planned as u32);
    let behind = (mac + (frames << 3)) & (MAC_TX_RING_BYTES - 1);
    lane.count = end;
    lane.at = [behind, next, place.at, rest];
    if !waits && planned < ENOUGH {
        bus.clear(EventBit::SendDataReady);
    }
    if planned == 0 && end == first {
        return;
    }
    if !waits && planned >= ENOUGH && next != arrived && lane.has_others() {
        bus.clear(EventBit::SendDataReady);
        lane.pass(bus);
    }

    let (ring, send_ring) = (lane.ring, *send_ring);
    let (read_data, read_last) = (settings.read_data, settings.read_last);
    let (mut count, mut entry, mut frame) = (data, bd, mac);
    let (mut place, mut start, mut bytes) = (begins, begins.at, 0);
    for word in plan.iter().take(planned) {
        let bd = bds + (entry << 4);
        let host = bus.load_host_address(bd);
        entry = (entry + 1) & mask;
        let length = word >> 16;
        let last = word & END != 0;
        let state = if last { read_last } else { read_data };
        let transfer = Transfer {
            host,
            local: place.at,
            length,
            state,
            note: 0,
        };
        Lane::descriptor(ring, count).fill(bus, &transfer);
        count = count.wrapping_add(1);
        place.advance(length);
        bytes += length;
        if last {
            bus.store(send_ring + frame, start);
            bus.store(send_ring + frame + 4, bytes);
            frame = (frame + 8) & (MAC_TX_RING_BYTES - 1);
            place.advance(place.at.wrapping_neg() & 7);
            (start, bytes) = (place.at, 0);
        }
    }

    lane.await_commit(bus, first);
    Published::READ.count(bus, frames, octets);
    bus.write(Register::AssistReadProducer, (end & 63) << 5);
    if frames != 0 {
        bus.write(Register::TxDescriptorProducer, send_ring + behind);
    }
    lane.committed(bus, end);
}
