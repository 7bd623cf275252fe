//! A group: one side, the CPUs that work on it, and their events.
//!
//! The event mask belongs to the group: when a handler enables an event or sets it, that takes
//! effect on the CPU that has the event, wherever the handler ran.
//!
//! ```text
//!  lock     mask of the group -> CPU's mask     handler     CPU's mask -> group's     let go
//!                                                            for CPU: its own events
//! ```

use crate::bus::Shared;
use crate::channel::Marks;
use crate::lock::Lock;
use crate::partition::{LEAST, Partition, is_worker, side};
use core::cell::UnsafeCell;
use host_interface::extension::Handler;
use tigon_firmware::path::receive::claim::{self as receive, Filled, Look};
use tigon_firmware::path::send::claim as send;
use tigon_firmware::{SideA, SideB, events};
use tigon2_chip::Cpu;
use tigon2_chip::beyond;
use tigon2_chip::events::{EventBit, SOFTWARE_BITS};
use tigon2_chip::memory::{MAILBOXES, REGISTERS_BASE};
use tigon2_hal::Bus;
use tigon2_hal::events::Dispatch;

/// A CPU's priority at the lock, 0 first, among the participating CPUs. A worker has most to do,
/// but two of them would starve the third CPU.
const fn place(cpu: Cpu, cpus: u32) -> u32 {
    let place = cpu as u32 >> 1;
    if cpus <= LEAST { place ^ 1 } else { place }
}

/// A CPU's own data, in its scratch pad.
#[derive(Clone, Copy, Debug)]
pub struct Local {
    /// Its priority at the lock.
    me: u32,
    /// Whether it is neither CPU A nor CPU B.
    is_worker: bool,
    /// Its event register.
    register: u32,
    /// Its doorbell.
    bell: u32,
    /// The mask of its events.
    mine: u32,
    /// The mask of the other CPUs' events.
    all_others: u32,
    /// Event registers of these, and the events of each.
    others: [(u32, u32); 2],
}

impl Local {
    /// CPU A, with nothing to do.
    pub const NONE: Local = Local {
        me: 0,
        is_worker: false,
        register: 0,
        bell: 0,
        mine: 0,
        all_others: 0,
        others: [(0, 0); 2],
    };

    /// A CPU among the participating ones.
    pub fn new(partition: Partition, number: u32, cpus: u32) -> Local {
        let mut local = Local::NONE;
        let mut found = 0;
        for cpu in Cpu::EVERY.into_iter().take(cpus as usize) {
            let register = REGISTERS_BASE + beyond::event(cpu);
            let events = partition.events(cpu);
            if cpu as u32 == number {
                local.is_worker = is_worker(cpu);
                local.me = place(cpu, cpus);
                local.register = register;
                local.bell = EventBit::doorbell(side(cpu)).mask();
                local.mine = events;
            } else if (cpu as u32 ^ number) & 1 == 0 {
                local.all_others |= events;
                if let Some(other) = local.others.get_mut(found) {
                    *other = (register, events);
                }
                found += 1;
            }
        }
        local
    }

    /// Whether it is neither CPU A nor CPU B.
    #[inline(always)]
    pub const fn is_worker(&self) -> bool {
        self.is_worker
    }

    /// Rings the other CPUs of the group that have one of these events.
    #[inline(always)]
    fn ring<B: Bus>(&self, bus: &mut B, events: u32) {
        // Register accesses are not ordered after buffered stores; a load is.
        let _ = bus.load(MAILBOXES);
        for (register, theirs) in self.others {
            if theirs & events != 0 {
                bus.store(register, SOFTWARE_BITS);
            }
        }
    }

    /// Answers a worker's doorbell: it is cleared before the mask is renewed.
    pub fn answer<B: Bus>(&self, bus: &mut B) {
        bus.store(self.register, SOFTWARE_BITS & !self.bell);
    }
}

/// The state that a group works on.
pub trait Side {
    /// Its chip.
    type Bus: Dispatch;
    /// The chip.
    fn bus(&mut self) -> &mut Self::Bus;
    /// Advances the channel past filled claims.
    fn settle(&mut self, marks: &Marks);
    /// Whether every claim is filled.
    fn is_whole(&mut self) -> bool;
}

impl<B: Dispatch> Side for SideA<Shared<B>> {
    type Bus = Shared<B>;

    #[inline(always)]
    fn bus(&mut self) -> &mut Shared<B> {
        &mut self.io.bus
    }

    #[inline(always)]
    fn settle(&mut self, marks: &Marks) {
        while let Some(found) = self.io.write_ring.channel_mut().settle(marks) {
            self.io.write_ring.notify(&mut self.io.bus);
            receive::settle(&mut self.receive, &mut self.io, Filled::of_word(found));
        }
    }

