//! Frames that leave while they are being fetched, and frames that are looked at while they arrive:
//! by small programs of register writes.

use super::Machine;
use super::tests::{K, REGISTERS, get, mac};
use crate::asm::*;
use crate::timing::BusStalls;
use crate::timing::Parameters;
use host_driver::DmaMemory;
use std::collections::BTreeSet;
use tigon2_chip::bits::{DmaState, MacRxState};
use tigon2_chip::dma::DmaDescriptor;
use tigon2_chip::memory::{SCRATCH_BASE, block};
use tigon2_chip::{Cpu, HostAddress, Register};
use tigon2_model::Board;

const HOST: u64 = 0x1_0000_0000;
const START: u32 = K + block::PACKET_BUFFERS;
/// What stands in the TX buffer before.
const OLD: u8 = 0xEE;

/// A frame without old bytes, no two words of which are equal.
fn frame(length: usize) -> Vec<u8> {
    let byte = |n: usize| ((n / 8 * 5 + n % 8) % 0xEE) as u8;
    (0..length).map(byte).collect()
}

/// The frame that leaves if TxPrd is set to its end as soon as its first `lead` bytes are there;
/// they and the rest are fetched in transfers of `part` bytes. Also how long all of it took, in
/// nanoseconds.
fn cut(board: Board, data: &[u8], lead: usize, part: usize) -> (Vec<u8>, u64) {
    let machine = Machine::timed(board, Parameters::default(), 1);
    cut_by(machine, data, lead, part)
}

/// The same of a card after power-on.
fn cut_by(mut machine: Machine, data: &[u8], lead: usize, part: usize) -> (Vec<u8>, u64) {
    let start = begin(&mut machine, data, lead, part);
    machine.run(88_000);
    let fetched = machine.bar_read(Register::AssistReadConsumer.offset()) & 0x7FF;
    let queued = machine.bar_read(Register::AssistReadProducer.offset()) & 0x7FF;
    assert_eq!(fetched, queued, "all has been fetched");
    let sent = machine.take_frame().expect("a frame");
    assert!(machine.take_frame().is_none());
    (sent.bytes, sent.at - start)
}

/// Queues the transfers, and the frame when its first part is there. Returns when it began.
fn begin(machine: &mut Machine, data: &[u8], lead: usize, part: usize) -> u64 {
    let memory = DmaMemory::new(0x1_0000, HOST).expect("memory");
    memory.write_bytes(0, data).expect("room");
    machine.map(memory);
    mac(machine);
    machine.load_image(START, &vec![OLD; data.len() + 8]);
    machine.bar_write(Register::AssistState.offset(), 0x21);
    let start = machine.now();
    let (head, rest) = data.split_at(lead.min(data.len()));
    let mut ring = 0;
    let mut at = 0;
    for piece in std::iter::once(head).chain(rest.chunks(part)) {
        let descriptor = DmaDescriptor {
            host: HostAddress::new(HOST + at as u64),
            local: START + at as u32,
            length: piece.len() as u32,
            state: DmaState::new().with_start(true),
            ..DmaDescriptor::default()
        };
        machine.load_image(K + block::DMA_READ_RING + ring, &descriptor.to_nic_bytes());
        at += piece.len();
        ring += 32;
    }
    machine.bar_write(Register::AssistReadProducer.offset(), ring);
    let arrived =
        |machine: &mut Machine| machine.bar_read(Register::AssistReadConsumer.offset()) & 0x7FF;
    while arrived(machine) < 32 {
        machine.run(1);
    }
    let descriptor = [START, data.len() as u32].map(u32::to_be_bytes).concat();
    machine.load_image(K + block::MAC_TX_RING, &descriptor);
    let end = START + data.len() as u32;
    machine.bar_write(Register::TxProducer.offset(), end);
    let next = K + block::MAC_TX_RING + 8;
    machine.bar_write(Register::TxDescriptorProducer.offset(), next);
    start
}

