//! Effects that need QEMU's big lock: frames for the wire, starts and halts of CPUs.
//!
//! Errands wait in the outbox, in the order of their causes. The thread that adds one delivers all
//! of them if it can take the big lock; otherwise QEMU's main loop does.

use super::locks::Unlock;
use super::{CPUS, Machine, PATIENCE};
use crate::host::Host;
use crate::outbox::Errand;
use std::sync::atomic::Ordering;
use std::time::Instant;

impl<H: Host> Machine<H> {
    pub(super) fn halt_cpus(&self) {
        for cpu in CPUS {
            self.outbox.put(Errand::Halt(cpu));
        }
    }

    /// Does what waits for the big lock, and what follows from that. With the big lock,
    /// without the machine's.
    pub fn deliver(&self) {
        while self.outbox.waiting() > 0 {
            let start = Instant::now();
            let mut left = 0;
            let done = self.outbox.deliver(|errand| left += self.carry_out(errand));
            if !done {
                // The call further out does it.
                return;
            }
            self.stalls.delivery.note(start.elapsed());
            if left > 0 {
                self.frames_left(left);
            }
        }
    }

    /// Does one errand; gives how many frames have left by it.
    fn carry_out(&self, errand: Errand) -> u32 {
        match errand {
            Errand::Transmit(frame) if self.host.transmit(&frame) => return 1,
            Errand::Transmit(_) => self.wire_full(),
            Errand::Start(cpu, pc) => self.host.start(cpu, pc),
            Errand::Halt(cpu) => {
                self.host.halt(cpu);
                self.rouse(cpu);
            }
            Errand::Spill(cpu, offset) => {
                self.host.spill(cpu, offset);
                self.rouse(cpu);
            }
        }
        0
    }

    /// The same, by this thread if the big lock can be had without waiting, else by
    /// QEMU's main loop. Without the machine's lock.
    pub(super) fn deliver_soon(&self) {
        let waiting = self.outbox.waiting();
        if waiting == 0 {
            return;
        }
        if self.host.locked() {
            self.deliver();
        } else if waiting > PATIENCE {
            let _unlock = self.lock_big();
            self.deliver();
        } else if self.host.try_lock() {
            let _unlock = Unlock(&self.host);
            self.deliver();
        } else {
            self.stalls.deferred.add();
            self.host.call_errands();
        }
    }

    /// Waits until starts and halts of CPUs have happened.
    pub(super) fn settle(&self) {
        self.stopping.store(false, Ordering::Relaxed);
        self.with_big_lock(|| {
            self.deliver();
            self.host.settle();
        });
    }
}
