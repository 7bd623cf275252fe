//! The locations of the host's rings, from the general information block and, in queue mode, from
//! the queue control block; they identify a transfer by its host address.
//!
//! Host/NIC software interface, "General information block". The block is read from where the
//! firmware reads it, so recordings work with any driver and any firmware.

mod queues;

use super::event::{Payload, Returned};
use crate::memory::HostMemories;
use host_interface::gencom::Gencom;
use host_interface::info::RingControlBlock;
use host_interface::{bd, ring};
use queues::QueueRings;
use std::mem::{offset_of, size_of};
use tigon2_model::Direction;

use host_interface::info::GeneralInformationBlock as Info;

/// A ring in host memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct HostRing {
    base: u64,
    entry: u64,
    entries: u64,
}

impl HostRing {
    /// The index of the entry at an address, if the ring has it.
    fn index(&self, address: u64) -> Option<u32> {
        let offset = address.checked_sub(self.base)?;
        (offset < self.entry * self.entries).then(|| (offset / self.entry) as u32)
    }

    /// How many entries so many bytes are.
    fn count(&self, bytes: u32) -> u32 {
        bytes / self.entry.max(1) as u32
    }

    /// The host address in the BD with an index, which stands likely but not surely at that place of
    /// the ring; the address lies `offset` bytes behind the start of its words.
    fn buffer(&self, offset: u64, index: u64, host: &HostMemories) -> u64 {
        let word = |entry: u64, at: usize| {
            let at = self.base + offset + entry * self.entry + at as u64;
            host.word(at).unwrap_or(0)
        };
        let index_offset = offset_of!(bd::ReceiveBd, index_and_length);
        let matches = |entry: &u64| u64::from(word(*entry, index_offset) >> 16) == index;
        let likely = Some(index).filter(|entry| *entry < self.entries);
        let found = likely.into_iter().chain(0..self.entries).find(matches);
        found.map_or(0, |entry| {
            u64::from(word(entry, 0)) << 32 | u64::from(word(entry, 4))
        })
    }
}

/// The rings of one host.
#[derive(Clone, Debug, Default)]
pub(super) struct HostRings {
    /// Host address of the block; 0 while none was given.
    block: u64,
    send: HostRing,
    standard: HostRing,
    jumbo: HostRing,
    mini: HostRing,
    returned: HostRing,
    return_index: u64,
    send_index: u64,
    event_index: u64,
    events: HostRing,
    queues: QueueRings,
}

impl HostRings {
    /// Takes the places of the block at `block`, unless they are known already.
    pub(super) fn look(&mut self, block: u64, host: &HostMemories) {
        if block == self.block {
            return;
        }
        *self = HostRings {
            block,
            queues: std::mem::take(&mut self.queues),
            ..HostRings::default()
        };
        let word = |offset: usize| host.word(block + offset as u64).unwrap_or(0);
        let pointer = |offset: usize| u64::from(word(offset)) << 32 | u64::from(word(offset + 4));
        let control = |offset: usize| RingControlBlock {
            max_len_and_flags: word(offset + offset_of!(RingControlBlock, max_len_and_flags)),
            ..RingControlBlock::new(pointer(offset), 0, Default::default())
        };
        let of = |offset: usize, entry: usize, entries: u32| {
            let control = control(offset);
            let used = control.address.get() != 0 && !control.flags().disabled();
            HostRing {
                base: control.address.get(),
                entry: entry as u64,
                entries: if used { entries.into() } else { 0 },
            }
        };
        let send = control(offset_of!(Info, send));
        let entries = if send.flags().host_ring() {
            send.max_len().into()
        } else {
            0
        };
        self.send = of(offset_of!(Info, send), size_of::<bd::SendBd>(), entries);
        let receive = size_of::<bd::ReceiveBd>();
        let standard = offset_of!(Info, standard);
        self.standard = of(standard, receive, ring::STANDARD_ENTRIES);
        let extended = control(offset_of!(Info, jumbo)).flags().extended_bd();
        let jumbo = if extended {
            size_of::<bd::ExtendedReceiveBd>()
        } else {
            receive
        };
        self.jumbo = of(offset_of!(Info, jumbo), jumbo, ring::JUMBO_ENTRIES);
        self.mini = of(offset_of!(Info, mini), receive, ring::MINI_ENTRIES);
        let back = offset_of!(Info, receive_return);
        let entries = ring::return_entries(control(back).max_len()).unwrap_or(0);
        self.returned = of(back, receive, entries);
        self.events = of(
            offset_of!(Info, event),
            ring::EVENT_BYTES as usize,
            ring::EVENT_ENTRIES,
        );
        self.event_index = pointer(offset_of!(Info, event_producer));
        self.return_index = pointer(offset_of!(Info, return_producer));
        self.send_index = pointer(offset_of!(Info, send_consumer));
    }

