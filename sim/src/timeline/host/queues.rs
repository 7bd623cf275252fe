//! The rings of the receive queues, from the queue control block; [`host_interface::queue`].
//!
//! The queue block says how many queues are open and where the host's control block is. It is read
//! again when one of these changes, so a recording may begin or end in either mode.

use super::HostRing;
use crate::memory::HostMemories;
use crate::timeline::event::{Payload, Returned, Verdict};
use host_interface::bd;
use host_interface::bd::ReturnBd;
use host_interface::extension::Extension;
use host_interface::info::RingControlBlock;
use host_interface::queue::control::QueueControlBlock;
use host_interface::queue::{BlockWord, QUEUES_MAX, QueueControl};
use std::mem::{offset_of, size_of};

/// Names of the buffer rings.
const NAMES: [&str; QUEUES_MAX] = [
    "queue 0", "queue 1", "queue 2", "queue 3", "queue 4", "queue 5", "queue 6", "queue 7",
];

/// The rings of a queue.
#[derive(Clone, Copy, Debug, Default)]
struct Queue {
    buffers: HostRing,
    returned: HostRing,
    status: u64,
}

/// The rings of all queues.
#[derive(Clone, Debug, Default)]
pub(super) struct QueueRings {
    /// How many queues are open, and where the control block is.
    known: (u32, u64),
    /// The open queues, or those that were open last.
    queues: Vec<Queue>,
}

impl QueueRings {
    /// Takes the rings of the queues that are open. `word` reads NIC memory.
    pub fn look(&mut self, word: impl Fn(u32) -> u32, host: &HostMemories) {
        let block = word(Extension::Queues.nic_address());
        if block == 0 {
            return;
        }
        let of_block = |at: BlockWord| word(block + at as u32);
        let control = u64::from(of_block(BlockWord::ControlHigh)) << 32
            | u64::from(of_block(BlockWord::ControlLow));
        let open = of_block(BlockWord::Open).min(QUEUES_MAX as u32);
        if (open, control) == self.known {
            return;
        }
        self.known = (open, control);
        if open != 0 {
            let first = control + offset_of!(QueueControlBlock, queue) as u64;
            let each = (0..u64::from(open)).map(|n| first + n * size_of::<QueueControl>() as u64);
            self.queues = each.map(|at| Queue::read(at, host)).collect();
        }
    }

    /// The open queues, with their numbers.
    fn open(&self) -> impl Iterator<Item = (u8, &Queue)> {
        (0..).zip(&self.queues).take(self.known.0 as usize)
    }

    /// Entries of each return ring.
    pub fn entries(&self) -> Vec<u32> {
        let queues = self.queues.iter();
        queues.map(|queue| queue.returned.entries as u32).collect()
    }

    /// What a transfer from the host carries, if it is of a queue.
    pub fn read(&self, address: u64, bytes: u32) -> Option<Payload> {
        self.open().find_map(|(number, queue)| {
            Some(Payload::ReceiveBds {
                ring: NAMES[usize::from(number)],
                first: queue.buffers.index(address)?,
                count: queue.buffers.count(bytes),
            })
        })
    }

    /// What a transfer to the host carries, if it is of a queue; `words` reads NIC memory.
    pub fn written(
        &self,
        address: u64,
        bytes: u32,
        local: u32,
        host: &HostMemories,
        word: impl Fn(u32) -> u32,
    ) -> Option<Payload> {
        self.open().find_map(|(number, queue)| {
            if address == queue.status {
                return Some(Payload::QueueStatus {
                    queue: number,
                    producer: word(local),
                });
            }
            let first = queue.returned.index(address)?;
            let size = size_of::<bd::ReceiveBd>() as u32;
            let frames = (0..queue.returned.count(bytes)).map(|n| {
                let at = local + n * size;
                let back = ReturnBd::from_words(std::array::from_fn(|n| word(at + 4 * n as u32)));
                Returned {
                    buffer: queue.buffer(back.index().into(), host),
                    verdict: Some(Verdict {
                        queue: back.queue(),
                        hash_type: back.hash_type().unwrap_or_default(),
                        hash: back.hash(),
                    }),
                }
            });
            Some(Payload::ReturnBds {
                queue: Some(number),
                first,
                frames: frames.collect(),
            })
        })
    }
}

impl Queue {
    /// From its part of the control block.
    fn read(at: u64, host: &HostMemories) -> Queue {
        let word = |offset: usize| host.word(at + offset as u64).unwrap_or(0);
        let pointer = |offset: usize| u64::from(word(offset)) << 32 | u64::from(word(offset + 4));
        let ring = |offset: usize| {
            let length = offset + offset_of!(RingControlBlock, max_len_and_flags);
            HostRing {
                base: pointer(offset),
                entry: size_of::<bd::ReceiveBd>() as u64,
                entries: u64::from(word(length) >> 16),
            }
        };
        Queue {
            buffers: ring(offset_of!(QueueControl, buffers)),
            returned: ring(offset_of!(QueueControl, returns)),
            status: pointer(offset_of!(QueueControl, status)),
        }
    }

    /// The host address of the buffer of the host's own BD with an index, which need not stand at
    /// that place of the ring.
    fn buffer(&self, index: u64, host: &HostMemories) -> u64 {
        self.buffers.buffer(0, index, host)
    }
}
