//! The defmt transport: each CPU logs into its own ring in SRAM.
//!
//! The host reads the rings through its memory window and decodes them with the ELF. Each
//! message is one rzCOBS frame, so a reader that joins late finds the next message by
//! the next zero byte.
//!
//! Rings and encoders lie in SRAM, because the scratch pads are for the packet path. The CPUs
//! share nothing here: neither waits for the other, and a CPU that was halted within a message
//! does not block the other.

use crate::Mmio;
use crate::events::Dispatch;
use crate::log_ring::LogRing;
pub use crate::log_ring::Words;
use crate::schedule::barrier;
use core::cell::UnsafeCell;

/// Bytes of a CPU's ring, a power of two.
pub const RING_BYTES: u32 = 4096;

#[repr(C, align(4))]
struct Bytes(UnsafeCell<[u8; RING_BYTES as usize]>);

// SAFETY: each CPU writes only its own, with volatile stores; no reference to the bytes is ever
// made.
unsafe impl Sync for Bytes {}

static BYTES: [Bytes; 2] = [const { Bytes(UnsafeCell::new([0; RING_BYTES as usize])) }; 2];

struct State {
    ring: LogRing,
    encoder: defmt::Encoder,
}

struct Private(UnsafeCell<State>);

// SAFETY: each CPU uses only its own, in the logger's methods, which defmt calls one after the
// other between `acquire` and `release`. CPU A also uses both in `start`, before the first
// message and before CPU B runs.
unsafe impl Sync for Private {}

static STATES: [Private; 2] = [const {
    Private(UnsafeCell::new(State {
        ring: LogRing::new(),
        encoder: defmt::Encoder::new(),
    }))
}; 2];

/// Publishes the rings and enables logging. Earlier messages are dropped.
///
/// # Safety
/// Call it once, before anything is logged and before CPU B runs, with words in SRAM that nothing
/// else uses.
pub unsafe fn start(words: [Words; 2]) {
    // SAFETY: the caller's promise about the words.
    let mut bus = unsafe { Mmio::new() };
    for ((state, bytes), words) in STATES.iter().zip(&BYTES).zip(words) {
        // SAFETY: nothing is logged yet, so this is the only access.
        let state = unsafe { &mut *state.0.get() };
        let address = bytes.0.get() as u32;
        state.ring.start(&mut bus, words, address, RING_BYTES);
    }
}

/// Lends the encoder and the ring of the running CPU.
///
/// # Safety
/// Only between `acquire` and `release` of a message, and not nested.
unsafe fn with(use_it: impl FnOnce(&mut defmt::Encoder, &mut LogRing, &mut Mmio)) {
    // SAFETY: the bus is used for the words promised to `start` and for the bytes of the
    // ring, which no reference covers.
    let mut bus = unsafe { Mmio::new() };
    // One index: a compiler would choose between the two for each field, in three times the code.
    let cpu = barrier(bus.core(|core| core.cpu()) as u32);
    let state = &STATES[cpu as usize & 1];
    // SAFETY: this CPU's own, and the caller's promise.
    let State { ring, encoder } = unsafe { &mut *state.0.get() };
    use_it(encoder, ring, &mut bus);
}

fn put<'a>(ring: &'a mut LogRing, bus: &'a mut Mmio) -> impl FnMut(&[u8]) + 'a {
    |bytes| {
        for byte in bytes {
            ring.push(bus, *byte);
        }
    }
}

#[defmt::global_logger]
struct RingLogger;

// SAFETY: each CPU has its own logger, nothing interrupts its code, and formatting does not log,
// so no message begins before the previous one has ended. A panic may begin one within another,
// but the code that holds the latter's references never continues.
unsafe impl defmt::Logger for RingLogger {
    fn acquire() {
        // SAFETY: the message's first access.
        unsafe {
            with(|encoder, ring, bus| {
                if ring.begin(bus) {
                    *encoder = defmt::Encoder::new();
                }
                encoder.start_frame(put(ring, bus));
            });
        }
    }

    unsafe fn flush() {}

    unsafe fn release() {
        // SAFETY: defmt calls this behind `acquire`.
        unsafe {
            with(|encoder, ring, bus| {
                encoder.end_frame(put(ring, bus));
                ring.publish(bus);
            });
        }
    }

    unsafe fn write(bytes: &[u8]) {
        // SAFETY: defmt calls this between the other two.
        unsafe { with(|encoder, ring, bus| encoder.write(bytes, put(ring, bus))) };
    }
}
