//! Tests every ring of the interface in every size, full and empty.

use host_driver::nic::{GiveBack, ReturnRingSize, Ring, SendRingPlace, SendRingSize};
use host_driver::{Config, Transport};
use host_interface::{bar, ring};
use integration_tests::{Engine, Stage, frames, stories, stories_beyond};
use std::io::IoSlice;
use std::time::Duration;

stories!(
    every_send_ring_wraps_on_the_host_and_on_the_card,
    a_frame_leaves_from_eighteen_pieces_of_a_ring_on_the_card,
    a_full_send_ring_empties_in_order,
    the_mini_ring_wraps,
    the_small_return_ring_wraps,
    buffers_are_given_back_by_the_eighth_or_each_time,
    a_host_without_buffers_gets_frames_again_once_it_has_some,
    both_directions_at_once_with_every_ring,
);

stories_beyond!(
    every_send_ring_wraps_on_the_host_and_on_the_card,
    a_frame_leaves_from_eighteen_pieces_of_a_ring_on_the_card,
    a_full_send_ring_empties_in_order,
    the_mini_ring_wraps,
    the_small_return_ring_wraps,
    buffers_are_given_back_by_the_eighth_or_each_time,
    a_host_without_buffers_gets_frames_again_once_it_has_some,
    both_directions_at_once_with_every_ring,
);

/// Reference 12: a send ring on the card lies in 0x2000..0x4000 (C); sizes from the
/// software interface.
fn every_send_ring_wraps_on_the_host_and_on_the_card<E: Engine>() {
    // The others: `stories.rs` and `send_offload.rs`.
    for (size, place) in [
        (SendRingSize::Entries128, SendRingPlace::Host),
        (SendRingSize::Entries256, SendRingPlace::Host),
        (SendRingSize::Entries256, SendRingPlace::Card),
        (SendRingSize::Entries512, SendRingPlace::Card),
    ] {
        let mut stage = Stage::<E>::open_with(Config {
            send_ring: size,
            send_ring_place: place,
            ..Config::default()
        });
        let count = 2 * size.entries() + 9;
        let mut expected = 0;
        for number in 0..count {
            let frame = stage.outbound(number);
            stage.transmit(&[&frame]);
            while let Some(left) = stage.wire_now() {
                assert_eq!(left, stage.outbound(expected), "frame {expected}");
                expected += 1;
            }
        }
        while expected < count {
            assert_eq!(stage.wire(), stage.outbound(expected), "frame {expected}");
            expected += 1;
        }
    }
}

fn a_frame_leaves_from_eighteen_pieces_of_a_ring_on_the_card<E: Engine>() {
    for place in [SendRingPlace::Card, SendRingPlace::Host] {
        let mut stage = Stage::<E>::open_with(Config {
            send_ring: SendRingSize::Entries128,
            send_ring_place: place,
            ..Config::default()
        });
        // More than the ring has entries, in pieces: some frames lie across its end.
        for number in 0..20 {
            let frame = frames::of_length(frames::PEER, stage.nic.station(), number, 900);
            let mut pieces: Vec<&[u8]> = frame.chunks(50).collect();
            assert_eq!(pieces.len(), 18);
            if number % 2 == 1 {
                pieces.truncate(16);
                pieces.push(&frame[800..801]);
                pieces.push(&frame[801..]);
            }
            stage.transmit(&pieces);
            assert_eq!(stage.wire(), frame, "frame {number}");
        }
    }
}

fn a_full_send_ring_empties_in_order<E: Engine>() {
    let mut stage = Stage::<E>::open();
    for round in 0..2 {
        let mut queued = 0;
        loop {
            let frame = stage.outbound(queued);
            let room = stage.nic.queue(&[IoSlice::new(&frame)]);
            if !room.expect("a frame that can be sent") {
                break;
            }
            queued += 1;
        }
        assert_eq!(queued, 511, "round {round}");
        stage.nic.submit().expect("the card is there");
        for number in 0..queued {
            assert_eq!(stage.wire(), stage.outbound(number), "frame {number}");
        }
        stage
            .nic
            .drain(Duration::from_secs(5))
            .expect("all have left");
        assert_eq!(stage.nic.send_room(), 511);
    }
}

