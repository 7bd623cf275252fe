//! A frame that arrived: drop it or hand it on.
//!
//! Hardware reference, section 14. Most frames are fit for the standard ring, for this
//! card, and free of errors; they are recognised by few comparisons. All others are
//! [judged](judge) with more care.

use super::index::returned;
use super::rings::Which;
use super::{assist, headers};
use crate::Firmware;
use crate::dma::{stage, staging, write};
use crate::statistics::count;
use crate::{drops, filter};
use host_interface::bd::{BdErrors, BdFlags, destination};
use host_interface::extension::Drop;
use host_interface::gencom::Gencom;
use tigon2_chip::Register;
use tigon2_chip::events::EventBit;
use tigon2_chip::mac::VLAN_TYPE;
use tigon2_chip::memory::PACKET_MEMORY_END;
use tigon2_hal::Bus;
use tigon2_hal::assist::{HostAddress, Transfer};
use tigon2_hal::mac::ReceivedFrame;

/// Bytes of the CRC, which the MAC leaves on the frame.
pub const CRC: u32 = 4;
/// Bytes of an Ethernet header.
pub const HEADER: u32 = 14;
/// Bytes of a VLAN tag.
pub(super) const TAG: u32 = 4;
const END: u32 = BdFlags::new().with_end(true).into_bits() as u32;
const ERROR: u32 = BdFlags::new().with_error(true).into_bits() as u32;
const NOW: u32 = BdFlags::new().with_coalesce_now(true).into_bits() as u32;
const TRUNCATED: u32 = BdErrors::new().with_truncated(true).into_bits() as u32;
const GIANT: u32 = BdErrors::new().with_giant(true).into_bits() as u32;
/// Errors of the MAC that the host is not bothered with: short frames are complete all
/// the same, and vendor firmware ignores the flag (10.3).
const HARMLESS: u32 = BdErrors::new().with_runt(true).into_bits() as u32;

/// A frame that the host gets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Accepted {
    /// Where it is.
    pub frame: ReceivedFrame,
    /// Its bytes without CRC.
    pub length: u32,
    /// The ring whose buffer it takes.
    pub which: Which,
    /// What was wrong with it, as the return BD says it.
    pub flaws: u32,
    /// What it was addressed to.
    pub destination: u8,
}

/// Receive complete: one frame.
#[inline(always)]
pub fn complete<B: Bus>(firmware: &mut Firmware<B>) {
    let Some(frame) = firmware.receive.ring.oldest(&mut firmware.bus) else {
        return;
    };
    let receive = &mut firmware.receive;
    let bus = &mut firmware.bus;
    let length = frame.length.wrapping_sub(CRC);
    let mut accepted = Accepted {
        frame,
        length,
        which: Which::Standard,
        flaws: 0,
        destination: filter::destination(bus, frame.start),
    };
    let plain = length.wrapping_sub(receive.window) < receive.window_bytes
        && frame.errors == 0
        && accepted.destination != destination::MULTICAST;
    if !plain && let Err(reason) = judge(firmware, &mut accepted) {
        return drop(firmware, &frame, reason);
    }
    let receive = &mut firmware.receive;
    let bus = &mut firmware.bus;
    let ring = receive.rings.get(accepted.which);
    if ring.is_empty() {
        return wait_for_bds(firmware);
    }
    let after = (receive.return_producer + 1) & receive.return_mask;
    if after == receive.return_consumer {
        let consumer = bus.load(Gencom::ReceiveReturnConsumer.nic_address());
        receive.return_consumer = consumer & receive.return_mask;
        if after == receive.return_consumer {
            // The host says nothing when it has read entries: housekeeping looks again.
            count!(firmware, no_return_space);
            return firmware.hold(EventBit::ReceiveComplete);
        }
    }
    if receive.wants != 0 || ring.is_extended() {
        assist::hand_on(firmware, &accepted);
    } else if firmware.write_ring.has_room(2) {
        hand_on(firmware, &accepted);
    } else {
        count!(firmware, no_write_descriptors);
    }
}

