//! DMA as firmware uses it: direct, by the assist, and its effects on the MAC's pointers.

use crate::testing::{Bench, HOST_BASE, K, RX_BASE, TX_BASE};
use crate::{Cpu, UndefinedKind};
use tigon2_chip::Register as R;
use tigon2_chip::bits::{AssistState, DmaState};
use tigon2_chip::dma::{DESCRIPTOR_BYTES, DmaDescriptor};
use tigon2_chip::events::EventBit;
use tigon2_chip::memory::block;

const READ_RING: u32 = K + block::DMA_READ_RING;
const WRITE_RING: u32 = K + block::DMA_WRITE_RING;

fn bench() -> Bench {
    let mut bench = Bench::default();
    bench.bring_up();
    bench
}

fn descriptor(host: u64, local: u32, length: u32, state: u32) -> DmaDescriptor {
    DmaDescriptor {
        host_high: (host >> 32) as u32,
        host_low: host as u32,
        local,
        length,
        state: DmaState::from_bits(state | 4),
        ..DmaDescriptor::default()
    }
}

/// Puts a descriptor where R[10C]/R[12C] says and moves the producer, as firmware does.
fn queue(bench: &mut Bench, producer: R, next_free: R, descriptor: &DmaDescriptor) -> u32 {
    let address = bench.read(next_free);
    assert_ne!(address, 0, "the ring has room");
    bench.set_bytes(address, &descriptor.to_nic_bytes());
    bench.write(producer, address + DESCRIPTOR_BYTES);
    address
}

fn queue_read(bench: &mut Bench, descriptor: &DmaDescriptor) -> u32 {
    queue(
        bench,
        R::AssistReadProducer,
        R::AssistReadNextFree,
        descriptor,
    )
}

fn queue_write(bench: &mut Bench, descriptor: &DmaDescriptor) -> u32 {
    queue(
        bench,
        R::AssistWriteProducer,
        R::AssistWriteNextFree,
        descriptor,
    )
}

fn fill_host(bench: &mut Bench, offset: usize, data: &[u8]) {
    bench.host.bytes[offset..offset + data.len()].copy_from_slice(data);
}

/// Reference 6.1: direct use: addresses, local, length, then state with bit 2; poll bit 2.
/// Firmware fetches the 0x490-byte information block so (C). After completion the local
/// address is the end address and the length 0.
#[test]
fn a_direct_read_fetches_the_information_block() {
    let mut bench = Bench::default();
    let words: Vec<u32> = (0..0x490 / 4).map(|n| 0xA000_0000 | n).collect();
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    fill_host(&mut bench, 0x1000, &bytes);
    bench.write(R::DmaReadState, 1);
    bench.write(R::DmaReadHostHigh, (HOST_BASE >> 32) as u32);
    bench.write(R::DmaReadHostLow, HOST_BASE as u32 + 0x1000);
    bench.write(R::DmaReadLocal, 0x6000);
    bench.write(R::DmaReadLength, 0x490);
    bench.write(R::DmaReadState, 0x86);
    assert_eq!(
        bench.read(R::DmaReadState) & 4,
        4,
        "register handlers do no bus work"
    );
    assert_eq!(bench.word(0x6000), 0);
    bench.run();
    assert_eq!(bench.read(R::DmaReadState), 0x82);
    for (n, word) in words.iter().enumerate() {
        assert_eq!(bench.word(0x6000 + 4 * n as u32), *word);
    }
    assert_eq!(bench.read(R::DmaReadLocal), 0x6490);
    assert_eq!(bench.read(R::DmaReadLength), 0);
}

/// Reference 6.4: state bit 1 = 1 keeps the value of every 32-bit word, = 0 keeps the order
/// of the bytes, with any alignment and length on both sides (C!).
#[test]
fn the_two_byte_orders() {
    let mut bench = bench();
    fill_host(&mut bench, 0, &0x1122_3344u32.to_le_bytes());
    queue_read(&mut bench, &descriptor(HOST_BASE, 0x6000, 4, 2));
    queue_read(&mut bench, &descriptor(HOST_BASE + 1, 0x6013, 3, 0));
    bench.run();
    assert_eq!(bench.word(0x6000), 0x1122_3344);
    assert_eq!(bench.bytes(0x6012, 5), [0, 0x33, 0x22, 0x11, 0]);

    bench.set_word(0x7000, 0xAABB_CCDD);
    queue_write(&mut bench, &descriptor(HOST_BASE + 0x14, 0x7000, 4, 2));
    queue_write(&mut bench, &descriptor(HOST_BASE + 0x21, 0x7001, 3, 0));
    bench.run();
    assert_eq!(bench.host.word(HOST_BASE + 0x14), Ok(0xAABB_CCDD));
    assert_eq!(bench.host.bytes[0x20..0x25], [0, 0xBB, 0xCC, 0xDD, 0]);
}

