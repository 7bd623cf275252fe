//! The MAC as firmware and the wire see it.

use crate::testing::{Bench, K, RX_BASE, STATION, TX_BASE};
use crate::{DropReason, Effect, Reception};
use proptest::prelude::*;
use tigon2_chip::Register as R;
use tigon2_chip::bits::{MacRxState, MacTxState};
use tigon2_chip::events::EventBit;
use tigon2_chip::mac::{MacStatistic, RxError, TxDescriptor, multicast_hash_bit};
use tigon2_chip::memory::{PACKET_MEMORY_END, block};

const TX_RING: u32 = K + block::MAC_TX_RING;
const RX_RING: u32 = K + block::MAC_RX_RING;

fn bench() -> Bench {
    let mut bench = Bench::default();
    bench.bring_up();
    bench
}

fn frame_to(destination: [u8; 6], length: usize) -> Vec<u8> {
    let mut frame: Vec<u8> = (0..length).map(|n| (n * 13 + length) as u8).collect();
    frame[..6].copy_from_slice(&destination);
    frame
}

/// Writes a MAC TX descriptor at R[FC] and moves R[F0].
fn queue(bench: &mut Bench, start: u32, length: u16, tag: Option<u16>) {
    let descriptor = TxDescriptor::new(start, length, tag);
    let address = bench.read(R::TxDescriptorNextFree);
    assert_ne!(address, 0, "the ring has room");
    bench.set_word(address, descriptor.start_and_flags);
    bench.set_word(address + 4, descriptor.length_and_tag);
    bench.write(R::TxDescriptorProducer, address + 8);
}

/// Puts frame data into the TX buffer (over its end) and moves TxPrd.
fn fill(bench: &mut Bench, start: u32, data: &[u8]) -> u32 {
    let room = (RX_BASE - start) as usize;
    let (now, later) = data.split_at(room.min(data.len()));
    bench.set_bytes(start, now);
    bench.set_bytes(TX_BASE, later);
    let end = match later {
        [] => start + now.len() as u32,
        later => TX_BASE + later.len() as u32,
    };
    bench.write(R::TxProducer, end);
    end
}

fn statistic(bench: &Bench, statistic: MacStatistic) -> u32 {
    bench.word(statistic.nic_address())
}

/// Reference 10.2: the MAC waits until TxPrd covers start + length, so a descriptor may be
/// queued before its data is there; then TxCon is the end of the frame and F4 advances (C).
#[test]
fn a_frame_waits_for_its_data() {
    let mut bench = bench();
    let frame = frame_to([2; 6], 1514);
    queue(&mut bench, TX_BASE, 1514, None);
    bench.run();
    assert_eq!(bench.sent(), Vec::<Vec<u8>>::new());
    bench.write(R::TxProducer, TX_BASE + 1513);
    bench.run();
    assert_eq!(bench.sent(), Vec::<Vec<u8>>::new());
    fill(&mut bench, TX_BASE, &frame);
    bench.run();
    assert_eq!(bench.sent(), [frame]);
    assert_eq!(bench.read(R::TxConsumer), TX_BASE + 1514);
    assert_eq!(bench.read(R::TxDescriptorConsumer) & !7, TX_RING + 8);
}

/// Reference 10.2: short frames are padded to 60 bytes by the MAC (C by section 19).
#[test]
fn short_frames_are_padded() {
    let mut bench = bench();
    let frame = frame_to([2; 6], 42);
    queue(&mut bench, TX_BASE, 42, None);
    fill(&mut bench, TX_BASE, &frame);
    bench.run();
    let sent = bench.sent();
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0].len(), 60);
    assert_eq!(sent[0][..42], frame);
    assert_eq!(sent[0][42..], [0; 18]);
    assert_eq!(
        bench.read(R::TxConsumer),
        TX_BASE + 42,
        "padding is not in the buffer"
    );
}

/// Reference 10.2: {R[214] bits 31:16, tag} go after the source address (C).
#[test]
fn vlan_tags_are_inserted() {
    let mut bench = bench();
    let frame = frame_to([2; 6], 100);
    queue(&mut bench, TX_BASE, 100, Some(5));
    fill(&mut bench, TX_BASE, &frame);
    bench.run();
    let sent = bench.sent();
    assert_eq!(sent[0].len(), 104);
    assert_eq!(sent[0][..12], frame[..12]);
    assert_eq!(sent[0][12..16], [0x81, 0x00, 0x00, 0x05]);
    assert_eq!(sent[0][16..], frame[12..]);
}

/// Reference 10.2: frame data wraps from RxBase to TxBase (C).
#[test]
fn frames_wrap_in_the_buffer() {
    let mut bench = bench();
    let start = RX_BASE - 40;
    bench.write(R::TxConsumer, start);
    bench.write(R::TxProducer, start);
    let frame = frame_to([2; 6], 100);
    queue(&mut bench, start, 100, None);
    bench.run();
    assert!(bench.sent().is_empty());
    let end = fill(&mut bench, start, &frame);
    bench.run();
    assert_eq!(bench.sent(), [frame]);
    assert_eq!(end, TX_BASE + 60);
    assert_eq!(bench.read(R::TxConsumer), end);
}

