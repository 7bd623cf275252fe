//! Whatever runs and CPU B do, in whatever order: each slot is free, or referred to as often as
//! the queue and the domains name it; and all of them come back.

extern crate std;

use super::*;
use std::collections::VecDeque;
use std::vec::Vec;

/// xorshift32.
fn random(state: &mut u32) -> u32 {
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    *state
}

/// What ought to be.
#[derive(Default)]
struct Ledger {
    queue: VecDeque<u32>,
    taken: u32,
    kept: [Vec<u32>; DOMAINS as usize],
}

impl Ledger {
    fn references(&self, slot: u32) -> usize {
        let of_queue = self.queue.iter().filter(|entry| **entry == slot).count();
        let of_domains = self.kept.iter().flatten().filter(|kept| **kept == slot);
        of_queue + of_domains.count()
    }

    /// CPU B takes some entries.
    fn take(&mut self, slots: &mut Slots, count: usize) {
        let before = self.taken;
        self.taken = before.wrapping_add(count as u32);
        let taken: Vec<u32> = self.queue.drain(..count).collect();
        slots.taken(self.taken, |entry| {
            taken[entry.wrapping_sub(before) as usize]
        });
    }

    fn agrees_with(&self, slots: &Slots) {
        assert_eq!(slots.free.count_ones(), slots.free_count());
        match slots.next() {
            NONE => assert_eq!(slots.free, 0),
            next => assert_eq!(self.references(next), 0),
        }
        for slot in 0..POOL_SLOTS {
            let references = self.references(slot);
            assert_eq!(slots.references[slot as usize] as usize, references);
            assert_eq!(slots.free >> slot & 1 != 0, references == 0, "slot {slot}");
        }
        assert_eq!(
            slots.room() as usize,
            POOL_QUEUE as usize - self.queue.len()
        );
        for (domain, kept) in (0..).zip(&self.kept) {
            let bits = kept.iter().fold(0, |bits, slot| bits | 1 << slot);
            assert_eq!(slots.kept(domain), bits);
            assert!(kept.len() <= KEEPS);
        }
    }
}

#[test]
fn each_slot_comes_back_once() {
    for seed in 1..200u32 {
        let mut seed = seed.wrapping_mul(0x9E37_79B9);
        let (mut slots, mut ledger) = (Slots::new(), Ledger::default());
        for _ in 0..400 {
            let domain = random(&mut seed) % DOMAINS;
            let kept = &mut ledger.kept[domain as usize];
            match random(&mut seed) % 6 {
                // A run that has a frame transmitted, kept, or both.
                kind @ 0..=2 if slots.next() != NONE => {
                    let slot = slots.next();
                    let keeps = kind != 0 && may_keep(slots.kept(domain), slots.free_count());
                    let queues = kind != 1 && slots.room() != 0;
                    if keeps || queues {
                        slots.take();
                    }
                    if queues {
                        slots.queue(slot);
                        ledger.queue.push_back(slot);
                    }
                    if keeps {
                        slots.keep(domain, slot);
                        kept.push(slot);
                    }
                }
                // One that has a kept frame transmitted.
                3 if slots.room() != 0 && !kept.is_empty() => {
                    let slot = kept[random(&mut seed) as usize % kept.len()];
                    slots.queue(slot);
                    ledger.queue.push_back(slot);
                }
                // One that releases a frame, or names one that it does not keep.
                4 => {
                    let slot = random(&mut seed) % (POOL_SLOTS + 2);
                    slots.release(domain, slot);
                    kept.retain(|kept| *kept != slot);
                }
                // CPU B.
                5 => {
                    let count = random(&mut seed) as usize % (ledger.queue.len() + 1);
                    ledger.take(&mut slots, count);
                }
                _ => {
                    if random(&mut seed).is_multiple_of(40) {
                        slots.release_all(domain);
                        kept.clear();
                    }
                }
            }
            ledger.agrees_with(&slots);
        }
        let count = ledger.queue.len();
        ledger.take(&mut slots, count);
        for domain in 0..DOMAINS {
            slots.release_all(domain);
        }
        assert_eq!(slots.free_count(), POOL_SLOTS, "all are back");
    }
}

#[test]
fn domains_that_keep_all_they_can_leave_the_reserve() {
    let mut slots = Slots::new();
    for domain in 0..DOMAINS {
        while may_keep(slots.kept(domain), slots.free_count()) {
            let slot = slots.next();
            slots.take();
            slots.keep(domain, slot);
        }
    }
    assert_eq!(slots.free_count(), RESERVE);
    assert_ne!(slots.next(), NONE);
}
