//! The queues of the card: the firmware sorts, the driver's receive queues move the frames.
//!
//! ```text
//!   line asserted ──► any CPU: acknowledge, status lines compared ──► bells of queues
//!   queue's CPU: take frames, buffers back, index told ──► nothing more: one write re-arms
//! ```
//!
//! Each register access takes the time of the CPU that makes it.

use super::QueueReception;
use crate::hosts::card::HostCard;
use crate::workload::WorkloadError;
use host_driver::nic::ReceiveQueue;

/// The receive queues of a card in queue mode.
pub struct CardQueues(Vec<ReceiveQueue>);

impl CardQueues {
    /// Those of a card, which gives them away once.
    pub fn of(card: &mut HostCard) -> CardQueues {
        CardQueues(card.take_queues())
    }
}

impl QueueReception for CardQueues {
    fn queues(&self) -> usize {
        self.0.len()
    }

    fn line(&mut self, card: &mut HostCard) -> Result<bool, WorkloadError> {
        Ok(card.interrupt())
    }

    fn acknowledge(&mut self, card: &mut HostCard) -> Result<u32, WorkloadError> {
        card.acknowledge()?;
        let queues = self.0.iter().enumerate();
        let raised = queues.filter(|(_, queue)| queue.take_wake_up());
        Ok(raised.fold(0, |bits, (at, _)| bits | 1 << at))
    }

    fn poll(
        &mut self,
        _: &mut HostCard,
        queue: usize,
        budget: u32,
    ) -> Result<Vec<Vec<u8>>, WorkloadError> {
        let mut frames = Vec::new();
        self.0[queue].receive(budget, |frame| {
            frames.push(frame.to_vec()?);
            Ok(())
        })?;
        Ok(frames)
    }

    fn rearm(&mut self, _: &mut HostCard, queue: usize) -> Result<(), WorkloadError> {
        Ok(self.0[queue].rearm()?)
    }

    fn dropped(&mut self, card: &mut HostCard) -> Result<Vec<u64>, WorkloadError> {
        card.clock().set_free(true);
        let counters = card.control().queue_counters();
        card.clock().set_free(false);
        Ok(counters?
            .iter()
            .map(|queue| queue.dropped().into())
            .collect())
    }
}
