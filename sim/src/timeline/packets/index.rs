//! Indexes a recording for lookups.

use super::super::Timeline;
use super::super::event::{DmaTransfer, Event, Payload, Run, Verdict};
use host_interface::queue::QUEUES_MAX;
use std::collections::{BTreeMap, HashMap};
use tigon2_chip::Cpu;
use tigon2_chip::dma::{DESCRIPTOR_BYTES, RING_BYTES, wrap};
use tigon2_chip::events::EventBit;
use tigon2_model::Direction;

/// A return BD.
#[derive(Clone, Copy, Debug)]
pub(super) struct Back {
    /// Its transfer.
    pub place: usize,
    /// Its index in the ring.
    pub index: u32,
    /// The receive queue whose ring it is.
    pub queue: Option<u8>,
    /// What the classifier has found.
    pub verdict: Option<Verdict>,
}

/// Where to find what, in the order of time.
#[derive(Default)]
pub(super) struct Index<'a> {
    pub(super) timeline: Option<&'a Timeline>,
    /// Handler runs by CPU.
    runs: [Vec<(usize, &'a Run)>; 2],
    /// Who queued what into a descriptor of a ring, by channel and offset.
    queued: HashMap<(usize, u32), Vec<(u64, Cpu)>>,
    /// BD fetches by ring index.
    pub(super) fetches: HashMap<u32, Vec<usize>>,
    /// Data by host address (read) and by NIC address (write).
    pub(super) read: HashMap<u64, Vec<usize>>,
    pub(super) write: BTreeMap<u32, Vec<usize>>,
    /// Return BDs by the host address of the buffer.
    pub(super) returns: HashMap<u64, Vec<Back>>,
    pub(super) indices: Vec<(usize, u32)>,
    /// Producers in the status lines of the receive queues.
    pub(super) statuses: [Vec<(usize, u32)>; QUEUES_MAX],
    pub(super) send_indices: Vec<(usize, u32)>,
    /// Frames on their way out, by NIC address.
    pub(super) transmits: HashMap<u32, Vec<usize>>,
    pub(super) consumers: Vec<(usize, u64, Cpu, u32)>,
    pub(super) interrupts: Vec<(usize, u64)>,
    pub(super) mailboxes: HashMap<u64, usize>,
}

impl<'a> Index<'a> {
    pub(super) fn new(timeline: &'a Timeline) -> Index<'a> {
        let mut index = Index {
            timeline: Some(timeline),
            ..Index::default()
        };
        for (place, event) in timeline.events.iter().enumerate() {
            index.add(place, event);
        }
        index
    }

    fn add(&mut self, place: usize, event: &'a Event) {
        match event {
            Event::Run(run) => self.runs[run.cpu.index()].push((place, run)),
            Event::Queued {
                cpu,
                direction,
                first,
                end,
                at,
            } => {
                let mut offset = *first;
                while offset != *end {
                    let key = (direction.index(), offset);
                    self.queued.entry(key).or_default().push((*at, *cpu));
                    offset = next(offset);
                }
            }
            Event::Dma(transfer) => self.add_transfer(place, transfer),
            Event::Transmit { local, .. } => self.transmits.entry(*local).or_default().push(place),
            Event::SendConsumer { cpu, value, at } => {
                self.consumers.push((place, *at, *cpu, *value));
            }
            Event::Interrupt { asserted: true, at } => self.interrupts.push((place, *at)),
            Event::Mailbox { name, at, .. } if *name == "send producer" => {
                self.mailboxes.insert(*at, place);
            }
            _ => {}
        }
    }

    fn add_transfer(&mut self, place: usize, transfer: &DmaTransfer) {
        match &transfer.payload {
            Payload::Data if transfer.direction == Direction::Read => {
                self.read.entry(transfer.host).or_default().push(place);
            }
            Payload::Data => self.write.entry(transfer.local).or_default().push(place),
            Payload::SendBds { first, count } => {
                for n in 0..*count {
                    self.fetches.entry(first + n).or_default().push(place);
                }
            }
            Payload::ReturnBds {
                queue,
                first,
                frames,
            } => {
                for (n, frame) in frames.iter().enumerate() {
                    let back = Back {
                        place,
                        index: first + n as u32,
                        queue: *queue,
                        verdict: frame.verdict,
                    };
                    self.returns.entry(frame.buffer).or_default().push(back);
                }
            }
            Payload::QueueStatus { queue, producer } => {
                if let Some(list) = self.statuses.get_mut(usize::from(*queue)) {
                    list.push((place, *producer));
                }
            }
            Payload::ReturnIndex(value) => self.indices.push((place, *value)),
            Payload::SendIndex(value) => self.send_indices.push((place, *value)),
            Payload::ReceiveBds { .. } | Payload::Control => {}
        }
    }

    pub(super) fn events(&self) -> &'a [Event] {
        self.timeline.map_or(&[], |timeline| &timeline.events)
    }

    pub(super) fn transfer(&self, place: usize) -> Option<&'a DmaTransfer> {
        match self.events().get(place) {
            Some(Event::Dma(transfer)) => Some(transfer),
            _ => None,
        }
    }

    /// The first transfer of a list that began in `from` or later.
    pub(super) fn first_from(
        &self,
        list: Option<&Vec<usize>>,
        from: u64,
    ) -> Option<(usize, &'a DmaTransfer)> {
        let transfers = list?
            .iter()
            .filter_map(|place| Some((*place, self.transfer(*place)?)));
        transfers
            .into_iter()
            .find(|(_, transfer)| transfer.span.start >= from)
    }

    /// The run of a CPU that a cycle is part of.
    pub(super) fn run_at(&self, cpu: Cpu, cycle: u64) -> Option<(usize, &'a Run)> {
        let runs = &self.runs[cpu.index()];
        let behind = runs.partition_point(|(_, run)| run.span.start <= cycle);
        let (place, run) = *runs.get(behind.checked_sub(1)?)?;
        // The last instruction of a run may be the one that ends it.
        (run.span.holds(cycle) || run.span.end == cycle).then_some((place, run))
    }

    /// Who queued a transfer's descriptor, and when.
    pub(super) fn queued_by(&self, transfer: &DmaTransfer) -> Option<(u64, usize, &'a Run)> {
        let key = (transfer.direction.index(), transfer.descriptor?);
        let queued = self.queued.get(&key)?;
        let behind = queued.partition_point(|(at, _)| *at <= transfer.span.start);
        let (at, cpu) = *queued.get(behind.checked_sub(1)?)?;
        let (place, run) = self.run_at(cpu, at)?;
        Some((at, place, run))
    }

    /// The run that took the mailbox event between two cycles.
    pub(super) fn mailbox_run(&self, from: u64, to: u64) -> Option<(usize, &'a Run)> {
        let bit = EventBit::Mailbox as u8;
        let of_cpu = |runs: &Vec<(usize, &'a Run)>| {
            let behind = runs.partition_point(|(_, run)| run.span.start <= to);
            let before = runs[..behind].iter().rev();
            let near = before.copied().take_while(|(_, run)| run.span.end > from);
            near.into_iter().find(|(_, run)| run.bit == bit)
        };
        self.runs.iter().find_map(of_cpu)
    }

    pub(super) fn index_after(
        &self,
        list: &[(usize, u32)],
        from: u64,
        index: u32,
        entries: u32,
    ) -> Option<(usize, &'a DmaTransfer)> {
        let behind = list.partition_point(|(place, _)| {
            self.transfer(*place)
                .is_none_or(|transfer| transfer.span.end < from)
        });
        let found = list[behind..]
            .iter()
            .find(|(_, value)| covers(*value, index, entries))?;
        Some((found.0, self.transfer(found.0)?))
    }
}

/// Whether a consumer or producer index has passed an entry: it is less than half a ring
/// ahead.
pub(super) const fn covers(value: u32, index: u32, entries: u32) -> bool {
    if entries == 0 {
        return false;
    }
    let ahead = value.wrapping_sub(index.wrapping_add(1)) & (entries - 1);
    ahead < entries / 2
}

/// The offset of the descriptor behind one.
const fn next(offset: u32) -> u32 {
    wrap(offset + DESCRIPTOR_BYTES, RING_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_covers_the_half_ring_behind_it() {
        assert!(covers(5, 4, 128));
        assert!(!covers(4, 4, 128), "an index points behind the entry");
        assert!(covers(0, 127, 128));
        assert!(covers(60, 127, 128));
        assert!(!covers(100, 127, 128), "this is an older one");
        assert!(!covers(1, 0, 0));
    }
}
