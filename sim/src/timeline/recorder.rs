//! Records events in a bounded list.
//!
//! The machine calls the recorder where something begins or ends; nothing in the machine depends
//! on it. When the list is full, the oldest events are discarded and counted.

use super::Timeline;
use super::event::{DmaTransfer, Event, Run, Span};
use super::host::{self, HostRings};
use crate::clock::Clock;
use crate::memory::{HostMemories, SramBytes};
use crate::timing::counts::Tally;
use crate::timing::dma::BusUse;
use host_interface::bar;
use host_interface::bd::SendBd;
use host_interface::extension::Extension;
use std::collections::{BTreeMap, VecDeque};
use tigon2_chip::Cpu;
use tigon2_model::Direction;
use tigon2_model::dma::Transfer;

/// How many events are kept by default: some ten milliseconds of load.
pub const LIMIT: usize = 1 << 18;
/// Longest frame whose bytes are looked at for its number.
const NAMED_BYTES: usize = 128;

/// Tells the number of a frame, if it has one.
pub type Namer = fn(&[u8]) -> Option<u64>;

/// What a CPU is in.
#[derive(Clone, Copy, Debug, Default)]
struct Dispatching {
    /// The handler that was entered: bit, first cycle, what had been counted, dispatch.
    running: Option<(u8, u64, Tally, u64)>,
    /// The last read of the event register, and what had been counted.
    poll: Option<(u64, Tally)>,
}

/// What a DMA channel is doing.
#[derive(Clone, Copy, Debug, Default)]
struct Moving {
    start: u64,
    begun: u64,
    descriptor: Option<u32>,
}

/// Takes events down.
#[derive(Clone, Debug)]
pub struct Recorder {
    events: VecDeque<Event>,
    limit: usize,
    left_out: u64,
    from: u64,
    namer: Namer,
    cpus: [Dispatching; Cpu::MOST],
    channels: [Moving; 2],
    bus: Option<BusUse>,
    sending: Option<(u64, u32, u32)>,
    receiving: Option<u64>,
    interrupt: bool,
    send_consumer: Option<u32>,
    send_producer: Option<u32>,
    /// The first bytes of the frame whose BDs are being given.
    frame: Vec<u8>,
    rings: HostRings,
}

impl Recorder {
    /// Keeps the last `limit` events; `namer` gives the numbers of frames.
    pub fn new(limit: usize, namer: Namer) -> Recorder {
        Recorder {
            events: VecDeque::new(),
            limit: limit.max(1),
            left_out: 0,
            from: 0,
            namer,
            cpus: [Dispatching::default(); Cpu::MOST],
            channels: [Moving::default(); 2],
            bus: None,
            sending: None,
            receiving: None,
            interrupt: false,
            send_consumer: None,
            send_producer: None,
            frame: Vec::new(),
            rings: HostRings::default(),
        }
    }

    /// Begins in `cycle` with a card that interrupts or not.
    pub(crate) fn begin(&mut self, cycle: u64, interrupt: bool, sram: &SramBytes) {
        self.from = cycle;
        self.interrupt = interrupt;
        self.send_consumer = Some(consumer(sram));
        self.send_producer = Some(word(sram, bar::MAILBOX_SEND_PRODUCER - bar::DIRECT));
    }

    /// Ends the recording in cycle `to`.
    pub(crate) fn finish(self, clock: Clock, to: u64) -> Timeline {
        let from = match self.events.front() {
            Some(first) if self.left_out != 0 => first.end(),
            _ => self.from,
        };
        let (send_entries, return_entries) = self.rings.entries();
        let queue_entries = self.rings.queue_entries();
        let mut events: Vec<Event> = self.events.into();
        // A CPU that waited is brought forward later than others act.
        events.sort_by_key(Event::end);
        Timeline {
            events,
            from,
            to,
            shown: Span {
                start: from,
                end: to,
            },
            left_out: self.left_out,
            clock,
            handlers: BTreeMap::new(),
            send_entries,
            return_entries,
            queue_entries,
        }
    }

