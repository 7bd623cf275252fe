//! Frames to the other card by a ring in host memory: [`host_interface::spine::peer::RING`].
//!
//! ```text
//!   host memory                                     the other card
//!   buffer of the next BD ◄── frame
//!   second half of it     ◄── length, flags
//!                             producer index ──►    mailbox, as its driver would write it
//!   this card's page      ◄── send consumer index, by the window
//! ```
//!
//! It is slower than the way through the other card's transmit buffer, and each byte is on the bus
//! twice; it is there to be compared with that. So it lies in SRAM.

use super::{STATE, word};
use crate::io::IoA;
use crate::io::note::WriteNote;
use crate::memory::layout::PEER_PAGE;
use crate::sides::spine::bump;
use crate::sides::spine::effects::Effects;
use host_interface::bd::{BdFlags, SendBd};
use host_interface::spine::peer::{
    PeerWord, RING_BDS, RING_PRODUCERS, RING_STAGED, RING_WORDS, RingWord,
};
use tigon2_chip::bits::DmaState;
use tigon2_chip::mailbox::Mailbox;
use tigon2_hal::Bus;
use tigon2_hal::assist::{HostAddress, Transfer};
use tigon2_hal::events::Dispatch;

/// Offset of the second half of a BD.
const SECOND_HALF: u32 = core::mem::offset_of!(SendBd, length_and_flags) as u32;

const fn ring_word(word: RingWord) -> u32 {
    PEER_PAGE + RING_WORDS + word as u32
}

/// The ring is empty.
pub fn begin<B: Bus>(bus: &mut B) {
    bus.store(ring_word(RingWord::Producer), 0);
    bus.store(word(PeerWord::RingConsumer), 0);
}

/// Whether there is a BD for a frame: one stays empty.
#[inline(always)]
pub fn has_room<B: Bus>(bus: &mut B) -> bool {
    let consumer = bus.load(word(PeerWord::RingConsumer));
    let next = bus.load(ring_word(RingWord::Producer)) + 1;
    (next ^ consumer) & (bus.load(ring_word(RingWord::Entries)) - 1) != 0
}

/// Has the frame of `length` bytes that lies at `at` written, with changed words; `false` without a
/// BD or descriptors for it.
#[inline(always)]
pub fn put<B: Dispatch>(
    bar: HostAddress,
    io: &mut IoA<B>,
    at: u32,
    length: u32,
    effects: &Effects,
) -> bool {
    if !has_room(&mut io.bus) || !io.has_write_room(3) {
        return false;
    }
    let bus = &mut io.bus;
    for (index, value) in effects.patches() {
        bus.store(at + (index << 2), *value);
    }
    let mut of = |word: RingWord| bus.load(ring_word(word));
    let producer = of(RingWord::Producer);
    let next = (producer + 1) & (of(RingWord::Entries) - 1);
    let [bds, buffers] = [
        (RingWord::BdsHigh, RingWord::BdsLow),
        (RingWord::BuffersHigh, RingWord::BuffersLow),
    ]
    .map(|(high, low)| HostAddress {
        high: of(high),
        low: of(low),
    });
    let buffer = buffers.plus(producer << of(RingWord::Shift));
    let staged = producer & (RING_STAGED - 1);
    let (bd, index) = (
        PEER_PAGE + RING_BDS + (staged << 3),
        PEER_PAGE + RING_PRODUCERS + (staged << 2),
    );
    let flags = BdFlags::new().with_end(true).into_bits();
    bus.store(bd, length << 16 | u32::from(flags));
    bus.store(bd + 4, 0);
    bus.store(index, next);
    bus.store(ring_word(RingWord::Producer), next);
    bump(bus, word(PeerWord::Sent));
    let mailbox = HostAddress {
        high: bar.high,
        low: bar.low + Mailbox::SendProducer.bar_offset(),
    };
    // The frame's room is free when it has been let go, as that of all frames to handlers.
    let data = DmaState::from_bits(io.states.data).with_free_rx_buffer(false);
    let (data, words) = (data.into_bits(), io.states.words);
    for (host, local, length, state) in [
        (buffer, at, length, data),
        (bds.plus((producer << 4) + SECOND_HALF), bd, 8, words),
        (mailbox, index, 4, STATE),
    ] {
        let transfer = Transfer {
            host,
            local,
            length,
            state,
            note: WriteNote::EXTENSION.word(),
        };
        io.write_ring.put(&mut io.bus, &transfer);
    }
    true
}
