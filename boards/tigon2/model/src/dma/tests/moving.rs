//! Bytes that move before their transfer ends, and frames that leave meanwhile.

use super::*;
use crate::Direction;
use proptest::prelude::*;

/// Begins the one queued read, moves it to each of `places` and ends it.
fn in_pieces(bench: &mut Bench, places: &[u32]) {
    bench.with(|card, env| {
        card.dma_begin(env, Direction::Read);
        for place in places {
            card.dma_moved(env, Direction::Read, *place);
        }
        card.dma_complete(env, Direction::Read);
    });
}

proptest! {
    /// Reference 6.4, 6.5: wherever a transfer is looked at, its bytes, its sum and its end are
    /// those of one that moved at once; round the end of the TX buffer, too.
    #[test]
    fn pieces_make_the_same_transfer(
        data in prop::collection::vec(any::<u8>(), 1..600),
        before_end in 0u32..700,
        swap in any::<bool>(),
        mut places in prop::collection::vec(0u32..700, 0..6),
    ) {
        places.sort_unstable();
        let local = RX_BASE - 8 * before_end.div_ceil(8);
        // Bit 9: add to the sum; bit 10: begin it.
        let state = 0x2_0600 | if swap { 2 } else { 0 };
        let run = |places: Option<&[u32]>| {
            let mut bench = bench();
            fill_host(&mut bench, 0, &data);
            queue_read(&mut bench, &descriptor(HOST_BASE, local, data.len() as u32, state));
            match places {
                Some(places) => in_pieces(&mut bench, places),
                None => {
                    bench.run();
                }
            }
            let registers = [R::TxProducer, R::DmaReadChecksum, R::AssistReadConsumer];
            let registers = registers.map(|register| bench.read(register));
            (registers, bench.sram.bytes)
        };
        let (at_once, memory) = run(None);
        let (moved, same) = run(Some(&places));
        prop_assert_eq!(moved, at_once);
        prop_assert!(same == memory);
    }
}

/// What has not moved is still the old bytes; what has moved is not taken back when the host
/// fails behind it, and the channel's error says so at the end.
#[test]
fn a_host_that_stops_answering_leaves_what_has_moved() {
    let mut bench = bench();
    let end = HOST_BASE + 0x10_0000;
    fill_host(&mut bench, 0x10_0000 - 16, &[7; 16]);
    queue_read(&mut bench, &descriptor(end - 16, 0x6000, 32, 0));
    bench.with(|card, env| {
        card.dma_begin(env, Direction::Read);
        card.dma_moved(env, Direction::Read, 8);
    });
    assert_eq!(bench.bytes(0x6000, 16), [[7; 8], [0; 8]].concat());
    bench.with(|card, env| {
        card.dma_moved(env, Direction::Read, 24);
        card.dma_complete(env, Direction::Read);
    });
    assert_eq!(bench.bytes(0x6000, 16), [[7; 8], [0; 8]].concat());
    assert_ne!(bench.read(R::DmaReadState) & 0xFF00_0000, 0);
}

/// Reference 10.2: the MAC sends what TxPrd covers. What it has read is sent, whatever comes later;
/// the rest is what stands there when it reads it. A tag stands between.
#[test]
fn a_frame_is_what_stands_in_memory_when_it_is_read() {
    for tag in [None, Some(5)] {
        let mut bench = bench();
        bench.bring_up();
        let start = RX_BASE - 40;
        let data: Vec<u8> = (0..100).collect();
        fill_host(&mut bench, 0, &data);
        queue_read(&mut bench, &descriptor(HOST_BASE, start, 100, 0));
        // TxPrd lies: nothing is there.
        bench.write(R::TxConsumer, start);
        bench.write(R::TxProducer, TX_BASE + 60);
        let queued = tigon2_chip::mac::TxDescriptor::new(start, 100, tag);
        let ring = bench.read(R::TxDescriptorProducer);
        bench.set_word(ring, queued.start_and_flags);
        bench.set_word(ring + 4, queued.length_and_tag);
        bench.write(R::TxDescriptorProducer, ring + 8);
        bench.with(|card, env| {
            assert!(card.transmit_begin(env).is_some());
            assert!(!card.cuts_through());
            card.dma_begin(env, Direction::Read);
            assert!(card.cuts_through());
            card.dma_moved(env, Direction::Read, 48);
            // 8 bytes of these are read after they came, 16 before.
            card.transmit_fetched(env, 56);
            card.dma_moved(env, Direction::Read, 64);
            card.transmit_fetched(env, 72);
            card.dma_complete(env, Direction::Read);
            assert!(!card.cuts_through());
            card.transmit_fetched(env, usize::MAX);
            card.transmit_complete(env);
        });
        let mut frame = bench.sent().pop().expect("a frame");
        if tag.is_some() {
            frame.drain(12..16);
        }
        for (n, byte) in frame.iter().enumerate() {
            let old = (48..56).contains(&n) || (64..72).contains(&n);
            assert_eq!(usize::from(*byte), if old { 0 } else { n }, "{n}");
        }
    }
}
