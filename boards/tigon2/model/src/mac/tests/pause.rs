//! Flow control in both directions.

use super::*;
use crate::testing::Bench;
use crate::{Board, Partner};

const GROUP: [u8; 6] = [0x01, 0x80, 0xC2, 0x00, 0x00, 0x01];

/// A pause frame from the partner.
fn pause(quanta: u16) -> Vec<u8> {
    crate::mac::pause_frame(&[2; 6], quanta)
}

/// The quanta of the pause frames that the card has sent; other frames are an error.
fn asked(bench: &mut Bench) -> Vec<u16> {
    let sent = bench.sent().into_iter();
    sent.map(|frame| {
        assert_eq!((&frame[..6], &frame[6..12]), (&GROUP[..], &STATION[..]));
        assert_eq!((frame.len(), &frame[12..16]), (60, &[0x88, 0x08, 0, 1][..]));
        u16::from_be_bytes([frame[16], frame[17]])
    })
    .collect()
}

/// Receives frames of 1514 bytes until one is not accepted; returns the number of accepted ones.
fn receive_until_refused(bench: &mut Bench) -> u32 {
    let frame = frame_to(STATION, 1514);
    (0..1000)
        .find(|_| bench.receive(&frame) != Reception::Accepted)
        .expect("it ends")
}

/// Software takes everything that was received.
fn drain(bench: &mut Bench) {
    for (producer, consumer) in [
        (R::RxProducer, R::RxConsumer),
        (R::RxDescriptorProducer, R::RxDescriptorConsumer),
    ] {
        let all = bench.read(producer);
        bench.write(consumer, all);
    }
    bench.run();
}

/// Reference 10.4: R[220] bit 16 obeys pause frames (I): the next frame waits for the
/// quanta, and the pause frame itself is counted at 0xE8 and not delivered.
#[test]
fn pause_frames_hold_the_transmitter() {
    let mut bench = bench();
    bench.write(R::MacRxState, 0x1_0802);
    let dropped = Reception::Dropped(DropReason::FlowControl);
    assert_eq!(bench.receive(&pause(10)), dropped);
    assert_eq!(statistic(&bench, MacStatistic::DroppedFlowControl), 1);
    let frame = frame_to([2; 6], 60);
    bench.send(&frame);
    assert!(bench.sent().is_empty());
    let due = bench.card.next_deadline(bench.now);
    assert_eq!(due, Some(bench.now + 5120));
    bench.pass(5120);
    assert_eq!(bench.sent(), std::slice::from_ref(&frame));
    // Quanta 0 let it go on at once; also to the station's own address.
    assert_eq!(bench.receive(&pause(0xFFFF)), dropped);
    bench.send(&frame);
    assert!(bench.sent().is_empty());
    let mut resume = pause(0);
    resume[..6].copy_from_slice(&STATION);
    assert_eq!(bench.receive(&resume), dropped);
    bench.run();
    assert_eq!(bench.sent(), [frame]);
    assert_eq!(bench.word(MacStatistic::AcceptedMulticast.nic_address()), 0);
}

/// Without bit 16 a pause frame is a multicast frame like any other: the filter decides.
#[test]
fn a_card_that_does_not_obey_sees_ordinary_multicast() {
    let mut bench = bench();
    let filtered = Reception::Dropped(DropReason::Filtered);
    assert_eq!(bench.receive(&pause(0xFFFF)), filtered);
    bench.write(R::MacRxState, 0x80A);
    assert_eq!(bench.receive(&pause(0xFFFF)), Reception::Accepted);
    assert_eq!(statistic(&bench, MacStatistic::AcceptedMulticast), 1);
    assert_eq!(statistic(&bench, MacStatistic::DroppedFlowControl), 0);
    let frame = frame_to([2; 6], 60);
    bench.send(&frame);
    assert_eq!(bench.sent(), [frame]);
}

/// A damaged pause frame is not obeyed.
#[test]
fn a_damaged_pause_frame_holds_nothing() {
    let mut bench = bench();
    bench.write(R::MacRxState, 0x1_080A);
    let frame = pause(0xFFFF);
    let result = bench.with(|card, env| card.receive_damaged(env, &frame, RxError::CRC));
    assert_eq!(result, Reception::Accepted);
    bench.send(&frame_to([2; 6], 60));
    assert_eq!(bench.sent().len(), 1);
}

/// A quantum is 512 bit times of the link: at 100 Mb/s 5.12 us.
#[test]
fn quanta_are_longer_on_slow_links() {
    let mut board = Board::copper();
    board.wire.partner = "100-full pause".parse().expect("good words");
    let mut bench = Bench::new(board);
    bench.bring_up();
    bench.write(R::MiscConfig, 0x0710_0055);
    bench.write(R::MacTxState, 0x22);
    bench.write(R::MacRxState, 0x1_0802);
    bench.pass(10_000_000);
    bench.receive(&pause(2));
    bench.send(&frame_to([2; 6], 60));
    bench.pass(10_239);
    assert!(bench.sent().is_empty());
    bench.pass(1);
    assert_eq!(bench.sent().len(), 1);
}

