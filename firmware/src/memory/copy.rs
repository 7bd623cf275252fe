//! Bytes that a CPU moves itself: about 2 cycles each.

use tigon2_hal::Bus;

/// Copies whole words, four at a time as long as there are: up to 3 bytes behind `bytes` as well.
#[inline(always)]
pub fn words<B: Bus>(bus: &mut B, mut from: u32, mut to: u32, bytes: u32) {
    let end = from + bytes;
    while from + 16 <= end {
        let words = [
            bus.load(from),
            bus.load(from + 4),
            bus.load(from + 8),
            bus.load(from + 12),
        ];
        bus.store(to, words[0]);
        bus.store(to + 4, words[1]);
        bus.store(to + 8, words[2]);
        bus.store(to + 12, words[3]);
        from += 16;
        to += 16;
    }
    while from < end {
        let word = bus.load(from);
        bus.store(to, word);
        from += 4;
        to += 4;
    }
}
