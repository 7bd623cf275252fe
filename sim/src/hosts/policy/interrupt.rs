//! Processing at interrupt level, as in 4.4BSD: the policy that livelocks.
//!
//! ```text
//!   ring ──interrupt level──► IP queue ──soft interrupt──► socket ──thread──► application
//! ```
//!
//! The service routine takes every frame from the ring into the IP queue and drops those that
//! it has no room for: their work is lost. One lock guards the kernel, as in the BSDs with
//! several CPUs: protocols run when no CPU is at interrupt level, and an interrupt goes to the
//! CPU that has the lock. Threads run on CPUs that have neither to do. More CPUs do not help:
//! while one of them is kept at interrupt level, no datagram gets further.

use super::Policy;
use crate::hosts::account::Activity;
use crate::hosts::application::Application;
use crate::hosts::cpu::Level;
use crate::hosts::kernel::{Effects, Kernel, Then};
use crate::workload::WorkloadError;
use std::collections::VecDeque;

/// Frames in the IP queue: `ipqmaxlen` of 4.4BSD.
const IP_QUEUE: usize = 50;

/// The policy.
#[derive(Debug, Default)]
pub struct AtInterruptLevel {
    /// The CPU whose service routine empties the ring.
    device: Option<usize>,
    /// The CPU whose soft interrupt works on the IP queue.
    soft: Option<usize>,
    queue: VecDeque<Vec<u8>>,
    dropped: u64,
}

impl AtInterruptLevel {
    /// The service routine's next frame; without one it ends.
    fn next(&mut self, kernel: &mut Kernel, cpu: usize) -> Result<Option<Vec<u8>>, WorkloadError> {
        for last in [false, true] {
            let taken = kernel.on_card(cpu, |card| {
                card.service()?;
                card.receive(1)
            })?;
            if let Some(frame) = taken.into_iter().next() {
                return Ok(Some(frame));
            }
            if !last {
                kernel.on_card(cpu, |card| card.acknowledge())?;
            }
        }
        self.device = None;
        // Whoever has waited for that goes on.
        if let Some(soft) = self.soft {
            let now = kernel.cpus[cpu].clock();
            kernel.cpus[soft].wake(now);
        }
        Ok(None)
    }
}

impl Policy for AtInterruptLevel {
    fn hears(&self) -> bool {
        self.device.is_none()
    }

    fn line(&mut self, kernel: &mut Kernel) -> Result<bool, WorkloadError> {
        Ok(self.device.is_none() && kernel.card.interrupt())
    }

    fn interrupted(&self, next: usize) -> usize {
        self.soft.unwrap_or(next)
    }

    fn interrupt(&mut self, _: &mut Kernel, cpu: usize) -> Result<(), WorkloadError> {
        self.device = Some(cpu);
        Ok(())
    }

    fn begin(
        &mut self,
        kernel: &mut Kernel,
        application: &mut Application,
        cpu: usize,
        aside: Option<Level>,
    ) -> Result<bool, WorkloadError> {
        if self.device == Some(cpu)
            && aside.is_none_or(|aside| aside < Level::Interrupt)
            && let Some(frame) = self.next(kernel, cpu)?
        {
            kernel.charge(cpu, Activity::Driver, kernel.profile.packet.driver_ns);
            let effects = Effects {
                then: Then::Policy(frame),
                ..Effects::default()
            };
            kernel.begin(cpu, Level::Interrupt, effects);
            return Ok(true);
        }
        let may = self.soft == Some(cpu) && self.device.is_none();
        if may && aside.is_none_or(|aside| aside < Level::SoftInterrupt) {
            if let Some(frame) = self.queue.pop_front() {
                let effects = application.packet(kernel, cpu, frame);
                kernel.begin(cpu, Level::SoftInterrupt, effects);
                return Ok(true);
            }
            self.soft = None;
        }
        Ok(false)
    }

    fn taken(&mut self, _: &mut Kernel, cpu: usize, frame: Vec<u8>) {
        if self.queue.len() >= IP_QUEUE {
            self.dropped += 1;
            return;
        }
        self.queue.push_back(frame);
        self.soft.get_or_insert(cpu);
    }

    fn relieved(&mut self, _: &mut Kernel, _: u64) {}

    fn wasted(&self) -> u64 {
        self.dropped
    }
}
