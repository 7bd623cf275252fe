//! What transfers are for, and what follows when they are done.
//!
//! Hardware reference, sections 6, 13 and 14. Both rings work strictly in order, so an
//! index that is queued behind the data that it announces arrives behind it.

pub mod fault;

use crate::send::Sent;
use crate::{SideA, SideB, host_events, receive, refill, send};
use host_interface::OperatingMode;
use host_interface::gencom::Gencom;
use tigon2_chip::bits::DmaState;
use tigon2_chip::events::EventBit;
use tigon2_hal::Bus;
use tigon2_hal::assist::{Finished, Full, HostAddress, Transfer, Walk};
use tigon2_hal::events::Dispatch;

/// Notes of transfers from the host: the kind, and above it what belongs to it.
pub mod read {
    /// The bits of a note that are its kind.
    pub const KIND: u32 = 0x7FF;
    /// Of BDs: how far the index behind the last one is shifted.
    pub const INDEX_SHIFT: u32 = 16;
    /// Of a frame's first data: how far the NIC address where the frame begins is shifted.
    /// It is a multiple of 8.
    pub const START_SHIFT: u32 = 8;
    /// Send BDs, and the index behind the last one.
    pub const SEND_BDS: u32 = 1;
    /// Standard receive BDs, and the index behind the last one.
    pub const STANDARD_BDS: u32 = 2;
    /// Mini receive BDs; likewise.
    pub const MINI_BDS: u32 = 0x10;
    /// Jumbo receive BDs; likewise, extended ones count twice.
    pub const JUMBO_BDS: u32 = 0x20;
    /// Data of a send BD, perhaps with the bits below. No other kind has this bit.
    pub const SEND_DATA: u32 = 4;
    /// With [`SEND_DATA`]: the frame begins with it, at the address in the note.
    pub const FIRST: u32 = 1;
    /// With [`SEND_DATA`]: the host asked to hear of it at once.
    pub const NOW: u32 = 2;
    /// With [`SEND_DATA`]: the last of a frame that is held in the MAC's ring.
    pub const HELD: u32 = 8;
    /// BDs that did not arrive: nothing follows.
    pub const NOTHING: u32 = 0x40;
    /// With [`SEND_DATA`]: of a frame that was dropped.
    pub const ABANDONED: u32 = 0x100;
}

/// Notes of transfers to the host: the kind, and above it what belongs to it.
pub mod write {
    /// The bits of a note that are its kind.
    pub const KIND: u32 = 7;
    /// The bits that are a NIC address, a multiple of 32.
    pub const ADDRESS: u32 = !31;
    /// Nothing follows.
    pub const QUIET: u32 = 0;
    /// Data of a received frame, the last of it, and the NIC address of its return BD.
    pub const RECEIVE_DATA: u32 = 1;
    /// The send consumer index: an interrupt follows unless the host wants none of these.
    pub const SEND_INDEX: u32 = 2;
    /// The receive return producer index: likewise.
    pub const RETURN_INDEX: u32 = 3;
    /// The event producer index: likewise.
    pub const EVENT_INDEX: u32 = 4;
}

/// For a state word of data: what the channel does with its sum.
pub struct Sum;

impl Sum {
    /// The bytes are added to the channel's sum.
    pub const ON: u32 = DmaState::new().with_checksum(true).into_bits();
    /// With [`ON`](Self::ON): the sum begins at 0, with the first bytes of a frame.
    pub const BEGINS: u32 = DmaState::new().with_restart_checksum(true).into_bits();
    /// With [`ON`](Self::ON): the sum comes back with the descriptor, see
    /// [`DescriptorRing::store_sum`](tigon2_hal::assist::DescriptorRing::store_sum).
    pub const STORED: u32 = DmaState::new().with_store_checksum(true).into_bits();
}

/// What gencom's DMA configurations may set: FIFO threshold and 32-bit PCI.
const CONFIGURABLE: u32 = DmaState::new()
    .with_threshold(31)
    .with_force_32bit(true)
    .into_bits();
const START: DmaState = DmaState::new().with_start(true);

