//! Tests missing host memory: the transfer is dropped, reported and counted, and both directions
//! continue.

use crate::machine::{MAC, Machine, PEER, Setup, frame};
use host_interface::bd::{BdFlags, ReceiveBd, SendBd};
use host_interface::command::{Command, CommandCode};
use host_interface::event::{self, EventCode};
use host_interface::extension::DropReason;
use host_interface::info::HostAddress;
use host_interface::statistics::Statistics;
use host_interface::trace::{TraceEntry, label_words};
use tigon2_chip::Register;
use tigon2_chip::bits::{AssistState, DmaState, MacTxState};
use tigon2_chip::mailbox::Mailbox;
use tigon2_model::Reception;
use tigon2_model::testing::HOST_BASE;

const NOWHERE: u64 = 0xDEAD_0000_0000;
const DATA: u64 = HOST_BASE + 0x3_0000;

fn statistics(machine: &mut Machine) -> Statistics {
    machine.command(&[Command::new(CommandCode::RefreshStatistics, 0).pack()]);
    machine.pass(50);
    Statistics::from_words(std::array::from_fn(|word| machine.refreshed(word as u64)))
}

/// Errors 7/3 and nothing else.
fn errors(machine: &mut Machine) -> usize {
    let events = machine.events();
    for event in &events {
        let reported = (event.event, event.code);
        assert_eq!(reported, (EventCode::Error, event::ERROR_BAD_CONFIGURATION));
    }
    events.len()
}

/// Nothing is left of the recovery: no error bit, no pause, no stopped MAC.
fn is_well(machine: &mut Machine) {
    assert!(!machine.is_stopped());
    let read = |register: Register| machine.bar(register.offset());
    for register in [Register::DmaReadState, Register::DmaWriteState] {
        assert_eq!(read(register) & DmaState::ERRORS, 0);
    }
    assert!(!AssistState::from_bits(read(Register::AssistState)).pause());
    assert!(!MacTxState::from_bits(read(Register::MacTxState)).stop());
}

/// Both directions carry frames, several of them, byte for byte.
fn carries(machine: &mut Machine) {
    machine.wire.clear();
    machine.received();
    let mut out = Vec::new();
    let mut into = Vec::new();
    for seed in 0..20 {
        out.push(frame(PEER, MAC, 1514, seed));
        machine.put_frame(&[&out[seed as usize][..700], &out[seed as usize][700..]]);
        into.push(frame(MAC, PEER, 1000, seed));
        machine.arrive(&into[seed as usize]);
    }
    machine.send();
    machine.pass(2000);
    assert!(machine.wire == out);
    let received: Vec<_> = machine.received().into_iter().map(|(_, b)| b).collect();
    assert!(received == into);
    assert_eq!(machine.send_consumer(), machine.send_producer());
}

fn newest_dma(machine: &mut Machine) -> TraceEntry {
    let faults = machine.trace().into_iter();
    let mut faults = faults.filter(|entry| entry.label == label_words(*b"DMA\0\0\0\0\0"));
    faults.next_back().expect("a fault")
}

/// Reference 6.1, 6.2 (I): attention, pause, reset; then the others go out. The bad
/// fragment is the first, one in the middle, the last of its frame, or all of it, alone or
/// between good frames.
#[test]
fn a_send_bd_that_names_no_memory_costs_its_frame() {
    let good = SendBd::new(DATA, 100, BdFlags::new(), 0);
    let bad = SendBd::new(NOWHERE, 100, BdFlags::new(), 0);
    let cases: [&[SendBd]; 6] = [
        &[bad],
        &[bad, good],
        &[good, bad],
        &[good, bad, good],
        &[bad, bad, bad],
        &[good, bad, bad, good],
    ];
    let end = |bds: &[SendBd]| {
        let mut bds = bds.to_vec();
        if let Some(last) = bds.last_mut() {
            last.length_and_flags |= 4;
        }
        bds
    };
    for bds in cases {
        for alone in [false, true] {
            let mut machine = Machine::up(&Setup::default());
            let before = frame(PEER, MAC, 300, 1);
            let after = frame(PEER, MAC, 400, 2);
            if !alone {
                machine.put_frame(&[&before]);
            }
            for bd in end(bds) {
                machine.put_send_bd(bd);
            }
            if !alone {
                machine.put_frame(&[&after]);
            }
            machine.send();
            machine.pass(2000);
            let expected = if alone { vec![] } else { vec![before, after] };
            assert!(machine.wire == expected, "{bds:?} {alone}");
            assert_eq!(machine.send_consumer(), machine.send_producer());
            assert_eq!(machine.drops(DropReason::SendFault), 1, "{bds:?} {alone}");
            assert_eq!(errors(&mut machine), 1, "{bds:?} {alone}");
            is_well(&mut machine);
            let found = statistics(&mut machine);
            let bad = bds.iter().filter(|bd| bd.address.get() == NOWHERE).count();
            assert!((1..=bad as u32).contains(&found.dma_read_master_aborts));
            let sent = expected.len() as u64;
            assert_eq!(found.out_unicast.get(), sent, "{bds:?} {alone}");
            let octets: usize = expected.iter().map(Vec::len).sum();
            assert_eq!(found.out_octets.get(), octets as u64, "{bds:?} {alone}");
            assert_eq!(found.out_errors, 1);
            let entry = newest_dma(&mut machine);
            assert_eq!((entry.code, entry.arguments[1]), (0, 0xDEAD));
            carries(&mut machine);
        }
    }
}

