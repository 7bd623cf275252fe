//! What transfers are for, and what follows when they are done.
//!
//! Hardware reference, sections 6, 13 and 14. Both rings work strictly in order, so an
//! index that is queued behind the data that it announces arrives behind it.

pub mod fault;

use crate::Firmware;
use crate::{host_events, receive, send};
use tigon2_chip::bits::DmaState;
use tigon2_chip::events::EventBit;
use tigon2_hal::Bus;
use tigon2_hal::assist::{Done, Finished, Full, HostAddress, Transfer};

/// Kinds of transfers from the host: word 6 of a read descriptor.
pub mod read {
    /// Send BDs; opaque: the index behind the last one.
    pub const SEND_BDS: u32 = 1;
    /// Standard receive BDs; opaque: the index behind the last one.
    pub const STANDARD_BDS: u32 = 2;
    /// Mini receive BDs; likewise.
    pub const MINI_BDS: u32 = 0x10;
    /// Jumbo receive BDs; likewise, extended ones count twice.
    pub const JUMBO_BDS: u32 = 0x20;
    /// Data of a send BD, perhaps with the bits below; opaque: its index. No other kind
    /// has this bit.
    pub const SEND_DATA: u32 = 4;
    /// With [`SEND_DATA`]: the frame begins with it.
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

/// Kinds of transfers to the host: word 6 of a write descriptor.
pub mod write {
    /// Nothing follows.
    pub const QUIET: u32 = 0;
    /// Data of a received frame, the last of it; opaque: NIC address of its return BD.
    pub const RECEIVE_DATA: u32 = 1;
    /// The send consumer index: an interrupt follows unless the host wants none of these.
    pub const SEND_INDEX: u32 = 2;
    /// The receive return producer index: likewise.
    pub const RETURN_INDEX: u32 = 3;
    /// The event producer index: likewise.
    pub const EVENT_INDEX: u32 = 4;
}

/// State words of the transfers, made once from the host's wishes.
#[derive(Clone, Copy, Debug)]
pub struct States {
    /// Reading BDs.
    pub read_words: u32,
    /// Reading a fragment of a frame.
    pub read_data: u32,
    /// Reading the last fragment of a frame: moves the MAC's TX producer.
    pub read_last: u32,
    /// Writing BDs, indices, events, statistics.
    pub write_words: u32,
    /// Writing a received frame: frees it in the receive buffer.
    pub write_data: u32,
}

impl States {
    /// For a state word of data: the bytes are added to the channel's sum.
    pub const SUM: u32 = DmaState::new().with_checksum(true).into_bits();
    /// With [`SUM`](Self::SUM): the sum begins at 0, with the first bytes of a frame.
    pub const SUM_BEGINS: u32 = DmaState::new().with_restart_checksum(true).into_bits();
    /// With [`SUM`](Self::SUM): the sum comes back with the descriptor, see
    /// [`DescriptorRing::store_sum`](tigon2_hal::assist::DescriptorRing::store_sum).
    pub const SUM_STORED: u32 = DmaState::new().with_store_checksum(true).into_bits();