#[test]
fn on_a_fast_bus_the_rest_arrives_before_it_leaves() {
    for length in [600, 1514] {
        let data = frame(length);
        let (fine, fast) = cut(Board::with_bus(64, 66), &data, 512, 512);
        assert_eq!(fine, data, "{length}");
        let (coarse, slow) = cut(Board::with_bus(64, 66), &data, length, 512);
        assert_eq!(coarse, data);
        assert!(fast < slow, "{length}: {fast} < {slow}");
    }
    // What is overlapped is the time of the bus behind the first part.
    let data = frame(1514);
    let (_, fine) = cut(Board::with_bus(64, 66), &data, 512, 512);
    let (_, coarse) = cut(Board::with_bus(64, 66), &data, 1514, 512);
    assert!((3000..6000).contains(&(coarse - fine)), "{coarse} - {fine}");
}

/// A bus of half the wire's speed: the first part arrives in time, and then the transmitter
/// overtakes the bus. What it sends from there on stood in the buffer before.
#[test]
fn a_transmitter_that_overtakes_the_bus_sends_old_bytes() {
    let data = frame(1514);
    let (sent, _) = cut(Board::with_bus(32, 20), &data, 900, 512);
    assert_ne!(sent, data);
    assert_eq!(sent.len(), data.len());
    assert_eq!(sent[..900], data[..900]);
    let old = sent
        .iter()
        .position(|byte| *byte == OLD)
        .expect("old bytes");
    assert_eq!(sent[..old], data[..old]);
    assert!(old > 908, "some of the second part came in time: {old}");
    // Each byte is the old or the new one, and both come in whole accesses.
    let is_old = |n: usize| sent[n] == OLD && data[n] != OLD;
    for n in 0..sent.len() {
        assert!(sent[n] == data[n] || sent[n] == OLD, "{n}");
        if n % 8 != 0 && data[n] != OLD && data[n - 1] != OLD {
            assert_eq!(is_old(n), is_old(n - 1), "{n}");
        }
    }
    // With a long enough lead nothing is overtaken on this bus either.
    let (sent, _) = cut(Board::with_bus(32, 20), &data, 1400, 512);
    assert_eq!(sent, data);
}

/// Transfers that are one piece on the bus move byte by byte, too.
#[test]
fn a_single_transfer_is_overtaken_as_well() {
    let data = frame(1514);
    let (sent, _) = cut(Board::with_bus(32, 20), &data, 64, 2000);
    assert_ne!(sent, data);
    assert_eq!(sent[..64], data[..64]);
    let (sent, _) = cut(Board::with_bus(64, 66), &data, 512, 2000);
    assert_eq!(sent, data);
}

/// The bus stalls within the first transaction behind the lead for longer than the wire takes: what
/// came in front of the stall leaves, and old bytes behind it.
#[test]
fn a_stall_within_a_transaction_is_overtaken_where_it_comes() {
    let data = frame(1514);
    let mut places = BTreeSet::new();
    for seed in 0..40 {
        let parameters = Parameters {
            stalls: BusStalls {
                every: 1,
                least: 2000,
                most: 3000,
            },
            ..Parameters::default()
        };
        let machine = Machine::timed(Board::default(), parameters, seed);
        let (sent, _) = cut_by(machine, &data, 512, 512);
        let old = sent.iter().position(|byte| *byte == OLD);
        let old = old.expect("old bytes");
        assert_eq!(sent[..old], data[..old], "seed {seed}");
        assert!(sent[old..].iter().all(|byte| *byte == OLD), "seed {seed}");
        assert!((512..1024).contains(&old) && old % 8 == 0, "{old}");
        places.insert(old);
    }
    assert!(places.len() > 20, "{places:?}");
}