/// Queues the data of a frame and its return BD. There is room for both.
#[inline(always)]
fn hand_on<B: Bus>(firmware: &mut Firmware<B>, accepted: &Accepted) {
    let receive = &mut firmware.receive;
    let bus = &mut firmware.bus;
    let ring = receive.rings.get(accepted.which);
    let taken = Taken::new(bus, ring.next_short());
    let frame = &accepted.frame;
    let wanted = frame.length - receive.cut;
    let truncated = wanted > taken.room();
    let bytes = if truncated { taken.room() } else { wanted };
    let slot = staging(&firmware.write_ring, u32::from(bytes != 0));
    let outcome = Outcome::new(accepted, slot, bytes, truncated, ring.flag());
    outcome.stage(bus, &taken);
    ring.advance_short();
    if bytes != 0 {
        let transfer = Transfer {
            host: taken.host,
            local: frame.start,
            length: bytes,
            state: firmware.states.write_data,
            kind: write::RECEIVE_DATA,
            opaque: slot,
        };
        firmware.write_ring.put(bus, &transfer);
        receive.in_flight += 1;
        receive.freed = 0;
    } else {
        receive.freed = end_of(receive.base, frame);
    }
    finish(firmware, accepted, &taken, &outcome);
}

/// The BD that a frame takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    /// Its buffer, the first one of an extended BD.
    pub host: HostAddress,
    index_and_room: u32,
    flags: u32,
    opaque: u32,
}

impl Taken {
    /// Reads the BD at a NIC address.
    #[inline(always)]
    pub fn new<B: Bus>(bus: &mut B, bd: u32) -> Taken {
        Taken {
            host: HostAddress {
                high: bus.load(bd),
                low: bus.load(bd + 4),
            },
            index_and_room: bus.load(bd + 8),
            flags: bus.load(bd + 12),
            opaque: bus.load(bd + 28),
        }
    }

    /// Bytes of its buffer, the first one of an extended BD.
    #[inline(always)]
    pub const fn room(&self) -> u32 {
        self.index_and_room & 0xFFFF
    }
}

/// What the return BD of a frame says, and where it is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome {
    /// NIC address of its staging bytes.
    slot: u32,
    /// Bytes that the host gets.
    bytes: u32,
    /// BD flags.
    pub flags: u32,
    /// IP and TCP/UDP sum; the latter may come from the DMA channel instead.
    pub checksums: u32,
    /// Error flags, and the VLAN tag.
    pub errors_and_tag: u32,
    truncated: bool,
}

impl Outcome {
    /// A frame without sums and tag, in a buffer of the ring with this flag.
    #[inline(always)]
    pub const fn new(
        accepted: &Accepted,
        slot: u32,
        bytes: u32,
        truncated: bool,
        ring_flag: u32,
    ) -> Outcome {
        let flaws = accepted.flaws | if truncated { TRUNCATED } else { 0 };
        let error = if flaws != 0 { ERROR } else { 0 };
        Outcome {
            slot,
            bytes,
            flags: END | ring_flag | (accepted.destination as u32) << 5 | error,
            checksums: 0,
            errors_and_tag: flaws << 16,
            truncated,
        }
    }

    /// Writes the return BD into its staging bytes.
    #[inline(always)]
    pub fn stage<B: Bus>(&self, bus: &mut B, taken: &Taken) {
        let words = [
            taken.host.high,
            taken.host.low,
            taken.index_and_room & 0xFFFF_0000 | self.bytes,
            self.flags,
            self.checksums,
            self.errors_and_tag,
            0,
            taken.opaque,
        ];
        stage(bus, self.slot, &words);
    }
}

/// Queues the return BD, which is staged, behind the data, and lets the MAC's descriptor
/// go.
#[inline(always)]
pub(super) fn finish<B: Bus>(
    firmware: &mut Firmware<B>,
    accepted: &Accepted,
    taken: &Taken,
    outcome: &Outcome,
) {
    let receive = &mut firmware.receive;
    let bus = &mut firmware.bus;
    let transfer = Transfer {
        host: receive.returns.plus(receive.return_producer << 5),
        local: outcome.slot,
        length: 32,
        state: firmware.states.write_words,
        kind: write::QUIET,
        opaque: 0,
    };
    firmware.write_ring.put(bus, &transfer);
    receive.ring.release(bus);
    receive.return_producer = (receive.return_producer + 1) & receive.return_mask;
    if outcome.truncated {
        drops::count(firmware, Drop::BufferTooSmall);
    }
    firmware
        .counters
        .received(accepted.destination, accepted.length);
    returned(firmware, taken.flags & NOW != 0);
}