    #[inline(always)]
    fn is_whole(&mut self) -> bool {
        self.io.write_ring.channel_mut().is_whole()
    }
}

impl<B: Dispatch> Side for SideB<Shared<B>> {
    type Bus = Shared<B>;

    #[inline(always)]
    fn bus(&mut self) -> &mut Shared<B> {
        &mut self.io.bus
    }

    #[inline(always)]
    fn settle(&mut self, marks: &Marks) {
        while self.io.read_ring.channel_mut().settle(marks).is_some() {
            self.io.read_ring.notify(&mut self.io.bus);
        }
    }

    #[inline(always)]
    fn is_whole(&mut self) -> bool {
        self.io.read_ring.channel_mut().is_whole()
    }
}

#[derive(Debug)]
struct Inner<S> {
    side: S,
    /// Enabled or pending events, for all CPUs.
    mask: u32,
}

/// A side and its lock.
#[derive(Debug)]
pub struct Group<S> {
    lock: Lock,
    marks: Marks,
    inner: UnsafeCell<Inner<S>>,
}

// SAFETY: only the holder of the lock uses `inner`, see `with`.
unsafe impl<S> Sync for Group<S> {}

impl<S: Side> Group<S> {
    /// A side without users.
    pub const fn new(side: S) -> Group<S> {
        Group {
            lock: Lock::new(),
            marks: Marks::new(),
            inner: UnsafeCell::new(Inner { side, mask: 0 }),
        }
    }

    /// Does some work on the side under the lock.
    #[inline(always)]
    pub fn with<R>(&self, local: &Local, work: impl FnOnce(&mut S) -> R) -> R {
        self.lock.acquire(local.me);
        // SAFETY: this CPU holds the lock until it releases it, and `work` cannot keep the
        // reference.
        let Inner { side, mask } = unsafe { &mut *self.inner.get() };
        let before = *mask;
        side.bus().core(|core| core.mask = before);
        side.settle(&self.marks);
        let result = work(side);
        let after = side.bus().core(|core| core.mask);
        *mask = after;
        side.bus().core(|core| core.mask = after & local.mine);
        let new = after & !before & local.all_others;
        if new != 0 {
            local.ring(side.bus(), new);
        }
        self.lock.release(local.me);
        result
    }

    /// As [`with`](Self::with), once every claim is filled: for code that inspects descriptors.
    pub fn with_whole<R>(&self, local: &Local, work: impl FnOnce(&mut S) -> R) -> R {
        self.with(local, |side| {
            while !side.is_whole() {
                side.settle(&self.marks);
            }
            work(side)
        })
    }
}

impl<B: Dispatch> Group<SideA<Shared<B>>> {
    /// Receive Complete: a worker handles frames as long as there are simple ones; CPU A handles
    /// one run, since other events wait.
    #[inline(always)]
    pub fn receive(&self, local: &Local, bus: &mut B, claim: &mut receive::Claim) {
        while let Some(number) = self.with(local, |a| claim_received(a, claim)) {
            let filled = claim.fill(bus);
            self.marks.filled(number, filled.word());
            if !local.is_worker() {
                return self.with(local, |_| {});
            }
        }
    }
}

#[inline(always)]
fn claim_received<B: Dispatch>(
    a: &mut SideA<Shared<B>>,
    claim: &mut receive::Claim,
) -> Option<u32> {
    let begin = a.io.write_ring.next_index() * 32;
    let number = a.io.write_ring.channel_mut().claim(begin)?;
    let look = receive::claim(&mut a.receive, &mut a.io, claim);
    if look == Look::Claimed {
        a.count_run(Handler::ReceiveComplete);
        return Some(number);
    }
    a.io.write_ring.channel_mut().take_back();
    if look == Look::Other {
        events::receive_complete(a);
    }
    None
}

impl<B: Dispatch> Group<SideB<Shared<B>>> {
    /// Send Data Ready: BDs, likewise.
    #[inline(always)]
    pub fn send(&self, local: &Local, bus: &mut B, claim: &mut send::Claim) {
        while let Some(number) = self.with(local, |b| claim_send(b, claim)) {
            claim.fill(bus);
            self.marks.filled(number, 1);
            if !local.is_worker() {
                return self.with(local, |_| {});
            }
        }
    }
}

#[inline(always)]
fn claim_send<B: Dispatch>(b: &mut SideB<Shared<B>>, claim: &mut send::Claim) -> Option<u32> {
    let begin = b.io.read_ring.next_index() * 32;
    let number = b.io.read_ring.channel_mut().claim(begin)?;
    let look = send::claim(&mut b.send, &mut b.io, claim);
    if look == send::Look::Claimed {
        b.count_run(Handler::SendDataReady);
        return Some(number);
    }
    b.io.read_ring.channel_mut().take_back();
    if look == send::Look::Other {
        events::send_data_ready(b);
    }
    None
}
