//! The slots of the pool: who refers to each.
//!
//! SPINE paper, section 3.4: buffers are reference counted. A slot is referred to by each of its
//! entries in the queue to CPU B, and by the domain that keeps it; without references it is free.
//! What a domain keeps is the ledger: it comes back when the domain is unloaded or suspended,
//! whatever the domain has forgotten.
//!
//! ```text
//!            ┌── entry of the queue, until CPU B has taken it
//! slot ◄─────┼── another entry
//!            └── domain that keeps it, until it releases it or is gone
//! ```

use crate::memory::layout::{POOL_QUEUE, POOL_SLOTS};
use host_interface::spine::DOMAINS;

/// Slots that no domain gets to keep: frames that are only passed on use them.
const RESERVE: u32 = 4;
/// Slots that a domain keeps, at most.
#[cfg(test)]
const KEEPS: usize = 4;

/// Whether a domain that keeps these may keep another slot, of so many that are free.
#[inline(always)]
pub const fn may_keep(kept: u32, free_count: u32) -> bool {
    // Each step takes the lowest bit off.
    let but_one = kept & kept.wrapping_sub(1);
    let but_two = but_one & but_one.wrapping_sub(1);
    let but_three = but_two & but_two.wrapping_sub(1);
    (free_count > RESERVE) & (but_three == 0)
}

/// No slot.
pub const NONE: u32 = u32::MAX;

/// Slots, and entries of the queue. Few words: they lie in CPU A's pad.
#[derive(Debug)]
pub struct Slots {
    /// A bit for each slot without references, and how many these are.
    free: u32,
    free_count: u32,
    /// One of them, or [`NONE`].
    next: u32,
    references: [u32; POOL_SLOTS as usize],
    /// Entries that were made, and those whose references came back; both wrap.
    queued: u32,
    back: u32,
    /// A bit for each slot that a domain keeps.
    kept: [u32; DOMAINS as usize],
}

impl Slots {
    /// All are free.
    pub const fn new() -> Slots {
        Slots {
            free: (1 << POOL_SLOTS) - 1,
            free_count: POOL_SLOTS,
            next: 0,
            references: [0; POOL_SLOTS as usize],
            queued: 0,
            back: 0,
            kept: [0; DOMAINS as usize],
        }
    }

    /// The slot that the next frame would go into, or [`NONE`].
    #[inline(always)]
    pub const fn next(&self) -> u32 {
        self.next
    }

    /// How many are free.
    #[inline(always)]
    pub const fn free_count(&self) -> u32 {
        self.free_count
    }

    /// How many entries the queue has room for.
    #[inline(always)]
    pub const fn room(&self) -> u32 {
        POOL_QUEUE - self.queued.wrapping_sub(self.back)
    }

    /// The slots that a domain keeps.
    #[inline(always)]
    pub fn kept(&self, domain: u32) -> u32 {
        self.kept.get(domain as usize).copied().unwrap_or_default()
    }

    /// Takes the [next](Self::next) slot; it has no reference yet. Slots come back in the order in
    /// which they are taken, most of the time: so the one behind it is likely to be free.
    #[inline(always)]
    pub fn take(&mut self) {
        let mut slot = self.next;
        self.free &= !(1 << (slot & 31));
        self.free_count = self.free_count.wrapping_sub(1);
        self.next = NONE;
        if self.free != 0 {
            loop {
                slot += 1;
                if slot >= POOL_SLOTS {
                    slot = 0;
                }
                if self.free >> slot & 1 != 0 {
                    break;
                }
            }
            self.next = slot;
        }
    }

    /// Somebody in the firmware refers to a slot, until [`let_go`](Self::let_go).
    pub fn hold(&mut self, slot: u32) {
        self.refer(slot);
    }

    /// Another entry of the queue names a slot; there is room. Returns how many entries were
    /// made.
    #[inline(always)]
    pub fn queue(&mut self, slot: u32) -> u32 {
        self.refer(slot);
        self.queued = self.queued.wrapping_add(1);
        self.queued
    }

    /// CPU B has taken so many entries; `slot_of` knows which slot an entry names.
    #[inline(always)]
    pub fn taken(&mut self, taken: u32, mut slot_of: impl FnMut(u32) -> u32) {
        while self.back != taken {
            let slot = slot_of(self.back);
            self.back = self.back.wrapping_add(1);
            self.let_go(slot);
        }
    }

    /// A domain keeps a slot that it does not keep yet.
    pub fn keep(&mut self, domain: u32, slot: u32) {
        if let Some(kept) = self.kept.get_mut(domain as usize) {
            *kept |= 1 << (slot & 31);
            self.refer(slot);
        }
    }

    /// A domain keeps a slot no more.
    pub fn release(&mut self, domain: u32, slot: u32) {
        if let Some(kept) = self.kept.get_mut(domain as usize)
            && slot < POOL_SLOTS
            && *kept >> slot & 1 != 0
        {
            *kept &= !(1 << slot);
            self.let_go(slot);
        }
    }

    /// A domain keeps nothing any more.
    pub fn release_all(&mut self, domain: u32) {
        for slot in 0..POOL_SLOTS {
            self.release(domain, slot);
        }
    }

    #[inline(always)]
    fn refer(&mut self, slot: u32) {
        if let Some(references) = self.references.get_mut(slot as usize) {
            *references += 1;
        }
    }

    /// A reference is gone.
    #[inline(always)]
    pub fn let_go(&mut self, slot: u32) {
        let Some(references) = self.references.get_mut(slot as usize) else {
            return;
        };
        *references -= 1;
        if *references == 0 {
            self.free |= 1 << (slot & 31);
            self.free_count += 1;
            if self.next == NONE {
                self.next = slot;
            }
        }
    }
}

impl Default for Slots {
    fn default() -> Slots {
        Slots::new()
    }
}

#[cfg(test)]
mod tests;
