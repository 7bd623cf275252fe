//! Tests the commands of the interface by their effects on the wire.

use host_driver::Config;
use host_driver::nic::{Link, LinkSettings, MulticastForm, Negotiate};
use host_interface::command::CommandCode;
use integration_tests::{Engine, Stage, frames, stories};
use std::time::Duration;

stories!(
    a_group_is_joined_and_left,
    all_multicast_and_promiscuous_let_more_in,
    the_card_answers_to_another_address,
    a_reset_forgets_no_filter,
    statistics_are_cleared_updated_and_refreshed,
    frames_are_looped_back,
    the_link_is_negotiated_again,
    commands_that_do_nothing_are_reported,
    the_trace_shows_the_commands,
);

const GROUP: [u8; 6] = [0x01, 0x00, 0x5E, 0x00, 0x00, 0xFB];
/// Somebody else's address.
const STRANGER: [u8; 6] = [0x02, 0, 0, 0, 0, 0x77];
const LINK: Duration = Duration::from_secs(5);

/// A frame from the peer to an address.
fn to(address: [u8; 6], number: u32) -> Vec<u8> {
    frames::numbered(address, frames::PEER, number)
}

/// Sends frames, then one to the station itself: everything that was let in comes
/// before it.
fn let_in<E: Engine>(stage: &mut Stage<E>, frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
    for frame in frames {
        stage.engine.send(frame);
    }
    let last = stage.inbound(9999);
    stage.engine.send(&last);
    let mut received = Vec::new();
    while received.last() != Some(&last) {
        received.extend(stage.receive(1));
    }
    received.pop();
    received
}

/// A group that shares its bit of the hash with `group`: it must be told apart by the
/// firmware's list (reference 14, 2).
fn collision(group: [u8; 6]) -> [u8; 6] {
    let bit = tigon2_chip::mac::multicast_hash_bit(&group);
    (0..=0xFFFF_u16)
        .map(|n| {
            let [high, low] = n.to_be_bytes();
            [0x01, 0x00, 0x5E, 0x11, high, low]
        })
        .find(|other| tigon2_chip::mac::multicast_hash_bit(other) == bit)
        .expect("128 bits, 65536 addresses")
}

fn a_group_is_joined_and_left<E: Engine>() {
    for multicast in [MulticastForm::Extended, MulticastForm::Gencom] {
        let mut stage = Stage::<E>::open_with(Config {
            multicast,
            ..Config::default()
        });
        let other = collision(GROUP);
        let frames = [to(GROUP, 1), to(other, 2)];
        assert_eq!(let_in(&mut stage, &frames), [[0; 0]; 0]);
        stage.nic.add_multicast(GROUP).expect("an answer");
        assert_eq!(let_in(&mut stage, &frames), frames[..1]);
        stage.nic.add_multicast(other).expect("an answer");
        assert_eq!(let_in(&mut stage, &frames), frames);
        stage.nic.delete_multicast(GROUP).expect("an answer");
        assert_eq!(let_in(&mut stage, &frames), frames[1..]);
        stage.nic.delete_multicast(other).expect("an answer");
        assert_eq!(let_in(&mut stage, &frames), [[0; 0]; 0]);
    }
}

fn all_multicast_and_promiscuous_let_more_in<E: Engine>() {
    let mut stage = Stage::<E>::open();
    let frames = [to(GROUP, 1), to(STRANGER, 2), to([0xFF; 6], 3)];
    let [group, stranger, broadcast] = frames.clone();
    assert_eq!(let_in(&mut stage, &frames), frames[2..]);
    stage.nic.set_all_multicast(true).expect("it is taken");
    let expected = [group.clone(), broadcast.clone()];
    assert_eq!(let_in(&mut stage, &frames), expected);
    stage.nic.set_promiscuous(true).expect("it is taken");
    let everything = [group, stranger, broadcast.clone()];
    assert_eq!(let_in(&mut stage, &frames), everything);
    stage.nic.set_promiscuous(false).expect("it is taken");
    assert_eq!(let_in(&mut stage, &frames), expected);
    stage.nic.set_all_multicast(false).expect("it is taken");
    assert_eq!(let_in(&mut stage, &frames), [broadcast]);
}

fn the_card_answers_to_another_address<E: Engine>() {
    let mut stage = Stage::<E>::open();
    let old = stage.nic.station();
    let new = [0x02, 0x54, 0x47, 0x12, 0x34, 0x56];
    stage.nic.set_station(new).expect("it is taken");
    let frames = [to(old, 1), to(new, 2)];
    assert_eq!(let_in(&mut stage, &frames), frames[1..]);
    stage.nic.set_station(old).expect("it is taken");
    assert_eq!(let_in(&mut stage, &frames), frames[..1]);
}

