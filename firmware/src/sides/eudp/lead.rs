//! How much of a frame is fetched before it leaves: the design's T, from tables by frame length and
//! bus.
//!
//! A part is in time if it is seen before its deadline ([`watch`](super::watch)). The tables have
//! the least first part with which every later one is, while each bus transaction waits for half as
//! long again as it does in the mean, on the four buses that there are:
//!
//! ```text
//!   (transfers, transactions, beats up to the part's end) + LOOK - BEFORE  <=  deadline
//! ```
//!
//! The wire is that of a gigabit. On a slower one the same parts are in time all the more; the watch
//! counts a gigabit's nanoseconds there, too. A part that comes late all the same costs the frame's
//! time, never a byte of it.

use super::watch::{READ_AHEAD, RUN, earlier, until, within};
use tigon2_chip::Register;
use tigon2_chip::bits::PciState;
use tigon2_hal::Bus;

/// Bytes of a part behind the first one: two bus transactions. CPU B sees to a part in some 6 us, in
/// which the bus brings more than one.
const PART: u32 = 1024;
/// From where on the bus is so far ahead of the wire that parts may be twice as long, and four times.
const FAR: [u32; 2] = [1536, 3584];
/// Bytes behind the first part that a frame needs to be cut through.
pub const REST: u32 = 512;
/// Frames of up to so many bytes leave when they are whole. One that has to be cut off must still be
/// on the wire when CPU B comes to that, which may take it [`RUN`]; so shorter ones would have all
/// but their last bytes when they begin, and leave no earlier.
pub const SHORTEST: u32 = 4096;
const _: () = assert!((SHORTEST << 3) - RUN >= 5000);
/// The shortest first part: the wire takes longer for it than the counter's microseconds.
pub const LEAD: u32 = 256;
const _: () = assert!(LEAD >= READ_AHEAD);
/// Frames of up to so many bytes have an entry, and of up to twice as many the next one.
const STEP: u32 = 1 << STEP_SHIFT;
const STEP_SHIFT: u32 = 8;
const ENTRIES: usize = 9216 / STEP as usize + 1;
/// Entries are multiples of this, and this one is no lead.
const UNIT: u32 = 64;
const WHOLE: u8 = u8::MAX;
/// A transfer's descriptor, start and end, in nanoseconds: 32 cycles.
const TRANSFER: u32 = 364;
/// Clocks before a transaction's first beat, in halves: 75, and half as many more.
const LONGEST: u32 = 225;
/// Bytes of a transaction.
const BURST: u32 = 512;
/// From the end of a part to CPU B's look at the channel, in nanoseconds; and the least from the
/// first part's end to TxPrd, meanwhile the next ones come.
const LOOK: u32 = 7000;
const BEFORE: u32 = 3500;
/// Nanoseconds of the counter's microsecond, 86 cycles.
const TICK: u32 = 977;

/// Whether the card is in a slower bus than it could be: that takes about as long for a frame as the
/// wire, or longer.
pub fn is_bus_slow<B: Bus>(bus: &mut B) -> bool {
    bus_of(bus) != 0
}

/// Whether the card's bus takes longer for a frame than the wire.
pub fn is_slower_than_wire<B: Bus>(bus: &mut B) -> bool {
    bus_of(bus) == 3
}

/// The bus that the card is in: bit 0 at 33 MHz, bit 1 at 32 bits.
pub fn bus_of<B: Bus>(bus: &mut B) -> u32 {
    let pci = PciState::from_bits(bus.read(Register::PciState));
    u32::from(!pci.bus_66mhz()) | u32::from(pci.bus_32bit()) << 1
}

/// Bytes of a frame's first part on a bus; those of the frame if it is stored.
#[inline(always)]
pub fn of(bus: u32, length: u32) -> u32 {
    let entry = ((length + STEP - 1) >> STEP_SHIFT) as usize;
    let table = TABLES.get(bus as usize);
    match table.and_then(|table| table.get(entry)) {
        None | Some(&WHOLE) => length,
        Some(units) => u32::from(*units) << UNIT.trailing_zeros(),
    }
}

