//! Tests when the receive return index and its interrupt reach the host.

use crate::machine::{MAC, Machine, PEER, Setup, frame};
use host_interface::bd::{BdFlags, ReceiveBd};
use host_interface::command::{Command, CommandCode};
use host_interface::info::{RcbFlags, RingControlBlock};
use tigon2_chip::mailbox::Mailbox;
use tigon2_model::testing::HOST_BASE;

/// Reference 14, step 7: the index follows after a number of BDs or a time.
#[test]
fn the_return_index_follows_by_count_and_by_time() {
    let setup = Setup {
        receive_ticks: 10_000,
        receive_max_bds: 4,
        ..Setup::default()
    };
    let mut machine = Machine::up(&setup);
    for seed in 0..3 {
        machine.arrive(&frame(MAC, PEER, 200, seed));
    }
    machine.pass(500);
    assert!(machine.received().is_empty());
    machine.arrive(&frame(MAC, PEER, 200, 3));
    assert_eq!(machine.received().len(), 4);
    assert_eq!(machine.interrupts, 1);
    machine.arrive(&frame(MAC, PEER, 200, 4));
    machine.pass(9000);
    assert!(machine.received().is_empty());
    machine.pass(2000);
    assert_eq!((machine.received().len(), machine.interrupts), (1, 2));
    let hits = core::mem::offset_of!(
        host_interface::statistics::Statistics,
        receive_threshold_hits
    );
    machine.command(&[Command::new(CommandCode::RefreshStatistics, 0).pack()]);
    assert_eq!(machine.refreshed(hits as u64 / 4), 1);
}

/// BD flag 800: the frame that takes such a buffer is reported at once.
#[test]
fn a_buffer_can_ask_to_be_reported_at_once() {
    let setup = Setup {
        receive_ticks: 1_000_000,
        receive_max_bds: 0,
        ..Setup::default()
    };
    let mut machine = Machine::boot(&setup);
    for now in [false, true, false] {
        let flags = BdFlags::new().with_coalesce_now(now);
        machine.put_receive_bd(ReceiveBd::new(HOST_BASE + 0x8_0000, 1536, flags, 0, 0));
    }
    let producer = machine.standard_producer();
    machine.ring(Mailbox::StandardProducer, producer);
    let up = Command::new(CommandCode::HostState, host_interface::command::STACK_UP);
    machine.command(&[up.pack()]);
    machine.pass(200_000);
    let mut seen = Vec::new();
    for seed in 0..3 {
        machine.arrive(&frame(MAC, PEER, 100, seed));
        seen.push(machine.received().len());
    }
    assert_eq!(seen, [0, 2, 0]);
}

/// RCB flag 20 of the return ring: the index by number of BDs comes without an interrupt,
/// which follows when the time is up, once (13, steps 6 to 8, as for the send ring).
#[test]
fn interrupts_only_by_time_when_asked_for() {
    let mut setup = Setup {
        receive_ticks: 5000,
        receive_max_bds: 2,
        ..Setup::default()
    };
    let ring = setup.information.receive_return;
    let flags = RcbFlags::new().with_coalesced_update_only(true);
    setup.information.receive_return =
        RingControlBlock::new(ring.address.get(), ring.max_len(), flags);
    let mut machine = Machine::up(&setup);
    for seed in 0..5 {
        machine.arrive(&frame(MAC, PEER, 200, seed));
    }
    assert_eq!(machine.received().len(), 4);
    machine.pass(1000);
    assert_eq!(machine.interrupts, 0);
    machine.pass(5000);
    assert_eq!((machine.received().len(), machine.interrupts), (1, 1));
    machine.pass(20_000);
    assert_eq!(machine.interrupts, 1);
}