/// Reference 6.3: only the offset in the ring is written, reads give full addresses; with
/// the layout of 2.2 they are K + 0x4000 and K + 0x4800 (C).
#[test]
fn ring_pointers_read_as_full_addresses() {
    let mut bench = bench();
    for (register, base) in [
        (R::AssistReadProducer, READ_RING),
        (R::AssistReadConsumer, READ_RING),
        (R::AssistReadReference, READ_RING),
        (R::AssistWriteProducer, WRITE_RING),
        (R::AssistWriteConsumer, WRITE_RING),
        (R::AssistWriteReference, WRITE_RING),
    ] {
        bench.write(register, 0);
        assert_eq!(bench.read(register), base);
        bench.write(register, base + 63 * 32);
        assert_eq!(bench.read(register), base + 63 * 32);
        bench.write(register, base + 64 * 32);
        assert_eq!(bench.read(register), base, "last + 32 wraps (C)");
    }
}

/// Reference 6.3: R[10C] and R[12C] are the producer, or 0 when the ring is full (C).
#[test]
fn next_free_is_zero_when_the_ring_is_full() {
    let mut bench = bench();
    bench.write(R::AssistState, 0x20);
    for _ in 0..63 {
        queue_read(&mut bench, &descriptor(HOST_BASE, 0x6000, 4, 2));
        queue_write(&mut bench, &descriptor(HOST_BASE, 0x6000, 4, 2));
    }
    assert_eq!(bench.read(R::AssistReadNextFree), 0);
    assert_eq!(bench.read(R::AssistWriteNextFree), 0);
    bench.write(R::AssistState, 0x21);
    bench.run();
    assert_eq!(bench.read(R::AssistReadNextFree), READ_RING + 63 * 32);
    assert_eq!(bench.read(R::AssistReadConsumer), READ_RING + 63 * 32);
}

/// Reference 6.2: bits 8, 11, 12 and 15 are live, also while the assist is off (C).
#[test]
fn assist_state_is_live() {
    let mut bench = bench();
    bench.write(R::AssistState, 0x20);
    assert_eq!(bench.read(R::AssistState), 0x20);
    queue_read(&mut bench, &descriptor(HOST_BASE, 0x6000, 4, 2));
    queue_write(&mut bench, &descriptor(HOST_BASE, 0x6000, 4, 2));
    let state = AssistState::from_bits(bench.read(R::AssistState));
    assert!(state.read_pending() && state.write_pending());
    assert!(!state.read_busy() && !state.write_busy());
    bench.write(R::DmaReadState, 6);
    bench.write(R::DmaWriteState, 6);
    let state = AssistState::from_bits(bench.read(R::AssistState));
    assert!(state.read_busy() && state.write_busy());
    bench.run();
    assert_eq!(
        bench.read(R::AssistState),
        0x20 | 0x8800,
        "off: the rings are not served"
    );
    bench.write(R::AssistState, 0x23);
    bench.run();
    assert_eq!(bench.read(R::AssistState), 0x23 | 0x8800, "paused (I)");
    bench.write(R::AssistState, 0x25);
    bench.run();
    assert_eq!(bench.read(R::AssistState), 0x25);
}