/// A card at the other end of the wire may look at a frame that leaves while it is being fetched: it
/// finds what the transmitter has read, also when the last part has come and the frame has not ended.
#[test]
fn what_is_fetched_while_it_leaves_can_be_read_at_the_other_end() {
    // The other card sees bytes so much later that neither need wait for the other meanwhile.
    const DELAY: u64 = 400;
    const STEP: u64 = 30;
    let card = |seed| Machine::timed(Board::default(), Parameters::default(), seed);
    let (mut sender, mut receiver) = (card(1), card(2));
    sender.connect();
    receiver.connect();
    mac(&mut receiver);
    let state = receiver.bar_read(Register::MacRxState.offset());
    let promiscuous = MacRxState::from_bits(state).with_promiscuous(true);
    receiver.bar_write(Register::MacRxState.offset(), promiscuous.into_bits());
    let buffer = receiver.bar_read(Register::RxBase.offset());
    let data = frame(1514);
    begin(&mut sender, &data, 512, 512);
    receiver.run(sender.cycle() - receiver.cycle());
    let mut seen = 0;
    for _ in 0..2000 / STEP * 2 {
        for departure in sender.departures() {
            receiver.arrive(departure, DELAY);
        }
        sender.run(STEP);
        receiver.run(STEP);
        let bytes = receiver.bar_read(Register::RxProducer.offset()) - buffer;
        let bytes = (bytes as usize).min(data.len());
        let words = (buffer..).step_by(4).take(bytes.div_ceil(4));
        let there: Vec<u8> = words
            .flat_map(|at| receiver.word(at).to_be_bytes())
            .collect();
        assert!(there[..bytes] == data[..bytes], "{bytes} bytes");
        seen = bytes;
    }
    assert_eq!(seen, data.len(), "it has arrived");
}

/// 10.3: a frame of 1514 bytes takes 12.2 us, and what has come of it can be read before: `R[C4]`
/// goes on 8 bytes at a time, old bytes stand behind it, and its end is where it was.
#[test]
fn what_has_come_of_a_frame_can_be_read() {
    let mut machine = Machine::timed(Board::default(), Parameters::default(), 1);
    mac(&mut machine);
    let buffer = machine.bar_read(Register::RxBase.offset());
    machine.load_image(buffer, &[OLD; 1600]);
    let data = crate::machine::tests::frame(3, 1514);
    let start = machine.now();
    machine.send_frame(start, data.clone());
    let mut last = 0;
    for microseconds in 1..12 {
        machine.run(machine.clock().cycle_at(start + 1000 * microseconds) - machine.cycle());
        let producer = machine.bar_read(Register::RxDescriptorProducer.offset());
        assert_ne!(producer & 4, 0, "a frame is arriving");
        let bytes = (machine.bar_read(Register::RxProducer.offset()) - buffer) as usize;
        // Preamble and first access, then a byte each 8 ns.
        let most = 125 * microseconds as usize - 8;
        assert!(
            (most.saturating_sub(40)..=most).contains(&bytes),
            "{bytes} after {microseconds} us"
        );
        assert!(bytes > last && bytes.is_multiple_of(8));
        last = bytes;
        let words: Vec<u8> = (0..1600 / 4)
            .flat_map(|word| machine.word(buffer + 4 * word).to_be_bytes())
            .collect();
        assert_eq!(words[..bytes], data[..bytes]);
        assert!(words[bytes..].iter().all(|byte| *byte == OLD));
    }
    machine.run(2 * 88);
    let producer = machine.bar_read(Register::RxDescriptorProducer.offset());
    assert_eq!(producer & 4, 0);
    assert_eq!(
        machine.bar_read(Register::RxProducer.offset()) - buffer,
        1520
    );
}

/// A CPU that has nothing else to do reads `R[C4]` again and again while a frame arrives, and adds up
/// what it finds. It finds the same if the host stops the machine in each cycle.
#[test]
fn a_cpu_finds_what_has_come_in_its_cycle() {
    let mut program = vec![REGISTERS, get(T0, Register::RxProducer), addu(V0, V0, T0)];
    program.extend([NOP; 20]);
    program.extend([j(SCRATCH_BASE + 4), NOP]);
    let sums = [1, 10, 20_000].map(|step| {
        let mut machine = Machine::timed(Board::default(), Parameters::default(), 1);
        mac(&mut machine);
        machine.load_scratch(Cpu::A, &program);
        machine.bar_write(Register::CpuAPc.offset(), SCRATCH_BASE);
        machine.bar_write(Register::CpuAState.offset(), 0);
        machine.send_frame(machine.now(), crate::machine::tests::frame(3, 1514));
        let end = machine.cycle() + 20_000;
        while machine.cycle() < end {
            machine.run(step);
        }
        machine.cpus().core(Cpu::A).gpr(V0 as usize)
    });
    assert_eq!(sums, [sums[0]; 3]);
}