/// A host that names nothing else but memory that is not there: the transmit buffer does
/// not fill with what was dropped.
#[test]
fn bad_send_bds_for_ever_do_not_fill_the_buffer() {
    let mut machine = Machine::up(&Setup::default());
    let end = BdFlags::new().with_end(true);
    for _ in 0..300 {
        machine.put_send_bd(SendBd::new(NOWHERE, 9000, end, 0));
        machine.send();
        machine.pass(20);
        machine.events();
    }
    for _ in 0..20 {
        for _ in 0..60 {
            machine.put_send_bd(SendBd::new(NOWHERE, 9000, end, 0));
        }
        machine.send();
        machine.pass(500);
        machine.events();
    }
    machine.pass(3000);
    assert_eq!(machine.drops(DropReason::SendFault), 300 + 20 * 60);
    machine.events();
    carries(&mut machine);
}

/// With checksums frames are held in the MAC's ring until their data arrived: one whose
/// data does not is taken out there, too.
#[test]
fn frames_with_checksums_may_fail_as_well() {
    let mut setup = Setup::default();
    setup.information.send.max_len_and_flags |= 0x09;
    let mut machine = Machine::up(&setup);
    let sums = BdFlags::new().with_transport_checksum(true);
    for round in 0..10 {
        let before = frame(PEER, MAC, 300, round);
        let after = frame(PEER, MAC, 400, 100 + round);
        machine.put_frame(&[&before]);
        machine.put_send_bd(SendBd::new(DATA, 100, sums, 0));
        let flags = sums.with_end(true);
        machine.put_send_bd(SendBd::new(NOWHERE, 100, flags, 0));
        machine.put_frame(&[&after]);
        machine.send();
        machine.pass(500);
        assert!(machine.wire == [before, after], "{round}");
        machine.wire.clear();
        assert_eq!(errors(&mut machine), 1);
    }
    is_well(&mut machine);
    carries(&mut machine);
}

/// A receive BD that names no memory: the host gets its BD back, empty and marked.
#[test]
fn a_receive_bd_that_names_no_memory_comes_back_empty() {
    let mut machine = Machine::boot(&Setup::default());
    let addresses = [NOWHERE, HOST_BASE + 0x8_0000, NOWHERE, NOWHERE];
    for (index, address) in (0..).zip(addresses) {
        machine.put_receive_bd(ReceiveBd::new(address, 1536, BdFlags::new(), index, 7));
    }
    let producer = machine.standard_producer();
    machine.ring(Mailbox::StandardProducer, producer);
    machine.command(&[Command::new(CommandCode::HostState, 1).pack()]);
    assert!(machine.wait_for_link(300));
    machine.events();
    for seed in 0..4 {
        let sent = frame(MAC, PEER, 1000, seed);
        assert_eq!(machine.arrive(&sent), Reception::Accepted);
    }
    machine.pass(3000);
    let returned = machine.returned();
    let lengths: Vec<_> = returned.iter().map(|bd| bd.length()).collect();
    assert_eq!(lengths, [0, 1000, 0, 0]);
    for (index, bd) in returned.iter().enumerate() {
        assert_eq!(usize::from(bd.index()), index);
        assert_eq!(bd.flags().error(), index != 1);
        assert_eq!(bd.errors().truncated(), index != 1);
    }
    assert_eq!(machine.drops(DropReason::ReceiveFault), 3);
    assert_eq!(errors(&mut machine), 3);
    is_well(&mut machine);
    // What the frames took in the receive buffer is free.
    let producer = machine.bar(Register::RxProducer.offset());
    assert_eq!(machine.bar(Register::RxConsumer.offset()), producer);
    let found = statistics(&mut machine);
    assert_eq!((found.dma_write_master_aborts, found.in_discards), (3, 3));
    machine.give_buffers(60);
    carries(&mut machine);
}

