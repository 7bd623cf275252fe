//! Tests of host and wire that run on both QEMU and the simulator.

use host_driver::Config;
use host_driver::nic::{Link, SendConsumer};
use integration_tests::{Engine, Stage, frames, stories};
use std::time::Duration;

/// Frames that may be under way to the host. One that falls behind by all of its buffers
/// has the wire held, which in these stories it would wait for itself.
const LAG: u32 = 64;

stories!(
    the_card_boots_and_the_link_comes_up,
    a_frame_leaves_byte_for_byte,
    a_frame_in_pieces_leaves_in_one,
    a_frame_arrives_byte_for_byte,
    frames_for_others_are_not_delivered,
    the_send_ring_wraps_three_times,
    the_receive_rings_wrap_three_times,
    both_directions_at_once,
    every_frame_brings_its_interrupt,
    the_send_consumer_is_readable_by_register,
    a_closed_card_is_silent_and_opens_again,
    counts_agree_with_the_wire,
);

fn the_card_boots_and_the_link_comes_up<E: Engine>() {
    let stage = Stage::<E>::open();
    assert_eq!(stage.nic.link(), Link::Gigabit);
    assert!(stage.nic.has_extension(), "our own firmware signs in");
    assert_eq!(stage.nic.firmware_version(), env!("CARGO_PKG_VERSION"));
}

fn a_frame_leaves_byte_for_byte<E: Engine>() {
    let mut stage = Stage::<E>::open();
    let frame = stage.outbound(7);
    stage.transmit(&[&frame]);
    assert_eq!(stage.wire(), frame);
}

fn a_frame_in_pieces_leaves_in_one<E: Engine>() {
    let mut stage = Stage::<E>::open();
    let frame = stage.outbound(1234);
    let (header, rest) = frame.split_at(14);
    let (odd, tail) = rest.split_at(21);
    stage.transmit(&[header, odd, tail]);
    assert_eq!(stage.wire(), frame);
}

fn a_frame_arrives_byte_for_byte<E: Engine>() {
    let mut stage = Stage::<E>::open();
    let frame = stage.inbound(7);
    stage.engine.send(&frame);
    assert_eq!(stage.receive(1), [frame]);
}

fn frames_for_others_are_not_delivered<E: Engine>() {
    let mut stage = Stage::<E>::open();
    let foreign = frames::numbered([0x02, 0, 0, 0, 0, 0x77], frames::PEER, 1);
    let broadcast = frames::numbered([0xFF; 6], frames::PEER, 2);
    let ours = stage.inbound(3);
    for frame in [&foreign, &broadcast, &ours] {
        stage.engine.send(frame);
    }
    assert_eq!(stage.receive(2), [broadcast, ours]);
}

fn the_send_ring_wraps_three_times<E: Engine>() {
    let mut stage = Stage::<E>::open();
    let mut expected = 0;
    for number in 0..512 * 3 + 5 {
        let frame = stage.outbound(number);
        stage.transmit(&[&frame]);
        while let Some(left) = stage.wire_now() {
            assert_eq!(left, stage.outbound(expected), "frame {expected}");
            expected += 1;
        }
    }
    while expected < 512 * 3 + 5 {
        assert_eq!(stage.wire(), stage.outbound(expected), "frame {expected}");
        expected += 1;
    }
    assert_eq!(stage.wire_now(), None, "one frame too many");
}

fn the_receive_rings_wrap_three_times<E: Engine>() {
    let mut stage = Stage::<E>::open();
    // The return ring is the larger of the two.
    const FRAMES: u32 = 2048 * 3 + 5;
    let mut sent = 0;
    let mut received = 0;
    while received < FRAMES {
        for _ in 0..32.min(FRAMES - sent) {
            let frame = stage.inbound(sent);
            stage.engine.send(&frame);
            sent += 1;
        }
        let late = (sent - received).saturating_sub(if sent < FRAMES { LAG } else { 0 });
        for frame in stage.receive(late as usize) {
            assert_eq!(frame, stage.inbound(received), "frame {received}");
            received += 1;
        }
    }
    assert_eq!(stage.nic.drops().total(), 0);
}

