//! A card of a fabric, for a driver and for who looks at it beside one: [`SharedMachine`].

use super::{Fabric, Slot, Wait};
use crate::machine::Machine;
use crate::stalls::{Pin, Stalls};
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};

/// The machine, for a test that inspects it or sends frames beside the driver.
#[derive(Clone)]
pub struct SharedMachine {
    fabric: Arc<Fabric>,
    card: usize,
}

impl SharedMachine {
    /// A machine of its own that others may inspect beside the driver.
    pub fn new(machine: Machine) -> SharedMachine {
        SharedMachine::of(Fabric::new([machine], &[]), 0)
    }

    pub(super) fn of(fabric: Arc<Fabric>, card: usize) -> SharedMachine {
        SharedMachine { fabric, card }
    }

    fn slot(&self) -> &Slot {
        &self.fabric.slots[self.card]
    }

    /// Exclusive access. Do not call the driver while holding it. If there are other cards, time
    /// passes by [`pass`](Self::pass) and not by [`Machine::run`]: they would not hear of this one
    /// in time.
    pub fn lock(&self) -> MutexGuard<'_, Machine> {
        self.slot().lock()
    }

    /// The cards that this one is one of.
    pub fn fabric(&self) -> &Arc<Fabric> {
        &self.fabric
    }

    pub(crate) fn pin(&self) -> MutexGuard<'_, Pin> {
        self.slot().pin()
    }

    /// What explains a stall. Do not call it while holding the machine.
    pub fn stalls(&self) -> Stalls {
        let machine = self.lock();
        Stalls::of(&machine, &self.pin())
    }

    /// Lets so many nanoseconds pass, on all cards.
    pub fn pass(&self, nanoseconds: u64) {
        drop(self.after(nanoseconds));
    }

    /// The machine, after so many nanoseconds.
    pub(crate) fn after(&self, nanoseconds: u64) -> MutexGuard<'_, Machine> {
        if !self.fabric.is_shared_by_hosts() {
            let mut all = self.fabric.lock_all();
            let wait = self.for_so_long(&all[self.card], nanoseconds);
            self.fabric.run(&mut all, wait);
            return all.swap_remove(self.card);
        }
        let wait = self.for_so_long(&self.lock(), nanoseconds);
        self.fabric.take_turn(wait);
        self.lock()
    }

    fn for_so_long(&self, machine: &Machine, nanoseconds: u64) -> Wait {
        let cycles = machine.clock().cycle_at(nanoseconds);
        Wait {
            card: self.card,
            limit: machine.cycle().saturating_add(cycles),
            interrupt: false,
        }
    }

    /// Lets time pass to a cycle of this card's clock, or until its interrupt reaches the driver,
    /// `delay` nanoseconds behind the pin; the driver has to unmask it then. True if it came.
    pub(crate) fn wait_interrupt(&self, limit: u64, delay: u64) -> bool {
        let wait = |masked: bool| Wait {
            card: self.card,
            limit,
            interrupt: !masked,
        };
        if self.fabric.is_shared_by_hosts() {
            let masked = self.look_at_pin(&self.lock());
            let came = self.fabric.take_turn(wait(masked));
            if came {
                self.pin().signal();
                self.pass(delay);
            }
            return came;
        }
        let mut all = self.fabric.lock_all();
        let masked = self.look_at_pin(&all[self.card]);
        let came = self.fabric.run(&mut all, wait(masked));
        if came {
            self.pin().signal();
            let wait = self.for_so_long(&all[self.card], delay);
            self.fabric.run(&mut all, wait);
        }
        came
    }

    /// Whether the pin is masked.
    fn look_at_pin(&self, machine: &Machine) -> bool {
        let mut pin = self.pin();
        pin.look(machine.interrupt());
        pin.is_masked()
    }

    /// Lets others have the machine first: a thread that has just given it back would
    /// usually have it again before they wake up.
    pub(crate) fn give_way(&self) {
        while self.slot().waiting.load(Ordering::Relaxed) > 0 {
            std::thread::yield_now();
        }
    }
}
