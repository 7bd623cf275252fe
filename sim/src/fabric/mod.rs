//! Several cards under one clock, and the wires between them.
//!
//! ```text
//!   host 0 ── SimTransport ── card 0 ══ cable ══ card 1 ── SimTransport ── host 1
//!                                │                  │
//!   clock    ────────────────────┴── windows of ────┴──────►
//!                                    the cable's delay
//! ```
//!
//! A frame that leaves card 0 at some time is at card 1 the cable's delay later. So for that long
//! neither can see what the other does, and each runs alone, to the end of a *window*; between two
//! windows frames change sides. While a card rests, windows are longer: nothing leaves a card before
//! the next cycle in which anything happens in it. The result is the same as of all cards together,
//! cycle by cycle: every time of a frame is exact, to the nanosecond, and nothing depends on the
//! computer.
//!
//! Whose time passes: as with one card, each access of a driver takes its time, on all cards. By
//! default all drivers are one host's, which does one thing after another;
//! [`Fabric::together`] gives each host its own time.
//!
//! | module | what |
//! | --- | --- |
//! | `shared` | [`SharedMachine`]: a card for who looks at it beside its driver |
//! | `hosts` | hosts that act at the same time |
//! | `bus` | the PCI bus between cards |
//!
//! A cable carries frames whole: faults that are [injected](crate::Machine::inject) where a frame
//! leaves are not seen at its other end.

mod bus;
mod hosts;
mod shared;
#[cfg(test)]
mod tests;

pub use shared::SharedMachine;

use crate::machine::Machine;
pub use crate::memory::{HostAccesses, Target, Traffic};
pub use crate::shared_bus::Bus;
use crate::stalls::Pin;
pub use hosts::Program;
use hosts::Schedule;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// A cable between two cards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cable {
    /// From the first byte at one card's MAC to the first byte at the other's, in nanoseconds;
    /// above 0.
    pub delay_ns: u64,
}

impl Default for Cable {
    /// Ten metres of fibre, 5 ns each, between coders that take 136 bit times to send and 192 to
    /// receive: the most that IEEE 802.3, 36.5.1, lets them take.
    fn default() -> Self {
        Cable {
            delay_ns: 10 * 5 + 136 + 192,
        }
    }
}

/// A cable and the two cards at its ends.
#[derive(Clone, Copy, Debug)]
struct Plugged {
    cards: [usize; 2],
    cable: Cable,
}

/// A card and what belongs to it.
struct Slot {
    machine: Mutex<Machine>,
    /// How many threads wait for their turn with it.
    waiting: AtomicUsize,
    /// Its interrupt pin; locked after the machines.
    pin: Mutex<Pin>,
}

