//! Tests the receive path: frames from the wire reach the host's buffers.

use crate::machine::{MAC, Machine, PEER, Setup, frame};
use host_interface::bd::{BdFlags, ReceiveBd, destination};
use host_interface::command::{Command, CommandCode, ENABLE, STACK_DOWN};
use host_interface::extension::DropReason;
use tigon2_chip::Register;
use tigon2_chip::mailbox::Mailbox;
use tigon2_model::Reception;
use tigon2_model::testing::HOST_BASE;

/// Reference 14: data, return BD, index, interrupt.
#[test]
fn one_frame_comes_in_byte_for_byte() {
    let mut machine = Machine::up(&Setup::default());
    let sent = frame(MAC, PEER, 1514, 7);
    assert_eq!(machine.arrive(&sent), Reception::Accepted);
    assert!(machine.received().is_empty(), "coalesced");
    machine.pass(100);
    assert_eq!(machine.interrupts, 1);
    let received = machine.received();
    assert_eq!(received.len(), 1);
    let (bd, bytes) = &received[0];
    assert_eq!(*bytes, sent);
    assert_eq!((bd.index(), bd.opaque), (0, 0xAB00));
    assert!(bd.flags().end() && !bd.flags().error());
    assert_eq!(bd.flags().destination(), destination::UNICAST);
}

/// Linux' driver for this card never writes the return ring's consumer index.
#[test]
fn a_host_that_never_says_how_far_it_has_read_gets_frames_for_ever() {
    let mut machine = Machine::up(&Setup::default());
    machine.tells_return_consumer = false;
    let mut count = 0;
    for seed in 0..5000 {
        let sent = frame(MAC, PEER, 60, seed);
        assert_eq!(machine.arrive(&sent), Reception::Accepted, "{seed}");
        if seed % 50 == 49 {
            machine.pass(100);
            let received = machine.received();
            machine.give_buffers(received.len() as u32);
            count += received.len();
        }
    }
    assert_eq!(count, 5000);
}

/// Reference 14, step 3: an empty ring holds the event back until BDs arrive.
#[test]
fn without_buffers_frames_wait_in_the_card() {
    let mut machine = Machine::up(&Setup::default());
    for seed in 0..70 {
        machine.arrive(&frame(MAC, PEER, 100, seed));
    }
    machine.pass(3000);
    assert_eq!(machine.received().len(), 64);
    machine.give_buffers(10);
    machine.pass(100);
    let rest = machine.received();
    assert_eq!(rest.len(), 6);
    assert_eq!(rest[5].1, frame(MAC, PEER, 100, 69));
}

#[test]
fn what_does_not_fit_is_dropped_or_cut() {
    let mut machine = Machine::up(&Setup::default());
    machine.arrive(&frame(MAC, PEER, 1515, 1));
    machine.pass(2000);
    assert!(machine.received().is_empty());
    assert_eq!(machine.drops(DropReason::TooLong), 1);

    // A buffer that is smaller than the ring promises.
    let mut machine = Machine::boot(&Setup::default());
    let buffer = HOST_BASE + 0x8_0000;
    for (index, bytes) in [100, 0].into_iter().enumerate() {
        let bd = ReceiveBd::new(buffer, bytes, BdFlags::new(), index as u16, 5);
        machine.put_receive_bd(bd);
    }
    let producer = machine.standard_producer();
    machine.ring(Mailbox::StandardProducer, producer);
    machine.command(&[Command::new(CommandCode::HostState, ENABLE).pack()]);
    machine.pass(200_000);
    machine.events();
    let sent = frame(MAC, PEER, 300, 2);
    machine.arrive(&sent);
    machine.arrive(&sent);
    machine.pass(2000);
    let received = machine.received();
    assert_eq!(received.len(), 2);
    for ((bd, bytes), room) in received.iter().zip([100, 0]) {
        assert_eq!(*bytes, sent[..room]);
        assert!(bd.flags().error() && bd.errors().truncated());
    }
    assert_eq!(machine.drops(DropReason::BufferTooSmall), 2);
}

/// Reference 14: with the stack down everything received is dropped, and the receive
/// buffer is free again.
#[test]
fn with_the_stack_down_frames_are_dropped_and_freed() {
    let mut machine = Machine::up(&Setup::default());
    machine.command(&[Command::new(CommandCode::HostState, STACK_DOWN).pack()]);
    for seed in 0..1000 {
        assert_eq!(
            machine.arrive(&frame(MAC, PEER, 1514, seed)),
            Reception::Accepted,
            "{seed}"
        );
    }
    machine.pass(2000);
    assert!(machine.received().is_empty());
    assert_eq!(machine.drops(DropReason::StackDown), 1000);
    let producer = machine.bar(Register::RxProducer.offset());
    assert_eq!(machine.bar(Register::RxConsumer.offset()), producer);
}

#[test]
fn a_standard_producer_out_of_range_is_refused() {
    let mut machine = Machine::up(&Setup::default());
    machine.ring(Mailbox::StandardProducer, 512);
    machine.settle();
    assert_eq!(machine.events().len(), 1);
    machine.arrive(&frame(MAC, PEER, 60, 1));
    machine.pass(100);
    assert_eq!(machine.received().len(), 1);
}

/// Reference 8: no interrupt while the host is in its handler, and none is lost.
#[test]
fn an_interrupt_that_was_held_back_is_made_up_for() {
    let mut machine = Machine::up(&Setup::default());
    machine.ring(Mailbox::HostInterrupt, 1);
    machine.arrive(&frame(MAC, PEER, 60, 1));
    machine.pass(100);
    assert_eq!(machine.interrupts, 0);
    machine.ring(Mailbox::HostInterrupt, 0);
    machine.settle();
    assert_eq!(machine.interrupts, 1);
}
