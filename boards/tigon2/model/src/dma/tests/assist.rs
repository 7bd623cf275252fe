//! The rings and the engines that process them.

use super::*;

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
/// stand on the last descriptor of a group (C!); both rings, and over the end of the ring.
#[test]
fn one_event_for_a_group_of_descriptors() {
    use crate::Direction::{Read, Write};
    for (way, event, producer, consumer, reference, next_free) in [
        (
            Read,
            EventBit::DmaReadComplete.mask(),
            R::AssistReadProducer,
            R::AssistReadConsumer,
            R::AssistReadReference,
            R::AssistReadNextFree,
        ),
        (
            Write,
            EventBit::DmaWriteComplete.mask(),
            R::AssistWriteProducer,
            R::AssistWriteConsumer,
            R::AssistWriteReference,
            R::AssistWriteNextFree,
        ),
    ] {
        for first in [0, 40 * 32, 56 * 32] {
            let mut bench = bench();
            for register in [consumer, reference, producer] {
                bench.write(register, first);
            }
            let mut last = 0;
            for _ in 0..16 {
                let transfer = descriptor(HOST_BASE, 0x6000, 4, 2);
                last = queue(&mut bench, producer, next_free, &transfer);
            }
            bench.write(reference, last);
            for done in 0..16 {
                assert_eq!(bench.read(R::EventA) & event, 0, "{way:?} {done}");
                assert!(bench.with(|card, env| card.dma_begin(env, way).is_some()));
                bench.with(|card, env| card.dma_complete(env, way));
            }
            assert_eq!(bench.read(R::EventA) & event, event);
            assert_eq!(bench.read(R::EventB) & event, event, "the same level for B");
            bench.write(reference, last + DESCRIPTOR_BYTES);
            assert_eq!(bench.read(R::EventA) & event, 0);
        }
    }
}

/// Reference 6.3: the order inside of a ring is strict, also round its end (C); words 6 and 7
/// are software's, and bits 31:16 of word 3 are no part of the length (C).
#[test]
fn a_ring_is_served_in_order_and_round() {
    let mut bench = bench();
    let ring_words = |bench: &Bench, address: u32| -> Vec<u32> {
        (0..8).map(|n| bench.word(address + 4 * n)).collect()
    };
    // Every write puts its number at the same host word: the last one is the last number.
    let mut number = 0;
    while number < 200 {
        let mut queued = Vec::new();
        for _ in 0..9 {
            number += 1;
            bench.set_word(0x6000 + 4 * number, number);
            let mut write = descriptor(HOST_BASE, 0x6000 + 4 * number, 0xABCD_0004, 2);
            (write.kind, write.opaque) = (0x8000 | number, !number);
            let address = queue_write(&mut bench, &write);
            queued.push((address, ring_words(&bench, address)));
            let read = descriptor(HOST_BASE, 0x7000 + 4 * number, 4, 2);
            queue_read(&mut bench, &read);
        }
        bench.run();
        assert_eq!(bench.host.word(HOST_BASE), Ok(number));
        for (address, words) in queued {
            assert_eq!(
                ring_words(&bench, address),
                words,
                "nothing is written back"
            );
        }
    }
    // What the reads found at the host: never a number from before, never a later one first.
    let found: Vec<u32> = (1..=number).map(|n| bench.word(0x7000 + 4 * n)).collect();
    assert!(found.is_sorted(), "{found:?}");
    assert_eq!(
        bench.read(R::AssistWriteConsumer),
        WRITE_RING + number % 64 * DESCRIPTOR_BYTES
    );
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
    assert_eq!(bench.host.word(HOST_BASE + 0x48), Ok(0), "8 bytes");
    // The second section 19: so it works with state bit 21, whatever that is (U).
    let address = bench.read(R::AssistWriteNextFree);
    let mut index = descriptor(HOST_BASE + 0x40, address + 28, 8, 0x22_0082);
    index.opaque = 0x156;
    queue_write(&mut bench, &index);
    bench.run();
    assert_eq!(bench.host.word(HOST_BASE + 0x40), Ok(0x156));
}

#[test]
fn odd_descriptors_are_noted() {
    let mut bench = bench();
    let before = bench.card.inspect().undefined().count();
    let mut odd = descriptor(HOST_BASE, 0x6000, 7, 2);
    odd.state = DmaState::from_bits(2);
    fill_host(&mut bench, 0, &[1, 2, 3, 4, 5, 6, 7]);
    queue_read(&mut bench, &odd);
    bench.run();
    let kinds: Vec<_> = bench
        .card
        .inspect()
        .undefined()
        .latest()
        .map(|access| access.kind)
        .collect();
    assert_eq!(bench.card.inspect().undefined().count(), before + 2);
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
