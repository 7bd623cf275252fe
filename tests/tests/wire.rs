//! Tests events of the wire: cables, pause frames, damaged frames.

use host_driver::Config;
use host_driver::nic::{DropReason, Link, LinkSettings};
use host_interface::OperatingMode;
use integration_tests::stage::in_time;
use integration_tests::{Engine, Sim, Stage, frames, stories};
use std::time::{Duration, Instant};

stories!(
    the_cable_is_pulled_and_put_back_while_frames_flow,
    damaged_frames_are_counted_and_kept_away,
    damaged_frames_are_handed_up_on_request,
    the_crc_is_handed_up_on_request,
    a_pause_frame_is_not_delivered,
);

const LINK: Duration = Duration::from_secs(5);

fn carries_frames<E: Engine>(stage: &mut Stage<E>, number: u32) {
    let out = stage.outbound(number);
    stage.transmit(&[&out]);
    assert_eq!(stage.wire(), out);
    let into = stage.inbound(number);
    stage.engine.send(&into);
    assert_eq!(stage.receive(1), [into]);
}

fn the_cable_is_pulled_and_put_back_while_frames_flow<E: Engine>() {
    let mut stage = Stage::<E>::open();
    for round in 0..3 {
        carries_frames(&mut stage, round);
        stage.engine.plug(false);
        let changes = 2 * u64::from(round) + 2;
        let seen = stage.nic.wait_link_changes(changes, LINK);
        assert!(seen.expect("the card is well"), "round {round}: down");
        assert_eq!(stage.nic.link(), Link::Down);
        // What is sent without a cable is lost, and its BDs come back in the end.
        for number in 0..10 {
            let frame = stage.outbound(100 + number);
            stage.transmit(&[&frame]);
        }
        stage.turn();
        stage.engine.plug(true);
        stage.nic.wait_link(LINK).expect("the cable is in");
        while stage.nic.send_outstanding() > 0 {
            stage.turn();
        }
        stage.engine.pass(Duration::from_millis(20));
        while stage.wire_now().is_some() {}
    }
    carries_frames(&mut stage, 9);
}

/// Reference 10.3: dropped unless OPMODE 0x800 (C).
fn damaged_frames_are_counted_and_kept_away<E: Engine>() {
    let mut stage = Stage::<E>::open();
    for (count, fault) in [
        (3, "receive crc 3"),
        (3, "receive damaged:17x4 3"),
        (2, "receive odd-nibbles 2"),
        (1, "receive crc+phy-decode+link-lost"),
    ] {
        stage.engine.inject(fault);
        for number in 0..=count {
            let frame = stage.inbound(number);
            stage.engine.send(&frame);
        }
        // Only the last one is whole.
        let last = stage.inbound(count);
        assert_eq!(stage.receive(1), [last], "{fault}");
    }
    stage.nic.update_statistics().expect("an answer");
    let drops = stage.nic.firmware_drops().expect("our firmware");
    assert_eq!(drops.get("BadFrame"), Some(9), "{drops:?}");
    assert_eq!(stage.nic.drops().get(DropReason::FrameError), 0);
}

fn damaged_frames_are_handed_up_on_request<E: Engine>() {
    let mode = Config::default().mode;
    let mut stage = Stage::<E>::open_with(Config {
        mode: mode.with_bad_frames(true),
        ..Config::default()
    });
    for (fault, errors) in [
        ("receive crc", 0x001),
        ("receive odd-nibbles", 0x010),
        ("receive crc+phy-decode", 0x009),
    ] {
        stage.engine.inject(fault);
        let frame = stage.inbound(1);
        stage.engine.send(&frame);
        let received = &stage.receive_described(1)[0];
        let found = received.errors.map(|errors| errors.into_bits());
        assert_eq!(found, Some(errors), "{fault}");
        assert_eq!(received.bytes, frame, "{fault}");
    }
    carries_frames(&mut stage, 5);
}

