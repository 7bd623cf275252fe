//! The card between QEMU and its client: locks, time, and the order of effects.
//!
//! | module | contents |
//! | --- | --- |
//! | this | entry points for CPUs, host and timer |
//! | `locks` | the machine's lock, and QEMU's big one |
//! | `effects` | effects applied at once, under the machine's lock |
//! | `errands` | effects applied under the big lock |
//! | `idle` | the sleep of a CPU that polls |
//! | `transfers` | transfers that wait for the client ([`crate::waiting`]) |
//! | `wire` | frames, cable, link partner |

mod effects;
mod errands;
mod idle;
mod locks;
mod transfers;
mod wire;

use crate::bell::Bell;
use crate::counts::Counts;
use crate::host::Host;
use crate::limit::Lines;
use crate::outbox::Outbox;
use crate::parking::Parking;
use crate::stalls::Stalls;
use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};
use tigon2_chip::bits::MiscHostControl;
use tigon2_chip::registers::Register;
use tigon2_model::{Accessor, Card, Cpu, CpuFault, Environment, UndefinedKind};
use vfio_user_nic::{DmaTable, Interrupts};
use wire::AHEAD;

/// Both CPUs.
const CPUS: [Cpu; 2] = [Cpu::A, Cpu::B];

/// Turns of the card's queues in one call, before others get theirs.
const TURNS: u32 = 16;

/// How late the main loop may notice a deadline.
const PRECISION: u64 = 10_000;

/// Errands that may wait for somebody else's turn; from then on a CPU waits for the
/// big lock, so that firmware cannot be ahead of the wire by much.
const PATIENCE: usize = 64;

/// Undefined accesses that are shown; all are counted.
const SHOWN: u64 = 20;

/// The PCI side: what the client has mapped, and how to interrupt it.
#[derive(Default)]
pub struct Client {
    /// Its memory.
    pub dma: DmaTable,
    /// Its interrupt.
    pub interrupts: Interrupts,
}

/// Whether queued work is done in the same call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    Now,
    Later,
}

/// The card, shared by all threads that touch it.
///
/// A method may be called with or without QEMU's big lock. What follows from it at
/// once (the interrupt, sleep and wake of CPUs, the timer) is decided under the lock
/// inside, so the order of effects is the order of their causes; what needs the big
/// lock is put into the outbox there.
pub struct Machine<H> {
    host: H,
    client: Client,
    inner: Mutex<Inner>,
    /// Where each CPU sleeps, with the lock inside.
    alarms: [Condvar; 2],
    outbox: Outbox,
    /// Calls the thread that waits for the client.
    waiting: Bell,
    lines: Lines,
    counts: Counts,
    /// A CPU was halted and may not have stopped yet.
    stopping: AtomicBool,
    /// A CPU waits until the other one has stopped.
    cpu_waits: AtomicBool,
    dead: AtomicBool,
    stalls: Stalls,
}

struct Inner {
    card: Card,
    parking: Parking,
    /// Time that QEMU's timer is set to.
    armed: Option<u64>,
    /// A frame waits outside.
    refused: bool,
    /// Frames between the transmitter and the wire.
    on_way: u32,
    /// Of these, frames that the wire was too full for.
    queued: u32,
    /// Undefined accesses that were counted when last looked at.
    undefined: u64,
    /// Where the card's operations go.
    operations: Option<File>,
}

impl<H: Host> Machine<H> {
    /// A machine with this card, which is not powered on yet.
    pub fn new(host: H, mut card: Card, client: Client) -> Self {
        card.set_wire_room(Some(AHEAD));
        Machine {
            host,
            client,
            inner: Mutex::new(Inner {
                card,
                parking: Parking::default(),
                armed: None,
                refused: false,
                on_way: 0,
                queued: 0,
                undefined: 0,
                operations: None,
            }),
            alarms: Default::default(),
            outbox: Outbox::default(),
            waiting: Bell::default(),
            lines: Lines::default(),
            counts: Counts::default(),
            stopping: AtomicBool::new(false),
            cpu_waits: AtomicBool::new(false),
            dead: AtomicBool::new(false),
            stalls: Stalls::default(),
        }
    }

    /// QEMU.
    pub fn host(&self) -> &H {
        &self.host
    }

    /// The client's memory.
    pub(crate) fn memory(&self) -> &DmaTable {
        &self.client.dma
    }

    /// Calls the thread that waits for the client.
    pub(crate) fn waiting(&self) -> &Bell {
        &self.waiting
    }

    /// Messages about clients and CPUs.
    pub fn lines(&self) -> &Lines {
        &self.lines
    }

