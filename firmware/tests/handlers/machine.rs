//! Runs the firmware's handlers natively on the hardware model, with a tiny driver.
//!
//! There is no MIPS code here: the handlers run on the host, and the model provides their bus.

mod driver;
mod model_bus;
mod variant;

use host_interface::bd::{BdFlags, ReceiveBd, ReturnBd, SendBd};
use host_interface::command::Command;
use host_interface::event::Event;
use host_interface::extension::Extension;
use host_interface::gencom::{Gencom, mac_words};
use host_interface::info::{GeneralInformationBlock, HostAddress, RcbFlags, RingControlBlock};
use host_interface::{LinkWord, OperatingMode};
use std::cell::RefCell;
use std::rc::Rc;
use tigon_firmware::memory::region::Regions;
use tigon_firmware::{SideA, SideB, boot, events};
use tigon2_chip::mailbox::Mailbox;
use tigon2_chip::{Cpu, Register};
use tigon2_hal::Bus;
use tigon2_hal::events::{Core, Dispatch};
use tigon2_hal::resources::Resources;
use tigon2_model::testing::{Bench, HOST_BASE};
use tigon2_model::{Board, Effect, Partner, Reception};
use zerocopy::IntoBytes;

pub use driver::words_to_host;
pub use model_bus::{ModelBus, Stores};

/// The card's address.
pub const MAC: [u8; 6] = [0x00, 0x60, 0xCF, 0x20, 0x12, 0x34];
/// Somebody else's.
pub const PEER: [u8; 6] = [0x02, 0x00, 0x00, 0x00, 0x00, 0x01];

// The host's memory, as offsets from HOST_BASE.
const INFORMATION: u64 = 0x0000;
const EVENT_RING: u64 = 0x1000;
const SEND_RING: u64 = 0x2000;
const STANDARD_RING: u64 = 0x4000;
const RETURN_RING: u64 = 0x1_0000;
const EVENT_PRODUCER: u64 = 0x800;
const RETURN_PRODUCER: u64 = 0x808;
const SEND_CONSUMER: u64 = 0x810;
const REFRESH: u64 = 0x2_0000;
/// Microseconds in which the firmware has copied its counters to NIC memory.
const COPIED: u64 = 11_000;
const SEND_BUFFERS: u64 = 0x3_0000;
const RECEIVE_BUFFERS: u64 = 0x8_0000;
/// Bytes between two buffers of either side.
const BUFFER: u64 = 2048;
/// Buffers of either side.
const BUFFERS: u64 = 64;

/// Where in the host's memory nothing may ever be written, as offsets from HOST_BASE.
pub const GUARD: std::ops::Range<usize> = 0x10_0000..0x20_0000;

/// What a test may change before the firmware starts.
pub struct Setup {
    pub information: GeneralInformationBlock,
    pub mode: OperatingMode,
    pub link: LinkWord,
    pub send_ticks: u32,
    pub send_max_bds: u32,
    pub receive_ticks: u32,
    pub receive_max_bds: u32,
    pub mtu: u32,
    pub board: Board,
    pub fast_link: LinkWord,
    pub trace_mask: u32,
    pub statistics_ticks: u32,
}

impl Default for Setup {
    fn default() -> Setup {
        let host = |offset: u64| HOST_BASE + offset;
        let used = RcbFlags::new();
        let unused = RcbFlags::new().with_disabled(true);
        let information = GeneralInformationBlock {
            event: RingControlBlock::new(host(EVENT_RING), 0, used),
            send: RingControlBlock::new(host(SEND_RING), 128, used.with_host_ring(true)),
            standard: RingControlBlock::new(host(STANDARD_RING), 1518, used),
            jumbo: RingControlBlock::new(0, 0, unused),
            mini: RingControlBlock::new(0, 0, unused),
            receive_return: RingControlBlock::new(host(RETURN_RING), 1024, used),
            event_producer: HostAddress::new(host(EVENT_PRODUCER)),
            return_producer: HostAddress::new(host(RETURN_PRODUCER)),
            send_consumer: HostAddress::new(host(SEND_CONSUMER)),
            refresh_statistics: HostAddress::new(host(REFRESH)),
            ..GeneralInformationBlock::default()
        };
        Setup {
            information,
            mode: OperatingMode::new().with_byte_swap_data(true),
            link: LinkWord::new()
                .with_enable(true)
                .with_autonegotiate(true)
                .with_negotiate_flow_control(true)
                .with_receive_flow_control(true)
                .with_speed_1000(true)
                .with_full_duplex(true),
            send_ticks: 100,
            send_max_bds: 16,
            receive_ticks: 50,
            receive_max_bds: 8,
            mtu: 1514,
            board: Board::default(),
            fast_link: LinkWord::new(),
            trace_mask: 0,
            statistics_ticks: 0,
        }
    }
}