/// "400 include CRC": four bytes more, whose CRC over the whole is right.
fn the_crc_is_handed_up_on_request<E: Engine>() {
    let mode: OperatingMode = Config::default().mode;
    let mut stage = Stage::<E>::open_with(Config {
        mode: mode.with_include_crc(true),
        ..Config::default()
    });
    for number in 0..20 {
        let frame = stage.inbound(number);
        stage.engine.send(&frame);
        let received = stage.receive(1).remove(0);
        let (bytes, crc) = received.split_at(frame.len());
        assert_eq!(bytes, frame, "frame {number}");
        assert_eq!(crc, crc32(&frame).to_le_bytes(), "frame {number}");
    }
}

/// The CRC of IEEE 802.3.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ if crc & 1 == 1 { 0xEDB8_8320 } else { 0 }
        })
    })
}

fn a_pause_frame_is_not_delivered<E: Engine>() {
    let mut stage = Stage::<E>::open();
    let before = stage.nic.mac_statistics().expect("the card is there");
    stage.engine.send(&frames::pause(1));
    let frame = stage.inbound(1);
    stage.engine.send(&frame);
    assert_eq!(stage.receive(1), [frame]);
    let after = stage.nic.mac_statistics().expect("the card is there");
    let count = |counts: &[(String, u32)]| {
        let found = counts.iter().find(|(name, _)| name == "DroppedFlowControl");
        found.expect("a counter of the MAC's").1
    };
    assert_eq!(count(&after), count(&before) + 1);
    carries_frames(&mut stage, 2);
}

/// The simulator's clock is exact: 0xFFFF quanta of 512 bits are 33.5 ms at 1000 Mb/s.
#[test]
fn a_pause_frame_holds_the_card_for_its_time() {
    let mut stage = Stage::<Sim>::open();
    stage.engine.send(&frames::pause(0xFFFF));
    stage.engine.pass(Duration::from_millis(1));
    let frame = stage.outbound(1);
    stage.transmit(&[&frame]);
    stage.engine.pass(Duration::from_millis(20));
    assert_eq!(stage.wire_now(), None, "it is held");
    stage.engine.pass(Duration::from_millis(20));
    assert_eq!(stage.wire_now(), Some(frame.clone()), "and let go");
    // A second pause frame with no time ends the first.
    stage.engine.send(&frames::pause(0xFFFF));
    stage.engine.send(&frames::pause(0));
    stage.engine.pass(Duration::from_millis(1));
    stage.transmit(&[&frame]);
    stage.engine.pass(Duration::from_millis(5));
    assert_eq!(stage.wire_now(), Some(frame));
}

/// Without the wish for flow control a pause frame holds nobody.
#[test]
fn a_card_that_was_not_asked_to_obeys_no_pause_frame() {
    let mut stage = Stage::<Sim>::open_with(Config {
        link: LinkSettings::default().with_flow_control(false, false),
        ..Config::default()
    });
    stage.engine.send(&frames::pause(0xFFFF));
    stage.engine.pass(Duration::from_millis(1));
    let frame = stage.outbound(1);
    stage.transmit(&[&frame]);
    stage.engine.pass(Duration::from_millis(5));
    assert_eq!(stage.wire_now(), Some(frame));
}

#[test]
fn a_card_without_room_asks_its_partner_to_pause() {
    let mut stage = Stage::<Sim>::open_with(Config {
        receive_buffers: 8,
        ..Config::default()
    });
    // The host looks away.
    for number in 0..400 {
        let frame = frames::of_length(stage.nic.station(), frames::PEER, number, 1514);
        stage.engine.send(&frame);
    }
    let end = Instant::now() + LINK;
    let asked = loop {
        stage.engine.pass(Duration::from_millis(1));
        match stage.engine.receive_now() {
            Some(frame) => break frame,
            None => in_time(end, &mut stage.nic, "no pause frame"),
        }
    };
    assert_eq!(asked[..6], frames::PAUSE);
    assert_eq!(asked[12..16], [0x88, 0x08, 0x00, 0x01]);
    assert_ne!(asked[16..18], [0, 0]);
    // The host looks again: everything comes, nothing was lost.
    let mut received = Vec::new();
    while received.len() < 400 {
        received.extend(stage.receive(1));
    }
    for (number, frame) in (0..).zip(&received) {
        let sent = frames::of_length(stage.nic.station(), frames::PEER, number, 1514);
        assert!(*frame == sent, "frame {number}");
    }
}