/// A send ring that the host has not mapped: told, again at the next doorbell; frames
/// still come in, and the ring works once it is there.
#[test]
fn a_send_ring_outside_of_memory_leaves_receiving_alone() {
    let mut setup = Setup::default();
    setup.information.send.address = HostAddress::new(NOWHERE);
    let mut machine = Machine::up(&setup);
    for doorbell in 1..=3 {
        machine.ring(Mailbox::SendProducer, doorbell);
        machine.settle();
        machine.pass(200);
        assert_eq!(errors(&mut machine), 1);
        let into = frame(MAC, PEER, 600, doorbell);
        machine.arrive(&into);
        machine.pass(200);
        assert_eq!(machine.received()[0].1, into);
    }
    assert!(machine.wire.is_empty());
    assert_eq!(machine.send_consumer(), 0);
    is_well(&mut machine);
}

/// The same of the receive rings: frames go out.
#[test]
fn receive_rings_outside_of_memory_leave_sending_alone() {
    let mut setup = Setup::default();
    setup.information.standard.address = HostAddress::new(NOWHERE);
    let mut machine = Machine::boot(&setup);
    machine.command(&[Command::new(CommandCode::HostState, 1).pack()]);
    assert!(machine.wait_for_link(300));
    machine.events();
    machine.ring(Mailbox::StandardProducer, 64);
    machine.settle();
    machine.pass(100);
    assert_eq!(errors(&mut machine), 1);
    machine.arrive(&frame(MAC, PEER, 600, 1));
    machine.pass(2000);
    assert!(machine.received().is_empty());
    let out = frame(PEER, MAC, 600, 2);
    machine.put_frame(&[&out]);
    machine.send();
    machine.pass(300);
    assert_eq!(machine.wire, [out]);
    is_well(&mut machine);
}

/// Return ring, indices, statistics: each alone is nowhere, and the other direction works.
#[test]
fn places_outside_of_memory_are_told_and_survived() {
    let nowhere = HostAddress::new(NOWHERE);
    for place in 0..4 {
        let mut setup = Setup::default();
        match place {
            0 => setup.information.receive_return.address = nowhere,
            1 => setup.information.return_producer = nowhere,
            2 => setup.information.send_consumer = nowhere,
            _ => setup.information.refresh_statistics = nowhere,
        }
        let mut machine = Machine::up(&setup);
        let into = frame(MAC, PEER, 600, 1);
        let out = frame(PEER, MAC, 600, 2);
        machine.arrive(&into);
        machine.put_frame(&[&out]);
        machine.send();
        let refresh = Command::new(CommandCode::RefreshStatistics, 0);
        machine.command(&[refresh.pack()]);
        machine.pass(500);
        assert_eq!(errors(&mut machine), 1, "{place}");
        assert_eq!(machine.wire, [out], "{place}");
        if place > 1 {
            assert_eq!(machine.received()[0].1, into, "{place}");
        }
        is_well(&mut machine);
    }
}

/// Without an event ring that can be written nothing is told, and nothing goes round in
/// circles.
#[test]
fn an_event_ring_outside_of_memory_is_survived() {
    for both in [false, true] {
        let mut setup = Setup::default();
        setup.information.event.address = HostAddress::new(NOWHERE);
        if both {
            setup.information.event_producer = HostAddress::new(NOWHERE + 0x1000);
        }
        let mut machine = Machine::boot(&setup);
        machine.give_buffers(64);
        machine.command(&[Command::new(CommandCode::HostState, 1).pack()]);
        assert!(machine.wait_for_link(300));
        for _ in 0..20 {
            machine.command(&[0xEE00_0000]);
        }
        machine.pass(2000);
        is_well(&mut machine);
        carries(&mut machine);
    }
}
