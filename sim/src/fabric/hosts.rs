//! Hosts that act at the same time, each on a thread of its own.
//!
//! One of them runs at a time: the one whose time has come first, the lowest number among those of
//! the same time. When all wait for their time, the cards go on to the first of these times:
//!
//! ```text
//!   host 0   ──access──┐                   ┌──access──
//!   host 1             └──────access───────┘              one thread at a time
//!   cards    ····      ····                ····
//! ```
//!
//! So the order of accesses follows from the cards' clock alone.

use super::{Fabric, Wait, time_of};
use std::cell::Cell;
use std::sync::{Arc, MutexGuard, PoisonError};

/// What a host is doing.
#[derive(Clone, Copy, Debug)]
enum Host {
    /// It waits for its time.
    Waits(Wait),
    /// It acts: nothing passes. Whether the interrupt that it waited for has come.
    Acts(bool),
    /// It has ended.
    Done,
}

/// The hosts that act together.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    hosts: Vec<Host>,
}

thread_local! {
    /// Which host of which fabric (its address) this thread is.
    static HOST: Cell<Option<(usize, usize)>> = const { Cell::new(None) };
}

/// Ends a host, also if it panics: the others must not wait for it.
struct Present<'a> {
    fabric: &'a Fabric,
    number: usize,
}

impl Drop for Present<'_> {
    fn drop(&mut self) {
        HOST.set(None);
        let mut schedule = self.fabric.schedule();
        schedule.hosts[self.number] = Host::Done;
        self.fabric.dispatch(&mut schedule);
    }
}

/// What a host of [`Fabric::together`] does.
pub type Program<'a, T> = Box<dyn FnOnce() -> T + Send + 'a>;

impl Fabric {
    /// Lets hosts act at the same time, each in a thread of its own: what one of them does takes
    /// time of its own, while the others do other things. Returns what they return.
    ///
    /// # Panics
    /// If one of them does, or if this fabric's hosts act already.
    pub fn together<T: Send>(self: &Arc<Self>, hosts: Vec<Program<'_, T>>) -> Vec<T> {
        {
            let mut schedule = self.schedule();
            assert!(schedule.hosts.is_empty(), "the hosts act already");
            let at_once = Host::Waits(Wait {
                card: 0,
                limit: 0,
                interrupt: false,
            });
            schedule.hosts = vec![at_once; hosts.len()];
            self.dispatch(&mut schedule);
        }
        let results = std::thread::scope(|scope| {
            let threads = hosts.into_iter().enumerate().map(|(number, host)| {
                scope.spawn(move || {
                    HOST.set(Some((self.address(), number)));
                    let present = Present {
                        fabric: self,
                        number,
                    };
                    self.wait_for_turn(self.schedule(), number);
                    let result = host();
                    drop(present);
                    result
                })
            });
            let threads: Vec<_> = threads.collect();
            threads
                .into_iter()
                .map(|thread| thread.join())
                .collect::<Vec<_>>()
        });
        self.schedule().hosts.clear();
        let unwrap = |result: std::thread::Result<T>| {
            result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        results.into_iter().map(unwrap).collect()
    }

    /// Whether this thread is one of several hosts.
    pub(super) fn is_shared_by_hosts(&self) -> bool {
        self.host().is_some()
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Which host this thread is.
    fn host(&self) -> Option<usize> {
        let (fabric, number) = HOST.get()?;
        (fabric == self.address()).then_some(number)
    }

    fn schedule(&self) -> MutexGuard<'_, Schedule> {
        self.schedule.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets others act until a time has come, or an interrupt. True if that came.
    pub(super) fn take_turn(&self, wait: Wait) -> bool {
        let Some(number) = self.host() else {
            return false;
        };
        let mut schedule = self.schedule();
        schedule.hosts[number] = Host::Waits(wait);
        self.dispatch(&mut schedule);
        self.wait_for_turn(schedule, number)
    }

    fn wait_for_turn(&self, mut schedule: MutexGuard<'_, Schedule>, number: usize) -> bool {
        loop {
            if let Host::Acts(came) = schedule.hosts[number] {
                return came;
            }
            let waited = self.turn.wait(schedule);
            schedule = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// If no host acts, lets the next one: time passes until there is one.
    fn dispatch(&self, schedule: &mut Schedule) {
        let acts = |host: &Host| matches!(host, Host::Acts(_));
        if schedule.hosts.iter().any(acts) {
            return;
        }
        let mut cards = self.lock_all();
        let mut came = None;
        loop {
            // The first time that a host waits for, in nanoseconds.
            let (mut first, mut waits) = (u64::MAX, false);
            let mut watched = vec![false; cards.len()];
            for (number, host) in schedule.hosts.iter().enumerate() {
                let Host::Waits(wait) = host else { continue };
                let machine = &cards[wait.card];
                let at = time_of(machine, wait.limit);
                let interrupted = came == Some(wait.card) && wait.interrupt;
                if interrupted || machine.now() >= at || machine.is_left() {
                    schedule.hosts[number] = Host::Acts(interrupted);
                    self.turn.notify_all();
                    return;
                }
                first = first.min(at);
                waits = true;
                watched[wait.card] |= wait.interrupt;
            }
            if !waits {
                return;
            }
            came = self.advance(&mut cards, first, &watched);
        }
    }
}