/// Reference 6.2: with bit 2 only one channel is active at a time; the two take turns (C).
#[test]
fn one_channel_at_a_time() {
    use crate::Direction::{Read, Write};
    let mut bench = bench();
    bench.write(R::AssistState, 0x25);
    for _ in 0..2 {
        queue_read(&mut bench, &descriptor(HOST_BASE, 0x6000, 4, 2));
        queue_write(&mut bench, &descriptor(HOST_BASE, 0x6000, 4, 2));
    }
    let mut order = Vec::new();
    for _ in 0..4 {
        let started: Vec<_> = [Read, Write]
            .into_iter()
            .filter(|way| bench.with(|card, env| card.dma_begin(env, *way).is_some()))
            .collect();
        assert_eq!(started.len(), 1);
        bench.with(|card, env| card.dma_complete(env, started[0]));
        order.push(started[0]);
    }
    assert_eq!(order, [Read, Write, Read, Write]);
    // Without the bit both run together.
    bench.write(R::AssistState, 0x21);
    queue_read(&mut bench, &descriptor(HOST_BASE, 0x6000, 4, 2));
    queue_write(&mut bench, &descriptor(HOST_BASE, 0x6000, 4, 2));
    for way in [Read, Write] {
        assert!(bench.with(|card, env| card.dma_begin(env, way).is_some()));
        assert!(
            bench.with(|card, env| card.dma_begin(env, way).is_none()),
            "busy"
        );
    }
}

/// Reference 5: events 14 and 15 rise when the consumer has passed the reference, which may
/// stand on the last descriptor of a group (C!).
#[test]
fn one_event_for_a_group_of_descriptors() {
    let mut bench = bench();
    let event = EventBit::DmaReadComplete.mask();
    let mut last = 0;
    for _ in 0..16 {
        last = queue_read(&mut bench, &descriptor(HOST_BASE, 0x6000, 4, 2));
    }
    bench.write(R::AssistReadReference, last);
    for done in 1..=16 {
        assert_eq!(bench.read(R::EventA) & event, 0, "{done}");
        assert!(bench.with(|card, env| card.dma_begin(env, crate::Direction::Read).is_some()));
        bench.with(|card, env| card.dma_complete(env, crate::Direction::Read));
    }
    assert_eq!(bench.read(R::EventA) & event, event);
    assert_eq!(bench.read(R::EventB) & event, event, "the same level for B");
    bench.write(R::AssistReadReference, last + DESCRIPTOR_BYTES);
    assert_eq!(bench.read(R::EventA) & event, 0);
}

/// Reference 6.1: bit 17 of a read sets TxPrd to the local end address (C!); the last of a
/// frame's fragments carries it.
#[test]
fn end_of_frame_moves_the_transmit_producer() {
    let mut bench = bench();
    queue_read(&mut bench, &descriptor(HOST_BASE, TX_BASE, 42, 0));
    bench.run();
    assert_eq!(bench.read(R::TxProducer), TX_BASE);
    queue_read(
        &mut bench,
        &descriptor(HOST_BASE, TX_BASE + 42, 100, 0x2_0000),
    );
    bench.run();
    assert_eq!(bench.read(R::TxProducer), TX_BASE + 142);
    // Reference 13: a write with bit 17 (vendor sets it on all) moves nothing.
    queue_write(&mut bench, &descriptor(HOST_BASE, 0x6000, 8, 0x2_0002));
    bench.run();
    assert_eq!(bench.read(R::TxProducer), TX_BASE + 142);
}

/// Reference 6.1: bit 19 of a write frees RX buffer: RxCon becomes the local end address
/// (C!); so it is for direct transfers, which CPU B makes in software-assist mode (15).
#[test]
fn free_rx_buffer_moves_the_receive_consumer() {
    let mut bench = bench();
    queue_write(
        &mut bench,
        &descriptor(HOST_BASE, RX_BASE + 8, 60, 0xA_0000),
    );
    bench.run();
    assert_eq!(bench.read(R::RxConsumer), RX_BASE + 68);
    bench.write(R::DmaWriteHostHigh, (HOST_BASE >> 32) as u32);
    bench.write(R::DmaWriteHostLow, HOST_BASE as u32);
    bench.write(R::DmaWriteLocal, 0x1F_FFF8);
    bench.write(R::DmaWriteLength, 16);
    bench.write(R::DmaWriteState, 0xA_0004);
    bench.run();
    assert_eq!(bench.read(R::RxConsumer), RX_BASE + 8, "and wraps with it");
    assert_eq!(bench.read(R::DmaWriteLocal), RX_BASE + 8);
}

