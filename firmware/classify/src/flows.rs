//! A cache of flows, whose hashes were computed before.
//!
//! Four loads find an IPv4 flow whose hash takes twelve look-ups or more; for IPv6 it is ten instead
//! of thirty-six or more. A slot holds the whole input and its hash, so a hit is exact, and a new
//! flow simply replaces the old one in its slot. An input without ports has zeros there, which do
//! not change the hash; slots of zeros are correct as well.
//!
//! ```text
//!   IPv4, 16 bytes  +0 second word   +4 third word   +8 first half | destination port   +12 hash
//!   IPv6, 64 bytes  +0 words 24 to 52 of the frame   +32 first half | destination port  +36 hash
//! ```
//!
//! After a change of the key all slots must be zeroed.

use crate::frame::Frame;
pub use crate::memory::FlowMasks;
use crate::memory::{Memory, SHIFTS};

/// Offset of the hash in an IPv6 flow's slot, and of the word in front of it.
const HASH: u32 = 36;
const REST: u32 = 32;

/// Clients differ in the lowest bits of their addresses and ports, which are bytes apart: these
/// must not cancel each other.
#[inline(always)]
const fn slot(mixed: u32, shift: u32, mask: u32) -> u32 {
    (mixed << shift ^ mixed >> 8) & mask
}

/// An IPv4 flow: the words of its slot in front of the hash.
pub(crate) struct CachedIpv4(pub [u32; 3]);

impl CachedIpv4 {
    #[inline(always)]
    const fn slot(&self, masks: FlowMasks) -> u32 {
        let [a, b, c] = self.0;
        slot(a ^ b ^ c, SHIFTS.0, masks.ipv4)
    }

    /// The hash, if the flow is in its slot.
    #[inline(always)]
    pub fn find<M: Memory>(&self, memory: &mut M, masks: FlowMasks) -> Option<u32> {
        let slot = self.slot(masks);
        (memory.flow(slot) == self.0[0]
            && memory.flow(slot + 4) == self.0[1]
            && memory.flow(slot + 8) == self.0[2])
            .then(|| memory.flow(slot + 12))
    }

    /// Replaces the flow in its slot.
    #[inline(always)]
    pub fn remember<M: Memory>(&self, memory: &mut M, masks: FlowMasks, hash: u32) {
        let slot = self.slot(masks);
        memory.set_flow(slot, self.0[0]);
        memory.set_flow(slot + 4, self.0[1]);
        memory.set_flow(slot + 8, self.0[2]);
        memory.set_flow(slot + 12, hash);
    }
}

/// An untagged IPv6 flow, and where its slot is. The words of the addresses are in the frame.
///
/// ```text
///   20 | -      | source |   24 to 52 | addresses, source port |   56 | destination port | -      |
/// ```
pub(crate) struct CachedIpv6 {
    slot: u32,
    rest: u32,
    /// The last of the eight words.
    last: u32,
}

/// Offsets of the first and the last word that is whole in the slot.
const WORDS: (u32, u32) = (24, 52);

impl CachedIpv6 {
    /// The flow of a frame; `ports`: whether they count.
    #[inline(always)]
    pub fn of<V: Frame>(view: &mut V, masks: FlowMasks, ports: bool) -> CachedIpv6 {
        let mut rest = view.word(20) << 16;
        let mut last = view.word(WORDS.1);
        if ports {
            rest |= view.word(56) >> 16;
        } else {
            last &= 0xFFFF_0000;
        }
        // Of the source's and the destination's last words.
        let mixed = rest ^ last ^ view.word(36) ^ view.word(32);
        CachedIpv6 {
            slot: masks.ipv6_base + slot(mixed, SHIFTS.1, masks.ipv6),
            rest,
            last,
        }
    }

    /// The hash, if the flow is in its slot.
    #[inline(always)]
    pub fn find<V: Frame + Memory>(&self, view: &mut V) -> Option<u32> {
        // Without branches, word by word.
        let mut other = view.flow(self.slot + REST) ^ self.rest;
        other |= view.flow(self.slot + REST - 4) ^ self.last;
        other |= view.flow(self.slot) ^ view.word(24);
        other |= view.flow(self.slot + 4) ^ view.word(28);
        other |= view.flow(self.slot + 8) ^ view.word(32);
        other |= view.flow(self.slot + 12) ^ view.word(36);
        other |= view.flow(self.slot + 16) ^ view.word(40);
        other |= view.flow(self.slot + 20) ^ view.word(44);
        other |= view.flow(self.slot + 24) ^ view.word(48);
        if other != 0 {
            return None;
        }
        Some(view.flow(self.slot + HASH))
    }

    /// Replaces the flow in its slot.
    #[inline(always)]
    pub fn remember<V: Frame + Memory>(&self, view: &mut V, hash: u32) {
        let mut at = WORDS.0;
        while at < WORDS.1 {
            let word = view.word(at);
            view.set_flow(self.slot + at - WORDS.0, word);
            at += 4;
        }
        view.set_flow(self.slot + REST - 4, self.last);
        view.set_flow(self.slot + REST, self.rest);
        view.set_flow(self.slot + HASH, hash);
    }
}