/// State words of transfers from the host, those of vendor firmware (6.1).
#[derive(Clone, Copy, Debug)]
pub struct ReadStates {
    /// Reading BDs.
    pub words: u32,
    /// Reading a fragment of a frame.
    pub data: u32,
    /// Reading the last fragment of a frame: moves the MAC's TX producer.
    pub last: u32,
}

impl ReadStates {
    /// From the gencom DMA configuration and whether each kind of data keeps the values of
    /// words.
    pub const fn new(read: u32, words_no_swap: bool, data_no_swap: bool) -> ReadStates {
        let read = read & CONFIGURABLE;
        let data = START.with_no_swap(data_no_swap);
        ReadStates {
            words: read | START.with_no_swap(words_no_swap).into_bits(),
            data: read | data.into_bits(),
            last: read | data.with_end_of_frame(true).into_bits(),
        }
    }

    /// As the host configured them in gencom.
    pub fn configured<B: Bus>(bus: &mut B) -> ReadStates {
        let config = bus.load(Gencom::DmaReadConfig.nic_address());
        let mode = OperatingMode::from_bits(bus.load(Gencom::OperatingMode.nic_address()));
        ReadStates::new(config, !mode.byte_swap_bd(), !mode.byte_swap_data())
    }
}

/// State words of transfers to the host, those of vendor firmware (6.1).
#[derive(Clone, Copy, Debug)]
pub struct WriteStates {
    /// Writing BDs, indices, events, statistics.
    pub words: u32,
    /// Writing a received frame: frees it in the receive buffer.
    pub data: u32,
}

impl WriteStates {
    /// From the gencom DMA configuration and whether each kind of data keeps the values of
    /// words.
    pub const fn new(write: u32, words_no_swap: bool, data_no_swap: bool) -> WriteStates {
        let write = write & CONFIGURABLE;
        let end = START.with_end_of_frame(true);
        let data = end.with_no_swap(data_no_swap).with_free_rx_buffer(true);
        WriteStates {
            words: write | end.with_no_swap(words_no_swap).into_bits(),
            data: write | data.into_bits(),
        }
    }

    /// As the host configured them in gencom.
    pub fn configured<B: Bus>(bus: &mut B) -> WriteStates {
        let config = bus.load(Gencom::DmaWriteConfig.nic_address());
        let mode = OperatingMode::from_bits(bus.load(Gencom::OperatingMode.nic_address()));
        WriteStates::new(config, !mode.byte_swap_bd(), !mode.byte_swap_data())
    }
}

/// Queues `words` for the host, padded to the 8 bytes that vendor firmware always moves.
/// They lie in the staging slot of the descriptor, so they stay until it is reused.
///
/// # Errors
/// [`Full`] when no write descriptor is free.
#[inline(always)]
pub fn write_words<B: Dispatch>(
    a: &mut SideA<B>,
    host: HostAddress,
    words: &[u32],
    kind: u32,
) -> Result<(), Full> {
    if !has_write_room(a, 1) {
        return Err(Full);
    }
    put_words(a, host, words, kind);
    Ok(())
}

/// As [`write_words`], after [`has_write_room`] said yes.
#[inline(always)]
pub fn put_words<B: Dispatch>(a: &mut SideA<B>, host: HostAddress, words: &[u32], kind: u32) {
    let slot = crate::layout::STAGING + (a.write_ring.next_index() << 5);
    let mut address = slot;
    for word in words {
        a.bus.store(address, *word);
        address += 4;
    }
    let transfer = Transfer {
        host,
        local: slot,
        length: address - slot,
        state: a.states.words,
        note: kind,
    };
    if kind != write::QUIET {
        await_index(a);
    }
    a.write_ring.put(&mut a.bus, &transfer);
}

/// An index is queued next whose end is awaited. What is done by now is no event any more;
/// room and descriptors that are waited for are seen to when the index is done.
#[inline(always)]
fn await_index<B: Dispatch>(a: &mut SideA<B>) {
    if a.awaited == 0 {
        pass_writes(a);
    }
    a.awaited += 1;
    await_writes(&mut a.bus);
}

/// Whether `count` transfers to the host can be queued. The channel is looked at only if
/// there was no room at the last look; if there is none now, [`write_complete`] looks.
#[inline(always)]
pub fn has_write_room<B: Dispatch>(a: &mut SideA<B>, count: u32) -> bool {
    a.write_ring.has_room(count) || makes_write_room(a, count)
}