/// Reference 6.4: a read that reaches RxBase continues at TxBase (C).
#[test]
fn a_read_wraps_in_the_transmit_buffer() {
    let mut bench = bench();
    let data: Vec<u8> = (1..=64).collect();
    fill_host(&mut bench, 0, &data);
    queue_read(
        &mut bench,
        &descriptor(HOST_BASE, RX_BASE - 24, 64, 0x2_0000),
    );
    bench.run();
    assert_eq!(bench.bytes(RX_BASE - 24, 24), data[..24]);
    assert_eq!(bench.bytes(TX_BASE, 40), data[24..]);
    assert_eq!(bench.read(R::TxProducer), TX_BASE + 40);
    assert_eq!(bench.bytes(RX_BASE, 8), [0; 8]);
}

/// Reference 6.5: with bit 9 the bytes are summed; the sum continues over descriptors until
/// bit 10; bit 11 stores it at word 5, e.g. the descriptor's own byte 22 (C!).
#[test]
fn sums_over_a_gathered_frame() {
    let mut bench = bench();
    let data: Vec<u8> = (0..99u32).map(|n| (n * 7 + 3) as u8).collect();
    fill_host(&mut bench, 0, &data);
    // Junk in the sum from earlier, then a frame in three odd pieces.
    bench.write(R::DmaReadChecksum, 0x1234);
    queue_read(&mut bench, &descriptor(HOST_BASE, TX_BASE, 33, 0x600));
    queue_read(
        &mut bench,
        &descriptor(HOST_BASE + 33, TX_BASE + 33, 32, 0x200),
    );
    let mut last = descriptor(HOST_BASE + 65, TX_BASE + 65, 34, 0x2_0A00);
    last.checksum_target = bench.read(R::AssistReadNextFree) + 22;
    let address = queue_read(&mut bench, &last);
    bench.run();
    let expected = crate::dma::add_bytes(0, 0, &data);
    assert_eq!(bench.read(R::DmaReadChecksum), u32::from(expected));
    assert_eq!(bench.bytes(address + 22, 2), expected.to_be_bytes());
    // Reference 6.5: nothing is added while bit 9 is 0.
    queue_read(&mut bench, &descriptor(HOST_BASE, 0x6000, 8, 2));
    bench.run();
    assert_eq!(bench.read(R::DmaReadChecksum), u32::from(expected));
}

/// Reference 6.5: a write sums the bytes that it reads from NIC memory (C).
#[test]
fn the_receive_sum() {
    let mut bench = bench();
    let data: Vec<u8> = (0..61).collect();
    bench.set_bytes(RX_BASE, &data);
    queue_write(&mut bench, &descriptor(HOST_BASE, RX_BASE, 61, 0xA_0600));
    bench.run();
    let expected = crate::dma::add_bytes(0, 0, &data);
    assert_eq!(bench.read(R::DmaWriteChecksum), u32::from(expected));
}

/// Reference 6.3: vendor uses word 7 of a descriptor itself as the source of an 8-byte index
/// write: local = descriptor + 28 (C).
#[test]
fn an_index_write_out_of_its_own_descriptor() {
    let mut bench = bench();
    let address = bench.read(R::AssistWriteNextFree);
    let mut index = descriptor(HOST_BASE + 0x40, address + 28, 8, 0x2_0002);
    index.opaque = 0x155;
    queue_write(&mut bench, &index);
    bench.run();
    assert_eq!(bench.host.word(HOST_BASE + 0x40), Ok(0x155));
}

/// Reference 6.1 and 19: a failed host access sets error bits, raises the attention event
/// and stops the channel; reset clears it (I). Nothing was moved, the consumer stands.
#[test]
fn an_unmapped_host_address_is_an_attention() {
    let mut bench = bench();
    for (way, state, event) in [
        (
            crate::Direction::Read,
            R::DmaReadState,
            EventBit::DmaReadAttention,
        ),
        (
            crate::Direction::Write,
            R::DmaWriteState,
            EventBit::DmaWriteAttention,
        ),
    ] {
        let (producer, next_free, consumer) = match way {
            crate::Direction::Read => (
                R::AssistReadProducer,
                R::AssistReadNextFree,
                R::AssistReadConsumer,
            ),
            crate::Direction::Write => (
                R::AssistWriteProducer,
                R::AssistWriteNextFree,
                R::AssistWriteConsumer,
            ),
        };
        let before = bench.read(consumer);
        for host in [0, u64::MAX - 3] {
            queue(
                &mut bench,
                producer,
                next_free,
                &descriptor(host, 0x6000, 64, 0),
            );
            bench.run();
            assert_ne!(bench.read(state) & DmaState::ERRORS, 0);
            assert_ne!(bench.read(R::EventA) & event.mask(), 0);
            assert_eq!(bench.read(consumer), before);
            // Recovery: pause, reset, skip the descriptor, go on.
            bench.write(R::AssistState, 0x23);
            bench.write(state, 1);
            assert_eq!(bench.read(R::EventA) & event.mask(), 0);
            let producer_now = bench.read(producer);
            bench.write(consumer, producer_now);
            bench.write(R::AssistState, 0x21);
            bench.write(producer, before);
            bench.write(consumer, before);
        }
    }
    assert_eq!(bench.bytes(0x6000, 64), [0; 64]);
}