    /// Takes the rings of the receive queues, if these have changed. `word` reads NIC memory.
    pub(super) fn look_at_queues(&mut self, word: impl Fn(u32) -> u32, host: &HostMemories) {
        self.queues.look(word, host);
    }

    /// Entries of the return ring of each receive queue.
    pub(super) fn queue_entries(&self) -> Vec<u32> {
        self.queues.entries()
    }

    /// Entries of the send ring and of the receive return ring.
    pub(super) fn entries(&self) -> (u32, u32) {
        (self.send.entries as u32, self.returned.entries as u32)
    }

    /// Entries and BDs of the send ring that were produced from one index to another.
    pub(super) fn send_bds(&self, from: u32, to: u32) -> impl Iterator<Item = (u32, u64)> {
        let entries = self.send.entries as u32;
        let (base, entry) = (self.send.base, self.send.entry);
        let count = if entries == 0 || from >= entries || to >= entries {
            0
        } else {
            (to + entries - from) % entries
        };
        (0..count).map(move |n| {
            let index = (from + n) % entries;
            (index, base + u64::from(index) * entry)
        })
    }

    /// What a transfer carries. `words` reads a word of NIC memory.
    pub(super) fn payload(
        &self,
        direction: Direction,
        address: u64,
        bytes: u32,
        local: u32,
        host: &HostMemories,
        word: impl Fn(u32) -> u32,
    ) -> Payload {
        match direction {
            Direction::Read => {
                if let Some(first) = self.send.index(address) {
                    return Payload::SendBds {
                        first,
                        count: self.send.count(bytes),
                    };
                }
                let rings = [
                    ("standard", self.standard),
                    ("jumbo", self.jumbo),
                    ("mini", self.mini),
                ];
                for (name, ring) in rings {
                    if let Some(first) = ring.index(address) {
                        return Payload::ReceiveBds {
                            ring: name,
                            first,
                            count: ring.count(bytes),
                        };
                    }
                }
                if let Some(payload) = self.queues.read(address, bytes) {
                    return payload;
                }
                let block = self.block..self.block + size_of::<Info>() as u64;
                if block.contains(&address) {
                    return Payload::Control;
                }
                Payload::Data
            }
            Direction::Write => {
                if let Some(first) = self.returned.index(address) {
                    let count = self.returned.count(bytes);
                    let size = size_of::<bd::ReceiveBd>() as u32;
                    let frames = (0..count).map(|n| {
                        let at = local + n * size;
                        let words = std::array::from_fn(|n| word(at + 4 * n as u32));
                        Returned {
                            buffer: self.buffer(&bd::ReceiveBd::from_words(words), host),
                            verdict: None,
                        }
                    });
                    return Payload::ReturnBds {
                        queue: None,
                        first,
                        frames: frames.collect(),
                    };
                }
                if let Some(payload) = self.queues.written(address, bytes, local, host, &word) {
                    return payload;
                }
                if address == self.return_index {
                    return Payload::ReturnIndex(word(local));
                }
                if address == self.send_index {
                    return Payload::SendIndex(word(local));
                }
                let block = self.block..self.block + size_of::<Info>() as u64;
                let control = address == self.event_index
                    || self.events.index(address).is_some()
                    || block.contains(&address);
                if control {
                    Payload::Control
                } else {
                    Payload::Data
                }
            }
        }
    }

    /// The host address of the (first) buffer that a return BD gives back: that of the
    /// host's own BD with its index, which need not stand at that place of the ring.
    fn buffer(&self, back: &bd::ReceiveBd, host: &HostMemories) -> u64 {
        let ring = if back.flags().jumbo_ring() {
            self.jumbo
        } else if back.flags().mini_ring() {
            self.mini
        } else {
            self.standard
        };
        let extended = ring.entry == size_of::<bd::ExtendedReceiveBd>() as u64;
        let offset = if extended {
            offset_of!(bd::ExtendedReceiveBd, base) as u64
        } else {
            0
        };
        ring.buffer(offset, back.index().into(), host)
    }
}

/// Host address of the general information block, as the host wrote it into gencom.
pub(super) fn block(word: impl Fn(u32) -> u32) -> u64 {
    let [high, low] = [Gencom::InfoHigh, Gencom::InfoLow].map(|at| u64::from(word(at as u32)));
    high << 32 | low
}
