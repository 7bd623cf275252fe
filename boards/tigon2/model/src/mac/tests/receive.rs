//! Frames in the RX buffer and their descriptors.

use super::*;
use proptest::prelude::*;

/// Reference 10.3: data, then CRC, contiguous; the descriptor says the start and the length
/// with the CRC; the next frame starts at the next 8-byte boundary (C); event bit 6 (5, C).
#[test]
fn received_frames_lie_one_behind_the_other() {
    let mut bench = bench();
    let event = EventBit::ReceiveComplete.mask();
    assert_eq!(bench.read(R::EventA) & event, 0);
    let frames = [
        frame_to([0xFF; 6], 61),
        frame_to(STATION, 1514),
        frame_to(STATION, 9014),
    ];
    // Vendor fills word 1 of the descriptors with this: the MAC writes all of the word.
    for n in 0..4 {
        bench.set_word(RX_RING + 8 * n + 4, 0x0100_0000);
    }
    let mut start = RX_BASE;
    for (n, frame) in frames.iter().enumerate() {
        assert_eq!(bench.receive(frame), Reception::Accepted);
        let descriptor = RX_RING + 8 * n as u32;
        let length = frame.len() as u32 + 4;
        assert_eq!(bench.word(descriptor), start);
        assert_eq!(bench.word(descriptor + 4), length);
        let stored = bench.bytes(start, length as usize);
        assert_eq!(&stored[..frame.len()], frame);
        assert_eq!(stored[frame.len()..], crc32fast::hash(frame).to_le_bytes());
        start = (start + length).next_multiple_of(8);
        assert_eq!(bench.read(R::RxProducer), start);
        assert_eq!(bench.read(R::RxDescriptorProducer), descriptor + 8);
        assert_ne!(bench.read(R::EventA) & event, 0);
    }
    // Reference 14: software takes them by E4 = E8 = next.
    bench.write(R::RxDescriptorConsumer, RX_RING + 24);
    bench.write(R::RxDescriptorReference, RX_RING + 24);
    assert_eq!(bench.read(R::EventA) & event, 0);
    assert_eq!(statistic(&bench, MacStatistic::AcceptedBroadcast), 1);
    assert_eq!(statistic(&bench, MacStatistic::AcceptedUnicast), 2);
}

/// The residue of a frame with its CRC is the constant of Ethernet: the CRC is right and in
/// wire order.
#[test]
fn the_crc_is_that_of_ethernet() {
    let mut bench = bench();
    bench.receive(&frame_to(STATION, 123));
    let stored = bench.bytes(RX_BASE, 127);
    assert_eq!(crc32fast::hash(&stored), 0x2144_DF1C);
}

/// Frames below 60 bytes are padded to what a sender puts on the wire.
#[test]
fn short_frames_arrive_padded() {
    let mut bench = bench();
    assert_eq!(bench.receive(&frame_to(STATION, 42)), Reception::Accepted);
    assert_eq!(bench.word(RX_RING + 4), 64);
    assert_eq!(bench.bytes(RX_BASE + 42, 18), [0; 18]);
    let too_short = Reception::Dropped(DropReason::TooShort);
    for length in 0..14 {
        assert_eq!(bench.receive(&vec![0xFF; length]), too_short);
    }
    let too_long = Reception::Dropped(DropReason::TooLong);
    assert_eq!(bench.receive(&vec![0xFF; 0xFFFC]), too_long);
    assert_eq!(bench.receive(&vec![0xFF; 0xFFFB]), Reception::Accepted);
}

