//! A card whose chip is the hardware model and whose firmware is a script.
//!
//! [`ScriptedCard`] is a [`Transport`] without MIPS code: registers, window, mailboxes and EEPROM
//! are those of the model; when CPU A starts, a few lines of Rust act as firmware. [`Faults`]
//! selects their errors.

#![allow(dead_code)] // Each test file uses a part of it.

pub mod shared;

use std::time::Duration;

use host_driver::nic::Ring;
use host_driver::transport::{Transport, TransportError, Vector};
use host_driver::{Config, DmaMemory, Nic};
use host_interface::bar;
use host_interface::bd::{ReceiveBd, SendBd};
use host_interface::command::{Command, CommandCode};
use host_interface::event::{ERROR_BAD_CONFIGURATION, Event, EventCode, LINK_GIGABIT_UP};
use host_interface::extension::{self, Extension};
use host_interface::gencom::Gencom;
use host_interface::image::{INTERFACE_VERSION, Image};
use host_interface::info::RcbFlags;
use host_interface::ring;
use tigon2_chip::Register;
use tigon2_model::Effect;
use tigon2_model::testing::Bench;

/// Station address of the scripted card.
pub const STATION: [u8; 6] = [0x00, 0x60, 0xCF, 0x20, 0x12, 0x34];

/// What the script does wrong.
#[derive(Default)]
pub struct Faults {
    /// It never reports itself operational.
    pub silent: bool,
    /// It stops with this report (code, argument, PC) at start.
    pub fatal_at_start: Option<(u32, u32, u32)>,
    /// It stops with this report when it is given frames to send.
    pub fatal_at_send: Option<(u32, u32, u32)>,
    /// It reports an error of this code at start.
    pub error_at_start: Option<u16>,
    /// It takes no commands.
    pub deaf: bool,
    /// It takes commands but never answers with an event.
    pub no_events: bool,
    /// It refuses commands of this kind with this error code.
    pub refuse: Option<(CommandCode, u16)>,
    /// It finds something wrong in a ring while it takes commands of this kind, and carries
    /// them out.
    pub finds_bad_ring: Option<CommandCode>,
    /// It takes send BDs but never reports them.
    pub keeps_bds: bool,
    /// It reports this send consumer index instead of the true one.
    pub send_consumer: Option<u32>,
    /// It reports this event producer index instead of the true one.
    pub event_producer: Option<u32>,
    /// It reports this return producer index instead of the true one.
    pub return_producer: Option<u32>,
    /// It reports this command consumer index instead of the true one.
    pub command_consumer: Option<u32>,
    /// It changes return BDs before it hands them over.
    pub return_bd: Option<fn(ReceiveBd) -> ReceiveBd>,
    /// It raises its interrupt all the time.
    pub storm: bool,
    /// The link stays down.
    pub no_link: bool,
    /// It is another firmware: no extension words.
    pub foreign: bool,
}

/// The state of the script that plays firmware.
#[derive(Default)]
struct Firmware {
    running: bool,
    info: u64,
    send_entries: u32,
    event_producer: u32,
    command_consumer: u32,
    send_consumer: u32,
    /// Of the standard, the jumbo and the mini ring.
    buffer_consumers: [u32; 3],
    return_entries: u32,
    return_producer: u32,
    partial: Vec<u8>,
    last_returned: ReceiveBd,
}

/// The card.
pub struct ScriptedCard {
    /// The hardware.
    pub bench: Bench,
    /// What goes wrong.
    pub faults: Faults,
    /// Frames that the driver has sent.
    pub sent: Vec<Vec<u8>>,
    /// The BDs of each of them.
    pub sent_bds: Vec<Vec<SendBd>>,
    /// Send mailbox writes.
    pub send_rings: u32,
    /// BAR writes since the last [`ScriptedCard::forget_writes`].
    pub writes: u32,
    /// BAR reads and writes (true) in their order, while it is `Some`.
    pub accesses: Option<Vec<(bool, u32)>>,
    /// Commands that were taken.
    pub commands: Vec<u32>,
    firmware: Firmware,
    memory: Vec<DmaMemory>,
    interrupt: bool,
    masked: bool,
    next_iova: u64,
}

impl Default for ScriptedCard {
    fn default() -> Self {
        let mut bench = Bench::default();
        bench.card.set_mac_address(STATION);
        Self {
            bench,
            faults: Faults::default(),
            sent: Vec::new(),
            sent_bds: Vec::new(),
            send_rings: 0,
            writes: 0,
            accesses: None,
            commands: Vec::new(),
            firmware: Firmware::default(),
            memory: Vec::new(),
            interrupt: false,
            masked: false,
            next_iova: 0x1_0000_0000,
        }
    }
}

/// A firmware file that the driver accepts.
pub fn firmware_file() -> Vec<u8> {
    let code = [0x11, 0x22, 0x33, 0x44].repeat(600);
    let image = Image::new(INTERFACE_VERSION, 0x4010, 0x4000, &code).expect("a good image");
    [image.header().as_slice(), image.code()].concat()
}

