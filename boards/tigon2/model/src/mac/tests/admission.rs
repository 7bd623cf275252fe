//! Which frames are accepted: filter, room, stop, link.

use super::*;

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

/// Reference 10.5: the MAC counts in SRAM, where drivers read at BAR 480-4FF and software
/// writes: it clears them (2.1, C), and the MAC continues from what is there.
#[test]
fn counters_are_words_of_memory() {
    let mut bench = bench();
    let broadcast = frame_to([0xFF; 6], 60);
    assert_eq!(bench.receive(&broadcast), Reception::Accepted);
    assert_eq!(
        bench.bar_read(MacStatistic::AcceptedBroadcast.bar_offset()),
        1
    );
    assert_eq!(bench.word(0xF4), 1);
    for address in (0x80..0x100).step_by(4) {
        bench.set_word(address, u32::MAX);
    }
    assert_eq!(bench.receive(&broadcast), Reception::Accepted);
    assert_eq!(bench.word(0xF4), 0, "32 bits");
    for address in (0x80..0x100).step_by(4).filter(|address| *address != 0xF4) {
        assert_eq!(bench.word(address), u32::MAX, "{address:#x}");
    }
}

/// Reference 10.3: no room in the buffer: dropped, counter 0xEC, attention bit 30 of R[220]
/// and event bit 25 (5, C). Freed space takes frames again.
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

/// With the SERDES loopback closed a sent frame comes back.
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
