//! Tests the rings beyond the standard one: jumbo, mini, on the card, small.

mod support;

use std::io::IoSlice;

use host_driver::nic::{DropReason, JumboRing, ReturnRingSize, Ring, SendRingPlace, SendRingSize};
use host_driver::{Config, NicError};
use host_interface::bd::BdFlags;
use host_interface::gencom::Gencom;
use support::{frame, open_card};

fn jumbo(jumbo: JumboRing) -> Config {
    Config {
        mtu: 9000,
        jumbo,
        jumbo_buffers: 5,
        ..Config::default()
    }
}

/// Host/NIC software interface, "Extended receive BD (64 bytes)".
#[test]
fn jumbo_frames_come_in_one_buffer_or_in_four() {
    for kind in [JumboRing::Normal, JumboRing::Extended] {
        let mut nic = open_card(jumbo(kind));
        // Three times round the buffers, and over every boundary between pieces.
        for (seed, bytes) in [1519, 3072, 3073, 5120, 5121, 7168, 7169, 9018, 9022]
            .into_iter()
            .cycle()
            .take(40)
            .enumerate()
        {
            let frame = frame(seed, bytes);
            assert!(nic.transport().deliver_in(Ring::Jumbo, &frame, |bd| bd));
            let received = nic.receive_described(8).expect("a good BD");
            assert_eq!(received.len(), 1);
            assert!(received[0].bytes == frame, "{kind:?}, {bytes} bytes");
            assert_eq!(received[0].ring, Ring::Jumbo);
        }
        let too_long = frame(1, 60);
        let longer = |bd: host_interface::bd::ReceiveBd| bd.with_length(9217);
        nic.transport().deliver_in(Ring::Jumbo, &too_long, longer);
        assert_eq!(nic.receive_batch(8).expect("counted"), [[0; 0]; 0]);
        assert_eq!(nic.drops().get(DropReason::TooLong), 1);
        assert_eq!(nic.receive_outstanding_in(Ring::Jumbo), 5);
    }
}

#[test]
fn a_jumbo_frame_is_sent_whole_and_a_longer_one_refused() {
    let mut nic = open_card(jumbo(JumboRing::Automatic));
    let whole = frame(7, 9018);
    assert!(nic.queue(&[IoSlice::new(&whole)]).expect("an open card"));
    nic.submit().expect("a card");
    assert!(nic.transport().sent == [whole]);
    let error = nic.queue(&[IoSlice::new(&frame(7, 9019))]);
    assert!(matches!(error, Err(NicError::BadFrame { .. })));
}

/// Reference 14: a frame of at most the mini ring's length goes there.
#[test]
fn mini_frames_come_in_buffers_of_their_own() {
    let mut nic = open_card(Config {
        mini: Some(100),
        mini_buffers: 3,
        return_ring: ReturnRingSize::Entries1024,
        ..Config::default()
    });
    assert_eq!(nic.config().return_ring, ReturnRingSize::Entries2048);
    for seed in 0..20 {
        let small = frame(seed, 60 + seed % 41);
        assert!(nic.transport().deliver_in(Ring::Mini, &small, |bd| bd));
        let large = frame(seed, 1514);
        assert!(nic.transport().deliver(&large));
        let received = nic.receive_described(8).expect("good BDs");
        let what: Vec<_> = received.iter().map(|r| (r.ring, &r.bytes)).collect();
        assert_eq!(what, [(Ring::Mini, &small), (Ring::Standard, &large)]);
    }
}

