//! KNET: a queue for each CPU, and for each queue a network thread bound to that CPU (paper,
//! section 4).
//!
//! The interrupt may go to any CPU. Its service routine reads which queues have raised it and
//! wakes their threads; each thread polls its queue until it is empty, arms it and sleeps. The
//! policy `knet` spreads frames by their source, `knet-rr` round-robin.
//!
//! `knet-deferred` is `knet` with the driver's [deferral](host_driver::knet::pace): a thread that
//! finds its queue empty yields to the application's threads and looks again, so often before it
//! arms the queue. On a CPU that is never idle it looks once for each piece of the application's
//! work, and the queue is hardly ever armed:
//!
//! ```text
//!   knet           poll ─ empty ─ arm ─ sleep ··· interrupt, wake ─ poll
//!   knet-deferred  poll ─ empty ─ application ─ poll ─ empty ─ application ─ poll
//! ```

use super::Policy;
use crate::hosts::account::Activity;
use crate::hosts::application::Application;
use crate::hosts::cpu::{Context, Level};
use crate::hosts::kernel::Kernel;
use crate::hosts::reception::QueueReception;
use crate::workload::WorkloadError;
use host_driver::knet::pace::{Next, Pace, PaceSettings};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How the paper's threads poll: as many frames at a time, and a queue that was found empty is armed
/// at once.
pub const PACE: PaceSettings = PaceSettings {
    least: 16,
    most: 16,
    empty_polls: 0,
    defer: None,
    busy: false,
};
/// The same with deferral.
pub const DEFERRED: PaceSettings = PaceSettings {
    empty_polls: 16,
    ..PACE
};
/// A look at a queue that has nothing: call, status line.
const LOOK_NS: u64 = 1_000;

#[derive(Debug)]
struct NetworkThread {
    awake: bool,
    batch: VecDeque<Vec<u8>>,
    pace: Pace,
    /// Its last look found nothing, and it has not armed its queue.
    defers: bool,
    /// It lets others go first.
    yields: bool,
}

/// The policy.
pub struct Knet {
    reception: Box<dyn QueueReception>,
    threads: Vec<NetworkThread>,
    /// What the simulated clock counts from: only differences matter.
    epoch: Instant,
}

impl Knet {
    /// Threads for a card's queues.
    pub fn new(reception: Box<dyn QueueReception>, pace: PaceSettings) -> Knet {
        let threads = (0..reception.queues()).map(|_| NetworkThread {
            awake: false,
            batch: VecDeque::new(),
            pace: Pace::new(pace),
            defers: false,
            yields: false,
        });
        Knet {
            threads: threads.collect(),
            reception,
            epoch: Instant::now(),
        }
    }

    /// The next frame of a CPU's queue. Without one it is armed and its thread sleeps, unless that
    /// defers.
    fn next(&mut self, kernel: &mut Kernel, cpu: usize) -> Result<Option<Vec<u8>>, WorkloadError> {
        let (thread, reception) = (&mut self.threads[cpu], &mut self.reception);
        if let Some(frame) = thread.batch.pop_front() {
            return Ok(Some(frame));
        }
        let budget = thread.pace.budget();
        let frames = kernel.on_card(cpu, |card| {
            card.service()?;
            reception.poll(card, cpu, budget)
        })?;
        let now = self.epoch + Duration::from_nanos(kernel.cpus[cpu].clock());
        let next = thread.pace.polled(frames.len() as u32, false, now);
        thread.batch.extend(frames);
        thread.defers = next == Next::PollIdle;
        match next {
            Next::Poll => {}
            Next::PollIdle => {
                thread.yields = true;
                kernel.charge(cpu, Activity::Driver, LOOK_NS);
            }
            Next::Arm => {
                thread.awake = false;
                kernel.on_card(cpu, |card| reception.rearm(card, cpu))?;
            }
        }
        Ok(thread.batch.pop_front())
    }

    /// A network thread takes a CPU from the application's.
    fn switch_in(kernel: &mut Kernel, cpu: usize) {
        kernel.displace(cpu);
        kernel.switch_to(cpu, Context::Network);
    }
}

impl Policy for Knet {
    fn hears(&self) -> bool {
        true
    }

    fn line(&mut self, kernel: &mut Kernel) -> Result<bool, WorkloadError> {
        self.reception.line(&mut kernel.card)
    }

    fn interrupt(&mut self, kernel: &mut Kernel, cpu: usize) -> Result<(), WorkloadError> {
        let reception = &mut self.reception;
        let raised = kernel.on_card(cpu, |card| reception.acknowledge(card))?;
        let at = kernel.cpus[cpu].clock() + kernel.profile.kernel.network_wake_ns;
        for (queue, thread) in self.threads.iter_mut().enumerate() {
            if raised & (1 << queue) != 0 {
                thread.awake = true;
                kernel.cpus[queue].wake(at);
            }
        }
        Ok(())
    }

    fn begin(
        &mut self,
        kernel: &mut Kernel,
        application: &mut Application,
        cpu: usize,
        aside: Option<Level>,
    ) -> Result<bool, WorkloadError> {
        // The kernel is not preempted: a piece of work goes on first.
        let Some(thread) = self.threads.get_mut(cpu) else {
            return Ok(false);
        };
        if !thread.awake || aside.is_some() {
            return Ok(false);
        }
        if application.is_inhibited(Some(cpu)) {
            thread.defers = false;
            return Ok(false);
        }
        if std::mem::take(&mut thread.yields) && kernel.has_thread(cpu) {
            return Ok(false);
        }
        // A look that finds nothing is short: nobody else takes the other thread meanwhile.
        let looks = thread.defers;
        if looks {
            kernel.charge(cpu, Activity::Switch, kernel.profile.kernel.switch_ns);
        } else {
            Knet::switch_in(kernel, cpu);
        }
        let Some(frame) = self.next(kernel, cpu)? else {
            return Ok(false);
        };
        if looks {
            Knet::switch_in(kernel, cpu);
        }
        kernel.enter_stack(cpu);
        kernel.charge(cpu, Activity::Driver, kernel.profile.packet.driver_ns);
        let effects = application.packet(kernel, cpu, frame);
        kernel.begin(cpu, Level::Thread, effects);
        Ok(true)
    }

    fn polls(&self, cpu: usize) -> bool {
        self.threads.get(cpu).is_some_and(|thread| thread.defers)
    }

    fn relieved(&mut self, kernel: &mut Kernel, now: u64) {
        for (cpu, thread) in self.threads.iter().enumerate() {
            if thread.awake {
                kernel.cpus[cpu].wake(now + kernel.profile.kernel.network_wake_ns);
            }
        }
    }

    fn refused(&mut self, kernel: &mut Kernel) -> Result<u64, WorkloadError> {
        let dropped = self.reception.dropped(&mut kernel.card)?;
        Ok(dropped.iter().sum())
    }
}