/// The card with its firmware, and the driver's view of it.
pub struct Machine {
    bench: Rc<RefCell<Bench>>,
    stores: Rc<RefCell<Stores>>,
    /// The sides of the firmware, on one CPU or on two.
    pub a: SideA<ModelBus>,
    pub b: SideB<ModelBus>,
    alone: bool,
    pub wire: Vec<Vec<u8>>,
    pub interrupts: u32,
    event_consumer: u32,
    return_consumer: u32,
    /// The host says in gencom how far it has read the return ring.
    pub tells_return_consumer: bool,
    send_producer: u32,
    standard_producer: u32,
    command_producer: u32,
    send_entries: u32,
    /// Where the send ring lies if it is in NIC memory.
    nic_send_ring: Option<u32>,
    return_entries: u32,
    /// Producers of the mini and jumbo rings.
    pub extra_producers: [u32; 2],
}

impl Machine {
    /// Boots; whether it succeeded is for the caller to see.
    pub fn boot(setup: &Setup) -> Machine {
        Machine::boot_after(setup, |_| {})
    }

    /// Boots after something was done to the card.
    pub fn boot_after(setup: &Setup, prepare: impl FnOnce(&mut Bench)) -> Machine {
        let mut bench = Bench::new(setup.board.clone());
        bench.host.bytes.resize(0x20_0000, 0);
        let block = words_to_host(setup.information.as_bytes());
        bench.host.bytes[INFORMATION as usize..][..block.len()].copy_from_slice(&block);
        let (high, low) = mac_words(MAC);
        let base = HOST_BASE + INFORMATION;
        for (word, value) in [
            (Gencom::MacAddressHigh, high),
            (Gencom::MacAddressLow, low),
            (Gencom::InfoHigh, (base >> 32) as u32),
            (Gencom::InfoLow, base as u32),
            (Gencom::OperatingMode, setup.mode.into_bits()),
            (Gencom::DmaReadConfig, 0x80),
            (Gencom::DmaWriteConfig, 0x80),
            (Gencom::TransmitShare, 21),
            (Gencom::GigabitLink, setup.link.into_bits()),
            (Gencom::TransmitTicks, setup.send_ticks),
            (Gencom::TransmitMaxBds, setup.send_max_bds),
            (Gencom::ReceiveTicks, setup.receive_ticks),
            (Gencom::ReceiveMaxBds, setup.receive_max_bds),
            (Gencom::InterfaceMtu, setup.mtu),
            (Gencom::FastLink, setup.fast_link.into_bits()),
            (Gencom::TraceMask, setup.trace_mask),
            (Gencom::StatisticsTicks, setup.statistics_ticks),
        ] {
            bench.bar_write(word.bar_offset(), value);
        }
        prepare(&mut bench);
        let bench = Rc::new(RefCell::new(bench));
        let alone = !is_parallel();
        let core = |cpu| Rc::new(RefCell::new(Core::new(cpu, alone)));
        let code = Rc::default();
        let stores = Rc::default();
        let mut cpu_a = ModelBus(
            Rc::clone(&bench),
            core(Cpu::A),
            Rc::clone(&code),
            Rc::clone(&stores),
        );
        let cpu_b = if alone {
            cpu_a.clone()
        } else {
            ModelBus(
                Rc::clone(&bench),
                core(Cpu::B),
                Rc::clone(&code),
                Rc::clone(&stores),
            )
        };
        let block = boot::claim(&mut cpu_a);
        let chip = Resources::of_chip();
        let regions = Regions::of_sram();
        let multicast = Box::leak(Box::default());
        let mut a = SideA::new(cpu_a, chip.write, chip.receiver, regions.a, multicast);
        let mut b = SideB::new(cpu_b, chip.read, chip.transmitter, regions.b);
        boot::run(&mut a, block, |bus| {
            if !alone {
                boot::start_cpu_b(bus, 0);
            }
            boot::join(&mut b);
        });
        let mut machine = Machine {
            bench,
            stores,
            a,
            b,
            alone,
            wire: Vec::new(),
            interrupts: 0,
            event_consumer: 0,
            return_consumer: 0,
            tells_return_consumer: true,
            send_producer: 0,
            standard_producer: 0,
            command_producer: 0,
            send_entries: u32::from(setup.information.send.max_len()),
            nic_send_ring: (!setup.information.send.flags().host_ring())
                .then_some(setup.information.send.address.low),
            return_entries: match setup.information.receive_return.max_len() {
                0 => 2048,
                entries => entries.into(),
            },
            extra_producers: [0; 2],
        };
        machine.settle();
        machine
    }

    /// Boots and waits for the link; the stack is up and the standard ring is full.
    pub fn up(setup: &Setup) -> Machine {
        let mut machine = Machine::boot(setup);
        machine.give_buffers(BUFFERS as u32);
        machine.command(&[Command::new(
            host_interface::command::CommandCode::HostState,
            host_interface::command::STACK_UP,
        )
        .pack()]);
        machine.wait_for_link(200);
        machine.events();
        machine.interrupts = 0;
        machine
    }

