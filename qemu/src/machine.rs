//! The card between QEMU and its client: locks, time, and the order of effects.

mod idle;
mod wire;

use crate::counts::Counts;
use crate::host::Host;
use crate::limit::Lines;
use crate::outbox::{Errand, Outbox};
use crate::parking::Parking;
use crate::ports::{ClientMemory, Cpus, SramPort};
use crate::stalls::Stalls;
use crate::waiting::{Bell, Job};
use std::fs::File;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Instant;
use tigon2_chip::bits::MiscHostControl;
use tigon2_chip::memory::SPILL_WINDOW;
use tigon2_chip::registers::Register;
use tigon2_model::dma::Direction;
use tigon2_model::{Accessor, Card, Cpu, CpuFault, Effect, Environment, HostMemory, UndefinedKind};
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

/// Gives the big lock back, even if a panic passes by.
struct Unlock<'a, H: Host>(&'a H);

impl<H: Host> Drop for Unlock<'_, H> {
    fn drop(&mut self) {
        self.0.unlock();
    }
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

    /// What is said of clients and CPUs.
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

    fn halt_cpus(&self) {
        for cpu in CPUS {
            self.outbox.put(Errand::Halt(cpu));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
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
    fn lock_big(&self) -> Unlock<'_, H> {
        if !self.host.try_lock() {
            let start = Instant::now();
            self.host.lock();
            self.stalls.big_lock_waits.add();
            self.stalls.big_lock_wait.note(start.elapsed());
        }
        Unlock(&self.host)
    }

    /// Runs `f` on the card and carries out what follows from it, or has it done soon.
    fn enter<R>(&self, work: Work, f: impl FnOnce(&mut Inner, &mut Environment<'_>) -> R) -> R {
        let (result, _) = self.enter_and_tell(work, f);
        self.deliver_soon();
        result
    }

    /// Runs `f` on the card, and tells whether a CPU is on its way to a halt. What needs
    /// the big lock stays in the outbox.
    fn enter_and_tell<R>(
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
        let more = work == Work::Now && (0..TURNS).all(|_| inner.card.run(&mut environment));
        let halts = self.leave(&mut inner, now, more);
        if let Some(taken) = taken {
            self.stalls.lock_held.note(taken.elapsed());
        }
        self.wake(inner);
        (result, halts)
    }

    /// Looks who is to wake, sets the timer, and passes on what follows. True if a CPU halts.
    fn leave(&self, inner: &mut Inner, now: u64, more: bool) -> bool {
        for cpu in CPUS {
            if inner.parking.sleeps(cpu) {
                let events = inner.card.events(now, cpu);
                let timer = inner.card.event_deadline(now, cpu);
                inner.parking.look(cpu, events, timer);
            }
        }

        // Timers of the CPUs are not the main loop's: a CPU that is awake reads the time
        // itself, and one that sleeps has its own alarm.
        let deadline = match inner.card.work_deadline(now) {
            _ if more => Some(now),
            deadline => deadline.map(|deadline| deadline.max(now + PRECISION)),
        };
        // A timer that goes off too early costs less than setting it each
        // time that the deadline moves.
        if let Some(deadline) = deadline
            && inner.armed.is_none_or(|armed| deadline < armed)
        {
            inner.armed = Some(deadline);
            self.host.arm(Some(deadline));
        }

        // What is left begun has to wait for the client.
        let waits = |way: &Direction| inner.card.dma_transfer(*way).is_some();
        if Direction::ALL.iter().any(waits) {
            self.waiting.ring();
        }

        self.show_undefined(inner);
        self.write_operations(inner);
        let halts = inner.card.has_effects() && self.pass_on(inner);
        if inner.refused && inner.card.can_receive() {
            inner.refused = false;
            self.counts.offered.add();
            self.host.wire_ready();
        }
        halts
    }

    /// Does what follows from the card's work, or puts it into the outbox. True if a CPU
    /// halts.
    fn pass_on(&self, inner: &mut Inner) -> bool {
        let mut halts = false;
        for effect in inner.card.drain_effects() {
            self.outbox.put(match effect {
                Effect::Interrupt(level) => {
                    self.client.interrupts.set_level(level);
                    continue;
                }
                Effect::Transmit(frame) => {
                    inner.on_way += 1;
                    Errand::Transmit(frame)
                }
                Effect::CpuStart { cpu, pc } => {
                    inner.parking.busy(cpu);
                    Errand::Start(cpu, pc)
                }
                Effect::CpuHalt { cpu } => {
                    inner.parking.busy(cpu);
                    halts = true;
                    self.stopping.store(true, Ordering::Relaxed);
                    Errand::Halt(cpu)
                }
                Effect::SpillBase { cpu, base } => {
                    Errand::Spill(cpu, SPILL_WINDOW.start.wrapping_sub(base))
                }
            });
        }
        halts
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
    fn deliver_soon(&self) {
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

    /// Runs `f` with the big lock, for which it may wait. Without the machine's lock.
    fn with_big_lock<R>(&self, f: impl FnOnce() -> R) -> R {
        let _unlock = (!self.host.locked()).then(|| self.lock_big());
        f()
    }

    /// Everything that is counted, as `name=value name=value ..`: what went wrong or had to
    /// wait, and what explains a stall.
    pub fn all_counts(&self) -> String {
        let interrupts = self.client.interrupts.counts();
        format!("{} {interrupts} {}", self.counts, self.stalls)
    }

    /// Writes every operation of the card to a file from now on, a line each; see
    /// [`tigon2_model::operations`].
    pub fn record_operations(&self, file: File) {
        let mut inner = self.lock();
        inner.card.record_operations();
        inner.operations = Some(file);
    }

    fn write_operations(&self, inner: &mut Inner) {
        let Some(file) = &mut inner.operations else {
            return;
        };
        let lines = inner.card.take_operations().into_iter();
        let text: String = lines.map(|line| format!("{line}\n")).collect();
        if let Err(error) = file.write_all(text.as_bytes()) {
            eprintln!("tigon2: operations are written no more: {error}");
            inner.operations = None;
        }
    }

    fn show_undefined(&self, inner: &mut Inner) {
        let log = inner.card.undefined();
        let count = log.count();
        let new = count - inner.undefined.min(count);
        if new == 0 {
            return;
        }
        if inner.undefined < SHOWN {
            let kept = log.latest().count();
            let skip = kept.saturating_sub(usize::try_from(new).unwrap_or(kept));
            let left = usize::try_from(SHOWN - inner.undefined).unwrap_or(0);
            for access in log.latest().skip(skip).take(left) {
                eprintln!("tigon2: undefined: {access}");
            }
            if count >= SHOWN {
                eprintln!("tigon2: further undefined accesses are not shown");
            }
        }
        inner.undefined = count;
    }

    /// The machine is switched on, or reset.
    pub fn power_on(&self) {
        self.halt_cpus();
        self.enter(Work::Now, |inner, env| {
            CPUS.into_iter().for_each(|cpu| inner.parking.busy(cpu));
            inner.card.power_on(env);
            inner.undefined = inner.card.undefined().count();
        });
    }

    /// A CPU reads a register. If it has nothing to do, this may return only when it has.
    pub fn cpu_read(&self, cpu: Cpu, offset: u32) -> u32 {
        if offset == Register::event(cpu).offset() && !self.host.locked() {
            return self.poll(cpu);
        }
        self.enter(Work::Later, |inner, env| {
            inner.parking.busy(cpu);
            inner.card.cpu_read(env, cpu, offset)
        })
    }

    /// A CPU writes a register.
    pub fn cpu_write(&self, cpu: Cpu, offset: u32, value: u32) {
        self.enter(Work::Now, |inner, env| {
            inner.parking.busy(cpu);
            inner.card.cpu_write(env, cpu, offset, value);
        });
    }

    /// A CPU reads or writes what is not there, or a register in parts.
    pub fn cpu_undefined(&self, cpu: Cpu, address: u32, write: Option<u32>) {
        self.enter(Work::Later, |inner, _| {
            let kind = match write {
                Some(_) => UndefinedKind::Write,
                None => UndefinedKind::Read,
            };
            let value = write.unwrap_or(0);
            inner
                .card
                .note_undefined(Accessor::Cpu(cpu), kind, address, value);
        });
    }

    /// A CPU has stopped by itself.
    pub fn cpu_fault(&self, cpu: Cpu, fault: CpuFault, pc: u32) {
        let faults = &self.lines.faults;
        faults.say(|| format!("CPU {cpu} stopped at {pc:#010x}: {fault:?}"));
        self.enter(Work::Now, |inner, env| {
            inner.parking.busy(cpu);
            inner.card.cpu_fault(env, cpu, fault, pc);
        });
    }

    /// The transfer of this direction that waits for the client, if there is one.
    pub(crate) fn job(&self, direction: Direction) -> Option<Job> {
        let inner = self.lock();
        let transfer = inner.card.dma_transfer(direction)?;
        let bytes = match direction {
            Direction::Read => vec![0; transfer.length as usize],
            Direction::Write => inner.card.dma_bytes(&SramPort(&self.host))?,
        };
        Some(Job {
            direction,
            number: inner.card.dma_begun(direction),
            transfer,
            // Under the lock: a reset or the client's end takes it back.
            ticket: self.client.dma.ticket(),
            bytes,
        })
    }

    /// A transfer is complete, if it is still under way.
    pub(crate) fn complete(&self, direction: Direction, number: u64, moved: &mut dyn HostMemory) {
        self.enter(Work::Now, |inner, env| {
            if inner.card.dma_begun(direction) == number {
                let mut env = Environment {
                    now: env.now,
                    sram: &mut *env.sram,
                    host: moved,
                    cpus: &mut *env.cpus,
                };
                inner.card.dma_complete(&mut env, direction);
            }
        });
    }

    /// The time that was asked for has come.
    pub fn timer(&self) {
        self.enter(Work::Now, |inner, env| {
            inner.armed = None;
            inner.card.advance(env);
        });
    }

    /// Accesses that meant nothing, since power-on of QEMU.
    pub fn undefined(&self) -> u64 {
        self.lock().card.undefined().count()
    }

    /// The host reads a word of BAR 0. What follows from it waits for
    /// [`host_done`](Self::host_done).
    ///
    /// Not for a CPU's thread: who reads that a CPU is halted finds that it has stopped.
    pub fn bar_read(&self, offset: u32) -> u32 {
        let read = |inner: &mut Inner, env: &mut Environment<'_>| inner.card.bar_read(env, offset);
        let (value, _) = self.enter_and_tell(Work::Later, read);
        // Drivers of a shared line look first whether the interrupt is the card's.
        if offset == Register::MiscHostControl.offset() && self.client.interrupts.take_told() {
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
            inner.card.bar_write(env, offset, value);
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

    /// A CPU that has halted itself goes on for some instructions until QEMU stops it.
    /// The host that accesses its state waits for that.
    fn see_it_stop(&self, offset: u32) {
        let state = CPUS.map(|cpu| Register::cpu_state(cpu).offset());
        if state.contains(&(offset & !3)) && self.stopping.load(Ordering::Relaxed) {
            self.settle();
        }
    }

    /// Waits until starts and halts of CPUs have happened.
    fn settle(&self) {
        self.stopping.store(false, Ordering::Relaxed);
        self.with_big_lock(|| {
            self.deliver();
            self.host.settle();
        });
    }

    /// The host reads configuration space.
    pub fn config_read(&self, offset: usize, out: &mut [u8]) {
        self.lock().card.config_read(offset, out);
    }

    /// The host writes configuration space.
    pub fn config_write(&self, offset: usize, data: &[u8]) {
        self.enter(Work::Now, |inner, env| {
            inner.card.config_write(env, offset, data);
        });
    }

    /// The client resets the card, or has gone away. Not for a CPU's thread.
    pub fn reset(&self) {
        self.power_on();
        self.settle();
    }

    /// Contents of the serial EEPROM.
    pub fn eeprom(&self) -> Vec<u8> {
        self.lock().card.eeprom().bytes().to_vec()
    }
}

#[cfg(test)]
mod tests;