    /// Whether the model has failed; it is not to be called any more then.
    pub fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Relaxed)
    }

    /// The model has failed: stop both CPUs, and never call it again.
    pub fn die(&self) {
        if !self.dead.swap(true, Ordering::Relaxed) {
            eprintln!("tigon2: the hardware model has failed, the card is halted");
            self.halt_cpus();
            self.deliver_soon();
        }
    }

    /// Everything that is counted, as `name=value name=value ..`: what went wrong or had to
    /// wait, and what explains a stall.
    pub fn all_counts(&self) -> String {
        let interrupts = self.client.interrupts.counts();
        format!("{} {interrupts} {}", self.counts, self.stalls)
    }

    /// The machine is switched on, or reset.
    pub fn power_on(&self) {
        self.halt_cpus();
        self.enter(Work::Now, |inner, env| {
            CPUS.into_iter().for_each(|cpu| inner.parking.busy(cpu));
            inner.card.device(env).power_on();
            inner.undefined = inner.card.inspect().undefined().count();
        });
    }

    /// A CPU reads a register. If it has nothing to do, this may return only when it has.
    pub fn cpu_read(&self, cpu: Cpu, offset: u32) -> u32 {
        if offset == Register::event(cpu).offset() && !self.host.locked() {
            return self.poll(cpu);
        }
        self.enter(Work::Later, |inner, env| {
            inner.parking.busy(cpu);
            inner.card.device(env).cpu_read(cpu, offset)
        })
    }

    /// A CPU writes a register. If that halts the other CPU, this returns when that one has
    /// stopped: only then do its program counter and its last stores say where it was. Two CPUs
    /// that halt each other do not wait for each other. Who waits gives the big lock back
    /// meanwhile, so one without it, unlike QEMU's CPUs for these registers, does not wait.
    pub fn cpu_write(&self, cpu: Cpu, offset: u32, value: u32) {
        let ((), halts) = self.enter_and_tell(Work::Now, |inner, env| {
            inner.parking.busy(cpu);
            inner.card.device(env).cpu_write(cpu, offset, value);
        });
        self.deliver_soon();
        let mut others = CPUS.into_iter().filter(|other| *other != cpu);
        let is_other = others.any(|other| offset == Register::cpu_state(other).offset());
        let waits = halts && is_other && self.host.locked();
        if waits && !self.cpu_waits.swap(true, Ordering::Relaxed) {
            self.settle();
            self.cpu_waits.store(false, Ordering::Relaxed);
        }
    }

    /// A CPU reads or writes what is not there, or a register in parts.
    pub fn cpu_undefined(&self, cpu: Cpu, address: u32, write: Option<u32>) {
        self.enter(Work::Later, |inner, env| {
            let kind = match write {
                Some(_) => UndefinedKind::Write,
                None => UndefinedKind::Read,
            };
            let value = write.unwrap_or(0);
            inner
                .card
                .device(env)
                .note_undefined(Accessor::Cpu(cpu), kind, address, value);
        });
    }

    /// A CPU has stopped by itself.
    pub fn cpu_fault(&self, cpu: Cpu, fault: CpuFault, pc: u32) {
        let faults = &self.lines.faults;
        faults.say(|| format!("CPU {cpu} stopped at {pc:#010x}: {fault:?}"));
        self.enter(Work::Now, |inner, env| {
            inner.parking.busy(cpu);
            inner.card.device(env).cpu_fault(cpu, fault, pc);
        });
    }

    /// The time that was asked for has come.
    pub fn timer(&self) {
        self.enter(Work::Now, |inner, env| {
            inner.armed = None;
            inner.card.device(env).advance();
        });
    }

    /// Accesses that meant nothing, since power-on of QEMU.
    pub fn undefined(&self) -> u64 {
        self.lock().card.inspect().undefined().count()
    }

    /// The host reads a word of BAR 0. What follows from it waits for
    /// [`host_done`](Self::host_done).
    ///
    /// Not for a CPU's thread: who reads that a CPU is halted finds that it has stopped.
    pub fn bar_read(&self, offset: u32) -> u32 {
        let read =
            |inner: &mut Inner, env: &mut Environment<'_>| inner.card.device(env).bar_read(offset);
        let (value, _) = self.enter_and_tell(Work::Later, read);
        // Drivers of a shared line look first whether the interrupt is the card's.
        if offset == Register::MiscHostControl.offset() && self.client.interrupts.take_reported() {
            let control = MiscHostControl::from_bits(value);
            if !control.interrupt_pending() {
                self.stalls.spurious.add();
            }
        }
        // After the read: a CPU that halts itself just before it is waited for, too.
        self.see_it_stop(offset);
        value
    }

    /// The host writes a word of BAR 0. What that sets in motion waits for
    /// [`host_done`](Self::host_done).
    ///
    /// Not for a CPU's thread: if the write halts a CPU, this returns when the
    /// CPU has stopped, so that what the host does next cannot be mixed up
    /// with what firmware did last.
    pub fn bar_write(&self, offset: u32, value: u32) {
        self.see_it_stop(offset);
        let ((), halts) = self.enter_and_tell(Work::Later, |inner, env| {
            inner.card.device(env).bar_write(offset, value);
        });
        if halts {
            self.settle();
        }
    }

    /// The host has done a batch of accesses.
    pub fn host_done(&self) {
        self.enter_and_tell(Work::Now, |_, _| ());
        if self.outbox.waiting() > 0 {
            self.with_big_lock(|| self.deliver());
        }
    }

    /// A CPU that has halted itself continues for some instructions until QEMU stops it.
    /// The host that accesses its state waits for that.
    fn see_it_stop(&self, offset: u32) {
        let state = CPUS.map(|cpu| Register::cpu_state(cpu).offset());
        if state.contains(&(offset & !3)) && self.stopping.load(Ordering::Relaxed) {
            self.settle();
        }
    }

    /// The host reads configuration space.
    pub fn config_read(&self, offset: usize, out: &mut [u8]) {
        self.lock().card.inspect().config_read(offset, out);
    }

    /// The host writes configuration space.
    pub fn config_write(&self, offset: usize, data: &[u8]) {
        self.enter(Work::Now, |inner, env| {
            inner.card.device(env).config_write(offset, data);
        });
    }

    /// The client resets the card, or has gone away. Not for a CPU's thread.
    pub fn reset(&self) {
        self.power_on();
        self.settle();
    }

    /// Contents of the serial EEPROM.
    pub fn eeprom(&self) -> Vec<u8> {
        self.lock().card.inspect().eeprom().bytes().to_vec()
    }
}

#[cfg(test)]
mod tests;
