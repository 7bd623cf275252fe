//! Tests jumbo frames: rings, sizes, and an MTU that changes while the card runs.

use host_driver::Config;
use host_driver::nic::{JumboRing, Ring};
use integration_tests::{Engine, Stage, frames, stories, stories_beyond};
use std::time::Duration;

stories!(
    jumbo_frames_cross_both_ways,
    the_length_of_a_frame_decides_its_ring,
    a_frame_fills_the_four_buffers_of_an_extended_bd,
    the_jumbo_ring_wraps_three_times,
    a_jumbo_frame_leaves_from_eighteen_pieces,
    the_mtu_is_raised_and_lowered_while_frames_flow,
);

stories_beyond!(
    jumbo_frames_cross_both_ways,
    the_length_of_a_frame_decides_its_ring,
    a_frame_fills_the_four_buffers_of_an_extended_bd,
    the_jumbo_ring_wraps_three_times,
    a_jumbo_frame_leaves_from_eighteen_pieces,
    the_mtu_is_raised_and_lowered_while_frames_flow,
);

/// Longest frame at an MTU of 9000, without CRC.
const LONGEST: usize = 9014;

fn jumbo(ring: JumboRing) -> Config {
    Config {
        mtu: 9000,
        jumbo: ring,
        ..Config::default()
    }
}

fn jumbo_frames_cross_both_ways<E: Engine>() {
    let mut stage = Stage::<E>::open_with(jumbo(JumboRing::Normal));
    for (number, length) in [1519, 2048, 4096, 8192, LONGEST].into_iter().enumerate() {
        let out = frames::of_length(frames::PEER, stage.nic.station(), number as u32, length);
        stage.transmit(&[&out]);
        assert!(stage.wire() == out, "{length} bytes out");
        let into = frames::of_length(stage.nic.station(), frames::PEER, number as u32, length);
        stage.engine.send(&into);
        assert!(stage.receive(1) == [into], "{length} bytes in");
    }
}

/// Reference 14: > standard max_len => jumbo, else standard (C); lengths without CRC.
fn the_length_of_a_frame_decides_its_ring<E: Engine>() {
    let mut stage = Stage::<E>::open_with(Config {
        mini: Some(128),
        ..jumbo(JumboRing::Normal)
    });
    for (number, (length, ring)) in [
        (60, Ring::Mini),
        (127, Ring::Mini),
        (128, Ring::Mini),
        (129, Ring::Standard),
        (1514, Ring::Standard),
        (1518, Ring::Standard),
        (1519, Ring::Jumbo),
        (LONGEST, Ring::Jumbo),
    ]
    .into_iter()
    .enumerate()
    {
        let frame = frames::of_length(stage.nic.station(), frames::PEER, number as u32, length);
        stage.engine.send(&frame);
        let received = stage.receive_described(1);
        assert!(received[0].bytes == frame, "{length} bytes");
        assert_eq!(received[0].ring, ring, "{length} bytes");
    }
}

/// Reference 14: extended jumbo BDs: up to four (C). The driver's buffers are of 3072,
/// 2048, 2048 and 2048 bytes, with gaps between them.
fn a_frame_fills_the_four_buffers_of_an_extended_bd<E: Engine>() {
    let mut stage = Stage::<E>::open_with(jumbo(JumboRing::Extended));
    let lengths = [
        1519, 3071, 3072, 3073, 5119, 5120, 5121, 7167, 7168, 7169, LONGEST,
    ];
    for (number, length) in lengths.into_iter().enumerate() {
        let frame = frames::of_length(stage.nic.station(), frames::PEER, number as u32, length);
        stage.engine.send(&frame);
        let received = stage.receive_described(1);
        assert!(received[0].bytes == frame, "{length} bytes");
        assert_eq!(received[0].ring, Ring::Jumbo);
    }
    let small = stage.inbound(3);
    stage.engine.send(&small);
    assert_eq!(stage.receive(1), [small]);
}

fn the_jumbo_ring_wraps_three_times<E: Engine>() {
    for ring in [JumboRing::Normal, JumboRing::Extended] {
        let mut stage = Stage::<E>::open_with(Config {
            jumbo_buffers: 250,
            ..jumbo(ring)
        });
        for number in 0..3 * 256 + 7 {
            let length = 1519 + (number as usize * 131) % (LONGEST - 1518);
            let frame = frames::of_length(stage.nic.station(), frames::PEER, number, length);
            stage.engine.send(&frame);
            assert!(stage.receive(1) == [frame], "frame {number}, {ring:?}");
        }
        assert_eq!(stage.nic.receive_outstanding_in(Ring::Jumbo), 250);
    }
}

fn a_jumbo_frame_leaves_from_eighteen_pieces<E: Engine>() {
    let mut stage = Stage::<E>::open_with(jumbo(JumboRing::Normal));
    let frame = frames::of_length(frames::PEER, stage.nic.station(), 1, LONGEST);
    // Odd and even pieces, one of them of a single byte.
    let mut pieces = Vec::new();
    let mut rest = frame.as_slice();
    for number in 0..17 {
        let (now, later) = rest.split_at(1 + number * 57);
        pieces.push(now);
        rest = later;
    }
    pieces.push(rest);
    stage.transmit(&pieces);
    assert!(stage.wire() == frame);
}

/// Reference, "commands used": command 05, whose event says that the ring was reset (C).
fn the_mtu_is_raised_and_lowered_while_frames_flow<E: Engine>() {
    let mut stage = Stage::<E>::open_with(Config {
        mtu: 1500,
        ..jumbo(JumboRing::Normal)
    });
    for round in 0..3 {
        let long = frames::of_length(stage.nic.station(), frames::PEER, round, LONGEST);
        stage.engine.send(&long);
        let short = stage.inbound(round);
        stage.engine.send(&short);
        assert_eq!(stage.receive(1), [short], "too long for now");
        stage.nic.set_mtu(9000).expect("there is a jumbo ring");
        // The firmware looks at the word from time to time.
        stage.engine.pass(Duration::from_millis(50));
        stage.engine.send(&long);
        assert!(stage.receive(1) == [long]);
        stage.nic.set_mtu(1500).expect("the card answers");
        stage.engine.pass(Duration::from_millis(50));
        assert_eq!(stage.nic.receive_outstanding_in(Ring::Jumbo), 0);
    }
    let drops = stage.nic.firmware_drops().expect("our firmware");
    assert_eq!(drops.get("TooLong"), Some(3), "{drops:?}");
}
