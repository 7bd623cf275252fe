//! KNET: a queue for each CPU, and for each queue a network thread bound to that CPU (paper,
//! section 4).
//!
//! The interrupt may go to any CPU. Its service routine reads which queues have raised it and
//! wakes their threads; each thread polls its queue until it is empty, arms it and sleeps. The
//! policy `knet` spreads frames by their source, `knet-rr` round-robin.

use super::Policy;
use crate::hosts::account::Activity;
use crate::hosts::application::Application;
use crate::hosts::cpu::{Context, Level};
use crate::hosts::kernel::Kernel;
use crate::hosts::reception::QueueReception;
use crate::workload::WorkloadError;
use std::collections::VecDeque;

/// Frames that a thread takes from its queue at a time.
const BATCH: u32 = 16;

#[derive(Debug, Default)]
struct NetworkThread {
    awake: bool,
    batch: VecDeque<Vec<u8>>,
}

/// The policy.
pub struct Knet {
    reception: Box<dyn QueueReception>,
    threads: Vec<NetworkThread>,
}

impl Knet {
    /// Threads for a card's queues.
    pub fn new(reception: Box<dyn QueueReception>) -> Knet {
        let threads = (0..reception.queues()).map(|_| NetworkThread::default());
        Knet {
            threads: threads.collect(),
            reception,
        }
    }

    /// The next frame of a CPU's queue; without one it is armed, and its thread sleeps.
    fn next(&mut self, kernel: &mut Kernel, cpu: usize) -> Result<Option<Vec<u8>>, WorkloadError> {
        let thread = &mut self.threads[cpu];
        if thread.batch.is_empty() {
            let reception = &mut self.reception;
            let frames = kernel.on_card(cpu, |card| {
                card.service()?;
                reception.poll(card, cpu, BATCH)
            })?;
            thread.batch.extend(frames);
        }
        let frame = thread.batch.pop_front();
        if frame.is_none() {
            thread.awake = false;
            let reception = &mut self.reception;
            kernel.on_card(cpu, |card| reception.rearm(card, cpu))?;
        }
        Ok(frame)
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
        let Some(thread) = self.threads.get(cpu) else {
            return Ok(false);
        };
        if !thread.awake || aside.is_some() || application.is_inhibited(Some(cpu)) {
            return Ok(false);
        }
        kernel.displace(cpu);
        kernel.switch_to(cpu, Context::Network);
        let Some(frame) = self.next(kernel, cpu)? else {
            return Ok(false);
        };
        kernel.enter_stack(cpu);
        kernel.charge(cpu, Activity::Driver, kernel.profile.packet.driver_ns);
        let effects = application.packet(kernel, cpu, frame);
        kernel.begin(cpu, Level::Thread, effects);
        Ok(true)
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
