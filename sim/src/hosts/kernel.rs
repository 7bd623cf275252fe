//! The base of all software of a host: its CPUs, the card, the send ring's lock, and the scheduler
//! of threads.

use super::account::Activity;
use super::card::HostCard;
use super::cpu::{Context, Cpu, Level};
use super::lock::Lock;
use super::profile::HostProfile;
use crate::workload::WorkloadError;
use std::collections::VecDeque;

/// What comes about when a piece of work is done.
#[derive(Debug, Default)]
pub struct Effects {
    /// Frames for the send ring.
    pub frames: Vec<Vec<u8>>,
    /// Threads that wake up.
    pub wake: Vec<usize>,
    /// What continues then.
    pub then: Then,
}

/// What continues when a piece of work is done.
#[derive(Debug, Default)]
pub enum Then {
    /// Nothing in particular.
    #[default]
    Nobody,
    /// A thread of the application.
    Thread(usize),
    /// The policy, with a frame that its driver has taken.
    Policy(Vec<u8>),
}

/// Whether a thread runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Asleep,
    Ready,
    Running,
}

/// A thread as the scheduler sees it.
#[derive(Clone, Copy, Debug)]
struct Thread {
    state: State,
    /// The CPU that it ran on last.
    cpu: Option<usize>,
    /// It runs on that one alone.
    bound: bool,
}

/// CPUs, card, threads.
pub struct Kernel {
    /// What work costs.
    pub profile: HostProfile,
    /// The CPUs.
    pub cpus: Vec<Cpu<Effects>>,
    /// The card.
    pub card: HostCard,
    ring: Lock,
    /// Who touched the send ring and the device's lines last.
    ring_cpu: Option<usize>,
    /// Who touched the lines last that all of TCP writes.
    stack_cpu: Option<usize>,
    /// Interrupts of the card that CPUs have taken.
    pub interrupts: u64,
    threads: Vec<Thread>,
    ready: VecDeque<usize>,
    /// Which thread each CPU runs.
    running: Vec<Option<usize>>,
    /// Which CPUs have the stack's code in their cache.
    warm: Vec<bool>,
    /// For whom each CPU works.
    sides: Vec<Side>,
    used: [u64; 2],
}

/// For whom a CPU works: the two parts of the paper's model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Receiving, and what is sent with it: Te.
    Network,
    /// The application and its calls: Ta.
    Application,
}

impl Kernel {
    /// A host of `cpus` CPUs with a card and `threads` threads, which sleep.
    pub fn new(profile: HostProfile, card: HostCard, cpus: usize, threads: usize) -> Kernel {
        let now = card.now();
        let asleep = Thread {
            state: State::Asleep,
            cpu: None,
            bound: false,
        };
        let mut kernel = Kernel {
            profile,
            cpus: (0..cpus).map(|_| Cpu::default()).collect(),
            card,
            ring: Lock::default(),
            ring_cpu: None,
            stack_cpu: None,
            interrupts: 0,
            threads: vec![asleep; threads],
            ready: VecDeque::new(),
            running: vec![None; cpus],
            warm: vec![false; cpus],
            sides: vec![Side::Application; cpus],
            used: [0; 2],
        };
        for cpu in &mut kernel.cpus {
            cpu.look(now);
        }
        kernel
    }

    /// What comes next on a CPU is for one of the two sides.
    pub fn work_for(&mut self, cpu: usize, side: Side) {
        self.sides[cpu] = side;
    }

    /// Time that all CPUs have used for a side.
    pub fn used(&self, side: Side) -> u64 {
        self.used[side as usize]
    }

    /// A CPU's time passes.
    pub fn charge(&mut self, cpu: usize, activity: Activity, nanoseconds: u64) {
        self.used[self.sides[cpu] as usize] += nanoseconds;
        self.cpus[cpu].charge(activity, nanoseconds);
    }

    /// Takes a lock for work of `hold` nanoseconds from now on; the wait for it is charged.
    pub fn acquire(&mut self, cpu: usize, lock: &mut Lock, hold: u64) {
        if self.profile.contention {
            let wait = lock.acquire(self.cpus[cpu].clock(), hold);
            self.charge(cpu, Activity::LockWait, wait);
        }
    }

    /// Charges the fetch of what `last` has touched, if that was another CPU.
    pub fn touch(&mut self, cpu: usize, last: &mut Option<usize>, miss_ns: u64) {
        let before = last.replace(cpu);
        if before.is_some_and(|before| before != cpu) {
            self.charge(cpu, Activity::Misses, miss_ns);
        }
    }

    /// Takes a lock for work of `hold` nanoseconds, and then fetches what it guards, if another
    /// CPU has touched that last.
    pub fn enter(
        &mut self,
        cpu: usize,
        (lock, last): (&mut Lock, &mut Option<usize>),
        hold: u64,
        miss_ns: u64,
    ) {
        let misses = last.is_some_and(|last| last != cpu);
        let miss = if misses { miss_ns } else { 0 };
        self.acquire(cpu, lock, hold + miss);
        self.touch(cpu, last, miss_ns);
    }