fn a_reset_forgets_no_filter<E: Engine>() {
    let mut stage = Stage::<E>::open();
    stage.nic.add_multicast(GROUP).expect("an answer");
    let new = [0x02, 0x54, 0x47, 0x12, 0x34, 0x56];
    stage.nic.set_station(new).expect("it is taken");
    stage.nic.recover().expect("the same firmware");
    stage.nic.wait_link(LINK).expect("the cable is in");
    let frames = [to(GROUP, 1), to(new, 2), to(STRANGER, 3)];
    assert_eq!(let_in(&mut stage, &frames), frames[..2]);
    stage.nic.set_promiscuous(true).expect("it is taken");
    stage.nic.recover().expect("the same firmware");
    stage.nic.wait_link(LINK).expect("the cable is in");
    assert_eq!(let_in(&mut stage, &frames), frames);
}

fn statistics_are_cleared_updated_and_refreshed<E: Engine>() {
    let mut stage = Stage::<E>::open();
    let mut bytes = 0;
    for number in 0..25 {
        let frame = stage.inbound(number);
        bytes += frame.len() as u64;
        stage.engine.send(&frame);
    }
    stage.receive(25);
    let broadcast = to([0xFF; 6], 3);
    stage.engine.send(&broadcast);
    stage.receive(1);
    stage.nic.update_statistics().expect("an answer");
    let block = stage.nic.card_statistics().expect("host memory");
    assert_eq!(block.in_unicast.get(), 25);
    assert_eq!(block.in_broadcast.get(), 1);
    // RFC 1213 counts the CRC; whether the interface does is told by the total.
    let octets = block.in_octets.get();
    let frames = bytes + broadcast.len() as u64;
    assert!(
        octets == frames || octets == frames + 26 * 4,
        "{octets} octets, {frames} sent"
    );
    stage.nic.clear_statistics().expect("it is taken");
    stage.nic.refresh_statistics().expect("it is taken");
    stage.engine.pass(Duration::from_millis(20));
    let block = stage.nic.card_statistics().expect("host memory");
    assert_eq!(block.in_unicast.get(), 0);
}

fn frames_are_looped_back<E: Engine>() {
    let mut stage = Stage::<E>::open_with(Config {
        link: LinkSettings::default().with_loopback(true),
        ..Config::default()
    });
    for number in 0..20 {
        // To the station itself: its own filter lets the frame in.
        let frame = stage.inbound(number);
        stage.transmit(&[&frame]);
        assert_eq!(stage.receive(1), [frame], "frame {number}");
    }
    assert_eq!(stage.wire_now(), None, "nothing leaves the card");
}

fn the_link_is_negotiated_again<E: Engine>() {
    let mut stage = Stage::<E>::open();
    for which in [Negotiate::Both, Negotiate::Gigabit] {
        let changes = stage.nic.link_changes();
        let link = LinkSettings::default();
        stage.nic.set_link(link, which).expect("it is taken");
        let seen = stage.nic.wait_link_changes(changes + 2, LINK);
        assert!(seen.expect("the card is well"), "down and up again");
        assert_eq!(stage.nic.link(), Link::Gigabit);
        let state = stage.nic.link_state().expect("the card is there");
        let up = state.up().expect("one link is up");
        assert!(up.speed_1000() && up.full_duplex());
        let frame = stage.outbound(1);
        stage.transmit(&[&frame]);
        assert_eq!(stage.wire(), frame);
    }
}

fn commands_that_do_nothing_are_reported<E: Engine>() {
    let mut stage = Stage::<E>::open();
    for command in [
        CommandCode::FdrFiltering,
        CommandCode::SetPartialReceiveCount,
    ] {
        let error = stage.nic.raw_command(command, 0).expect_err("no use");
        assert!(error.to_string().contains("not implemented"), "{error}");
    }
    let error = stage.nic.raw_command(CommandCode::Promiscuous, 7);
    let error = error.expect_err("no such code").to_string();
    assert!(error.contains("invalid command"), "{error}");
    let frame = stage.inbound(1);
    stage.engine.send(&frame);
    assert_eq!(stage.receive(1), [frame]);
}

fn the_trace_shows_the_commands<E: Engine>() {
    let mut stage = Stage::<E>::open_with(Config {
        trace_mask: u32::MAX,
        ..Config::default()
    });
    stage.nic.set_promiscuous(true).expect("it is taken");
    let trace = stage.nic.trace().expect("a ring");
    let found = trace
        .iter()
        .rev()
        .find(|entry| entry.code == CommandCode::Promiscuous as u32);
    let found = found.unwrap_or_else(|| panic!("not in {trace:?}"));
    assert_eq!(found.arguments[0], 0x0A00_1000);
    assert!(trace.windows(2).all(|pair| pair[0].time <= pair[1].time));
}