    fn push(&mut self, event: Event) {
        if self.events.len() == self.limit {
            self.events.pop_front();
            self.left_out += 1;
        }
        self.events.push_back(event);
    }

    /// A CPU reads its event register.
    pub(crate) fn polled(&mut self, cpu: Cpu, cycle: u64, tally: Tally) {
        self.cpus[cpu.index()].poll = Some((cycle, tally));
    }

    /// A CPU has jumped into its table: to the handler of a bit, or to idle. The handler
    /// before ended with the last look at the event register: looks in between are its own.
    pub(crate) fn entered(&mut self, cpu: Cpu, cycle: u64, bit: Option<u8>, tally: Tally) {
        let Dispatching { running, poll } = std::mem::take(&mut self.cpus[cpu.index()]);
        let polled = poll.map_or(cycle, |(at, _)| at);
        self.cpus[cpu.index()] = Dispatching {
            running: bit.map(|bit| (bit, cycle, tally, cycle - polled)),
            poll: None,
        };
        if let (Some((bit, start, before, dispatch)), Some((end, after))) = (running, poll) {
            self.push(Event::Run(Run {
                cpu,
                bit,
                span: Span { start, end },
                dispatch,
                tally: after.since(&before),
            }));
        }
    }

    /// A CPU was started anew: what it ran before has no end.
    pub(crate) fn restarted(&mut self, cpu: Cpu) {
        self.cpus[cpu.index()] = Dispatching::default();
    }

    /// A CPU moved the producer of a DMA ring.
    pub(crate) fn queued(&mut self, cpu: Cpu, direction: Direction, from: u32, to: u32, at: u64) {
        if from != to {
            self.push(Event::Queued {
                cpu,
                direction,
                first: from,
                end: to,
                at,
            });
        }
    }

    /// A CPU has stored to SRAM: was it the consumer index that drivers read?
    #[inline]
    pub(crate) fn stored(&mut self, cpu: Cpu, sram: &SramBytes, at: u64) {
        let value = consumer(sram);
        if self.send_consumer != Some(value) {
            self.send_consumer = Some(value);
            self.push(Event::SendConsumer { cpu, value, at });
        }
    }

    /// A DMA channel takes up a descriptor, or what software wrote to its registers.
    pub(crate) fn dma_started(
        &mut self,
        direction: Direction,
        cycle: u64,
        descriptor: Option<u32>,
    ) {
        self.channels[direction.index()] = Moving {
            start: cycle,
            begun: cycle,
            descriptor,
        };
    }

    /// Its descriptor is there.
    pub(crate) fn dma_begun(&mut self, direction: Direction, cycle: u64) {
        self.channels[direction.index()].begun = cycle;
    }

    /// A transfer is about to have its side effects.
    pub(crate) fn dma_completed(
        &mut self,
        direction: Direction,
        cycle: u64,
        transfer: &Transfer,
        sram: &SramBytes,
        host: &HostMemories,
    ) {
        self.rings.look(host::block(|at| word(sram, at)), host);
        let Transfer {
            host: address,
            local,
            length,
            ..
        } = *transfer;
        let words = |at| word(sram, at);
        self.rings.look_at_queues(words, host);
        let payload = self
            .rings
            .payload(direction, address, length, local, host, words);
        let channel = self.channels[direction.index()];
        self.push(Event::Dma(DmaTransfer {
            direction,
            span: Span {
                start: channel.start,
                end: cycle,
            },
            begun: channel.begun,
            descriptor: channel.descriptor.filter(|_| transfer.assist),
            host: address,
            local,
            length,
            payload,
        }));
    }

