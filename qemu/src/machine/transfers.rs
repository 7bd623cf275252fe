//! Begins and completes DMA transfers for which the card has to wait for its client.

use super::{Machine, Work};
use crate::host::Host;
use crate::ports::SramPort;
use crate::waiting::Job;
use tigon2_model::dma::Direction;
use tigon2_model::{Environment, HostMemory};

impl<H: Host> Machine<H> {
    /// The transfer of this direction that waits for the client, if there is one.
    pub(crate) fn job(&self, direction: Direction) -> Option<Job> {
        let inner = self.lock();
        let transfer = inner.card.inspect().dma_transfer(direction)?;
        let bytes = match direction {
            Direction::Read => vec![0; transfer.length as usize],
            Direction::Write => inner.card.inspect().dma_bytes(&SramPort(&self.host))?,
        };
        Some(Job {
            direction,
            number: inner.card.inspect().dma_begun(direction),
            transfer,
            // Under the lock: a reset or the client's end takes it back.
            ticket: self.client.dma.ticket(),
            bytes,
        })
    }

    /// A transfer is complete, if it is still under way.
    pub(crate) fn complete(&self, direction: Direction, number: u64, moved: &mut dyn HostMemory) {
        self.enter(Work::Now, |inner, env| {
            if inner.card.inspect().dma_begun(direction) == number {
                let mut env = Environment {
                    now: env.now,
                    sram: &mut *env.sram,
                    host: moved,
                    cpus: &mut *env.cpus,
                };
                inner.card.stages(&mut env).dma_complete(direction);
            }
        });
    }
}