    /// From the gencom DMA configurations and whether each kind of data keeps the values
    /// of words. The state words are those of vendor firmware (6.1).
    pub const fn new(read: u32, write: u32, words_no_swap: bool, data_no_swap: bool) -> States {
        /// What the configuration may set: FIFO threshold and 32-bit PCI.
        const CONFIGURABLE: u32 = DmaState::new()
            .with_threshold(31)
            .with_force_32bit(true)
            .into_bits();
        let start = DmaState::new().with_start(true);
        let words = start.with_no_swap(words_no_swap);
        let data = start.with_no_swap(data_no_swap);
        let read = read & CONFIGURABLE;
        let write = write & CONFIGURABLE;
        States {
            read_words: read | words.into_bits(),
            read_data: read | data.into_bits(),
            read_last: read | data.with_end_of_frame(true).into_bits(),
            write_words: write | words.with_end_of_frame(true).into_bits(),
            write_data: write
                | data
                    .with_end_of_frame(true)
                    .with_free_rx_buffer(true)
                    .into_bits(),
        }
    }
}

/// Queues `words` for the host, padded to the 8 bytes that vendor firmware always moves.
/// They lie in the staging slot of the descriptor, so they stay until it is reused.
///
/// # Errors
/// [`Full`] when no write descriptor is free.
#[inline(always)]
pub fn write_words<B: Bus>(
    firmware: &mut Firmware<B>,
    host: HostAddress,
    words: &[u32],
    kind: u32,
) -> Result<(), Full> {
    if !firmware.write_ring.has_room(1) {
        return Err(Full);
    }
    let slot = crate::layout::STAGING + (firmware.write_ring.next_index() << 5);
    let mut address = slot;
    for word in words {
        firmware.bus.store(address, *word);
        address += 4;
    }
    let transfer = Transfer {
        host,
        local: slot,
        length: address - slot,
        state: firmware.states.write_words,
        kind,
        opaque: 0,
    };
    firmware.write_ring.put(&mut firmware.bus, &transfer);
    Ok(())
}

/// DMA read complete. In this loop nothing is called: what is not plain data of a frame
/// ends it, and [`read_others`] goes on.
#[inline(always)]
pub fn read_complete<B: Bus>(firmware: &mut Firmware<B>) {
    let end = firmware.read_ring.done(&mut firmware.bus);
    let mut sent = false;
    let mut other = None;
    while let Some(done) = firmware.read_ring.take(&mut firmware.bus, end) {
        if done.kind & (read::SEND_DATA | read::HELD) != read::SEND_DATA {
            other = Some(done);
            break;
        }
        send::data_read(firmware, &done);
        sent = true;
    }
    if let Some(done) = other {
        sent |= read_others(firmware, &done, end);
    }
    firmware.read_ring.acknowledge(&mut firmware.bus);
    if sent {
        send::consumed(firmware);
    }
}

/// Looks at `done` and all others up to `end`. Returns whether there was data of a frame.
#[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_a.text"))]
#[inline(never)]
fn read_others<B: Bus>(firmware: &mut Firmware<B>, done: &Finished, end: Done) -> bool {
    let mut sent = false;
    let mut next = Some(*done);
    while let Some(done) = next {
        if done.kind & read::SEND_DATA != 0 {
            if done.kind & read::HELD != 0 {
                send::held_arrived(firmware, &done);
            }
            send::data_read(firmware, &done);
            sent = true;
        } else if done.kind == read::SEND_BDS {
            send::bds_arrived(firmware, done.opaque);
        } else if done.kind != read::NOTHING {
            receive::bds_arrived(firmware, done.kind, done.opaque);
        }
        next = firmware.read_ring.take(&mut firmware.bus, end);
    }
    sent
}

/// DMA write complete.
#[inline(always)]
pub fn write_complete<B: Bus>(firmware: &mut Firmware<B>) {
    let end = firmware.write_ring.done(&mut firmware.bus);
    let mut interrupt = false;
    while let Some(done) = firmware.write_ring.take(&mut firmware.bus, end) {
        match done.kind {
            write::RECEIVE_DATA => receive::frame::data_written(firmware),
            write::SEND_INDEX => interrupt |= firmware.interrupt.for_send,
            write::RETURN_INDEX => interrupt |= firmware.interrupt.for_receive,
            write::EVENT_INDEX => {
                let local = done.local(&mut firmware.bus);
                host_events::told(&mut firmware.bus, local);
                interrupt |= firmware.interrupt.for_events;
            }
            _ => {}
        }
    }
    firmware.write_ring.acknowledge(&mut firmware.bus);
    // Those that found no descriptor try again.
    firmware.unmask(EventBit::UpdateSendConsumer);
    firmware.unmask(EventBit::UpdateReceiveReturnProducer);
    if interrupt {
        crate::interrupt::raise(firmware);
    }
}