fn the_mini_ring_wraps<E: Engine>() {
    let mut stage = Stage::<E>::open_with(Config {
        mini: Some(100),
        mini_buffers: 1000,
        ..Config::default()
    });
    for number in 0..2 * 1024 + 7 {
        let length = 60 + number as usize % 41;
        let frame = frames::of_length(stage.nic.station(), frames::PEER, number, length);
        stage.engine.send(&frame);
        let received = stage.receive_described(1);
        assert_eq!(received[0].bytes, frame, "frame {number}");
        assert_eq!(received[0].ring, Ring::Mini);
    }
    assert_eq!(stage.nic.receive_outstanding_in(Ring::Mini), 1000);
}

fn the_small_return_ring_wraps<E: Engine>() {
    let mut stage = Stage::<E>::open_with(Config {
        return_ring: ReturnRingSize::Entries1024,
        ..Config::default()
    });
    for number in 0..1024 * 2 + 7 {
        let frame = stage.inbound(number);
        stage.engine.send(&frame);
        assert_eq!(stage.receive(1), [frame], "frame {number}");
    }
}

/// The card reads what the driver has told it in the ring's mailbox.
fn buffers_are_given_back_by_the_eighth_or_each_time<E: Engine>() {
    for (give_back, reported) in [
        (GiveBack::Eighth, [0, 0, 8]),
        (GiveBack::EachTime, [1, 2, 8]),
    ] {
        let mut stage = Stage::<E>::open_with(Config {
            receive_buffers: 64,
            give_back,
            ..Config::default()
        });
        let producer = |stage: &mut Stage<E>| {
            let mailbox = stage.nic.transport().read(bar::MAILBOX_STANDARD_PRODUCER);
            mailbox.expect("the card is there")
        };
        let before = producer(&mut stage);
        let mut taken = 0;
        for (frames, reported) in [1, 2, 8].into_iter().zip(reported) {
            while taken < frames {
                let frame = stage.inbound(taken);
                stage.engine.send(&frame);
                assert_eq!(stage.receive(1), [frame], "frame {taken}");
                taken += 1;
            }
            let moved = producer(&mut stage).wrapping_sub(before) % ring::STANDARD_ENTRIES;
            assert_eq!(moved, reported, "{give_back:?}, {frames} frames");
        }
    }
}

fn a_host_without_buffers_gets_frames_again_once_it_has_some<E: Engine>() {
    let mut stage = Stage::<E>::open_with(Config {
        receive_buffers: 8,
        ..Config::default()
    });
    for round in 0..4 {
        let first = round * 100;
        for number in first..first + 30 {
            let frame = stage.inbound(number);
            stage.engine.send(&frame);
        }
        // The host looks away: buffers run out.
        stage.engine.pass(Duration::from_millis(50));
        let mut next = first;
        let received = stage.receive_until_quiet();
        assert!(received.len() >= 8, "{} frames", received.len());
        for frame in received {
            // What was dropped is missing; the rest is whole and in order.
            let found = (next..first + 30).find(|number| stage.inbound(*number) == frame);
            next = found.expect("a frame of this round, in order") + 1;
        }
        let frame = stage.inbound(first + 50);
        stage.engine.send(&frame);
        assert_eq!(stage.receive(1), [frame], "round {round}");
        assert_eq!(stage.nic.receive_outstanding(), 8);
    }
}

fn both_directions_at_once_with_every_ring<E: Engine>() {
    let mut stage = Stage::<E>::open_with(Config {
        mtu: 9000,
        mini: Some(128),
        send_ring_place: SendRingPlace::Card,
        ..Config::default()
    });
    let station = stage.nic.station();
    let lengths = [60, 9014, 128, 1514, 129, 1519, 700, 4000];
    let length = |number: u32| lengths[number as usize % lengths.len()];
    let out = |number| frames::of_length(frames::PEER, station, number, length(number));
    let into = |number| frames::of_length(station, frames::PEER, number, length(number));
    let (mut left, mut arrived) = (0, 0);
    for number in 0..200 {
        stage.transmit(&[&out(number)]);
        stage.engine.send(&into(number));
        for frame in stage.receive(1) {
            assert!(frame == into(arrived), "frame {arrived} in");
            arrived += 1;
        }
        while let Some(frame) = stage.wire_now() {
            assert!(frame == out(left), "frame {left} out");
            left += 1;
        }
    }
    while arrived < 200 {
        for frame in stage.receive(1) {
            assert!(frame == into(arrived), "frame {arrived} in");
            arrived += 1;
        }
    }
    while left < 200 {
        assert!(stage.wire() == out(left), "frame {left} out");
        left += 1;
    }
}
