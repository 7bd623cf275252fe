//! The defmt transport: encoded messages go into a ring in SRAM.
//!
//! The host reads the ring through its memory window and decodes it with the ELF. Each
//! message is one rzCOBS frame, so a reader that joins late finds the next message by
//! the next zero byte.
//!
//! ```text
//!   consumer (host)        producer (firmware)
//!        v                        v
//! -------+========================+---------------
//!  free  |  messages to be read   |  free
//! ```
//!
//! Both indices count bytes from the start of the ring and wrap at its size; equal means
//! empty. A message that does not fit is dropped whole and counted: the firmware never
//! waits for a reader.

use crate::{Bus, Mmio};
use core::cell::UnsafeCell;

/// Bytes of the ring, a power of two.
pub const RING_BYTES: u32 = 4096;

/// SRAM addresses of the words that describe the ring to the host.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    /// Receives the ring's own address.
    pub address: u32,
    /// Receives the ring's size in bytes.
    pub bytes: u32,
    /// The producer index, written here.
    pub producer: u32,
    /// The consumer index, written by the host.
    pub consumer: u32,
    /// Messages dropped for lack of room.
    pub lost: u32,
}

#[repr(C, align(4))]
struct Ring(UnsafeCell<[u8; RING_BYTES as usize]>);

// SAFETY: the firmware writes the ring only inside a critical section, and only with
// volatile stores; no reference to its bytes is ever made.
unsafe impl Sync for Ring {}

static RING: Ring = Ring(UnsafeCell::new([0; RING_BYTES as usize]));

struct State {
    words: Option<Words>,
    encoder: defmt::Encoder,
    /// Where the message in work began.
    begin: u32,
    /// Where its next byte goes.
    end: u32,
    /// Whether it found no room.
    overrun: bool,
    nested: critical_section::RestoreState,
}

struct Shared(UnsafeCell<State>);

// SAFETY: only touched by the logger's methods, which defmt calls between `acquire` and
// `release`, and those hold the critical section; and by `start`, before the first
// message.
unsafe impl Sync for Shared {}

static STATE: Shared = Shared(UnsafeCell::new(State {
    words: None,
    encoder: defmt::Encoder::new(),
    begin: 0,
    end: 0,
    overrun: false,
    nested: critical_section::RestoreState::invalid(),
}));

/// Publishes the ring and lets messages through. What is logged before is dropped.
///
/// # Safety
/// To be called once, before anything is logged, with words in SRAM that are nobody
/// else's.
pub unsafe fn start(words: Words) {
    // SAFETY: nothing is logged yet, so this is the only access.
    let state = unsafe { &mut *STATE.0.get() };
    // SAFETY: the caller's promise about the words.
    let mut bus = unsafe { Mmio::new() };
    bus.store(words.address, RING.0.get() as u32);
    bus.store(words.bytes, RING_BYTES);
    bus.store(words.producer, 0);
    bus.store(words.consumer, 0);
    bus.store(words.lost, 0);
    state.words = Some(words);
}

impl State {
    fn append(&mut self, bytes: &[u8]) {
        let Some(words) = self.words else { return };
        // SAFETY: the bus is used for the words promised to `start` and for the ring,
        // whose bytes no Rust reference covers.
        let mut bus = unsafe { Mmio::new() };
        let consumer = bus.load(words.consumer) & (RING_BYTES - 1);
        for byte in bytes {
            let next = (self.end + 1) & (RING_BYTES - 1);
            if next == consumer {
                self.overrun = true;
                return;
            }
            bus.store_byte(RING.0.get() as u32 + self.end, *byte);
            self.end = next;
        }
    }

    fn publish(&mut self) {
        let Some(words) = self.words else { return };
        // SAFETY: only the words promised to `start`.
        let mut bus = unsafe { Mmio::new() };
        if self.overrun {
            self.overrun = false;
            self.end = self.begin;
            let lost = bus.load(words.lost).wrapping_add(1);
            bus.store(words.lost, lost);
        } else {
            bus.store(words.producer, self.end);
        }
    }
}

/// Splits the borrow: the encoder writes through the rest of the state.
fn encode(state: *mut State, run: impl FnOnce(&mut defmt::Encoder, &mut dyn FnMut(&[u8]))) {
    // SAFETY: called inside the critical section; the encoder and the other fields are
    // distinct, and the closure touches only the latter.
    let mut encoder =
        unsafe { core::ptr::replace(&raw mut (*state).encoder, defmt::Encoder::new()) };
    run(&mut encoder, &mut |bytes| {
        // SAFETY: as above; the encoder in work was moved out.
        unsafe { &mut *state }.append(bytes);
    });
    // SAFETY: as above.
    unsafe { (*state).encoder = encoder };
}

#[defmt::global_logger]
struct RingLogger;

// SAFETY: `acquire` takes a critical section and `release` gives it back, so no other
// context logs in between; a nested `acquire` by the same CPU cannot happen because
// nothing interrupts it and formatting does not log.
unsafe impl defmt::Logger for RingLogger {
    fn acquire() {
        // SAFETY: released in `release`, with the same token.
        let nested = unsafe { critical_section::acquire() };
        let state = STATE.0.get();
        // SAFETY: inside the critical section.
        unsafe {
            (*state).nested = nested;
            (*state).begin = (*state).end;
        }
        encode(state, |encoder, write| encoder.start_frame(write));
    }

    unsafe fn flush() {}

    unsafe fn release() {
        let state = STATE.0.get();
        encode(state, |encoder, write| encoder.end_frame(write));
        // SAFETY: inside the critical section that `acquire` took; the token is its own.
        unsafe {
            (*state).publish();
            critical_section::release((*state).nested);
        }
    }

    unsafe fn write(bytes: &[u8]) {
        encode(STATE.0.get(), |encoder, write| encoder.write(bytes, write));
    }
}
