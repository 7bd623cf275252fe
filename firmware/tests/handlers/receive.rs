//! Tests the receive path: frames from the wire reach the host's buffers.

use crate::machine::{MAC, Machine, PEER, Setup, frame};
use host_interface::bd::{BdFlags, ReceiveBd, destination};
use host_interface::command::{Command, CommandCode, DISABLE, ENABLE, STACK_DOWN};
use host_interface::extension::DropReason;
use host_interface::gencom::mac_words;
use tigon2_chip::Register;
use tigon2_chip::mailbox::Mailbox;
use tigon2_model::Reception;
use tigon2_model::testing::HOST_BASE;

const BROADCAST: [u8; 6] = [0xFF; 6];
const GROUP: [u8; 6] = [0x01, 0x00, 0x5E, 0x00, 0x00, 0x05];

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

#[test]
fn the_ring_goes_round_with_every_frame_different() {
    let mut machine = Machine::up(&Setup::default());
    let mut all = Vec::new();
    let mut got = Vec::new();
    for seed in 0..3 * 512 {
        let sent = frame(MAC, PEER, 60 + (seed as usize * 41) % 1450, seed);
        assert_eq!(machine.arrive(&sent), Reception::Accepted, "{seed}");
        all.push(sent);
        if seed % 13 == 12 {
            machine.pass(60);
            let received = machine.received();
            machine.give_buffers(received.len() as u32);
            got.extend(received.into_iter().map(|(_, bytes)| bytes));
        }
    }
    machine.pass(60);
    got.extend(machine.received().into_iter().map(|(_, bytes)| bytes));
    assert_eq!(got.len(), all.len());
    assert!(got == all, "order and bytes");
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

/// Reference 10.3, 10.4: what the filter lets in, exactly.
#[test]
fn the_filter_follows_the_hosts_commands() {
    let mut machine = Machine::up(&Setup::default());
    let stranger = [0x00, 0x60, 0xCF, 0x99, 0x99, 0x99];
    let takes = |machine: &mut Machine, destination| {
        machine.arrive(&frame(destination, PEER, 60, 1));
        machine.pass(100);
        let received = machine.received();
        machine.give_buffers(received.len() as u32);
        received.first().map(|(bd, _)| bd.flags().destination())
    };
    assert_eq!(takes(&mut machine, BROADCAST), Some(destination::BROADCAST));
    assert_eq!(takes(&mut machine, GROUP), None);
    assert_eq!(takes(&mut machine, stranger), None);

    let (high, low) = mac_words(GROUP);
    let add = Command::new(CommandCode::AddMulticastExtended, 0).pack();
    machine.command(&[add, high, low]);
    assert_eq!(takes(&mut machine, GROUP), Some(destination::MULTICAST));
    let delete = Command::new(CommandCode::DeleteMulticastExtended, 0).pack();
    machine.command(&[delete, high, low]);
    assert_eq!(takes(&mut machine, GROUP), None);

    machine.command(&[Command::new(CommandCode::AllMulticast, ENABLE).pack()]);
    assert_eq!(takes(&mut machine, GROUP), Some(destination::MULTICAST));
    machine.command(&[Command::new(CommandCode::AllMulticast, DISABLE).pack()]);
    assert_eq!(takes(&mut machine, GROUP), None);

    machine.command(&[Command::new(CommandCode::Promiscuous, ENABLE).pack()]);
    assert_eq!(takes(&mut machine, stranger), Some(destination::UNICAST));
    machine.command(&[Command::new(CommandCode::Promiscuous, DISABLE).pack()]);
    assert_eq!(takes(&mut machine, stranger), None);
}

/// An address that shares its hash bit with one in the list is still not wanted.
#[test]
fn the_multicast_list_is_exact() {
    use tigon2_chip::mac::multicast_hash_bit;
    let wanted = GROUP;
    let twin = (1..=u16::MAX)
        .map(|n| [0x01, 0x00, 0x5E, 0x7F, (n >> 8) as u8, n as u8])
        .find(|address| multicast_hash_bit(address) == multicast_hash_bit(&wanted))
        .expect("one in 128");
    let mut machine = Machine::up(&Setup::default());
    let (high, low) = mac_words(wanted);
    let add = Command::new(CommandCode::AddMulticastExtended, 0).pack();
    machine.command(&[add, high, low]);
    assert_eq!(
        machine.arrive(&frame(twin, PEER, 60, 1)),
        Reception::Accepted
    );
    machine.pass(2000);
    assert!(machine.received().is_empty());
    assert_eq!(machine.drops(DropReason::NotSubscribed), 1);
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