#[test]
fn a_return_bd_must_name_the_ring_of_its_buffer() {
    let mut nic = open_card(Config {
        mini: Some(100),
        ..jumbo(JumboRing::Normal)
    });
    let flags = |jumbo, mini| BdFlags::new().with_jumbo_ring(jumbo).with_mini_ring(mini);
    for (ring, wrong) in [
        (Ring::Standard, flags(true, false)),
        (Ring::Standard, flags(false, true)),
        (Ring::Jumbo, flags(false, false)),
        (Ring::Mini, flags(true, true)),
    ] {
        let before = nic.drops().get(DropReason::BadMark);
        let change = |bd: host_interface::bd::ReceiveBd| bd.with_flags(wrong);
        assert!(nic.transport().deliver_in(ring, &frame(1, 60), change));
        assert_eq!(nic.receive_batch(8).expect("counted"), [[0; 0]; 0]);
        assert_eq!(nic.drops().get(DropReason::BadMark), before + 1);
    }
    // A ring that there is not.
    let mut nic = open_card(Config::default());
    let change = |bd: host_interface::bd::ReceiveBd| bd.with_flags(flags(true, false));
    nic.transport()
        .deliver_in(Ring::Standard, &frame(1, 60), change);
    assert_eq!(nic.receive_batch(8).expect("counted"), [[0; 0]; 0]);
    assert_eq!(nic.drops().get(DropReason::BadIndex), 1);
}

/// Reference 12: a send ring on the card lies in 0x2000..0x4000.
#[test]
fn a_send_ring_on_the_card_wraps_three_times() {
    for (size, entries) in [
        (SendRingSize::Entries128, 128),
        (SendRingSize::Entries256, 256),
        (SendRingSize::Entries512, 512),
    ] {
        let mut nic = open_card(Config {
            send_ring: size,
            send_ring_place: SendRingPlace::Card,
            ..Config::default()
        });
        let mut expected = Vec::new();
        for seed in 0..3 * entries + 5 {
            let frame = frame(seed, 60 + seed % 1400);
            while !nic.queue(&[IoSlice::new(&frame)]).expect("an open card") {
                nic.submit().expect("a card");
                nic.service().expect("good indices");
            }
            expected.push(frame);
        }
        nic.submit().expect("a card");
        nic.service().expect("good indices");
        assert!(nic.transport().sent == expected, "{entries} entries");
        assert_eq!(nic.send_outstanding(), 0);
    }
}

#[test]
fn a_small_return_ring_wraps_where_it_ends() {
    let mut nic = open_card(Config {
        return_ring: ReturnRingSize::Entries1024,
        ..Config::default()
    });
    for seed in 0..3000 {
        let frame = frame(seed, 60 + seed % 1400);
        assert!(nic.transport().deliver(&frame));
        assert_eq!(nic.receive_batch(8).expect("a good BD"), [frame]);
    }
    nic.transport().faults.return_producer = Some(1024);
    nic.transport().deliver(&frame(1, 60));
    let error = nic.receive_batch(8).expect_err("outside of the ring");
    assert!(matches!(error, NicError::BadIndex { value: 1024, .. }));
}

/// Linux changes the MTU this way: event 09 answers command 05 (reference, "commands
/// used").
#[test]
fn the_mtu_brings_the_jumbo_buffers_and_takes_them_back() {
    let mut nic = open_card(Config {
        mtu: 1500,
        ..jumbo(JumboRing::Normal)
    });
    assert_eq!(nic.receive_outstanding_in(Ring::Jumbo), 0);
    for _ in 0..3 {
        nic.set_mtu(9000).expect("a jumbo ring is there");
        assert_eq!(nic.receive_outstanding_in(Ring::Jumbo), 5);
        let long = frame(3, 9014);
        assert!(nic.transport().deliver_in(Ring::Jumbo, &long, |bd| bd));
        assert!(nic.receive_batch(8).expect("a good BD") == [long]);
        let mtu = Gencom::InterfaceMtu.nic_address();
        assert_eq!(nic.transport().bench.word(mtu), 9018);
        nic.set_mtu(1500).expect("a firmware that answers");
        assert_eq!(nic.receive_outstanding_in(Ring::Jumbo), 0);
        assert_eq!(nic.transport().commands.last(), Some(&0x0500_0000));
        assert!(nic.queue(&[IoSlice::new(&frame(1, 1519))]).is_err());
    }
    let mut nic = open_card(Config::default());
    let error = nic.set_mtu(9000).expect_err("no jumbo ring");
    assert!(matches!(error, NicError::BadSetting { .. }), "{error}");
    nic.set_mtu(2030).expect("the standard ring takes it");
}
