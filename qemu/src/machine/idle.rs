//! Puts a polling CPU to sleep inside its access to its event register.
//!
//! ```text
//!   thread of CPU A                          any other thread
//!   reads the event register ┐ one hold of
//!   is noted as asleep       ┘ the lock      changes the card; CPU A wants what came:
//!   waits at its alarm                         ends the sleep
//!   . . . . . . . . . . . . .  <──────────── lets go of the lock, rings
//!   reads the register again, goes on
//! ```
//!
//! No other thread takes part: this needs neither the big lock nor the main loop, and the CPU does
//! not leave the translated code. Other requests of QEMU to the CPU's thread wait until the sleep
//! ends, at most [`LONGEST`].

use super::{CPUS, Inner, Machine};
use crate::host::Host;
use crate::parking::LONGEST;
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;
use tigon2_model::Cpu;

impl<H: Host> Machine<H> {
    /// A CPU reads its event register, by its own thread and without the big lock. Waits if
    /// it has nothing to do.
    pub(super) fn poll(&self, cpu: Cpu) -> u32 {
        let operands = self.host.encoded(cpu);
        let mut inner = self.lock();
        let now = self.host.now();
        let value = inner.card.inspect().events(now, cpu);
        let Some(wanted) = inner.parking.polled(cpu, value, operands) else {
            return value;
        };
        let longest = now + LONGEST;
        let timer = inner.card.inspect().event_deadline(now, cpu);
        let until = timer.map_or(longest, |timer| timer.min(longest));
        inner.parking.sleep(cpu, wanted, until);
        let inner = self.sleep(inner, cpu, Duration::from_nanos(until - now));
        self.end_sleep(inner, cpu)
    }

    /// Waits until the CPU's sleep is ended, but no longer. QEMU's clock may stand still
    /// meanwhile, so time is the computer's.
    fn sleep<'a>(
        &self,
        inner: MutexGuard<'a, Inner>,
        cpu: Cpu,
        longest: Duration,
    ) -> MutexGuard<'a, Inner> {
        let asleep = |inner: &mut Inner| inner.parking.sleeps(cpu);
        let alarm = &self.alarms[cpu.index()];
        let waited = alarm.wait_timeout_while(inner, longest, asleep);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// What the CPU sees when it has slept.
    fn end_sleep(&self, mut inner: MutexGuard<'_, Inner>, cpu: Cpu) -> u32 {
        let value = inner.card.inspect().events(self.host.now(), cpu);
        inner.parking.awake(cpu, value);
        value
    }

    /// Releases the lock, then wakes the CPUs whose sleep has ended.
    pub(super) fn wake(&self, mut inner: MutexGuard<'_, Inner>) {
        let ended = CPUS.map(|cpu| inner.parking.take_alarm(cpu));
        drop(inner);
        for cpu in CPUS {
            if ended[cpu.index()] {
                self.alarms[cpu.index()].notify_one();
            }
        }
    }

    /// Ends a CPU's sleep, if it sleeps: QEMU wants something of its thread.
    pub(super) fn rouse(&self, cpu: Cpu) {
        let mut inner = self.lock();
        inner.parking.busy(cpu);
        self.wake(inner);
    }
}
