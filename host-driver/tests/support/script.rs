//! The script that plays firmware: commands, frames both ways, reports, and all of it wrong on
//! request.

use super::ScriptedCard;
use host_driver::nic::Ring;
use host_interface::bar;
use host_interface::bd::{ReceiveBd, SendBd};
use host_interface::command::{Command, CommandCode};
use host_interface::event::{ERROR_BAD_CONFIGURATION, Event, EventCode, LINK_GIGABIT_UP};
use host_interface::extension::{self, Extension};
use host_interface::gencom::Gencom;
use host_interface::info::RcbFlags;
use host_interface::ring;
use tigon2_model::Effect;

/// The state of the script that plays firmware.
#[derive(Default)]
pub(super) struct Firmware {
    pub(super) running: bool,
    pub(super) info: u64,
    pub(super) send_entries: u32,
    pub(super) event_producer: u32,
    pub(super) command_consumer: u32,
    pub(super) send_consumer: u32,
    /// Of the standard, the jumbo and the mini ring.
    pub(super) buffer_consumers: [u32; 3],
    pub(super) return_entries: u32,
    pub(super) return_producer: u32,
    pub(super) partial: Vec<u8>,
    pub(super) last_returned: ReceiveBd,
}

impl ScriptedCard {
    /// Puts an event into the ring.
    pub fn event(&mut self, event: Event) {
        let ring = self.dma_pointer(0x400);
        let [first, second] = event.pack();
        let place = ring + 8 * u64::from(self.firmware.event_producer);
        self.set_dma_word(place, first);
        self.set_dma_word(place + 4, second);
        self.firmware.event_producer =
            ring::advance(self.firmware.event_producer, 1, ring::EVENT_ENTRIES);
        let reported = self
            .faults
            .event_producer
            .unwrap_or(self.firmware.event_producer);
        self.set_dma_word(self.dma_pointer(0x470), reported);
        self.raise();
    }

    fn die(&mut self, (code, argument, pc): (u32, u32, u32)) {
        self.set_extension(Extension::FatalCode, code);
        self.set_extension(Extension::FatalArgument, argument);
        self.set_extension(Extension::FatalCpuPc, pc);
        self.set_extension(Extension::State, extension::State::Fatal.number());
        self.firmware.running = false;
    }

    fn start(&mut self) {
        let high = u64::from(self.gencom(Gencom::InfoHigh));
        let info = high << 32 | u64::from(self.gencom(Gencom::InfoLow));
        self.firmware = Firmware {
            running: true,
            info,
            ..Firmware::default()
        };
        self.firmware.send_entries = self.dma_word(info + 0x428) >> 16;
        self.firmware.return_entries = self.dma_word(info + 0x468) >> 16;
        if let Some(report) = self.faults.fatal_at_start {
            self.die(report);
            return;
        }
        if let Some(code) = self.faults.error_at_start {
            self.event(Event::new(EventCode::Error, code));
            return;
        }
        if self.faults.silent {
            return;
        }
        if !self.faults.foreign {
            self.set_extension(Extension::Version, extension::VERSION);
            self.set_extension(Extension::Magic, extension::MAGIC);
            self.set_extension(Extension::State, extension::State::Running.number());
        }
        self.event(Event::new(EventCode::FirmwareOperational, 0));
        if !self.faults.no_link {
            self.event(Event::new(EventCode::LinkState, LINK_GIGABIT_UP));
        }
    }

    fn take_commands(&mut self, producer: u32) {
        if self.faults.deaf {
            return;
        }
        while self.firmware.command_consumer != producer {
            let index = self.firmware.command_consumer;
            let word = self.bench.word(0x300 + 4 * index);
            let command = Command::unpack(word).expect("a command that there is");
            self.commands.push(word);
            let entries = 1 + command.command.extra_entries();
            self.firmware.command_consumer = ring::advance(index, entries, ring::COMMAND_ENTRIES);
            let reported = self
                .faults
                .command_consumer
                .unwrap_or(self.firmware.command_consumer);
            self.bench
                .set_word(Gencom::CommandConsumer.nic_address(), reported);
            if self.faults.finds_bad_ring == Some(command.command) {
                self.event(Event::new(EventCode::Error, ERROR_BAD_CONFIGURATION));
            }
            if let Some((_, code)) = self
                .faults
                .refuse
                .filter(|(kind, _)| *kind == command.command)
            {
                self.event(Event::new(EventCode::Error, code));
            } else if !self.faults.no_events {
                match command.command {
                    CommandCode::UpdateStatistics => {
                        self.event(Event::new(EventCode::StatisticsUpdated, 0));
                    }
                    CommandCode::AddMulticastExtended | CommandCode::AddMulticast => {
                        self.event(Event::new(EventCode::MulticastUpdated, 1));
                    }
                    CommandCode::DeleteMulticastExtended | CommandCode::DeleteMulticast => {
                        self.event(Event::new(EventCode::MulticastUpdated, 2));
                    }
                    CommandCode::ResetJumboRing => {
                        self.firmware.buffer_consumers[Ring::Jumbo as usize] = 0;
                        self.event(Event::new(EventCode::JumboRingReset, 0));
                    }
                    _ => {}
                }
            }
        }
    }