/// By bus, then by length.
static TABLES: [[u8; ENTRIES]; 4] = {
    const FAST: [u8; ENTRIES] = table(0);
    const SLOW: [u8; ENTRIES] = table(1);
    const NARROW: [u8; ENTRIES] = table(2);
    const NARROW_AND_SLOW: [u8; ENTRIES] = table(3);
    [FAST, SLOW, NARROW, NARROW_AND_SLOW]
};

const fn table(bus: u32) -> [u8; ENTRIES] {
    let mut table = [WHOLE; ENTRIES];
    let mut entry = 1;
    while entry < ENTRIES {
        let to = (entry as u32) << STEP_SHIFT;
        // What is safe for the shortest and for the longest one.
        let mut lead = LEAD;
        while to > SHORTEST && lead + REST <= to - STEP + 1 {
            if is_safe(bus, lead, to) && is_safe(bus, lead, to - STEP + 1) {
                table[entry] = (lead / UNIT) as u8;
                break;
            }
            lead += UNIT;
        }
        entry += 1;
    }
    table
}

/// Whether no part behind a first one of `lead` bytes is late.
const fn is_safe(bus: u32, lead: u32, length: u32) -> bool {
    // Fifteenths of a microsecond are as good as nanoseconds here: 66 and 33 MHz.
    let clock = 15 << (bus & 1);
    let beat = clock << (bus >> 1);
    let (mut from, mut there) = (lead, LOOK);
    while from < length {
        let to = part_end(length, from);
        let bytes = to - from;
        let transactions = bytes.div_ceil(BURST);
        there += TRANSFER + transactions * LONGEST * clock / 2 + bytes.div_ceil(8) * beat;
        if there > earlier(within(from, to), until(length)) * TICK + BEFORE {
            return false;
        }
        from = to;
    }
    true
}

/// The end of the part behind the first one that begins at `from`, of a frame of `length` bytes.
#[inline(always)]
pub const fn part_end(length: u32, from: u32) -> u32 {
    let left = length - from;
    let part = PART << ((from >= FAR[0]) as u32 + (from >= FAR[1]) as u32);
    // The last one is not to be short.
    if left <= part + part / 2 {
        length
    } else {
        from + part
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::vec::Vec;

    /// The CPU's time on the board's own bus, a third of the frame or more on a bus that is slower
    /// than the wire; short frames are stored.
    #[test]
    fn the_lead_grows_with_the_bus_and_the_frame() {
        let leads = |bus| [1514, 4096, 6000, 9014].map(|length| of(bus, length));
        let [board, _, narrow, slow] = [0, 1, 2, 3].map(leads);
        std::println!("{board:?} {narrow:?} {slow:?}");
        for bus in 0..4 {
            assert_eq!(leads(bus)[..2], [1514, 4096], "stored");
        }
        assert_eq!(board[3], 2368);
        assert!(board[2] > board[3] && narrow[3] > board[3] && slow[3] > 9014 / 3);
        assert_eq!(of(0, 60_000), 60_000, "a length that no frame has");
    }

    /// CPU B has its time behind the last deadline of whatever is cut through.
    #[test]
    fn each_length_leaves_time_to_cut_the_frame_off() {
        for length in SHORTEST + 1..=9014 {
            let latest = f64::from(until(length) + 1) * 86.0 / 0.088 + f64::from(RUN);
            assert!(until(length) > 0 && latest <= f64::from(length + 12) * 8.0 + 977.0);
        }
    }

    #[test]
    fn every_lead_leaves_a_rest_and_is_safe() {
        for bus in 0..4 {
            let cut: Vec<u32> = (60..=9014)
                .filter(|length| of(bus, *length) < *length)
                .collect();
            std::println!("{bus}: {}", cut.len());
            assert!(cut.len() > 3000, "{bus}: {}", cut.len());
            for length in cut {
                let lead = of(bus, length);
                assert!(
                    lead >= LEAD && lead + REST <= length,
                    "{bus}, {length}: {lead}"
                );
            }
        }
    }
}