/// Reference 10.1: FC is the next free descriptor, 0 when full; F0, F4 and F8 wrap in 2 KB
/// (C). The ring is walked more than once.
#[test]
fn the_transmit_ring_wraps() {
    let mut bench = bench();
    let mut at = TX_BASE;
    for n in 0..600u32 {
        let frame = frame_to([2; 6], 64 + (n as usize % 300));
        queue(&mut bench, at, frame.len() as u16, None);
        let end = fill(&mut bench, at, &frame);
        bench.run();
        assert_eq!(bench.sent(), [frame], "frame {n}");
        at = end.next_multiple_of(8);
        if at >= RX_BASE {
            at = TX_BASE;
        }
    }
    let expected = TX_RING + 8 * (600 % 256);
    assert_eq!(bench.read(R::TxDescriptorConsumer), expected);
    bench.write(R::MacTxState, 0xE0);
    for _ in 0..255 {
        queue(&mut bench, TX_BASE, 64, None);
    }
    assert_eq!(bench.read(R::TxDescriptorNextFree), 0);
}

/// Reference 10.4: bit 1 enables, bit 2 stops (C).
#[test]
fn a_stopped_transmitter_holds_its_frames() {
    for (held, going) in [(0xE0, 0xE2), (0xE6, 0xE2)] {
        let mut bench = bench();
        bench.write(R::MacTxState, held);
        let frame = frame_to([2; 6], 60);
        queue(&mut bench, TX_BASE, 60, None);
        fill(&mut bench, TX_BASE, &frame);
        bench.run();
        assert!(bench.sent().is_empty());
        bench.write(R::MacTxState, going);
        bench.run();
        assert_eq!(bench.sent(), [frame]);
    }
}

/// Reference 10.4: R[220] bit 16 obeys pause frames (I): the next frame waits for the
/// quanta, and the pause frame itself is counted at 0xE8.
#[test]
fn pause_frames_hold_the_transmitter() {
    let mut bench = bench();
    bench.write(R::MacRxState, 0x1_0802);
    let mut pause = vec![
        0x01, 0x80, 0xC2, 0, 0, 1, 2, 2, 2, 2, 2, 2, 0x88, 0x08, 0, 1, 0, 10,
    ];
    pause.resize(60, 0);
    let dropped = Reception::Dropped(DropReason::FlowControl);
    assert_eq!(bench.receive(&pause), dropped);
    assert_eq!(statistic(&bench, MacStatistic::DroppedFlowControl), 1);
    let frame = frame_to([2; 6], 60);
    queue(&mut bench, TX_BASE, 60, None);
    fill(&mut bench, TX_BASE, &frame);
    bench.run();
    assert!(bench.sent().is_empty());
    let due = bench.card.next_deadline(bench.now);
    assert_eq!(due, Some(bench.now + 5120));
    bench.pass(5120);
    assert_eq!(bench.sent(), [frame]);
}

/// An engine whose wire is full loses no frame: the transmitter holds them in order.
#[test]
fn a_full_wire_holds_the_transmitter() {
    let mut bench = bench();
    let frame = frame_to([2; 6], 60);
    bench.card.set_wire_ready(false);
    queue(&mut bench, TX_BASE, 60, None);
    fill(&mut bench, TX_BASE, &frame);
    bench.run();
    assert!(bench.sent().is_empty());
    bench.card.set_wire_ready(true);
    bench.run();
    assert_eq!(bench.sent(), [frame]);
}

/// Reference 10.3: data, then CRC, contiguous; the descriptor says the start and the length
/// with the CRC; the next frame starts at the next 8-byte boundary; event bit 6 (C).
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

/// Reference 10.3 and 10.5: the filter and its counters: dropped unicast 0xE0, dropped
/// multicast 0xE4, accepted multicast 0xF8 (C).
#[test]
fn the_filter_counts_what_it_drops() {
    let mut bench = bench();
    let filtered = Reception::Dropped(DropReason::Filtered);
    let group = [0x01, 0x00, 0x5E, 0x01, 0x02, 0x03];
    assert_eq!(bench.receive(&frame_to([2; 6], 60)), filtered);
    assert_eq!(bench.receive(&frame_to(group, 60)), filtered);
    assert_eq!(bench.read(R::RxDescriptorProducer), RX_RING);
    assert_eq!(statistic(&bench, MacStatistic::DroppedUnicast), 1);
    assert_eq!(statistic(&bench, MacStatistic::DroppedMulticast), 1);

    // Reference 10.4: bit n is bit (n mod 32) of R[234 - 4 * (n / 32)].
    let n = u32::from(multicast_hash_bit(&group));
    let offset = R::MulticastHash3.offset() - 4 * (n / 32);
    bench.bar_write(offset, 1 << (n % 32));
    assert_eq!(bench.receive(&frame_to(group, 60)), Reception::Accepted);
    assert_eq!(statistic(&bench, MacStatistic::AcceptedMulticast), 1);
    // Promiscuous takes everything.
    bench.write(R::MacRxState, 0x80A);
    assert_eq!(bench.receive(&frame_to([2; 6], 60)), Reception::Accepted);
    assert_eq!(statistic(&bench, MacStatistic::AcceptedUnicast), 1);
}

