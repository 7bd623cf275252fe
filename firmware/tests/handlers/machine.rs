//! The firmware's handlers on the hardware model, and a host that can do anything wrong.
//!
//! There is no MIPS code here: the handlers run on the host, and the model provides their bus. The
//! host reaches the card by the driver's `Transport`. Tests of ordinary traffic use the driver
//! itself ([`crate::nic`]); [`Machine`] is for those of single words, descriptors and indices,
//! also of those that no driver would write.

mod card;
mod driver;
mod model_bus;
mod variant;

use host_driver::{DmaMemory, Transport};
use host_interface::bd::{BdFlags, ReceiveBd, ReturnBd, SendBd};
use host_interface::command::Command;
use host_interface::event::Event;
use host_interface::extension::Extension;
use host_interface::gencom::{Gencom, mac_words};
use host_interface::info::{GeneralInformationBlock, HostAddress, RcbFlags, RingControlBlock};
use host_interface::{LinkWord, OperatingMode};
use std::ops::{Deref, DerefMut};
use tigon2_chip::mailbox::Mailbox;
use tigon2_chip::{Cpu, Register};
use tigon2_model::testing::HOST_BASE;
use tigon2_model::{Board, Partner, Reception};
use zerocopy::IntoBytes;

pub use card::{Bench, NativeCard};
pub use driver::words_to_host;
pub use model_bus::ModelBus;

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

/// The card with its firmware, and what the host knows of its rings.
pub struct Machine {
    card: NativeCard,
    /// The host's memory, at [`HOST_BASE`].
    memory: DmaMemory,
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

impl Deref for Machine {
    type Target = NativeCard;

    fn deref(&self) -> &NativeCard {
        &self.card
    }
}

impl DerefMut for Machine {
    fn deref_mut(&mut self) -> &mut NativeCard {
        &mut self.card
    }
}

impl Machine {
    /// Boots; whether it succeeded is for the caller to see.
    pub fn boot(setup: &Setup) -> Machine {
        Machine::boot_after(setup, |_| {})
    }

    /// Boots after something was done to the card.
    pub fn boot_after(setup: &Setup, prepare: impl FnOnce(&mut Bench)) -> Machine {
        let mut card = NativeCard::new(setup.board.clone());
        let memory = card.allocate(0x20_0000).expect("memory");
        assert_eq!(memory.iova(), HOST_BASE);
        let (high, low) = mac_words(MAC);
        let base = HOST_BASE + INFORMATION;
        let words = [
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
        ];
        let words = words.map(|(word, value)| (word.bar_offset(), value));
        let mut machine = Machine {
            card,
            memory,
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
        let block = words_to_host(setup.information.as_bytes());
        machine.host_write(INFORMATION, &block);
        for (offset, value) in words {
            machine.set_bar(offset, value);
        }
        prepare(&mut machine.bench());
        machine.set_bar(Register::cpu_pc(Cpu::A).offset(), 0x4000);
        machine.set_bar(Register::cpu_state(Cpu::A).offset(), 0);
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

    /// A word of BAR 0, as it is before the handlers run.
    pub fn bar(&self, offset: u32) -> u32 {
        self.bench().bar_read(offset)
    }

    /// Writes a word of BAR 0; the handlers do not run yet.
    pub fn set_bar(&mut self, offset: u32, value: u32) {
        self.card.write(offset, value).expect("a word of BAR 0");
    }

    pub fn extension(&self, word: Extension) -> u32 {
        self.bar(word.bar_offset())
    }

    /// Frames dropped for a reason, once the firmware has copied its counters.
    pub fn drops(&mut self, reason: host_interface::extension::DropReason) -> u32 {
        self.pass(COPIED);
        let counts = self.extension(Extension::DropCounts);
        self.bench().word(counts + 4 * reason as u32)
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