/// Reference 10.3: no room in the ring is the same (C); E0, E4 and E8 wrap in 4 KB (10.1, C).
#[test]
fn the_receive_ring_fills_and_wraps() {
    let mut bench = bench();
    let frame = frame_to(STATION, 60);
    for n in 0..511 {
        assert_eq!(bench.receive(&frame), Reception::Accepted, "frame {n}");
    }
    assert_eq!(
        bench.receive(&frame),
        Reception::Dropped(DropReason::NoSpace)
    );
    bench.write(R::RxDescriptorConsumer, RX_RING + 16);
    assert_eq!(bench.receive(&frame), Reception::Accepted);
    assert_eq!(bench.read(R::RxDescriptorProducer), RX_RING);
    bench.write(R::RxDescriptorConsumer, RX_RING + 0x1000);
    assert_eq!(bench.read(R::RxDescriptorConsumer), RX_RING);
    bench.write(R::RxDescriptorReference, RX_RING + 0x1000);
    assert_eq!(bench.read(R::EventA) & EventBit::ReceiveComplete.mask(), 0);
}

/// Reference 10.3: frames wrap at 0x200000 to RxBase (C).
#[test]
fn received_frames_wrap_in_the_buffer() {
    let mut bench = bench();
    for (start, length) in [(0x1F_FF80, 200), (0x1F_FFC0, 60), (0x1F_FFC0, 62)] {
        bench.write(R::RxProducer, start);
        bench.write(R::RxConsumer, start);
        let frame = frame_to(STATION, length);
        let crc = crc32fast::hash(&frame).to_le_bytes();
        let whole = [frame.as_slice(), &crc].concat();
        assert_eq!(bench.receive(&frame), Reception::Accepted);
        let room = (PACKET_MEMORY_END - start) as usize;
        let (now, later) = whole.split_at(room.min(whole.len()));
        assert_eq!(bench.bytes(start, now.len()), now);
        assert_eq!(bench.bytes(RX_BASE, later.len()), later);
        let next = RX_BASE + (later.len() as u32).next_multiple_of(8);
        assert_eq!(bench.read(R::RxProducer), next);
    }
}

/// Reference 10.3: errors are bits 31:16 of word 1 (C).
#[test]
fn damaged_frames_carry_their_error() {
    let mut bench = bench();
    let frame = frame_to(STATION, 60);
    let error = RxError::CRC.with(RxError::PHY_DECODE);
    let result = bench.with(|card, env| card.receive_damaged(env, &frame, error));
    assert_eq!(result, Reception::Accepted);
    assert_eq!(bench.word(RX_RING + 4), 0x0009_0000 | 64);
    assert_eq!(statistic(&bench, MacStatistic::CrcErrors), 1);
}

/// Reference 10.1: bit 2 of E0: another frame is being received (I).
#[test]
fn the_receiving_flag() {
    let mut bench = bench();
    bench.card.set_receiving(true);
    assert_eq!(bench.read(R::RxDescriptorProducer), RX_RING | 4);
    assert_eq!(bench.read(R::EventA) & EventBit::ReceiveComplete.mask(), 0);
    bench.card.set_receiving(false);
    assert_eq!(bench.read(R::RxDescriptorProducer), RX_RING);
}

/// Tells the card how much of a frame has come.
fn come(bench: &mut Bench, bytes: &[u8]) {
    bench.with(|card, env| card.received_so_far(env, bytes, bytes.len()));
}

/// What has come of a frame is in the buffer and below R[C4]; the frame's end changes neither its
/// place nor that of the next one (10.3).
#[test]
fn bytes_come_before_their_frame_has_ended() {
    for start in [RX_BASE, 0x1F_FF80] {
        let mut bench = bench();
        bench.write(R::RxProducer, start);
        bench.write(R::RxConsumer, start);
        let frame = frame_to(STATION, 300);
        bench.card.set_receiving(true);
        come(&mut bench, &frame[..8]);
        assert_eq!(
            bench.read(R::RxProducer),
            start,
            "it may be somebody else's"
        );
        for bytes in [16, 200, 200, 296] {
            come(&mut bench, &frame[..bytes]);
            let room = (PACKET_MEMORY_END - start) as usize;
            let (now, later) = frame[..bytes].split_at(room.min(bytes));
            assert_eq!(bench.bytes(start, now.len()), now);
            assert_eq!(bench.bytes(RX_BASE, later.len()), later);
            let filled = match later {
                [] => start + bytes as u32,
                later => RX_BASE + later.len() as u32,
            };
            assert_eq!(bench.read(R::RxProducer), filled);
            let behind = if later.is_empty() { start } else { RX_BASE };
            let behind = behind + if later.is_empty() { bytes } else { later.len() } as u32;
            assert_eq!(
                bench.bytes(behind, 4),
                [0; 4],
                "what has not come is not there"
            );
            assert_eq!(bench.read(R::EventA) & EventBit::ReceiveComplete.mask(), 0);
        }
        assert_eq!(bench.receive(&frame), Reception::Accepted);
        bench.card.set_receiving(false);
        assert_eq!(bench.word(RX_RING), start);
        let next = start + 304;
        let next = if next < PACKET_MEMORY_END {
            next
        } else {
            next - PACKET_MEMORY_END + RX_BASE
        };
        assert_eq!(bench.read(R::RxProducer), next);
    }
}