    /// A CPU enters the stack with a packet.
    pub fn enter_stack(&mut self, cpu: usize) {
        if !std::mem::replace(&mut self.warm[cpu], true) {
            self.charge(cpu, Activity::Misses, self.profile.cache.code_miss_ns);
        }
    }

    /// A CPU touches what TCP writes for every segment and every call, whosever it is.
    pub fn touch_stack(&mut self, cpu: usize) {
        let mut last = self.stack_cpu;
        self.touch(cpu, &mut last, self.profile.cache.stack_miss_ns);
        self.stack_cpu = last;
    }

    /// A CPU executes other code.
    pub fn leave_stack(&mut self, cpu: usize) {
        self.warm[cpu] = false;
    }

    /// Another context runs on a CPU than before: charges the switch.
    pub fn switch_to(&mut self, cpu: usize, context: Context) {
        let before = std::mem::replace(&mut self.cpus[cpu].context, context);
        if before != context {
            self.charge(cpu, Activity::Switch, self.profile.kernel.switch_ns);
        }
    }

    /// Lets a CPU use the card: accesses happen at its time and are charged.
    pub fn on_card<R>(&mut self, cpu: usize, use_card: impl FnOnce(&mut HostCard) -> R) -> R {
        let before = self.cpus[cpu].clock();
        self.card.clock().set(before);
        let result = use_card(&mut self.card);
        let passed = self.card.clock().now() - before;
        self.charge(cpu, Activity::CardAccess, passed);
        result
    }

    /// Puts frames into the send ring, under its lock.
    ///
    /// # Errors
    /// What the driver reports.
    pub fn send(&mut self, cpu: usize, frames: Vec<Vec<u8>>) -> Result<(), WorkloadError> {
        if frames.is_empty() {
            return Ok(());
        }
        let hold = frames.len() as u64 * self.profile.locks.ring_ns;
        let (mut ring, mut last) = (self.ring, self.ring_cpu);
        self.on_card(cpu, |card| card.send(frames))?;
        let miss_ns = self.profile.cache.ring_miss_ns;
        self.enter(cpu, (&mut ring, &mut last), hold, miss_ns);
        (self.ring, self.ring_cpu) = (ring, last);
        self.charge(cpu, Activity::Transmit, hold);
        Ok(())
    }

    /// Binds a thread to a CPU.
    pub fn bind(&mut self, thread: usize, cpu: usize) {
        self.threads[thread].cpu = Some(cpu);
        self.threads[thread].bound = true;
    }

    /// Wakes a thread that sleeps, on the CPU that it ran on last if that idles, else on one
    /// that does; if none does it has to wait for one.
    pub fn wake_thread(&mut self, thread: usize, now: u64) {
        if self.threads[thread].state == State::Asleep {
            self.threads[thread].state = State::Ready;
            self.ready.push_back(thread);
            self.find_cpu(thread, now);
        }
    }

    /// An idle CPU comes for a thread that is ready.
    fn find_cpu(&mut self, thread: usize, now: u64) {
        let at = now + self.profile.kernel.wake_ns;
        let Thread { cpu, bound, .. } = self.threads[thread];
        let wanted = cpu.filter(|cpu| self.cpus[*cpu].is_idle());
        let other = || self.cpus.iter().position(Cpu::is_idle);
        if let Some(cpu) = wanted.or_else(|| if bound { None } else { other() }) {
            self.cpus[cpu].wake(at);
        }
    }

    /// The thread of a CPU, which is between two pieces of work, has to give way for long:
    /// another CPU may have it.
    pub fn displace(&mut self, cpu: usize) {
        if let Some(thread) = self.running[cpu].take() {
            self.threads[thread].state = State::Ready;
            self.ready.push_front(thread);
            self.find_cpu(thread, self.cpus[cpu].clock());
        }
    }

    /// The thread that a CPU goes on with: its own, else the first that ran here last, else
    /// the first that is ready and may run here.
    pub fn schedule(&mut self, cpu: usize) -> Option<usize> {
        if let Some(thread) = self.running[cpu] {
            return Some(thread);
        }
        let find = |may: &dyn Fn(&Thread) -> bool| {
            let mut ready = self.ready.iter();
            ready.position(|thread| may(&self.threads[*thread]))
        };
        let at =
            find(&|thread| thread.cpu == Some(cpu)).or_else(|| find(&|thread| !thread.bound))?;
        let thread = self.ready.remove(at)?;
        self.threads[thread].state = State::Running;
        self.threads[thread].cpu = Some(cpu);
        self.running[cpu] = Some(thread);
        Some(thread)
    }

    /// Whether a CPU has a thread to go on with.
    pub fn has_thread(&self, cpu: usize) -> bool {
        let may = |thread: &usize| {
            let thread = &self.threads[*thread];
            !thread.bound || thread.cpu == Some(cpu)
        };
        self.running[cpu].is_some() || self.ready.iter().any(may)
    }

    /// The thread of a CPU has nothing to do.
    pub fn sleep(&mut self, cpu: usize) {
        if let Some(thread) = self.running[cpu].take() {
            self.threads[thread].state = State::Asleep;
        }
    }

    /// What a CPU has begun.
    pub fn begin(&mut self, cpu: usize, level: Level, effects: Effects) {
        self.cpus[cpu].begin(level, effects);
    }
}
