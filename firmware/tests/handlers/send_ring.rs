//! Tests the location of the send ring, the report of its consumer index, and misuse by the host.

use crate::machine::{MAC, Machine, PEER, Setup, frame};
use crate::packet::{Packet, TCP};
use host_interface::bd::{BdFlags, SendBd};
use host_interface::event::{ERROR_BAD_CONFIGURATION, EventCode};
use host_interface::extension::{DropReason, Extension};
use host_interface::info::{RcbFlags, RingControlBlock};
use tigon2_chip::mailbox::Mailbox;
use tigon2_model::testing::HOST_BASE;

/// Reference 12: a ring in NIC memory lies in 0x2000..0x4000; 13, step 1: its BDs are not
/// fetched (C).
#[test]
fn the_ring_may_lie_in_nic_memory() {
    for (address, entries) in [(0x3800, 128), (0x2000, 128), (0x3000, 256), (0x2000, 512)] {
        let flags = RcbFlags::new()
            .with_transport_checksum(true)
            .with_no_pseudo_header(true);
        let mut setup = Setup::default();
        setup.information.send = RingControlBlock::new(address, entries, flags);
        let mut machine = Machine::up(&setup);
        let mut all = Vec::new();
        for seed in 0..u32::from(entries) * 3 / 2 {
            let packet = Packet::new(TCP, (seed as usize * 37) % 1400, seed);
            let given = packet.with_pseudo_sum();
            let flags = BdFlags::new().with_transport_checksum(true);
            machine.put_frame_with(&[&given[..20], &given[20..]], flags, 0);
            let mut wanted = packet.wire();
            wanted.resize(wanted.len().max(60), 0);
            all.push(wanted);
            if seed % 11 == 10 {
                machine.send();
                machine.acknowledge();
            }
        }
        machine.send();
        machine.pass(200);
        assert!(machine.wire == all, "order and bytes, {entries}");
        assert_eq!(machine.send_consumer(), machine.send_producer());
        assert_eq!(
            machine.extension(Extension::SendConsumer),
            machine.send_producer()
        );
    }
}

/// Reference 13: with RCB flag 20 (steps 6 and 8) the update by number of BDs does not
/// interrupt, the one by time does, also when nothing was sent since (C).
#[test]
fn with_coalesced_updates_only_the_time_interrupts() {
    let mut setup = Setup {
        send_ticks: 10_000,
        send_max_bds: 4,
        ..Setup::default()
    };
    let flags = RcbFlags::new()
        .with_host_ring(true)
        .with_coalesced_update_only(true);
    setup.information.send.max_len_and_flags = 128 << 16 | u32::from(flags.into_bits());
    let mut machine = Machine::up(&setup);
    for seed in 0..8 {
        machine.put_frame(&[&frame(PEER, MAC, 60, seed)]);
        machine.send();
    }
    assert_eq!((machine.send_consumer(), machine.interrupts), (8, 0));
    machine.pass(11_000);
    assert_eq!((machine.send_consumer(), machine.interrupts), (8, 1));
    machine.acknowledge();
    machine.pass(50_000);
    assert_eq!(machine.interrupts, 1, "one is enough");

    // Many at once, with no time running when they come back.
    for seed in 0..20 {
        machine.put_frame(&[&frame(PEER, MAC, 60, seed)]);
    }
    machine.send();
    machine.pass(11_000);
    assert_eq!((machine.send_consumer(), machine.interrupts), (28, 2));
    machine.acknowledge();

    // A BD that asks for it is reported and interrupts at once.
    let now = BdFlags::new().with_coalesce_now(true);
    machine.put_frame_with(&[&frame(PEER, MAC, 60, 9)], now, 0);
    machine.send();
    assert_eq!((machine.send_consumer(), machine.interrupts), (29, 3));
    machine.acknowledge();
    machine.pass(50_000);
    assert_eq!(machine.interrupts, 3);
}

/// What the send side counts in the statistics block.
#[test]
fn doorbells_updates_and_thresholds_are_counted() {
    use host_interface::command::{Command, CommandCode};
    let mut machine = Machine::up(&Setup {
        send_ticks: 1000,
        send_max_bds: 4,
        ..Setup::default()
    });
    for seed in 0..9 {
        machine.put_frame(&[&frame(PEER, MAC, 60, seed)]);
        machine.send();
    }
    machine.pass(3000);
    machine.command(&[Command::new(CommandCode::UpdateStatistics, 0).pack()]);
    machine.settle();
    assert_eq!(machine.statistics(79), 9, "doorbells");
    assert_eq!(machine.statistics(80), 3, "updates");
    assert_eq!(machine.statistics(85), 2, "thresholds");
}