    pub fn firmware_link_is_up(&self) -> bool {
        let (gigabit, fast) = self.link_words();
        gigabit.up() || fast.up()
    }

    /// The state words of both links.
    pub fn link_words(&self) -> (LinkWord, LinkWord) {
        let word = |word: Gencom| LinkWord::from_bits(self.bar(word.bar_offset()));
        (word(Gencom::GigabitLinkState), word(Gencom::FastLinkState))
    }

    /// Waits up to some milliseconds for the link; whether it came.
    pub fn wait_for_link(&mut self, milliseconds: u64) -> bool {
        for _ in 0..milliseconds {
            self.pass(1000);
            if self.firmware_link_is_up() {
                return true;
            }
        }
        false
    }

    /// Puts another partner at the end of the cable, by its words.
    pub fn set_partner(&mut self, words: &str) {
        let partner: Partner = words.parse().expect("words of a partner");
        let mut bench = self.bench();
        bench.with(|card, env| card.set_partner(env, partner));
    }

    pub fn set_cable(&mut self, plugged: bool) {
        let mut bench = self.bench();
        bench.with(|card, env| card.set_cable(env, plugged));
    }

    /// Runs handlers until none has anything to do. Takes the effects.
    pub fn settle(&mut self) {
        for _ in 0..100_000 {
            if !self.dispatch() {
                self.effects();
                return;
            }
        }
        let pending = [&mut self.a.io.bus, &mut self.b.io.bus]
            .map(|cpu| (cpu.core(|core| core.mask), cpu.read(Register::EventA)));
        panic!("the firmware does not come to rest: {pending:x?}");
    }

    /// Runs a handler on each CPU; whether any ran.
    fn dispatch(&mut self) -> bool {
        if self.alone {
            events::dispatch_both(&mut self.a, &mut self.b)
        } else {
            let a = events::dispatch_a(&mut self.a);
            let halted = self.bar(Register::CpuBState.offset()) & 0x1_0000 != 0;
            (!halted && events::dispatch_b(&mut self.b)) | a
        }
    }

    /// Whether a fatal error stopped the firmware.
    pub fn is_stopped(&mut self) -> bool {
        self.a.io.bus.core(|core| core.is_stopped())
    }

    /// Lets microseconds pass, with the handlers running.
    pub fn pass(&mut self, microseconds: u64) {
        for _ in 0..microseconds.div_ceil(10) {
            self.bench.borrow_mut().pass(10_000);
            self.settle();
        }
    }

    fn effects(&mut self) {
        for effect in self.bench.borrow_mut().effects() {
            match effect {
                Effect::Transmit(frame) => self.wire.push(frame),
                Effect::Interrupt(true) => self.interrupts += 1,
                _ => {}
            }
        }
    }

    /// Collects what is stored to a word of SRAM from now on; returns what was before.
    pub fn watch(&self, address: u32) -> Vec<u32> {
        let values = Vec::new();
        self.stores.replace(Stores { address, values }).values
    }

    pub fn bench(&self) -> std::cell::RefMut<'_, Bench> {
        self.bench.borrow_mut()
    }

    pub fn bar(&self, offset: u32) -> u32 {
        self.bench.borrow_mut().bar_read(offset)
    }

    pub fn extension(&self, word: Extension) -> u32 {
        self.bar(word.bar_offset())
    }

    /// Frames dropped for a reason, once the firmware has copied its counters.
    pub fn drops(&mut self, reason: host_interface::extension::DropReason) -> u32 {
        self.pass(COPIED);
        let counts = self.extension(Extension::DropCounts);
        self.bench.borrow().word(counts + 4 * reason as u32)
    }

    /// Whether CPU A was halted.
    pub fn is_halted(&self) -> bool {
        self.bar(Register::cpu_state(Cpu::A).offset()) & 0x1_0000 != 0
    }
}

/// Whether the handlers are divided between two CPUs: the variable `TIGON_VARIANT` names the
/// firmware, as it does for the stories of whole systems.
pub fn is_parallel() -> bool {
    let variant = std::env::var("TIGON_VARIANT").unwrap_or_else(|_| "parallel".to_owned());
    variant::basis(include_str!("../../Cargo.toml"), &variant) == "parallel"
}

/// A frame of `length` bytes whose payload depends on `seed`.
pub fn frame(destination: [u8; 6], source: [u8; 6], length: usize, seed: u32) -> Vec<u8> {
    let mut frame = [destination.as_slice(), &source, &[0x88, 0xB5]].concat();
    let mut state = seed.wrapping_mul(2_654_435_761) | 1;
    while frame.len() < length {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        frame.push((state >> 24) as u8);
    }
    frame
}