    fn take_sent(&mut self, producer: u32) {
        self.send_rings += 1;
        if let Some(report) = self.faults.fatal_at_send {
            self.die(report);
            return;
        }
        let ring_address = self.dma_pointer(0x420);
        let flags = RcbFlags::from_bits(self.dma_word(self.firmware.info + 0x428) as u16);
        let host_ring = flags.host_ring();
        let mut bds = Vec::new();
        while self.firmware.send_consumer != producer {
            let place = ring_address + 16 * u64::from(self.firmware.send_consumer);
            let words = [0, 4, 8, 12].map(|offset| match host_ring {
                true => self.dma_word(place + offset),
                false => self.bench.word((place + offset) as u32),
            });
            let bd = SendBd::from_words(words);
            let mut bytes = vec![0; usize::from(bd.length())];
            let (memory, offset) = self.dma(bd.address.get());
            memory.read_bytes(offset, &mut bytes).expect("inside");
            self.firmware.partial.extend(bytes);
            bds.push(bd);
            if bd.flags().end() {
                self.sent.push(std::mem::take(&mut self.firmware.partial));
                self.sent_bds.push(std::mem::take(&mut bds));
            }
            self.firmware.send_consumer =
                ring::advance(self.firmware.send_consumer, 1, self.firmware.send_entries);
        }
        if self.faults.keeps_bds {
            return;
        }
        self.report_sent();
    }

    /// Reports the BDs that were taken.
    pub fn report_sent(&mut self) {
        let reported = self
            .faults
            .send_consumer
            .unwrap_or(self.firmware.send_consumer);
        self.set_dma_word(self.dma_pointer(0x480), reported);
        self.set_extension(Extension::SendConsumer, reported);
        self.raise();
    }

    /// Hands a frame to the driver, as if it had come from the wire. False if there is
    /// no buffer for it.
    pub fn deliver(&mut self, frame: &[u8]) -> bool {
        self.deliver_in(Ring::Standard, frame, |bd| bd)
    }

    /// Hands a frame over in a buffer of a ring, with a return BD that was changed.
    pub fn deliver_in(
        &mut self,
        ring: Ring,
        frame: &[u8],
        change: impl Fn(ReceiveBd) -> ReceiveBd,
    ) -> bool {
        let (mailbox, block, entries) = match ring {
            Ring::Standard => (3, 0x430, ring::STANDARD_ENTRIES),
            Ring::Jumbo => (4, 0x440, ring::JUMBO_ENTRIES),
            Ring::Mini => (5, 0x450, ring::MINI_ENTRIES),
        };
        let flags = RcbFlags::from_bits(self.dma_word(self.firmware.info + block + 8) as u16);
        assert!(!flags.disabled(), "the ring is there");
        let producer = self.bench.word(0x100 + 8 * mailbox + 4);
        let consumer = self.firmware.buffer_consumers[ring as usize];
        if consumer == producer {
            return false;
        }
        self.firmware.buffer_consumers[ring as usize] = ring::advance(consumer, 1, entries);
        let extended = flags.extended_bd();
        let size = if extended { 64 } else { 32 };
        let place = self.dma_pointer(block) + size * u64::from(consumer);
        let word = |offset: u64| self.dma_word(place + offset);
        let base = if extended { 32 } else { 0 };
        let bd =
            ReceiveBd::from_words([0, 4, 8, 12, 16, 20, 24, 28].map(|offset| word(base + offset)));
        let mut buffers = vec![(bd.address.get(), usize::from(bd.length()))];
        if extended {
            let address = |at| u64::from(word(at)) << 32 | u64::from(word(at + 4));
            let (lengths, last) = (word(24), word(28));
            buffers.push((address(0), (lengths >> 16) as usize));
            buffers.push((address(8), (lengths & 0xFFFF) as usize));
            buffers.push((address(16), (last >> 16) as usize));
        }
        let mut rest = frame;
        for (address, bytes) in buffers {
            let (now, later) = rest.split_at(bytes.min(rest.len()));
            let (memory, offset) = self.dma(address);
            memory.write_bytes(offset, now).expect("inside");
            rest = later;
        }
        assert!(rest.is_empty(), "the buffer is long enough");
        self.hand_back(change(bd.with_length(frame.len() as u16)));
        true
    }

    /// Puts a return BD into the return ring.
    pub fn hand_back(&mut self, bd: ReceiveBd) {
        let bd = match self.faults.return_bd {
            Some(change) => change(bd),
            None => bd,
        };
        let place = self.dma_pointer(0x460) + 32 * u64::from(self.firmware.return_producer);
        for (offset, word) in (0..).step_by(4).zip(bd.words()) {
            self.set_dma_word(place + offset, word);
        }
        self.firmware.return_producer = ring::advance(
            self.firmware.return_producer,
            1,
            self.firmware.return_entries,
        );
        let reported = self
            .faults
            .return_producer
            .unwrap_or(self.firmware.return_producer);
        self.set_dma_word(self.dma_pointer(0x478), reported);
        self.firmware.last_returned = bd;
        self.raise();
    }

    /// Hands the last return BD over once more.
    pub fn repeat_last(&mut self) {
        self.hand_back(self.firmware.last_returned);
    }

    /// What CPU A does after a BAR write.
    pub(super) fn after_write(&mut self, offset: u32) {
        let started = self
            .bench
            .effects()
            .iter()
            .any(|effect| matches!(effect, Effect::CpuStart { .. }));
        if started {
            self.start();
        } else if self.bench.card.inspect().halted(tigon2_chip::Cpu::A) {
            self.firmware.running = false;
        }
        if !self.firmware.running {
            return;
        }
        match offset {
            bar::MAILBOX_COMMAND_PRODUCER => {
                let producer = self.bench.word(0x100 + 8 + 4);
                self.take_commands(producer);
            }
            bar::MAILBOX_SEND_PRODUCER if !started => {
                let producer = self.bench.word(0x100 + 2 * 8 + 4);
                self.take_sent(producer);
            }
            _ => {}
        }
    }
}