impl Slot {
    fn new(machine: Machine) -> Slot {
        Slot {
            machine: Mutex::new(machine),
            waiting: AtomicUsize::new(0),
            pin: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Machine> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        // A panic of another holder leaves a machine that is whole: calls into it either
        // happened or did not.
        let machine = self.machine.lock().unwrap_or_else(PoisonError::into_inner);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        machine
    }

    fn pin(&self) -> MutexGuard<'_, Pin> {
        self.pin.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All cards, exclusively.
type Locked<'a> = Vec<MutexGuard<'a, Machine>>;

/// A card that time passes for, up to a cycle of its clock or until its interrupt.
#[derive(Clone, Copy, Debug)]
struct Wait {
    card: usize,
    limit: u64,
    interrupt: bool,
}

/// Cards under one clock.
pub struct Fabric {
    slots: Vec<Slot>,
    cables: Vec<Plugged>,
    bus: Option<Bus>,
    arbiter: Mutex<bus::Arbiter>,
    schedule: Mutex<Schedule>,
    turn: Condvar,
}

impl Fabric {
    /// Cards that are connected by cables between two of them each: `(card, card, cable)`.
    ///
    /// # Panics
    /// If a cable leads nowhere, to a card that another one leads to already, or takes no time.
    pub fn new(
        machines: impl IntoIterator<Item = Machine>,
        cables: &[(usize, usize, Cable)],
    ) -> Arc<Fabric> {
        Fabric::with_bus(machines, cables, None)
    }

    /// The same with a PCI bus that all of the cards share, or with one for each of them.
    ///
    /// # Panics
    /// As [`new`](Self::new).
    pub fn with_bus(
        machines: impl IntoIterator<Item = Machine>,
        cables: &[(usize, usize, Cable)],
        bus: Option<Bus>,
    ) -> Arc<Fabric> {
        let mut slots: Vec<_> = machines.into_iter().map(Slot::new).collect();
        for (a, b, cable) in cables {
            assert!(cable.delay_ns > 0, "a cable takes time");
            for end in [a, b] {
                let slot = slots.get_mut(*end);
                let slot = slot.unwrap_or_else(|| panic!("no card {end} for a cable"));
                let machine = slot.machine.get_mut();
                let machine = machine.unwrap_or_else(PoisonError::into_inner);
                assert!(!machine.is_connected(), "card {end} has one port");
                machine.connect();
            }
        }
        if let Some(bus) = bus {
            for slot in &mut slots {
                slot.lock().share_bus(bus);
            }
        }
        let cables = cables.iter().map(|(a, b, cable)| Plugged {
            cards: [*a, *b],
            cable: *cable,
        });
        Arc::new(Fabric {
            cables: cables.collect(),
            bus,
            arbiter: Mutex::default(),
            slots,
            schedule: Mutex::default(),
            turn: Condvar::new(),
        })
    }

    /// A card, for [`SimTransport::to`](crate::SimTransport::to).
    ///
    /// # Panics
    /// If there is none of this number.
    pub fn card(self: &Arc<Self>, number: usize) -> SharedMachine {
        assert!(number < self.slots.len(), "no card {number}");
        SharedMachine::of(self.clone(), number)
    }

    fn lock_all(&self) -> Locked<'_> {
        self.slots.iter().map(Slot::lock).collect()
    }

    /// Lets time pass for a card, and as long for the others. True if its interrupt ended that.
    fn run(&self, cards: &mut Locked<'_>, wait: Wait) -> bool {
        // One that is alone on a bus asks for that as others do.
        if let ([machine], None) = (&mut cards[..], self.bus) {
            let interrupt = wait.interrupt;
            return machine.run_until(wait.limit, |machine| interrupt && machine.interrupt());
        }
        let end = time_of(&cards[wait.card], wait.limit);
        let mut watched = vec![false; cards.len()];
        watched[wait.card] = wait.interrupt;
        self.advance(cards, end, &watched).is_some()
    }

    /// Lets time pass for all cards to `end`, in nanoseconds, or until the interrupt of one that is
    /// watched; returns which.
    fn advance(&self, cards: &mut Locked<'_>, end: u64, watched: &[bool]) -> Option<usize> {
        let mut interrupted = None;
        while interrupted.is_none() {
            self.exchange(cards);
            self.deliver(cards);
            let granted = self.arbitrate(cards);
            let granted = cards.first().map_or(end, |card| time_of(card, granted));
            let window = self.window(cards).min(granted).min(end);
            for (number, machine) in cards.iter_mut().enumerate() {
                let limit = machine.clock().cycle_at(window);
                if machine.run_window(limit, watched[number]) {
                    interrupted.get_or_insert(number);
                }
            }
            let there = |machine: &MutexGuard<'_, Machine>| machine.now() >= end;
            if cards.iter().all(there) || cards.iter().any(|machine| machine.is_left()) {
                break;
            }
        }
        self.deliver(cards);
        for machine in cards.iter_mut() {
            machine.gather();
        }
        interrupted
    }

    /// Until when no card can see what another one does from now on.
    fn window(&self, cards: &Locked<'_>) -> u64 {
        // A card alone is seen by none.
        let mut window = u64::MAX;
        for Plugged { cards: ends, cable } in &self.cables {
            for end in ends {
                let machine = &cards[*end];
                let rests = time_of(machine, machine.rests_until());
                window = window.min(rests.saturating_add(cable.delay_ns));
            }
        }
        window
    }

    /// What has left a card is on its way to the other.
    fn exchange(&self, cards: &mut Locked<'_>) {
        for Plugged { cards: ends, cable } in &self.cables {
            for (from, to) in [(ends[0], ends[1]), (ends[1], ends[0])] {
                for departure in cards[from].departures() {
                    cards[to].arrive(departure, cable.delay_ns);
                }
            }
        }
    }
}

/// Nanoseconds since power-on at the start of a cycle; never, for one that never comes.
fn time_of(machine: &Machine, cycle: u64) -> u64 {
    const LAST: u64 = 1 << 60;
    if cycle < LAST {
        machine.clock().nanoseconds(cycle)
    } else {
        u64::MAX
    }
}