#[inline(never)]
fn makes_write_room<B: Dispatch>(a: &mut SideA<B>, count: u32) -> bool {
    if !is_awaited(a) {
        pass_writes(a);
        if a.write_ring.has_room(count) {
            return true;
        }
    }
    await_writes(&mut a.bus);
    false
}

/// Passes over the transfers that are done, as nothing follows.
#[inline(always)]
fn pass_writes<B: Dispatch>(a: &mut SideA<B>) {
    let mut walk = a.write_ring.finished(&mut a.bus);
    walk.pass();
    a.write_ring.acknowledge(&mut a.bus, walk);
}

/// Whether something follows when a transfer is done.
#[inline(always)]
fn is_awaited<B: Dispatch>(a: &SideA<B>) -> bool {
    a.awaited | a.held != 0 || receive::frame::frees_later(a)
}

/// DMA read complete, where the data of frames is other CPUs'.
#[cfg(feature = "lanes")]
pub use crate::lanes::read_complete;

/// DMA read complete.
#[cfg(not(feature = "lanes"))]
#[inline(always)]
pub fn read_complete<B: Dispatch>(b: &mut SideB<B>) {
    let mut walk = b.read_ring.finished(&mut b.bus);
    let mut sent = Sent::NONE;
    while let Some(done) = b.read_ring.take(&mut walk) {
        if done.note & (read::SEND_DATA | read::HELD) != read::SEND_DATA {
            others(b, done);
            if done.note & read::SEND_DATA == 0 {
                continue;
            }
        }
        sent.add(b, done.note);
    }
    b.read_ring.acknowledge(&mut b.bus, walk);
    send::data_first(b);
    if sent.any() {
        send::consumed(b, &sent);
    }
}

/// Something else than the data of a frame that needs nothing more.
#[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_b.text"))]
#[inline(never)]
pub(crate) fn others<B: Dispatch>(b: &mut SideB<B>, done: Finished) {
    let after = done.note >> read::INDEX_SHIFT;
    match done.note & read::KIND {
        read::NOTHING => {}
        read::SEND_BDS => send::bds_arrived(b, after),
        kind if kind & read::SEND_DATA != 0 => send::held_arrived(b, &done),
        kind => refill::arrived(b, kind, after),
    }
}

/// DMA write complete. Most transfers are data and return BDs, which need nothing more: the
/// event is held back unless somebody [awaits](await_writes) the end of one.
#[inline(always)]
pub fn write_complete<B: Dispatch>(a: &mut SideA<B>) {
    let mut walk = a.write_ring.finished(&mut a.bus);
    let mut interrupt = false;
    if a.awaited == 0 {
        walk.pass();
    } else {
        interrupt = indices(a, &mut walk);
    }
    a.write_ring.acknowledge(&mut a.bus, walk);
    receive::frame::free(a);
    if a.held != 0 {
        // Those that found no descriptor try again.
        let held = core::mem::take(&mut a.held);
        a.bus.core(|core| core.mask |= held);
    }
    if !is_awaited(a) {
        a.bus.clear(EventBit::DmaWriteComplete);
    }
    if interrupt {
        crate::interrupt::raise(a);
    }
}

/// Has [`write_complete`] look when a transfer to the host is done: for an index, for room
/// in the receive buffer or for a descriptor.
#[inline(always)]
pub fn await_writes<B: Dispatch>(bus: &mut B) {
    bus.set(EventBit::DmaWriteComplete);
}

/// Looks for indices among the transfers that are done. Returns whether the host is to be
/// interrupted for one.
#[inline(always)]
fn indices<B: Dispatch>(a: &mut SideA<B>, walk: &mut Walk) -> bool {
    let mut interrupt = false;
    while let Some(done) = a.write_ring.take(walk) {
        match done.note & write::KIND {
            write::SEND_INDEX => interrupt |= a.interrupt.for_send,
            write::RETURN_INDEX => interrupt |= a.interrupt.for_receive,
            write::EVENT_INDEX => {
                let local = done.local(&mut a.bus);
                host_events::told(&mut a.bus, local);
                interrupt |= a.interrupt.for_events;
            }
            _ => continue,
        }
        a.awaited -= 1;
    }
    interrupt
}
