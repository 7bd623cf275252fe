//! A model of the card's queues over classic mode.

use super::{MOST_QUEUES, QueueReception, Spread};
use crate::hosts::card::HostCard;
use crate::hosts::headers;
use crate::workload::WorkloadError;
use std::collections::VecDeque;

/// A model of the card's queues over classic mode: what the firmware's queue mode does, done
/// to the frames of the one return ring by the host, in no time.
///
/// Not a way to drive a card. It lets policies run against the classic firmware, and stands
/// beside queue mode as a second opinion.
#[derive(Debug)]
pub struct ModelledQueues {
    queues: Vec<Queue>,
    spread: Spread,
    next: usize,
    capacity: usize,
    /// Bits of queues that have raised the interrupt.
    raised: u32,
    asserted: bool,
}

#[derive(Debug, Default)]
struct Queue {
    frames: VecDeque<Vec<u8>>,
    polled: bool,
    dropped: u64,
}

impl ModelledQueues {
    /// So many queues (at least 1, at most [`MOST_QUEUES`]) with room for `capacity` frames
    /// each.
    pub fn new(queues: usize, spread: Spread, capacity: usize) -> ModelledQueues {
        let queues = queues.clamp(1, MOST_QUEUES);
        ModelledQueues {
            queues: (0..queues).map(|_| Queue::default()).collect(),
            spread,
            next: 0,
            capacity,
            raised: 0,
            asserted: false,
        }
    }

    fn queue_of(&mut self, frame: &[u8]) -> usize {
        let mask = self.queues.len() - 1;
        match self.spread {
            Spread::SourceAddress => {
                headers::source(frame).map_or(0, |source| usize::from(source[3]) & mask)
            }
            Spread::RoundRobin => {
                let queue = self.next;
                self.next = (queue + 1) % self.queues.len();
                queue
            }
        }
    }

    /// A frame has arrived.
    fn arrive(&mut self, frame: Vec<u8>) {
        let at = self.queue_of(&frame);
        let queue = &mut self.queues[at];
        if queue.frames.len() >= self.capacity {
            queue.dropped += 1;
            return;
        }
        queue.frames.push_back(frame);
        if !queue.polled {
            self.raise(at);
        }
    }

    fn raise(&mut self, at: usize) {
        self.queues[at].polled = true;
        self.raised |= 1 << at;
        self.asserted = true;
    }

    /// Sorts what the classic card has received.
    fn sort(&mut self, card: &mut HostCard) -> Result<(), WorkloadError> {
        card.clock().set_free(true);
        let sorted = self.sort_for_nothing(card);
        card.clock().set_free(false);
        sorted
    }

    fn sort_for_nothing(&mut self, card: &mut HostCard) -> Result<(), WorkloadError> {
        if card.interrupt() {
            card.acknowledge()?;
            card.service()?;
        }
        for frame in card.receive(u32::MAX)? {
            self.arrive(frame);
        }
        Ok(())
    }
}

impl QueueReception for ModelledQueues {
    fn queues(&self) -> usize {
        self.queues.len()
    }

    fn line(&mut self, card: &mut HostCard) -> Result<bool, WorkloadError> {
        let now = card.now();
        card.clock().set(now);
        self.sort(card)?;
        Ok(self.asserted)
    }

    fn acknowledge(&mut self, card: &mut HostCard) -> Result<u32, WorkloadError> {
        // What the real service routine does on the bus: acknowledge, and read back.
        card.acknowledge()?;
        self.sort(card)?;
        self.asserted = false;
        Ok(std::mem::take(&mut self.raised))
    }

    fn poll(
        &mut self,
        card: &mut HostCard,
        queue: usize,
        budget: u32,
    ) -> Result<Vec<Vec<u8>>, WorkloadError> {
        self.sort(card)?;
        let frames = &mut self.queues[queue].frames;
        let count = frames.len().min(budget as usize);
        Ok(frames.drain(..count).collect())
    }

    fn rearm(&mut self, card: &mut HostCard, queue: usize) -> Result<(), WorkloadError> {
        // One mailbox write of the real card; this one has no such mailbox, so that the
        // acknowledgement's takes its place in time.
        card.pass_write();
        self.sort(card)?;
        self.queues[queue].polled = false;
        if !self.queues[queue].frames.is_empty() {
            self.raise(queue);
        }
        Ok(())
    }

    fn dropped(&mut self, card: &mut HostCard) -> Result<Vec<u64>, WorkloadError> {
        self.sort(card)?;
        Ok(self.queues.iter().map(|queue| queue.dropped).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::PacketBuilder;

    fn frame(source: [u8; 4]) -> Vec<u8> {
        let builder = PacketBuilder::ethernet2([2; 6], [4; 6])
            .ipv4(source, [10, 77, 0, 1], 64)
            .udp(1, 2);
        let mut frame = Vec::new();
        builder.write(&mut frame, &[0; 18]).expect("to memory");
        frame
    }

    #[test]
    fn a_polled_queue_raises_nothing() {
        let mut queues = ModelledQueues::new(4, Spread::SourceAddress, 2);
        queues.arrive(frame([10, 77, 1, 6]));
        assert_eq!((queues.raised, queues.asserted), (1 << 2, true));
        (queues.raised, queues.asserted) = (0, false);
        queues.arrive(frame([10, 77, 1, 2]));
        assert!(!queues.asserted, "queue 2 is polled");
        queues.arrive(frame([10, 77, 9, 10]));
        assert_eq!(queues.queues[2].dropped, 1, "it holds two frames");
        queues.arrive(frame([10, 77, 1, 3]));
        assert_eq!(queues.raised, 1 << 3);
        assert_eq!((queues.queues[3].dropped, queues.queues()), (0, 4));
    }

    #[test]
    fn round_robin_asks_nobody() {
        let mut queues = ModelledQueues::new(4, Spread::RoundRobin, 10);
        for _ in 0..6 {
            queues.arrive(frame([10, 77, 1, 0]));
        }
        let fill: Vec<_> = queues.queues.iter().map(|one| one.frames.len()).collect();
        assert_eq!(fill, [2, 2, 1, 1]);
    }
}
