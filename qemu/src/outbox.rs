//! Queues effects that need QEMU's big lock, in order.
//!
//! A CPU accesses its registers without the big lock. Effects that need the lock are put here, and
//! the first thread that holds the lock delivers them:
//!
//! ```text
//!   under the machine's lock             under the big lock, machine's lock free
//!   put ──► [frame][halt][frame] ──────► deliver: the CPU's thread, if nobody has
//!                                        the lock; else QEMU's main loop, which is
//!                                        asked to
//! ```
//!
//! Errands are added under the machine's lock, so their order is that of their causes. Only one
//! thread at a time delivers, since it holds the big lock.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tigon2_model::Cpu;

/// One thing to be done under the big lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Errand {
    /// A frame leaves.
    Transmit(Vec<u8>),
    /// A CPU starts at this program counter.
    Start(Cpu, u32),
    /// A CPU halts.
    Halt(Cpu),
    /// A CPU's spill window shows SRAM from this offset.
    Spill(Cpu, u32),
}

/// Errands in their order.
#[derive(Debug, Default)]
pub struct Outbox {
    queue: Mutex<VecDeque<Errand>>,
    /// Errands in the queue.
    waiting: AtomicUsize,
    /// A thread delivers. Changes under the big lock only.
    delivering: AtomicBool,
}

impl Outbox {
    fn queue(&self) -> MutexGuard<'_, VecDeque<Errand>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an errand at the end.
    pub fn put(&self, errand: Errand) {
        let mut queue = self.queue();
        queue.push_back(errand);
        self.waiting.store(queue.len(), Ordering::Relaxed);
    }

    /// How many errands wait; those that this thread has put are counted.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Does every errand, also those that are added meanwhile; false if it did nothing.
    /// With the big lock.
    ///
    /// An errand may lead back here, as a frame that is answered at once does: then
    /// the call further out does the rest, so that the order stays.
    pub fn deliver(&self, mut carry_out: impl FnMut(Errand)) -> bool {
        if self.waiting() == 0 || self.delivering.swap(true, Ordering::Relaxed) {
            return false;
        }
        let _end = End(&self.delivering);
        loop {
            let errands = {
                let mut queue = self.queue();
                self.waiting.store(0, Ordering::Relaxed);
                std::mem::take(&mut *queue)
            };
            if errands.is_empty() {
                return true;
            }
            errands.into_iter().for_each(&mut carry_out);
        }
    }
}

/// Ends a delivery, even if a panic passes by.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_errand_that_leads_back_keeps_the_order() {
        let outbox = Outbox::default();
        outbox.put(Errand::Transmit(vec![1]));
        outbox.put(Errand::Transmit(vec![2]));
        let mut done = Vec::new();
        outbox.deliver(|errand| {
            if errand == Errand::Transmit(vec![1]) {
                outbox.put(Errand::Transmit(vec![3]));
                outbox.deliver(|_| unreachable!("the delivery further out does it"));
            }
            done.push(errand);
        });
        let order = [1, 2, 3].map(|n| Errand::Transmit(vec![n]));
        assert_eq!(done, order);
        assert_eq!(outbox.waiting(), 0);
    }

    #[test]
    fn a_panic_does_not_end_all_deliveries() {
        let outbox = Outbox::default();
        outbox.put(Errand::Halt(Cpu::A));
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            outbox.deliver(|_| panic!("on purpose"));
        }));
        assert!(panicked.is_err());
        outbox.put(Errand::Halt(Cpu::B));
        let mut done = Vec::new();
        outbox.deliver(|errand| done.push(errand));
        assert_eq!(done, [Errand::Halt(Cpu::B)]);
    }
}