/// Reference 15: software assist: CPU B programs the channels, and advances the consumer
/// and TxPrd itself; R[11C] bit 0 stays 0 (C).
#[test]
fn software_assist_by_cpu_b() {
    let mut bench = bench();
    bench.write(R::AssistState, 0x20);
    fill_host(&mut bench, 0, &[7; 60]);
    queue_read(&mut bench, &descriptor(HOST_BASE, TX_BASE, 60, 0x2_0000));
    bench.run();
    assert_eq!(bench.read(R::AssistReadConsumer), READ_RING);
    let b = |bench: &mut Bench, register: R, value| {
        bench.with(|card, env| card.cpu_write(env, Cpu::B, register.offset(), value));
    };
    for (register, word) in [
        (R::DmaReadHostHigh, 0),
        (R::DmaReadHostLow, 1),
        (R::DmaReadLocal, 2),
        (R::DmaReadLength, 3),
        (R::DmaReadState, 4),
    ] {
        let value = bench.word(READ_RING + 4 * word);
        b(&mut bench, register, value);
    }
    bench.run();
    assert_eq!(bench.read(R::DmaReadState) & 4, 0);
    let end = bench.read(R::DmaReadLocal);
    b(&mut bench, R::TxProducer, end);
    b(&mut bench, R::AssistReadConsumer, READ_RING + 32);
    assert_ne!(bench.read(R::EventA) & EventBit::DmaReadComplete.mask(), 0);
    assert_eq!(bench.bytes(TX_BASE, 60), [7; 60]);
    assert_eq!(bench.read(R::TxProducer), TX_BASE + 60);
}

#[test]
fn odd_descriptors_are_noted() {
    let mut bench = bench();
    let before = bench.card.undefined().count();
    let mut odd = descriptor(HOST_BASE, 0x6000, 7, 2);
    odd.state = DmaState::from_bits(2);
    fill_host(&mut bench, 0, &[1, 2, 3, 4, 5, 6, 7]);
    queue_read(&mut bench, &odd);
    bench.run();
    let kinds: Vec<_> = bench
        .card
        .undefined()
        .latest()
        .map(|access| access.kind)
        .collect();
    assert_eq!(bench.card.undefined().count(), before + 2);
    assert!(kinds.ends_with(&[UndefinedKind::NoStart, UndefinedKind::PartialWord]));
    assert_eq!(bench.bytes(0x6000, 8), [4, 3, 2, 1, 5, 6, 7, 0]);
    // A length of 0 is done at once, without touching the host.
    queue_read(&mut bench, &descriptor(0, 0x6000, 0, 0));
    bench.run();
    assert_eq!(bench.read(R::DmaReadState) & DmaState::ERRORS, 0);
    assert_eq!(bench.read(R::AssistReadConsumer), READ_RING + 64);
}

/// One call of `run` is bounded; the rest is done by the next calls.
#[test]
fn the_work_of_one_call_is_bounded() {
    let mut bench = bench();
    for _ in 0..63 {
        queue_read(&mut bench, &descriptor(HOST_BASE, 0x6000, 0xFFFF, 0));
    }
    let mut calls = 1;
    while bench.with(|card, env| card.run(env)) {
        calls += 1;
    }
    assert!((2..=10).contains(&calls), "{calls} calls");
    assert_eq!(bench.read(R::AssistReadConsumer), READ_RING + 63 * 32);
}