/// Short times, so that tests of timeouts are quick.
pub fn quick() -> Config {
    Config {
        firmware_timeout: Duration::from_millis(100),
        command_timeout: Duration::from_millis(50),
        watchdog: Duration::from_millis(50),
        ..Config::default()
    }
}

/// A loaded and open card.
pub fn open_card(config: Config) -> Nic<ScriptedCard> {
    let mut nic = Nic::probe(ScriptedCard::default(), config).expect("a card");
    nic.load(&firmware_file()).expect("good firmware");
    nic.open().expect("a firmware that listens");
    nic.wait_link(Duration::from_millis(200)).expect("a link");
    nic
}

/// A frame whose bytes depend on `seed`.
pub fn frame(seed: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (seed * 31 + at * 7) as u8).collect()
}

impl ScriptedCard {
    fn dma(&self, address: u64) -> (&DmaMemory, usize) {
        let memory = self
            .memory
            .iter()
            .find(|memory| (memory.iova()..memory.iova() + memory.len() as u64).contains(&address))
            .expect("an address that the driver has given out");
        (memory, (address - memory.iova()) as usize)
    }

    fn dma_word(&self, address: u64) -> u32 {
        let (memory, offset) = self.dma(address);
        memory.read_word(offset).expect("inside")
    }

    fn set_dma_word(&self, address: u64, value: u32) {
        let (memory, offset) = self.dma(address);
        memory.write_word(offset, value).expect("inside");
    }

    fn dma_pointer(&self, info_offset: u64) -> u64 {
        let address = self.firmware.info + info_offset;
        u64::from(self.dma_word(address)) << 32 | u64::from(self.dma_word(address + 4))
    }

    /// A word of the general information block.
    pub fn info_word(&self, offset: u64) -> u32 {
        self.dma_word(self.firmware.info + offset)
    }

    fn gencom(&self, word: Gencom) -> u32 {
        self.bench.word(word.nic_address())
    }

    fn set_extension(&mut self, word: Extension, value: u32) {
        self.bench.set_word(word.nic_address(), value);
    }

    /// Starts writing down BAR writes anew.
    pub fn forget_writes(&mut self) {
        self.writes = 0;
    }

    fn raise(&mut self) {
        self.interrupt = true;
    }

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
    fn after_write(&mut self, offset: u32) {
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

/// What the script's emulator has counted.
pub const COUNTS: &str = "signals=3 spurious=1 lock_held_us=12";

impl Transport for ScriptedCard {
    fn counts(&mut self) -> Result<Option<String>, TransportError> {
        Ok(Some(COUNTS.to_owned()))
    }
    fn read(&mut self, bar_offset: u32) -> Result<u32, TransportError> {
        self.accesses
            .iter_mut()
            .for_each(|list| list.push((false, bar_offset)));
        Ok(self.bench.bar_read(bar_offset))
    }

    fn write(&mut self, bar_offset: u32, value: u32) -> Result<(), TransportError> {
        self.writes += 1;
        self.accesses
            .iter_mut()
            .for_each(|list| list.push((true, bar_offset)));
        self.bench.bar_write(bar_offset, value);
        self.after_write(bar_offset);
        Ok(())
    }

    fn config_read(&mut self, offset: u32) -> Result<u32, TransportError> {
        let mut bytes = [0; 4];
        self.bench
            .card
            .inspect()
            .config_read(offset as usize, &mut bytes);
        Ok(u32::from_le_bytes(bytes))
    }

    fn config_write(&mut self, offset: u32, value: u32) -> Result<(), TransportError> {
        self.bench.with(|card, environment| {
            card.device(environment)
                .config_write(offset as usize, &value.to_le_bytes());
        });
        Ok(())
    }

    fn allocate(&mut self, bytes: usize) -> Result<DmaMemory, TransportError> {
        let memory = DmaMemory::new(bytes, self.next_iova)?;
        self.next_iova += memory.len() as u64 + 0x1_0000;
        self.memory.push(memory.clone());
        Ok(memory)
    }

    fn wait(&mut self, vector: Vector, timeout: Duration) -> Result<bool, TransportError> {
        vector.must_be_pin()?;
        if self.faults.storm {
            self.interrupt = true;
        }
        if self.interrupt && !self.masked {
            self.interrupt = false;
            self.masked = true;
            return Ok(true);
        }
        std::thread::sleep(timeout.min(Duration::from_millis(1)));
        Ok(false)
    }

    fn unmask(&mut self, vector: Vector) -> Result<(), TransportError> {
        vector.must_be_pin()?;
        self.masked = false;
        Ok(())
    }

    fn reset(&mut self) -> Result<(), TransportError> {
        self.firmware.running = false;
        self.bench
            .with(|card, environment| card.device(environment).power_on());
        self.bench.effects();
        Ok(())
    }
}

/// The registers that a test may want to see.
pub fn register(card: &mut ScriptedCard, register: Register) -> u32 {
    card.bench.bar_read(register.offset())
}