/// Reference 10.4: R[200] bit 8 sends pause frames (I): one with the longest time at the
/// stop mark, further ones while it lasts, and one with 0 at the resume mark. The wire holds
/// meanwhile, and nothing is dropped.
#[test]
fn the_partner_is_stopped_and_let_go_on() {
    let mut bench = bench();
    bench.write(R::MacTxState, 0x1E2);
    let taken = receive_until_refused(&mut bench);
    assert!(taken > 300, "most of the buffer: {taken}");
    assert_eq!(asked(&mut bench), [0xFFFF]);
    assert!(!bench.card.can_receive());
    assert_eq!(bench.receive(&frame_to(STATION, 60)), Reception::Held);
    assert_eq!(statistic(&bench, MacStatistic::DroppedNoSpace), 0);
    // Half of 65535 * 512 ns later, and again.
    for _ in 0..3 {
        let due = bench.card.next_deadline(bench.now).expect("a deadline");
        assert_eq!(due - bench.now, 65_535 * 256);
        bench.pass(due - bench.now - 1);
        assert_eq!(asked(&mut bench), []);
        bench.pass(1);
        assert_eq!(asked(&mut bench), [0xFFFF]);
    }
    // A little room is not enough, so that the two do not alternate all the time.
    bench.write(R::RxConsumer, RX_BASE + 1520);
    bench.run();
    assert_eq!(asked(&mut bench), []);
    drain(&mut bench);
    assert_eq!(asked(&mut bench), [0]);
    assert!(bench.card.can_receive());
    assert_eq!(bench.card.next_deadline(bench.now), None);
    assert_eq!(bench.receive(&frame_to(STATION, 1514)), Reception::Accepted);
    assert_eq!(asked(&mut bench), []);
}

/// The descriptor ring has marks too: 8 and 64 free descriptors.
#[test]
fn a_full_ring_stops_the_partner() {
    let mut bench = bench();
    bench.write(R::MacTxState, 0x1E2);
    let frame = frame_to(STATION, 60);
    let taken = (0..1000).find(|_| bench.receive(&frame) != Reception::Accepted);
    assert_eq!(taken, Some(511 - 7));
    assert_eq!(asked(&mut bench), [0xFFFF]);
    bench.write(R::RxDescriptorConsumer, RX_RING + 8 * 56);
    bench.run();
    assert_eq!(asked(&mut bench), []);
    bench.write(R::RxDescriptorConsumer, RX_RING + 8 * 57);
    bench.run();
    assert_eq!(asked(&mut bench), [0]);
}

/// A partner without pause does not stop: frames that find no room are dropped and counted,
/// with the attention, whether the card asks or not.
#[test]
fn a_partner_that_cannot_pause_is_not_held() {
    let mut bench = bench();
    let deaf: Partner = "1000-full".parse().expect("good words");
    bench.with(|card, env| card.set_partner(env, deaf));
    bench.write(R::MacTxState, 0x1E2);
    let taken = receive_until_refused(&mut bench);
    assert_eq!(taken, (PACKET_MEMORY_END - RX_BASE - 1) / 1520);
    assert_eq!(asked(&mut bench), [0xFFFF], "it is asked all the same");
    assert!(bench.card.can_receive());
    assert_eq!(statistic(&bench, MacStatistic::DroppedNoSpace), 1);
    assert!(MacRxState::from_bits(bench.read(R::MacRxState)).buffer_attention());
}

/// Without bit 8 nothing is sent; a reset or a lost link forgets what was asked.
#[test]
fn only_a_card_that_may_asks() {
    let mut bench = bench();
    receive_until_refused(&mut bench);
    assert_eq!(asked(&mut bench), []);
    bench.write(R::MacTxState, 0x1E2);
    bench.run();
    assert_eq!(asked(&mut bench), [0xFFFF]);
    bench.with(|card, env| card.set_cable(env, false));
    bench.run();
    bench.with(|card, env| card.set_cable(env, true));
    bench.run();
    assert_eq!(
        asked(&mut bench),
        [0xFFFF],
        "a new link knows nothing of it"
    );
    bench.write(R::MacTxState, 1);
    bench.run();
    assert_eq!(bench.card.next_deadline(bench.now), None);
    assert_eq!(asked(&mut bench), []);
}

/// Reference 10.4: a card that sends pause frames (R[200] bit 8) holds the wire while its
/// receiver is stopped.
#[test]
fn a_stopped_receiver_holds_the_wire() {
    let mut bench = bench();
    bench.write(R::MacTxState, 0x1E2);
    bench.write(R::MacRxState, 0x806);
    assert_eq!(bench.receive(&frame_to(STATION, 60)), Reception::Held);
    bench.write(R::MacRxState, 0x802);
    assert_eq!(bench.receive(&frame_to(STATION, 60)), Reception::Accepted);
}
