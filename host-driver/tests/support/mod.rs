//! A card whose chip is the hardware model and whose firmware is a script.
//!
//! [`ScriptedCard`] is a [`Transport`] without MIPS code: registers, window, mailboxes and EEPROM
//! are those of the model; when CPU A starts, [`script`] acts as firmware. [`Faults`]
//! selects their errors.

#![allow(dead_code)] // Each test file uses a part of it.

mod script;
pub mod shared;

use std::time::Duration;

use host_driver::transport::{Transport, TransportError, Vector};
use host_driver::{Config, DmaMemory, Nic};
use host_interface::bd::{ReceiveBd, SendBd};
use host_interface::command::CommandCode;
use host_interface::extension::Extension;
use host_interface::gencom::Gencom;
use host_interface::image::{INTERFACE_VERSION, Image};
use script::Firmware;
use tigon2_chip::Register;
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
