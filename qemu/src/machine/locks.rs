//! The machine's lock and QEMU's big lock: who holds which, and statistics of both.
//!
//! ```text
//!   big lock ─── may be held ──► machine's lock ─── never ──► big lock
//! ```
//!
//! A thread that holds the machine's lock waits for no other thread. Work that needs the big lock
//! goes into the outbox and is done after the machine's lock is released.

use super::{Inner, Machine, TURNS, Work};
use crate::host::Host;
use crate::ports::{ClientMemory, Cpus, SramPort};
use std::sync::{MutexGuard, PoisonError, TryLockError};
use std::time::Instant;
use tigon2_model::Environment;

/// Gives the big lock back, even if a panic passes by.
pub(super) struct Unlock<'a, H: Host>(pub(super) &'a H);

impl<H: Host> Drop for Unlock<'_, H> {
    fn drop(&mut self) {
        self.0.unlock();
    }
}

impl<H: Host> Machine<H> {
    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        match self.inner.try_lock() {
            Ok(inner) => return inner,
            Err(TryLockError::Poisoned(error)) => return error.into_inner(),
            Err(TryLockError::WouldBlock) => {}
        }
        let start = Instant::now();
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        self.stalls.contended.add();
        self.stalls.lock_wait.note(start.elapsed());
        inner
    }

    /// Takes QEMU's big lock, for which it may wait.
    pub(super) fn lock_big(&self) -> Unlock<'_, H> {
        if !self.host.try_lock() {
            let start = Instant::now();
            self.host.lock();
            self.stalls.big_lock_waits.add();
            self.stalls.big_lock_wait.note(start.elapsed());
        }
        Unlock(&self.host)
    }

    /// Runs `f` on the card and carries out what follows from it, or has it done soon.
    pub(super) fn enter<R>(
        &self,
        work: Work,
        f: impl FnOnce(&mut Inner, &mut Environment<'_>) -> R,
    ) -> R {
        let (result, _) = self.enter_and_tell(work, f);
        self.deliver_soon();
        result
    }

    /// Runs `f` on the card, and returns whether a CPU is on its way to a halt. What needs
    /// the big lock stays in the outbox.
    pub(super) fn enter_and_tell<R>(
        &self,
        work: Work,
        f: impl FnOnce(&mut Inner, &mut Environment<'_>) -> R,
    ) -> (R, bool) {
        let mut inner = self.lock();
        let taken = self.stalls.hold();
        // Under the lock, so that time never goes back for the card.
        let now = self.host.now();
        let mut environment = Environment {
            now,
            sram: &mut SramPort(&self.host),
            host: &mut ClientMemory(&self.client.dma),
            cpus: &mut Cpus(&self.host),
        };
        let result = f(&mut inner, &mut environment);
        let more =
            work == Work::Now && (0..TURNS).all(|_| inner.card.device(&mut environment).run());
        let halts = self.leave(&mut inner, now, more);
        if let Some(taken) = taken {
            self.stalls.lock_held.note(taken.elapsed());
        }
        self.wake(inner);
        (result, halts)
    }

    /// Runs `f` with the big lock, for which it may wait. Without the machine's lock.
    pub(super) fn with_big_lock<R>(&self, f: impl FnOnce() -> R) -> R {
        let _unlock = (!self.host.locked()).then(|| self.lock_big());
        f()
    }
}