/// A length that no frame has, in a BD alone or in several, the frames round it unharmed.
#[test]
fn a_bd_of_65535_bytes_is_dropped() {
    let mut machine = Machine::up(&Setup::default());
    let data = HOST_BASE + 0x3_0000;
    let end = BdFlags::new().with_end(true);
    let (before, after) = (frame(PEER, MAC, 100, 1), frame(PEER, MAC, 200, 2));
    machine.put_frame(&[&before]);
    machine.put_send_bd(SendBd::new(data, 65535, end, 0));
    machine.put_send_bd(SendBd::new(data, 60, BdFlags::new(), 0));
    machine.put_send_bd(SendBd::new(data, 65535, end, 0));
    machine.put_frame(&[&after]);
    machine.send();
    machine.pass(2000);
    assert_eq!(machine.wire, [before, after]);
    assert_eq!(machine.drops(DropReason::SendTooLong), 2);
    assert_eq!(machine.events().len(), 2);
    assert_eq!(machine.send_consumer(), machine.send_producer());
}

/// END never comes: what is too long for a frame is dropped once and reported once, the
/// BDs come back lap after lap, receiving goes on, and the first END makes it good.
#[test]
fn a_frame_that_never_ends_stops_nothing() {
    let mut machine = Machine::up(&Setup::default());
    let bd = SendBd::new(HOST_BASE + 0x3_0000, 1000, BdFlags::new(), 0);
    for _ in 0..5 {
        for _ in 0..100 {
            machine.put_send_bd(bd);
        }
        machine.send();
        machine.pass(1500);
        assert_eq!(machine.send_consumer(), machine.send_producer());
        machine.arrive(&frame(MAC, PEER, 100, 3));
        machine.pass(100);
        assert_eq!(machine.received().len(), 1);
    }
    assert_eq!(machine.drops(DropReason::SendTooLong), 1);
    let events = machine.events();
    assert_eq!(events.len(), 1);
    assert_eq!(
        (events[0].event, events[0].code),
        (EventCode::Error, ERROR_BAD_CONFIGURATION)
    );
    assert!(machine.wire.is_empty());
    machine.put_send_bd(SendBd::new(
        HOST_BASE + 0x3_0000,
        60,
        BdFlags::new().with_end(true),
        0,
    ));
    let sent = frame(PEER, MAC, 100, 4);
    machine.put_frame(&[&sent]);
    machine.send();
    assert_eq!(machine.wire, [sent]);
}

/// A producer out of range is reported each time and changes nothing, in NIC memory too.
#[test]
fn a_wild_producer_of_a_ring_in_nic_memory_is_refused() {
    let mut setup = Setup::default();
    setup.information.send = RingControlBlock::new(0x3000, 256, RcbFlags::new());
    let mut machine = Machine::up(&setup);
    for bad in [256, 512, 0x8000_0000, u32::MAX] {
        machine.ring(Mailbox::SendProducer, bad);
        machine.settle();
        assert_eq!(machine.events().len(), 1, "{bad:#x}");
    }
    let sent = frame(PEER, MAC, 60, 9);
    machine.put_frame(&[&sent]);
    machine.send();
    assert_eq!(machine.wire, [sent]);
}

/// The link goes while a frame is half given: it is dropped and counted once, its BDs come
/// back, and after the link came back the next frame is whole.
#[test]
fn a_link_that_goes_in_the_middle_of_a_frame_drops_it() {
    let mut machine = Machine::up(&Setup::default());
    let first = frame(PEER, MAC, 300, 1);
    machine.put_send_bd(SendBd::new(HOST_BASE + 0x3_0000, 100, BdFlags::new(), 0));
    machine.send();
    machine.bench().with(|card, env| card.set_cable(env, false));
    machine.pass(20_000);
    assert!(!machine.firmware_link_is_up());
    machine.put_frame(&[&first]);
    machine.put_frame(&[&first]);
    machine.send();
    machine.pass(2000);
    assert_eq!(machine.drops(DropReason::LinkDown), 2);
    assert_eq!(machine.send_consumer(), machine.send_producer());
    machine.bench().with(|card, env| card.set_cable(env, true));
    for _ in 0..300 {
        machine.pass(1000);
        if machine.firmware_link_is_up() {
            break;
        }
    }
    machine.put_frame(&[&first]);
    machine.send();
    assert_eq!(machine.wire, [first]);
}
