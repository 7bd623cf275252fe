//! Whatever CPUs, host, descriptors and wire say: no panic, bounded work, and the card
//! still works after a reset.

use proptest::prelude::*;
use tigon2_chip::dma::DmaDescriptor;
use tigon2_chip::{Cpu, HostAddress, Register};
use tigon2_model::testing::{Bench, HOST_BASE, K, RX_BASE, STATION, TX_BASE};
use tigon2_model::{Board, CpuFault, Direction, Effect, Fault, Partner, Reception};

/// Calls of `run` after which all queued work must be done: 2 x 63 transfers and 255 frames
/// of 64 KB are 24 MB, in pieces of at least 512 KB.
const MAX_RUNS: usize = 100;

/// Those whom the card meets.
const PARTNERS: &[&str] = &[
    "1000-full 1000-half 100-full 100-half 10-full 10-half pause",
    "1000-half asymmetric-pause",
    "100-full 10-half silent pause",
    "10-half",
    "silent",
    "",
];

/// What happens to frames.
const FAULTS: &[&str] = &[
    "receive crc+runt+truncated 3",
    "receive giant 100",
    "receive damaged 5",
    "receive damaged:13x3+truncated 2",
    "transmit collisions:15 4",
    "transmit excess-collisions 2",
    "transmit underrun 2",
    "none",
];