/// Chooses the ring of a frame that is not plainly one of the standard ring, or says why
/// the host does not get it.
#[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_a.text"))]
#[inline(never)]
fn judge<B: Bus>(firmware: &mut Firmware<B>, accepted: &mut Accepted) -> Result<(), Drop> {
    let receive = &firmware.receive;
    let frame = &accepted.frame;
    if !receive.stack_up {
        return Err(Drop::StackDown);
    }
    accepted.flaws = frame.errors & !HARMLESS;
    if accepted.flaws != 0 && !receive.bad_frames {
        return Err(Drop::BadFrame);
    }
    if frame.length < HEADER + CRC {
        return Err(Drop::TooShort);
    }
    let bus = &mut firmware.bus;
    if accepted.destination == destination::MULTICAST
        && !firmware.link.filter.takes(bus, frame.start)
    {
        return Err(Drop::NotSubscribed);
    }
    // With a tag a frame may be longer by it; a tag that is taken off needs no room.
    let length = accepted.length;
    let mut handed_on = length;
    let mut limit = receive.longest;
    if length > receive.rings.standard.longest().min(limit) {
        let kind = bus.load(wrapped(receive.base, frame.start + 12)) >> 16;
        if kind == u32::from(VLAN_TYPE) {
            limit += TAG;
            if receive.wants & headers::VLAN != 0 {
                handed_on -= TAG;
            }
        }
    }
    if length > limit {
        if !receive.bad_frames {
            return Err(Drop::TooLong);
        }
        accepted.flaws |= GIANT;
    }
    accepted.which = if length <= receive.rings.mini.longest() {
        Which::Mini
    } else if handed_on <= receive.rings.standard.longest() {
        Which::Standard
    } else if receive.rings.jumbo.longest() != 0 {
        Which::Jumbo
    } else {
        return Err(Drop::TooLong);
    };
    Ok(())
}

/// The ring for the frame is empty. The event stays on, so it is held back until BDs
/// arrive.
#[inline(never)]
fn wait_for_bds<B: Bus>(firmware: &mut Firmware<B>) {
    if !firmware.receive.waiting {
        firmware.receive.waiting = true;
        count!(firmware, no_receive_bds);
    }
    firmware.hold(EventBit::ReceiveComplete);
}

/// Lets a frame go. Its bytes may only be freed when no older frame is being read from
/// the buffer any more; the next frame that is handed on frees them as well.
#[inline(never)]
fn drop<B: Bus>(firmware: &mut Firmware<B>, frame: &ReceivedFrame, reason: Drop) {
    drops::count(firmware, reason);
    match reason {
        Drop::BadFrame => count_errors(firmware, frame.errors),
        Drop::TooLong => count!(firmware, frames_too_long),
        _ => {}
    }
    let receive = &mut firmware.receive;
    receive.freed = end_of(receive.base, frame);
    receive.ring.release(&mut firmware.bus);
    free(firmware);
}

/// Counts a bad frame by what the MAC says of it.
fn count_errors<B: Bus>(firmware: &mut Firmware<B>, errors: u32) {
    let errors = BdErrors::from_bits(errors as u16);
    count!(firmware, in_errors);
    if errors.odd_nibbles() {
        count!(firmware, alignment_errors);
    }
    if errors.collision() {
        count!(firmware, mac_late_collisions);
    }
    if errors.link_lost() {
        count!(firmware, mac_link_lost);
    }
    if errors.phy_decode() {
        count!(firmware, mac_phy_decode_errors);
    }
    if errors.mac_abort() {
        count!(firmware, mac_aborts);
    }
    if errors.truncated() {
        count!(firmware, mac_truncated);
    }
}

/// The address of a byte of the receive buffer, which begins at `base`, round its end.
#[inline(always)]
pub(super) const fn wrapped(base: u32, address: u32) -> u32 {
    if address >= PACKET_MEMORY_END {
        address - (PACKET_MEMORY_END - base)
    } else {
        address
    }
}

/// Where the frame behind `frame` starts: at the next 8 bytes, round the end of the buffer
/// (10.3, C).
pub(super) const fn end_of(base: u32, frame: &ReceivedFrame) -> u32 {
    wrapped(base, (frame.start + frame.length + 7) & !7)
}

/// Frees what dropped frames took, if nothing older is being read.
#[inline(always)]
fn free<B: Bus>(firmware: &mut Firmware<B>) {
    let receive = &mut firmware.receive;
    if receive.in_flight == 0 && receive.freed != 0 {
        firmware.bus.write(Register::RxConsumer, receive.freed);
        receive.freed = 0;
    }
}

/// The data of a frame has been written.
#[inline(always)]
pub fn data_written<B: Bus>(firmware: &mut Firmware<B>) {
    firmware.receive.in_flight -= 1;
    free(firmware);
}