/// Reference 10.3: no room in the buffer: dropped, counter 0xEC, attention bit 30 of R[220]
/// and event bit 25 (C). Freed space takes frames again.
#[test]
fn overload_drops_and_raises_the_attention() {
    let mut bench = bench();
    let frame = frame_to(STATION, 1514);
    let mut taken = 0;
    while bench.receive(&frame) == Reception::Accepted {
        taken += 1;
    }
    assert_eq!(
        taken,
        (PACKET_MEMORY_END - RX_BASE - 1) / 1520,
        "the buffer, not the ring"
    );
    assert!(
        bench.card.can_receive(),
        "without pause frames the wire is never held"
    );
    let no_space = Reception::Dropped(DropReason::NoSpace);
    assert_eq!(bench.receive(&frame), no_space);
    assert_eq!(statistic(&bench, MacStatistic::DroppedNoSpace), 2);
    assert!(MacRxState::from_bits(bench.read(R::MacRxState)).buffer_attention());
    assert_ne!(bench.read(R::EventA) & EventBit::MacRxAttention.mask(), 0);
    // Reference 14: half of the buffer is free again: clear bit 30.
    bench.write(R::RxConsumer, RX_BASE + 0x4_0000);
    bench.write(R::MacRxState, 0x4000_0802);
    assert_eq!(bench.read(R::EventA) & EventBit::MacRxAttention.mask(), 0);
    assert_eq!(bench.receive(&frame), Reception::Accepted);
}

/// Reference 10.3: no room in the ring is the same (C); E0, E4 and E8 wrap in 4 KB (C).
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

/// Reference 10.4: bit 1 enables and bit 2 stops the receiver (C); a stopped one counts
/// nothing, since firmware stops it round copies of the counters.
#[test]
fn a_receiver_that_is_off_takes_and_counts_nothing() {
    let mut bench = bench();
    let frame = frame_to(STATION, 60);
    for (state, reason) in [(0x800, DropReason::Disabled), (0x806, DropReason::Stopped)] {
        bench.write(R::MacRxState, state);
        assert_eq!(bench.receive(&frame), Reception::Dropped(reason));
    }
    assert_eq!(bench.bytes(0x80, 0x80), [0; 0x80]);
}

/// Frames pass only over a link that is up on both sides.
#[test]
fn no_frames_without_a_link() {
    let frame = frame_to(STATION, 60);
    let no_link = Reception::Dropped(DropReason::NoLink);
    let mut bench = bench();
    bench.with(|card, env| card.set_cable(env, false));
    assert_eq!(bench.receive(&frame), no_link);
    queue(&mut bench, TX_BASE, 60, None);
    fill(&mut bench, TX_BASE, &frame);
    bench.run();
    assert!(bench.sent().is_empty());
    assert_eq!(
        bench.read(R::TxDescriptorConsumer),
        TX_RING + 8,
        "it went into the dark"
    );
    bench.with(|card, env| card.set_cable(env, true));
    assert_eq!(bench.receive(&frame), Reception::Accepted);
    bench.write(R::MacTxState, MacTxState::FIBRE);
    assert_eq!(bench.receive(&frame), no_link, "the partner negotiates");
}

/// In the SERDES loop a sent frame comes back.
#[test]
fn the_loop_returns_frames() {
    let mut bench = bench();
    bench.write(R::PhyInterface, 0xC8_01F6);
    let frame = frame_to(STATION, 80);
    queue(&mut bench, TX_BASE, 80, None);
    fill(&mut bench, TX_BASE, &frame);
    bench.run();
    assert_eq!(bench.effects(), Vec::<Effect>::new());
    assert_eq!(bench.bytes(RX_BASE, 80), frame);
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

/// Reference 10.4: a card that sends pause frames (R[200] bit 8) holds the wire instead of
/// dropping; consumption lets it go on.
#[test]
fn pause_frames_hold_the_wire() {
    let mut bench = bench();
    bench.write(R::MacTxState, 0x1E2);
    let frame = frame_to(STATION, 1514);
    let mut taken = 0;
    while bench.receive(&frame) == Reception::Accepted {
        taken += 1;
        assert!(taken < 1000);
    }
    assert_eq!(bench.receive(&frame), Reception::Held);
    assert!(!bench.card.can_receive());
    assert_eq!(statistic(&bench, MacStatistic::DroppedNoSpace), 0);
    let producer = bench.read(R::RxProducer);
    bench.write(R::RxConsumer, producer);
    assert!(bench.card.can_receive());
    assert_eq!(bench.receive(&frame), Reception::Accepted);
    bench.write(R::MacRxState, 0x806);
    assert_eq!(bench.receive(&frame), Reception::Held, "stopped");
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

proptest! {
    /// Any sequence of frames, taken in any rhythm, comes out as it went in.
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