/// A frame that is dropped leaves nothing: R[C4] goes back (10.3). Others never come.
#[test]
fn a_frame_that_is_dropped_takes_its_bytes_back() {
    let mut bench = bench();
    let others = frame_to([2, 0, 0, 0, 0, 9], 300);
    bench.card.set_receiving(true);
    come(&mut bench, &others[..200]);
    assert_eq!(
        bench.read(R::RxProducer),
        RX_BASE,
        "the filter has rejected it"
    );
    bench.card.set_receiving(false);
    let frame = frame_to(STATION, 300);
    bench.card.set_receiving(true);
    come(&mut bench, &frame[..200]);
    assert_eq!(bench.read(R::RxProducer), RX_BASE + 200);
    bench.write(R::RxConsumer, RX_BASE + 256);
    let full = Reception::Dropped(DropReason::NoSpace);
    assert_eq!(bench.receive(&frame), full);
    bench.card.set_receiving(false);
    assert_eq!(bench.read(R::RxProducer), RX_BASE);
    // What does not fit does not overwrite what was there.
    bench.set_bytes(RX_BASE + 248, &[0x77; 16]);
    bench.card.set_receiving(true);
    come(&mut bench, &frame);
    assert_eq!(bench.read(R::RxProducer), RX_BASE + 248);
    assert_eq!(bench.bytes(RX_BASE + 248, 16), [0x77; 16]);
    bench.write(R::MacRxState, 1);
    assert_eq!(bench.read(R::RxProducer), RX_BASE, "a reset gives it up");
}

proptest! {
    /// Any sequence of frames, taken at any pace, arrives unchanged.
    #[test]
    fn frames_survive_the_ring(
        lengths in prop::collection::vec(14usize..3000, 1..200),
        batch in 1usize..40,
    ) {
        let mut bench = bench();
        let mut waiting = std::collections::VecDeque::new();
        for (n, length) in lengths.iter().enumerate() {
            let frame = frame_to(STATION, *length);
            prop_assert_eq!(bench.receive(&frame), Reception::Accepted);
            waiting.push_back(frame);
            if n % batch == 0 {
                while let Some(frame) = waiting.pop_front() {
                    let descriptor = bench.read(R::RxDescriptorConsumer);
                    let start = bench.word(descriptor);
                    let length = bench.word(descriptor + 4) - 4;
                    let room = (PACKET_MEMORY_END - start).min(length) as usize;
                    let mut bytes = bench.bytes(start, room);
                    bytes.extend(bench.bytes(RX_BASE, length as usize - room));
                    prop_assert_eq!(&bytes[..frame.len()], frame.as_slice());
                    let mut end = start + length;
                    if end >= PACKET_MEMORY_END {
                        end -= PACKET_MEMORY_END - RX_BASE;
                    }
                    bench.write(R::RxConsumer, end);
                    bench.write(R::RxDescriptorConsumer, descriptor + 8);
                    bench.write(R::RxDescriptorReference, descriptor + 8);
                }
                let event = bench.read(R::EventA) & EventBit::ReceiveComplete.mask();
                prop_assert_eq!(event, 0);
            }
        }
    }
}
