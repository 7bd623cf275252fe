//! The router, compiled into the firmware: what safety costs is measured against it.
//!
//! Only in a build with the feature `builtin`. A frame that a guard wants comes here in place of its
//! handler: no run is begun, watched, or cut off, nothing is noted to be carried out later, and the
//! table's words are loaded without a look at the region's bounds. Its code lies in CPU A's pad where
//! that of a run does otherwise. The routes are those of the extension, whose region the bench names in
//! the word for a command's argument.

use super::slots::NONE;
use super::{Fate, Runtime, call_b};
use crate::io::IoA;
use crate::memory::layout::SPINE_BLOCK;
use host_interface::spine::BlockWord;
use spine_router::{HEADERS, REGION_WORDS, changed, is_plain, next_hop_in};
use tigon2_hal::events::Dispatch;

/// Sends a frame of `length` bytes at `at` on, out of the same port.
#[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_a.system"))]
#[inline(never)]
pub fn route<B: Dispatch>(runtime: &mut Runtime, io: &mut IoA<B>, at: u32, length: u32) -> Fate {
    let bus = &mut io.bus;
    let words: [u32; HEADERS] = core::array::from_fn(|n| bus.load(at + 4 * n as u32));
    if !is_plain(&words, length) {
        return Fate::Host;
    }
    let region = bus.load(SPINE_BLOCK + BlockWord::Argument as u32);
    let to = words[7] << 16 | words[8] >> 16;
    // What is above an index in a word of the table is taken off.
    const INDEX: u32 = REGION_WORDS.next_power_of_two() as u32 - 1;
    let hop = next_hop_in(to, |index| bus.load(region + ((index & INDEX) << 2)));
    let Some(hop) = hop else {
        return Fate::Host;
    };
    let pool = &mut runtime.pool;
    pool.make_room(bus);
    if pool.slots.next() == NONE || pool.slots.room() == 0 {
        return Fate::Host;
    }
    let [[a, b, c], [d, e, f]] = changed(&words, hop);
    let patches = [(0, a), (1, b), (2, c), (5, d), (6, e), (7, f)];
    let slot = pool.put(bus, at, length, &patches);
    pool.transmit(io, 0, slot);
    call_b(io);
    Fate::Done
}
