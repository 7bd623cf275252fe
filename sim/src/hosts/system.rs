//! The whole system: the host, its card, and the clients at the other end of the wire, under one
//! clock.
//!
//! ```text
//!   CPU 0 ─ step ──── step ──────────► due      Of all that is due, what is due first is
//!   CPU 1 ─── step ──────────────────► due      done next; before, the card runs up to that
//!   world ──────────── frame ────────► due      time. If it interrupts or sends a frame on
//!   card  ─────────────────► now                its way there, that comes first.
//! ```
//!
//! A CPU's step applies the result of its last piece of work and begins the next piece, whose cost
//! advances that CPU's clock only. So CPUs work in parallel, and the card is never ahead of the
//! CPU that acts by more than the time of one access.

use super::account::{Account, Activity};
use super::application::Application;
use super::clients::Clients;
use super::cpu::{Context, Level};
use super::kernel::{Effects, Kernel, Side, Then};
use super::policy::Policy;
use super::source::Source;
use crate::workload::WorkloadError;

/// How often the server's timers are looked at.
const TICK_NS: u64 = 1_000_000;

/// Who is at the other end of the wire.
pub enum World {
    /// Closed-loop clients of the web server.
    Clients(Box<Clients>),
    /// Datagrams at a constant rate.
    Source(Source),
}

impl World {
    fn due(&self) -> Option<u64> {
        match self {
            World::Clients(clients) => clients.due(),
            World::Source(source) => Some(source.due()),
        }
    }
}

/// A host under a load.
pub struct System {
    /// CPUs, card, threads.
    pub kernel: Kernel,
    /// The server.
    pub application: Application,
    /// How frames are received.
    pub policy: Box<dyn Policy>,
    /// The other end.
    pub world: World,
    /// When the interrupt that is on its way reaches a CPU.
    interrupt: Option<u64>,
    next_cpu: usize,
    tick: u64,
    /// Frames and bytes that the wire has got from the card.
    sent: (u64, u64),
    /// Frames that were put on the wire to the card.
    put: u64,
}

impl System {
    /// Puts the parts together.
    pub fn new(
        kernel: Kernel,
        application: Application,
        policy: Box<dyn Policy>,
        world: World,
    ) -> System {
        System {
            tick: kernel.card.now() + TICK_NS,
            kernel,
            application,
            policy,
            world,
            interrupt: None,
            next_cpu: 0,
            sent: (0, 0),
            put: 0,
        }
    }

    /// Nanoseconds since power-on.
    pub fn now(&self) -> u64 {
        self.kernel.card.now()
    }

    /// Frames that the wire has got from the card, and their bytes without CRC.
    pub fn sent(&self) -> (u64, u64) {
        self.sent
    }

    /// Frames that were put on the wire to the card.
    pub fn put(&self) -> u64 {
        self.put
    }

    /// The CPU that is furthest behind, and its clock.
    fn first_cpu(&self) -> Option<(u64, usize)> {
        let cpus = self.kernel.cpus.iter().enumerate();
        cpus.filter_map(|(at, cpu)| Some((cpu.due()?, at))).min()
    }

    /// Lets time pass until `end`.
    ///
    /// # Errors
    /// What the driver reports.
    pub fn run(&mut self, end: u64) -> Result<(), WorkloadError> {
        loop {
            let cpu = self.first_cpu();
            let others = [
                cpu.map(|(due, _)| due),
                self.world.due(),
                self.interrupt,
                Some(self.tick),
            ];
            let first = others.into_iter().flatten().min().unwrap_or(end);
            let target = first.min(end);
            if self.now() < target {
                let hears = self.interrupt.is_none() && self.policy.hears();
                self.kernel.card.run_to(target, hears);
                self.look_at_card()?;
                continue;
            }
            if first > end {
                return Ok(());
            }
            if self.interrupt.is_some_and(|due| due <= first) {
                self.deliver_interrupt(first)?;
            } else if self.world.due().is_some_and(|due| due <= first) {
                self.act(first);
            } else if self.tick <= first {
                self.expire()?;
            } else if let Some((_, cpu)) = cpu {
                self.step(cpu)?;
            }
            self.look_at_card()?;
        }
    }

    /// What the card has done: frames on the wire, and the interrupt.
    fn look_at_card(&mut self) -> Result<(), WorkloadError> {
        while let Some(frame) = self.kernel.card.take_from_wire() {
            self.sent.0 += 1;
            self.sent.1 += frame.bytes.len() as u64;
            if let World::Clients(clients) = &mut self.world {
                clients.arrive(frame.at, frame.bytes);
            }
        }
        if self.interrupt.is_none()
            && self.policy.hears()
            && self.kernel.card.interrupt()
            && self.policy.line(&mut self.kernel)?
        {
            self.raise();
        }
        Ok(())
    }