fn both_directions_at_once<E: Engine>() {
    let mut stage = Stage::<E>::open();
    const FRAMES: u32 = 1000;
    let (mut out, mut into) = (0, 0);
    for number in 0..FRAMES {
        let frame = stage.outbound(number);
        stage.transmit(&[&frame]);
        let frame = stage.inbound(number);
        stage.engine.send(&frame);
        if number % 16 == 15 {
            let late = (number + 1 - into).saturating_sub(LAG);
            for frame in stage.receive(late as usize) {
                assert_eq!(frame, stage.inbound(into), "frame {into} in");
                into += 1;
            }
            while let Some(frame) = stage.wire_now() {
                assert_eq!(frame, stage.outbound(out), "frame {out} out");
                out += 1;
            }
        }
    }
    while out < FRAMES {
        assert_eq!(stage.wire(), stage.outbound(out), "frame {out} out");
        out += 1;
    }
    for frame in stage.receive((FRAMES - into) as usize) {
        assert_eq!(frame, stage.inbound(into), "frame {into} in");
        into += 1;
    }
}

/// A lost interrupt would leave the host asleep with a frame in its ring.
fn every_frame_brings_its_interrupt<E: Engine>() {
    let mut stage = Stage::<E>::open();
    for number in 0..200 {
        while stage.turn() {}
        let frame = stage.inbound(number);
        stage.engine.send(&frame);
        let came = stage.nic.wait(Duration::from_secs(2));
        assert!(came.expect("the card is there"), "frame {number}: asleep");
        stage.nic.acknowledge().expect("the card is there");
        assert_eq!(stage.receive(1), [frame], "frame {number}");
    }
}

fn the_send_consumer_is_readable_by_register<E: Engine>() {
    let mut stage = Stage::<E>::open_with(Config {
        send_consumer: SendConsumer::Register,
        ..Config::default()
    });
    for number in 0..600 {
        let frame = stage.outbound(number);
        stage.transmit(&[&frame]);
        assert_eq!(stage.wire(), frame, "frame {number}");
    }
    stage.turn();
    assert!(stage.nic.send_outstanding() < 512);
}

fn a_closed_card_is_silent_and_opens_again<E: Engine>() {
    let mut stage = Stage::<E>::open();
    stage.nic.close().expect("it was open");
    let frame = stage.inbound(1);
    stage.engine.send(&frame);
    stage.engine.pass(Duration::from_millis(50));
    assert_eq!(
        stage.nic.receive_batch(64).expect("no nonsense"),
        [[0; 0]; 0]
    );
    stage.load_and_open();
    let frame = stage.inbound(2);
    stage.engine.send(&frame);
    assert_eq!(stage.receive(1), [frame]);
}

fn counts_agree_with_the_wire<E: Engine>() {
    let mut stage = Stage::<E>::open();
    for number in 0..50 {
        let frame = stage.outbound(number);
        stage.transmit(&[&frame]);
        stage.wire();
    }
    for number in 0..70 {
        let frame = stage.inbound(number);
        stage.engine.send(&frame);
    }
    stage.receive(70);
    let statistics = stage.nic.statistics().expect("the card is there");
    assert_eq!(statistics.driver.frames_sent, 50);
    assert_eq!(statistics.driver.frames_received, 70);
    let handler = |name: &str| {
        let runs = statistics.handlers.get(name);
        runs.unwrap_or_else(|| panic!("no handler {name}"))
    };
    // Each was waited for; frames that arrive together may be handled in one run, up to 16.
    assert!(handler("SendDataReady") >= 50);
    assert!(handler("ReceiveComplete") >= 70_u64.div_ceil(16));
    assert_eq!(statistics.firmware_drops.total(), 0);
}