    /// The PCI bus is as given after a cycle's work, and was free last from `free` on.
    pub(crate) fn bus(&mut self, now: Option<BusUse>, free: u64) {
        if self.bus == now {
            return;
        }
        if let Some(before) = std::mem::replace(&mut self.bus, now) {
            let span = Span {
                start: before.begin.ceil(),
                end: free,
            };
            self.push(Event::Bus {
                direction: before.owner,
                span,
                data: before.data.ceil(),
            });
        }
    }

    /// The transmitter has taken a frame.
    pub(crate) fn sending(&mut self, cycle: u64, local: u32, length: u32) {
        self.sending = Some((cycle, local, length));
    }

    /// The frame has left.
    pub(crate) fn sent(&mut self, cycle: u64) {
        if let Some((start, local, length)) = self.sending.take() {
            let span = Span { start, end: cycle };
            self.push(Event::Transmit {
                span,
                local,
                length,
            });
        }
    }

    /// A frame begins to arrive.
    pub(crate) fn receiving(&mut self, cycle: u64) {
        self.receiving = Some(cycle);
    }

    /// It is in NIC memory, or dropped.
    pub(crate) fn received(&mut self, cycle: u64, local: Option<u32>, frame: &[u8]) {
        let span = Span {
            start: self.receiving.take().unwrap_or(cycle),
            end: cycle,
        };
        self.push(Event::Receive {
            span,
            local,
            length: frame.len() as u32,
            number: (self.namer)(frame),
        });
    }

    /// INTA# is as given.
    pub(crate) fn interrupt(&mut self, asserted: bool, at: u64) {
        if self.interrupt != asserted {
            self.interrupt = asserted;
            self.push(Event::Interrupt { asserted, at });
        }
    }

    /// The host wrote a word of BAR 0.
    pub(crate) fn host_wrote(
        &mut self,
        offset: u32,
        value: u32,
        at: u64,
        sram: &SramBytes,
        host: &HostMemories,
    ) {
        let name = match offset {
            bar::MAILBOX_HOST_INTERRUPT => "interrupt",
            bar::MAILBOX_COMMAND_PRODUCER => "command producer",
            bar::MAILBOX_SEND_PRODUCER => "send producer",
            bar::MAILBOX_STANDARD_PRODUCER => "standard producer",
            bar::MAILBOX_JUMBO_PRODUCER => "jumbo producer",
            bar::MAILBOX_MINI_PRODUCER => "mini producer",
            _ => return,
        };
        self.push(Event::Mailbox { name, value, at });
        if offset == bar::MAILBOX_SEND_PRODUCER {
            self.rings.look(host::block(|at| word(sram, at)), host);
            if let Some(from) = self.send_producer.replace(value) {
                self.send_bds(from, value, at, host);
            }
        }
    }

    fn send_bds(&mut self, from: u32, to: u32, at: u64, host: &HostMemories) {
        for (index, address) in self.rings.send_bds(from, to).collect::<Vec<_>>() {
            let words = std::array::from_fn(|n| host.word(address + 4 * n as u64).unwrap_or(0));
            let bd = SendBd::from_words(words);
            let length = usize::from(bd.length());
            let known = self.frame.len();
            let more = length.min(NAMED_BYTES.saturating_sub(known));
            self.frame.resize(known + more, 0);
            if !host.look(bd.address.get(), &mut self.frame[known..]) {
                self.frame.truncate(known);
            }
            let last = bd.flags().end();
            let number = last.then(|| (self.namer)(&self.frame)).flatten();
            if last {
                self.frame.clear();
            }
            self.push(Event::SendBd {
                index,
                host: bd.address.get(),
                length: u32::from(bd.length()),
                last,
                number,
                at,
            });
        }
    }
}

fn word(sram: &SramBytes, address: u32) -> u32 {
    u32::from_be_bytes(sram.load(address & !3))
}

#[inline]
fn consumer(sram: &SramBytes) -> u32 {
    word(sram, Extension::SendConsumer.nic_address())
}