    fn raise(&mut self) {
        let latency = self.kernel.profile.kernel.interrupt_latency_ns;
        self.interrupt = Some(self.now() + latency);
    }

    fn deliver_interrupt(&mut self, now: u64) -> Result<(), WorkloadError> {
        self.interrupt = None;
        let next = self.next_cpu;
        self.next_cpu = (next + 1) % self.kernel.cpus.len();
        let cpu = self.policy.interrupted(next);
        self.kernel.interrupts += 1;
        self.kernel.cpus[cpu].interrupt(now);
        self.kernel.work_for(cpu, Side::Network);
        self.policy.interrupt(&mut self.kernel, cpu)?;
        let entry = self.kernel.profile.kernel.interrupt_ns;
        self.kernel.charge(cpu, Activity::Interrupt, entry);
        Ok(())
    }

    fn act(&mut self, now: u64) {
        match &mut self.world {
            World::Clients(clients) => {
                for frame in clients.act(now) {
                    self.put += 1;
                    self.kernel.card.put_on_wire(now, frame);
                }
            }
            World::Source(source) => {
                for (at, frame) in source.act(now) {
                    self.put += 1;
                    self.kernel.card.put_on_wire(at, frame);
                }
            }
        }
    }

    /// The server's timers: they cost nothing.
    fn expire(&mut self) -> Result<(), WorkloadError> {
        let now = self.tick;
        self.tick += TICK_NS;
        let card = &mut self.kernel.card;
        card.clock().set(now);
        card.clock().set_free(true);
        let frames = match &mut self.application {
            Application::Web(web) => web.tcp.expire(now),
            Application::Datagrams(_) => Vec::new(),
        };
        let done = card.service().and_then(|()| card.send(frames));
        card.clock().set_free(false);
        done
    }

    /// A CPU's clock has come: what its work leads to, and what it does next.
    fn step(&mut self, cpu: usize) -> Result<(), WorkloadError> {
        if let Some(effects) = self.kernel.cpus[cpu].finish() {
            let before = self.kernel.cpus[cpu].clock();
            self.apply(cpu, effects)?;
            if self.kernel.cpus[cpu].clock() > before {
                // Others may come first now.
                return Ok(());
            }
        }
        self.begin(cpu)
    }

    fn apply(&mut self, cpu: usize, effects: Effects) -> Result<(), WorkloadError> {
        let now = self.kernel.cpus[cpu].clock();
        for thread in effects.wake {
            self.kernel.wake_thread(thread, now);
        }
        match effects.then {
            Then::Nobody => {}
            Then::Thread(thread) => self.application.finish(thread),
            Then::Policy(frame) => self.policy.taken(&mut self.kernel, cpu, frame),
        }
        self.kernel.send(cpu, effects.frames)
    }

    fn begin(&mut self, cpu: usize) -> Result<(), WorkloadError> {
        let aside = self.kernel.cpus[cpu].set_aside();
        let (kernel, application) = (&mut self.kernel, &mut self.application);
        let before = kernel.cpus[cpu].clock();
        kernel.work_for(cpu, Side::Network);
        if self.policy.begin(kernel, application, cpu, aside)? {
            return Ok(());
        }
        if aside.is_some() {
            kernel.cpus[cpu].resume();
            return Ok(());
        }
        if kernel.cpus[cpu].clock() > before {
            // It has looked at the card: what came of it comes first.
            return Ok(());
        }
        self.begin_thread(cpu)
    }

    fn begin_thread(&mut self, cpu: usize) -> Result<(), WorkloadError> {
        let (kernel, application) = (&mut self.kernel, &mut self.application);
        kernel.work_for(cpu, Side::Application);
        while let Some(thread) = kernel.schedule(cpu) {
            kernel.switch_to(cpu, Context::Application(thread));
            let inhibited = application.is_inhibited(Some(thread));
            if let Some(effects) = application.begin(kernel, cpu, thread) {
                kernel.begin(cpu, Level::Thread, effects);
                if inhibited && !application.is_inhibited(Some(thread)) {
                    let now = kernel.cpus[cpu].clock();
                    self.policy.relieved(kernel, now);
                }
                return Ok(());
            }
            kernel.sleep(cpu);
        }
        if !self.policy.polls(cpu) {
            kernel.cpus[cpu].sleep();
        }
        Ok(())
    }

    /// The accounts of all CPUs up to now. Work that has begun is in them to its end.
    pub fn accounts(&mut self) -> Vec<Account> {
        let now = self.now();
        let cpus = self.kernel.cpus.iter_mut();
        cpus.map(|cpu| {
            cpu.look(now);
            cpu.account()
        })
        .collect()
    }
}
