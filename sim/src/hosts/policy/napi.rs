//! NAPI: an interrupt starts polling, and interrupts stay disabled until the ring is empty (Mogul
//! and Ramakrishnan; Salim et al.).
//!
//! One CPU polls at a time, at soft-interrupt level: the CPU that took the interrupt. Polling
//! pauses while the application has more than it can take; the card then drops frames that it has
//! no room for, at no cost to the host.

use super::Policy;
use crate::hosts::account::Activity;
use crate::hosts::application::Application;
use crate::hosts::cpu::Level;
use crate::hosts::kernel::Kernel;
use crate::workload::WorkloadError;
use std::collections::VecDeque;

/// Frames that are taken from the ring at a time.
const BATCH: u32 = 16;
/// After so many frames in a row the thread below may go to another CPU.
const LONG: u32 = 64;

/// The policy.
#[derive(Debug, Default)]
pub struct Napi {
    /// The CPU that polls.
    poller: Option<usize>,
    batch: VecDeque<Vec<u8>>,
    in_a_row: u32,
}

impl Napi {
    /// The next frame of the ring for a CPU that polls. Without one polling ends: the
    /// interrupt is on again, and what came before that was looked for.
    pub(super) fn next(
        &mut self,
        kernel: &mut Kernel,
        cpu: usize,
    ) -> Result<Option<Vec<u8>>, WorkloadError> {
        for last in [false, true] {
            if self.batch.is_empty() {
                let frames = kernel.on_card(cpu, |card| {
                    card.service()?;
                    card.receive(BATCH)
                })?;
                self.batch.extend(frames);
            }
            if let Some(frame) = self.batch.pop_front() {
                self.in_a_row += 1;
                if self.in_a_row >= LONG {
                    kernel.displace(cpu);
                }
                return Ok(Some(frame));
            }
            if !last {
                kernel.on_card(cpu, |card| card.acknowledge())?;
            }
        }
        self.poller = None;
        self.in_a_row = 0;
        Ok(None)
    }

    /// Whether a CPU has to poll now.
    pub(super) fn polls(
        &self,
        application: &Application,
        cpu: usize,
        aside: Option<Level>,
    ) -> bool {
        self.poller == Some(cpu)
            && aside.is_none_or(|aside| aside < Level::SoftInterrupt)
            && !application.is_inhibited(None)
    }
}

impl Policy for Napi {
    fn hears(&self) -> bool {
        self.poller.is_none()
    }

    fn line(&mut self, kernel: &mut Kernel) -> Result<bool, WorkloadError> {
        Ok(self.poller.is_none() && kernel.card.interrupt())
    }

    fn interrupt(&mut self, _: &mut Kernel, cpu: usize) -> Result<(), WorkloadError> {
        self.poller = Some(cpu);
        Ok(())
    }

    fn begin(
        &mut self,
        kernel: &mut Kernel,
        application: &mut Application,
        cpu: usize,
        aside: Option<Level>,
    ) -> Result<bool, WorkloadError> {
        if !self.polls(application, cpu, aside) {
            return Ok(false);
        }
        let Some(frame) = self.next(kernel, cpu)? else {
            return Ok(false);
        };
        kernel.enter_stack(cpu);
        kernel.charge(cpu, Activity::Driver, kernel.profile.packet.driver_ns);
        let effects = application.packet(kernel, cpu, frame);
        kernel.begin(cpu, Level::SoftInterrupt, effects);
        Ok(true)
    }

    fn relieved(&mut self, kernel: &mut Kernel, now: u64) {
        if let Some(cpu) = self.poller {
            kernel.cpus[cpu].wake(now);
        }
    }
}
