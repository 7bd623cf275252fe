//! RPS: one poller takes frames from the ring and passes each to the CPU of its flow, in software.
//!
//! The poller does the driver's part and parses the headers; an inter-processor interrupt notifies
//! the other CPU, whose soft interrupt does the protocols' part.

use super::Policy;
use super::napi::Napi;
use crate::hosts::account::Activity;
use crate::hosts::application::Application;
use crate::hosts::cpu::Level;
use crate::hosts::headers;
use crate::hosts::kernel::{Effects, Kernel, Then};
use crate::workload::WorkloadError;
use std::collections::VecDeque;

/// Frames that wait for a CPU at most: `netdev_max_backlog`.
const BACKLOG: usize = 1000;

/// The policy.
#[derive(Debug)]
pub struct Rps {
    poller: Napi,
    backlogs: Vec<VecDeque<Vec<u8>>>,
    dropped: u64,
}

impl Rps {
    /// On a host of `cpus` CPUs, a power of two of them.
    pub fn new(cpus: usize) -> Rps {
        Rps {
            poller: Napi::default(),
            backlogs: vec![VecDeque::new(); cpus],
            dropped: 0,
        }
    }
}

impl Policy for Rps {
    fn hears(&self) -> bool {
        self.poller.hears()
    }

    fn line(&mut self, kernel: &mut Kernel) -> Result<bool, WorkloadError> {
        self.poller.line(kernel)
    }

    fn interrupt(&mut self, kernel: &mut Kernel, cpu: usize) -> Result<(), WorkloadError> {
        self.poller.interrupt(kernel, cpu)
    }

    fn begin(
        &mut self,
        kernel: &mut Kernel,
        application: &mut Application,
        cpu: usize,
        aside: Option<Level>,
    ) -> Result<bool, WorkloadError> {
        if self.poller.polls(application, cpu, aside)
            && let Some(frame) = self.poller.next(kernel, cpu)?
        {
            kernel.enter_stack(cpu);
            kernel.charge(cpu, Activity::Driver, kernel.profile.packet.driver_ns);
            let effects = Effects {
                then: Then::Policy(frame),
                ..Effects::default()
            };
            kernel.begin(cpu, Level::SoftInterrupt, effects);
            return Ok(true);
        }
        let urgent = aside.is_none_or(|aside| aside < Level::SoftInterrupt);
        if !urgent || application.is_inhibited(Some(cpu)) {
            return Ok(false);
        }
        let Some(frame) = self.backlogs[cpu].pop_front() else {
            return Ok(false);
        };
        let effects = application.packet(kernel, cpu, frame);
        kernel.begin(cpu, Level::SoftInterrupt, effects);
        Ok(true)
    }

    fn taken(&mut self, kernel: &mut Kernel, cpu: usize, frame: Vec<u8>) {
        let mask = self.backlogs.len() - 1;
        let source = headers::source(&frame);
        let to = source.map_or(cpu, |source| usize::from(source[3]) & mask);
        let backlog = &mut self.backlogs[to];
        if backlog.len() >= BACKLOG {
            self.dropped += 1;
            return;
        }
        backlog.push_back(frame);
        if backlog.len() == 1 && to != cpu {
            let now = kernel.cpus[cpu].clock();
            kernel.cpus[to].interrupt(now);
            kernel.charge(to, Activity::Interrupt, kernel.profile.kernel.interrupt_ns);
        }
    }

    fn relieved(&mut self, kernel: &mut Kernel, now: u64) {
        self.poller.relieved(kernel, now);
        for (cpu, backlog) in self.backlogs.iter().enumerate() {
            if !backlog.is_empty() {
                kernel.cpus[cpu].wake(now);
            }
        }
    }

    fn wasted(&self) -> u64 {
        self.dropped
    }
}
