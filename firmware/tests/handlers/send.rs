//! Tests the transmit path: the host's BDs become frames on the wire.

use crate::machine::{MAC, Machine, PEER, Setup, frame};
use host_interface::bd::{BdFlags, SendBd};
use host_interface::event::EventCode;
use host_interface::extension::{DropReason, Extension};
use tigon2_chip::mailbox::Mailbox;
use tigon2_model::testing::HOST_BASE;

/// Reference 13: one frame, byte for byte; the consumer index by MMIO and by DMA.
#[test]
fn one_frame_goes_out_byte_for_byte() {
    let mut machine = Machine::up(&Setup::default());
    let sent = frame(PEER, MAC, 1514, 1);
    machine.put_frame(&[&sent]);
    machine.send();
    assert_eq!(machine.wire, [sent]);
    assert_eq!(machine.extension(Extension::SendConsumer), 1, "at once");
    assert_eq!(machine.send_consumer(), 0, "coalesced");
    machine.pass(150);
    assert_eq!(machine.send_consumer(), 1);
    assert_eq!(machine.interrupts, 1);
}

/// The MAC raises no event for sent frames, so BDs that find no room wait for the timer. What else
/// the read channel brings does not: receive BDs are there at once, however many come one by one.
#[test]
fn a_full_transmit_buffer_keeps_no_receive_bds_waiting() {
    let mut machine = Machine::up(&Setup {
        receive_ticks: 0,
        ..Setup::default()
    });
    let arriving = frame(MAC, PEER, 60, 1);
    machine.bench().card.set_wire_room(Some(0));
    while machine.extension(Extension::SendConsumer) == machine.send_producer() {
        for seed in 0..60 {
            machine.put_frame(&[&frame(PEER, MAC, 1514, seed)]);
        }
        machine.send();
    }
    machine.arrive(&arriving);
    while !machine.received().is_empty() {
        machine.arrive(&arriving);
    }
    for number in 0..4 {
        machine.give_buffers(1);
        assert_eq!(machine.received().len(), 1, "{number}");
        machine.arrive(&arriving);
    }
}

/// Reference 13, step 6: by count before the time is over.
#[test]
fn updates_are_coalesced_by_count_and_by_time() {
    let setup = Setup {
        send_ticks: 10_000,
        send_max_bds: 4,
        ..Setup::default()
    };
    let mut machine = Machine::up(&setup);
    for seed in 0..3 {
        machine.put_frame(&[&frame(PEER, MAC, 60, seed)]);
        machine.send();
    }
    machine.pass(500);
    assert_eq!((machine.send_consumer(), machine.interrupts), (0, 0));
    machine.put_frame(&[&frame(PEER, MAC, 60, 3)]);
    machine.send();
    assert_eq!((machine.send_consumer(), machine.interrupts), (4, 1));
    machine.acknowledge();
    machine.put_frame(&[&frame(PEER, MAC, 60, 4)]);
    machine.send();
    assert_eq!(machine.send_consumer(), 4);
    machine.pass(11_000);
    assert_eq!((machine.send_consumer(), machine.interrupts), (5, 2));
}

#[test]
fn a_bd_can_ask_to_be_reported_at_once() {
    let mut machine = Machine::up(&Setup {
        send_ticks: 1_000_000,
        ..Setup::default()
    });
    let flags = BdFlags::new().with_end(true).with_coalesce_now(true);
    machine.put_send_bd(SendBd::new(HOST_BASE + 0x3_0000, 60, flags, 0));
    machine.send();
    assert_eq!(machine.send_consumer(), 1);
}

/// Bad BDs are counted and reported; the frames round them are not harmed.
#[test]
fn bad_bds_are_dropped_and_the_next_frame_goes_out() {
    let end = BdFlags::new().with_end(true);
    let data = HOST_BASE + 0x3_0000;
    let cases: [(&[SendBd], DropReason); 3] = [
        (&[SendBd::new(data, 0, end, 0)], DropReason::BadSendBd),
        (
            &[
                SendBd::new(data, 100, BdFlags::new(), 0),
                SendBd::new(data, 0, end, 0),
            ],
            DropReason::BadSendBd,
        ),
        (
            &[
                SendBd::new(data, 9000, BdFlags::new(), 0),
                SendBd::new(data, 9000, BdFlags::new(), 0),
                SendBd::new(data, 9000, end, 0),
            ],
            DropReason::SendTooLong,
        ),
    ];
    for (bds, reason) in cases {
        let mut machine = Machine::up(&Setup::default());
        let before = frame(PEER, MAC, 100, 1);
        let after = frame(PEER, MAC, 200, 2);
        machine.put_frame(&[&before]);
        for bd in bds {
            machine.put_send_bd(*bd);
        }
        machine.put_frame(&[&after]);
        machine.send();
        machine.pass(2000);
        assert_eq!(machine.wire, [before, after], "{reason:?}");
        assert_eq!(machine.drops(reason), 1, "{reason:?}");
        assert_eq!(
            machine.send_consumer(),
            machine.send_producer(),
            "{reason:?}"
        );
        assert_eq!(machine.events().len(), 1, "{reason:?}");
    }
}

/// A bad BD alone is given back, too: nothing else would report it.
#[test]
fn a_bad_bd_at_the_end_is_given_back() {
    let mut machine = Machine::up(&Setup::default());
    machine.put_send_bd(SendBd::new(
        HOST_BASE + 0x3_0000,
        0,
        BdFlags::new().with_end(true),
        0,
    ));
    machine.send();
    machine.pass(150);
    assert_eq!(machine.send_consumer(), 1);
}

#[test]
fn producers_out_of_range_or_backwards_are_refused() {
    let mut machine = Machine::up(&Setup::default());
    for bad in [128, 512, u32::MAX] {
        machine.ring(Mailbox::SendProducer, bad);
        machine.settle();
        let events = machine.events();
        assert_eq!(events.len(), 1, "{bad}");
        assert_eq!(events[0].event, EventCode::Error);
    }
    let sent = frame(PEER, MAC, 60, 9);
    machine.put_frame(&[&sent]);
    machine.send();
    assert_eq!(machine.wire, [sent]);
}

/// With the link down frames go nowhere and the ring does not stall.
#[test]
fn frames_are_dropped_while_the_link_is_down() {
    let mut machine = Machine::boot(&Setup::default());
    machine.put_frame(&[&frame(PEER, MAC, 60, 1)]);
    machine.send();
    machine.pass(2000);
    assert_eq!(machine.send_consumer(), 1);
    assert_eq!(machine.drops(DropReason::LinkDown), 1);
    assert!(machine.wire.is_empty());
}