/// One random operation on the card.
#[derive(Clone, Debug)]
enum Step {
    CpuRead(Cpu, u32),
    CpuWrite(Cpu, u32, u32),
    BarRead(u32),
    BarWrite(u32, u32),
    Config(usize, Vec<u8>),
    Memory(u32, Vec<u8>),
    ReadDescriptor(DmaDescriptor),
    WriteDescriptor(DmaDescriptor),
    Frame(Vec<u8>),
    Run,
    Half(Direction, bool),
    Send(bool),
    Pass(u64),
    Cable(bool),
    Partner(&'static str),
    Fault(Cpu, u32),
    Inject(&'static str),
    Mdio(u8, u8, u16),
}

fn cpu() -> impl Strategy<Value = Cpu> {
    prop::sample::select(&Cpu::ALL[..])
}

fn direction() -> impl Strategy<Value = Direction> {
    prop::sample::select(&Direction::ALL[..])
}

/// Mostly real registers, sometimes anything.
fn offset() -> impl Strategy<Value = u32> {
    prop_oneof![
        8 => prop::sample::select(Register::ALL).prop_map(Register::offset),
        2 => 0u32..0x1000,
        1 => any::<u32>(),
    ]
}

/// Values near what registers hold: addresses of the block, small numbers, all ones, bits.
fn value() -> impl Strategy<Value = u32> {
    prop_oneof![
        any::<u32>(),
        0u32..0x100,
        (K..0x20_0010),
        prop::sample::select(vec![0, 1, 2, 6, 0x86, 0x21, 0x25, 0xE2, 0x802, u32::MAX]),
        (0u32..32).prop_map(|bit| 1 << bit),
        Just(TX_BASE),
        Just(RX_BASE),
        (RX_BASE - 4..RX_BASE + 4),
    ]
}

fn frame() -> impl Strategy<Value = Vec<u8>> {
    (0usize..0x1_0010, any::<u8>(), any::<bool>()).prop_map(|(length, fill, own)| {
        // Most frames are short, some are as long as a frame can be.
        let length = if length % 8 == 0 {
            length
        } else {
            length % 1600
        };
        let mut frame = vec![fill; length];
        if own && length >= 6 {
            frame[..6].copy_from_slice(&STATION);
        }
        frame
    })
}

fn descriptor() -> impl Strategy<Value = DmaDescriptor> {
    let host = prop_oneof![
        any::<u64>(),
        (0u64..0x10_0010).prop_map(|offset| HOST_BASE + offset),
        Just(u64::MAX),
    ];
    (host, value(), 0u32..0x2_0000, value(), value()).prop_map(
        |(host, local, length, state, target)| DmaDescriptor {
            host: HostAddress::new(host),
            local,
            length,
            state: tigon2_chip::bits::DmaState::from_bits(state),
            checksum_target: target,
            ..DmaDescriptor::default()
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let bytes = prop::collection::vec(any::<u8>(), 0..64);
    prop_oneof![
        6 => (cpu(), offset()).prop_map(|(cpu, offset)| Step::CpuRead(cpu, offset)),
        20 => (cpu(), offset(), value()).prop_map(|(cpu, at, value)| Step::CpuWrite(cpu, at, value)),
        3 => (0u32..0x5000).prop_map(Step::BarRead),
        10 => (offset(), value()).prop_map(|(at, value)| Step::BarWrite(at, value)),
        3 => (0x400u32..0x1000, value()).prop_map(|(at, value)| Step::BarWrite(at, value)),
        1 => (0usize..0x120, bytes.clone()).prop_map(|(at, data)| Step::Config(at, data)),
        2 => (any::<u32>(), bytes).prop_map(|(at, data)| Step::Memory(at, data)),
        6 => descriptor().prop_map(Step::ReadDescriptor),
        6 => descriptor().prop_map(Step::WriteDescriptor),
        6 => frame().prop_map(Step::Frame),
        8 => Just(Step::Run),
        2 => (direction(), any::<bool>()).prop_map(|(way, begin)| Step::Half(way, begin)),
        1 => any::<bool>().prop_map(Step::Send),
        2 => (0u64..100_000_000).prop_map(Step::Pass),
        1 => any::<bool>().prop_map(Step::Cable),
        1 => prop::sample::select(PARTNERS).prop_map(Step::Partner),
        1 => (cpu(), any::<u32>()).prop_map(|(cpu, pc)| Step::Fault(cpu, pc)),
        1 => prop::sample::select(FAULTS).prop_map(Step::Inject),
        2 => (0u8..4, any::<u8>(), any::<u16>()).prop_map(|(a, r, v)| Step::Mdio(a, r & 31, v)),
    ]
}

/// Puts a descriptor where the ring's producer stands and moves the producer.
fn queue(bench: &mut Bench, producer: Register, descriptor: &DmaDescriptor) {
    let address = bench.read(producer);
    bench.set_bytes(address, &descriptor.to_nic_bytes());
    bench.write(producer, address.wrapping_add(32));
}

fn run_to_the_end(bench: &mut Bench) {
    for _ in 0..MAX_RUNS {
        if !bench.with(|card, env| card.device(env).run()) {
            return;
        }
        bench.effects();
    }
    panic!("work without end");
}

fn take(bench: &mut Bench, step: &Step) {
    match step {
        Step::CpuRead(cpu, offset) => {
            bench.with(|card, env| card.device(env).cpu_read(*cpu, *offset));
        }
        Step::CpuWrite(cpu, offset, value) => {
            bench.with(|card, env| card.device(env).cpu_write(*cpu, *offset, *value));
        }
        Step::BarRead(offset) => {
            bench.bar_read(*offset);
        }
        Step::BarWrite(offset, value) => bench.bar_write(*offset, *value),
        Step::Config(offset, data) => {
            bench.with(|card, env| card.device(env).config_write(*offset, data));
            let mut back = data.clone();
            bench.card.inspect().config_read(*offset, &mut back);
        }
        Step::Memory(address, data) => bench.set_bytes(*address, data),
        Step::ReadDescriptor(descriptor) => {
            queue(bench, Register::AssistReadProducer, descriptor);
        }
        Step::WriteDescriptor(descriptor) => {
            queue(bench, Register::AssistWriteProducer, descriptor);
        }
        Step::Frame(frame) => {
            bench.receive(frame);
        }
        Step::Run => run_to_the_end(bench),
        Step::Half(way, begin) => bench.with(|card, env| {
            if *begin {
                card.stages(env).dma_begin(*way);
            } else {
                card.stages(env).dma_complete(*way);
            }
        }),
        Step::Send(begin) => bench.with(|card, env| {
            if *begin {
                card.stages(env).transmit_begin();
            } else {
                card.stages(env).transmit_complete();
            }
        }),
        Step::Pass(nanoseconds) => bench.pass(*nanoseconds),
        Step::Cable(plugged) => bench.with(|card, env| card.set_cable(env, *plugged)),
        Step::Partner(words) => {
            let partner = words.parse().expect("words of a partner");
            bench.with(|card, env| card.set_partner(env, partner));
        }
        Step::Inject(words) => bench.card.inject(words.parse().expect("words of a fault")),
        Step::Mdio(phy, register, value) => {
            bench.mdio_write(*phy, *register, *value);
            bench.mdio_read(*phy, *register);
        }
        Step::Fault(cpu, pc) => {
            bench.with(|card, env| {
                card.device(env)
                    .cpu_fault(*cpu, CpuFault::Exception(9), *pc)
            });
        }
    }
}

/// What must hold whatever happened.
fn check(bench: &mut Bench) -> Result<(), TestCaseError> {
    for effect in bench.effects() {
        match effect {
            Effect::Transmit(frame) => prop_assert!((60..=0xFFFF + 4).contains(&frame.len())),
            Effect::SpillBase { base, .. } => prop_assert_eq!(base % 0x1000, 0),
            _ => {}
        }
    }
    for cpu in Cpu::ALL {
        let event = bench.read(Register::event(cpu));
        prop_assert_eq!(event, bench.card.inspect().events(bench.now, cpu));
    }
    if let Some(deadline) = bench.card.inspect().next_deadline(bench.now) {
        prop_assert!(deadline > bench.now);
    }
    prop_assert!(bench.card.inspect().undefined().latest().count() <= 256);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Random accesses, descriptors and frames on a card that was set up; afterwards a
    /// reset brings it back to work.
    #[test]
    fn nothing_breaks_the_card(
        steps in prop::collection::vec(step(), 1..300),
        sram_shift in 18u32..24,
        set_up in any::<bool>(),
        copper in any::<bool>(),
    ) {
        let mut board = if copper { Board::copper() } else { Board::default() };
        board.memory.sram_bytes = 1 << sram_shift;
        let mut bench = Bench::new(board);
        if set_up {
            bench.bring_up();
        }
        for step in &steps {
            take(&mut bench, step);
            check(&mut bench)?;
        }
        run_to_the_end(&mut bench);
        bench.bar_write(0x40, 0x0800_0008);
        bench.bar_write(0x40, 0x2200_0022);
        prop_assert_eq!(bench.bar_read(0x40), 0x6000_0020);
        prop_assert_eq!(bench.read(Register::EventA), 0);
        prop_assert!(bench.card.inspect().halted(Cpu::A) && bench.card.inspect().halted(Cpu::B));
        bench.card.inject(Fault::None);
        bench.bring_up();
        bench.with(|card, env| card.set_partner(env, Partner::default()));
        bench.with(|card, env| card.set_cable(env, true));
        if copper {
            bench.write(Register::MiscConfig, 0x0D10_0055);
            bench.mdio_write(1, 0, 0x8000);
            bench.pass(10_000_000);
        }
        prop_assert_eq!(bench.receive(&[0xFF; 60]), Reception::Accepted);
    }

    /// A register that stores gives back a value that storing again does not change.
    #[test]
    fn writing_back_what_was_read_changes_nothing(
        register in prop::sample::select(storing_registers()),
        value in value(),
    ) {
        let mut bench = Bench::default();
        bench.write(register, value);
        let first = bench.read(register);
        bench.write(register, first);
        prop_assert_eq!(bench.read(register), first, "{:?}", register);
    }
}

/// All registers but strobes, requests and write-1-to-clear registers.
fn storing_registers() -> Vec<Register> {
    let strobes = [
        Register::SemaphoreA,
        Register::SemaphoreB,
        Register::MailboxEventA,
        Register::MailboxEventB,
        Register::DmaReadState,
        Register::DmaWriteState,
        Register::CpuAState,
        Register::CpuBState,
    ];
    let all = Register::ALL.iter().copied();
    all.filter(|register| !strobes.contains(register)).collect()
}

/// Every word of the register page, written with everything and read by everybody.
#[test]
fn every_offset_takes_every_kind_of_access() {
    for value in [0, 1, 0xFFFF_FFFF, 0x5555_5555, 0xAAAA_AAAA, RX_BASE] {
        let copper = value & 1 != 0;
        let mut bench = Bench::new(if copper {
            Board::copper()
        } else {
            Board::default()
        });
        bench.bring_up();
        for offset in 0..0x410 {
            for cpu in Cpu::ALL {
                bench.with(|card, env| card.device(env).cpu_write(cpu, offset, value));
                bench.with(|card, env| card.device(env).cpu_read(cpu, offset));
            }
            run_to_the_end(&mut bench);
        }
        for offset in 0..0x1010 {
            bench.bar_write(offset, value);
            bench.bar_read(offset);
            run_to_the_end(&mut bench);
        }
    }
}
