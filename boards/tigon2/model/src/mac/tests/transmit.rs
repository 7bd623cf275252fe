//! The transmitter: when frames leave, and their content.

use super::*;

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

/// An engine whose wire is full loses no frame: the transmitter holds them in order, and sends no
/// more than the wire has room for.
#[test]
fn a_full_wire_holds_the_transmitter() {
    let mut bench = bench();
    let frames = [60, 64, 68].map(|length| frame_to([2; 6], length));
    bench.card.set_wire_room(Some(0));
    let mut at = TX_BASE;
    for frame in &frames {
        queue(&mut bench, at, frame.len() as u16, None);
        fill(&mut bench, at, frame);
        at += 128;
    }
    bench.run();
    assert!(bench.sent().is_empty());
    bench.card.set_wire_room(Some(2));
    bench.run();
    assert_eq!(bench.sent(), frames[..2]);
    assert_eq!(bench.card.wire_room(), Some(0));
    bench.card.set_wire_room(None);
    bench.run();
    assert_eq!(bench.sent(), frames[2..]);
}
