//! Channels that software drives directly, and errors.

use super::*;

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

/// Reference 6.1: the write channel used directly, `R[80]`-`R[AC]` (C): the host address has
/// 64 bits, high word first (6.4, C); `R[A4]` ends behind the last byte.
#[test]
fn a_direct_write_reaches_the_host() {
    let mut bench = bench();
    let data: Vec<u8> = (1..=100).collect();
    bench.set_bytes(0x6003, &data);
    for (register, value) in [
        (R::DmaWriteHostHigh, (HOST_BASE >> 32) as u32),
        (R::DmaWriteHostLow, HOST_BASE as u32 + 0x205),
        (R::DmaWriteLocal, 0x6003),
        (R::DmaWriteLength, 100),
    ] {
        bench.write(register, value);
        assert_eq!(bench.read(register), value, "{register:?}");
    }
    bench.write(R::DmaWriteState, 4);
    assert_eq!(bench.read(R::DmaWriteState) & 4, 4, "active");
    bench.run();
    assert_eq!(bench.read(R::DmaWriteState), 0);
    assert_eq!(bench.host.bytes[0x205..0x205 + 100], data);
    assert_eq!(bench.host.bytes[0x204], 0);
    assert_eq!(bench.host.bytes[0x205 + 100], 0);
    assert_eq!(bench.read(R::DmaWriteLocal), 0x6003 + 100);
}
