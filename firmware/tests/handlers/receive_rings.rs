//! Tests the receive rings: which ring each frame uses, and frames without room.

use crate::machine::{MAC, Machine, PEER, Setup, frame};
use crate::rings::{JUMBO_ROOM, MINI_MAX, NO_FLAGS, STANDARD_MAX, full, ring_of};
use host_interface::bd::{BdFlags, ReceiveBd};
use host_interface::command::{Command, CommandCode};
use host_interface::event::{ERROR_BAD_CONFIGURATION, EventCode};
use host_interface::extension::DropReason;
use host_interface::gencom::Gencom;
use tigon2_chip::mailbox::Mailbox;
use tigon2_model::Reception;
use tigon2_model::testing::HOST_BASE;

/// Reference 14, step 3: by the length without CRC, longer than the standard ring's to the
/// jumbo ring, up to the mini ring's to that, else the standard ring (C).
#[test]
fn frames_go_to_the_ring_of_their_length() {
    let mut machine = full(&Setup::with_rings(NO_FLAGS));
    let cases = [
        (60, "mini"),
        (MINI_MAX, "mini"),
        (MINI_MAX + 1, "standard"),
        (STANDARD_MAX, "standard"),
        (STANDARD_MAX + 1, "jumbo"),
        (JUMBO_ROOM, "jumbo"),
    ];
    for (length, _) in cases {
        machine.arrive(&frame(MAC, PEER, length, length as u32));
    }
    machine.pass(60);
    let received = machine.received();
    assert_eq!(received.len(), cases.len());
    let mut next = [0u32; 3];
    for ((bd, bytes), (length, ring)) in received.iter().zip(cases) {
        assert_eq!(ring_of(bd), ring, "{length}");
        assert_eq!(*bytes, frame(MAC, PEER, length, length as u32));
        let (n, opaque) = match ring {
            "standard" => (0, 0xAB00),
            "mini" => (1, 0x1000),
            _ => (2, 0x2000),
        };
        assert_eq!(
            (u32::from(bd.index()), bd.opaque),
            (next[n], opaque + next[n])
        );
        next[n] += 1;
    }
}

/// All rings go round several times, the return ring of 2048 too, every frame different.
#[test]
fn the_rings_go_round() {
    let mut machine = full(&Setup::with_rings(NO_FLAGS));
    let lengths = [60, 1518, 64, 3000, 100];
    let mut sent = Vec::new();
    let mut got = Vec::new();
    for seed in 0..2600u32 {
        let length = lengths[seed as usize % lengths.len()];
        let bytes = frame(MAC, PEER, length, seed);
        assert_eq!(machine.arrive(&bytes), Reception::Accepted);
        sent.push(bytes);
        if seed % 5 == 4 {
            machine.pass(60);
            for (bd, bytes) in machine.received() {
                match ring_of(&bd) {
                    "mini" => machine.give_mini_buffers(1),
                    "jumbo" => machine.give_jumbo_buffers(1),
                    _ => machine.give_buffers(1),
                }
                got.push(bytes);
            }
        }
    }
    assert_eq!(got.len(), sent.len());
    assert!(got == sent, "order and bytes");
}

/// Reference 14, step 3: with an empty ring the frame waits, and those behind it, until
/// that ring has BDs (C). BDs of other rings do not help.
#[test]
fn a_frame_waits_for_a_bd_of_its_ring() {
    let mut machine = Machine::up(&Setup::with_rings(NO_FLAGS));
    machine.arrive(&frame(MAC, PEER, 60, 1));
    machine.arrive(&frame(MAC, PEER, 500, 2));
    machine.give_jumbo_buffers(1);
    machine.give_buffers(1);
    machine.pass(5000);
    assert!(machine.received().is_empty());
    let empty = core::mem::offset_of!(host_interface::statistics::Statistics, no_receive_bds);
    machine.command(&[Command::new(CommandCode::RefreshStatistics, 0).pack()]);
    let looks = machine.refreshed(empty as u64 / 4);
    assert_eq!(looks, 3, "at first and when BDs came, not each millisecond");
    machine.give_mini_buffers(1);
    machine.pass(60);
    let lengths: Vec<usize> = machine.received().iter().map(|(_, b)| b.len()).collect();
    assert_eq!(lengths, [60, 500]);
}

/// A frame that no ring takes blocks nothing: it is counted and dropped.
#[test]
fn without_a_jumbo_ring_long_frames_are_dropped() {
    let mut setup = Setup::with_receive_flags(NO_FLAGS);
    setup.mtu = JUMBO_ROOM as u32;
    let mut machine = Machine::up(&setup);
    machine.arrive(&frame(MAC, PEER, STANDARD_MAX + 1, 1));
    machine.arrive(&frame(MAC, PEER, STANDARD_MAX, 2));
    machine.pass(2000);
    assert_eq!(machine.received().len(), 1);
    assert_eq!(machine.drops(DropReason::TooLong), 1);
}

/// Reference 12: gencom 660 is the longest frame without CRC. With a VLAN tag it may be
/// longer by that; the host changes it while the firmware runs.
#[test]
fn the_mtu_limits_frames_and_a_tag_does_not_count() {
    let mut machine = full(&Setup::with_rings(NO_FLAGS));
    let mtu = |machine: &mut Machine, value| {
        machine.set_bar(Gencom::InterfaceMtu.bar_offset(), value);
        machine.pass(2000);
    };
    let tagged = |length| {
        let mut bytes = frame(MAC, PEER, length, 3);
        bytes[12..14].copy_from_slice(&[0x81, 0x00]);
        bytes
    };
    for limit in [1518u32, 4000, 1000] {
        mtu(&mut machine, limit);
        let limit = limit as usize;
        let before = machine.drops(DropReason::TooLong);
        for sent in [
            frame(MAC, PEER, limit, 1),
            frame(MAC, PEER, limit + 1, 2),
            tagged(limit + 4),
            tagged(limit + 5),
        ] {
            machine.arrive(&sent);
        }
        machine.pass(2000);
        let lengths: Vec<usize> = machine.received().iter().map(|(_, b)| b.len()).collect();
        assert_eq!(lengths, [limit, limit + 4]);
        assert_eq!(machine.drops(DropReason::TooLong), before + 2);
    }
}

/// A frame that waits for a jumbo BD is let go when the host lowers the limit, as Linux
/// does on its way back from jumbo frames.
#[test]
fn a_waiting_jumbo_frame_goes_with_a_lower_mtu() {
    let mut machine = Machine::up(&Setup::with_rings(NO_FLAGS));
    machine.arrive(&frame(MAC, PEER, 5000, 1));
    machine.arrive(&frame(MAC, PEER, 500, 2));
    machine.pass(3000);
    assert!(machine.received().is_empty());
    machine.set_bar(Gencom::InterfaceMtu.bar_offset(), 1518);
    machine.pass(3000);
    assert_eq!(machine.received().len(), 1);
    assert_eq!(machine.drops(DropReason::TooLong), 1);
}

/// Second section 19: on close Linux resets the jumbo ring ("Jumbo ring flushed"), frees
/// the buffers at the event, writes 0 to the mailbox and may begin again.
#[test]
fn a_reset_of_the_jumbo_ring_gives_its_buffers_back() {
    for extended in [false, true] {
        let setup = if extended {
            Setup::with_extended_jumbo(NO_FLAGS)
        } else {
            Setup::with_rings(NO_FLAGS)
        };
        let mut machine = Machine::up(&setup);
        let give = |machine: &mut Machine, count| {
            for _ in 0..count {
                if extended {
                    machine.give_extended_buffer([2000, 2000, 2000, 3000]);
                } else {
                    machine.give_jumbo_buffers(1);
                }
            }
        };
        give(&mut machine, 5);
        machine.arrive(&frame(MAC, PEER, 3000, 1));
        machine.command(&[Command::new(CommandCode::ResetJumboRing, 0).pack()]);
        // What took a buffer was reported in front of the event, without waiting for the
        // time: the host frees all others now.
        let events = machine.events();
        assert_eq!(events.len(), 1);
        assert_eq!(events[0].event, EventCode::JumboRingReset);
        assert_eq!(machine.received().len(), 1);

        machine.arrive(&frame(MAC, PEER, 3000, 2));
        machine.pass(3000);
        assert!(machine.received().is_empty(), "no old buffer is used");
        machine.extra_producers[1] = 0;
        machine.ring(Mailbox::JumboProducer, 0);
        machine.settle();
        assert!(machine.events().is_empty());
        give(&mut machine, 3);
        machine.pass(60);
        let received = machine.received();
        assert_eq!(received.len(), 1);
        assert_eq!((received[0].0.index(), received[0].0.opaque), (0, 0x2000));
    }
}

/// Reference 14, step 3; second section 19: a host that keeps 48 jumbo buffers there as
/// Linux does, and gives more when fewer than 36 are left. It raises and lowers its MTU
/// with the card running, and streams come in between: every frame arrives (C).
#[test]
fn jumbo_frames_come_and_go_as_a_host_refills() {
    const POSTED: u32 = 48;
    let mtu = |machine: &mut Machine, mtu: u32| {
        let limit = Gencom::InterfaceMtu.bar_offset();
        machine.set_bar(limit, mtu + 18);
    };
    let mut machine = Machine::up(&Setup::with_rings(NO_FLAGS));
    for round in 0..3 {
        mtu(&mut machine, 9000);
        machine.give_jumbo_buffers(POSTED);
        let mut left = POSTED;
        machine.pass(2000);
        for sent in 0..300 {
            let length = if sent % 2 == 0 { JUMBO_ROOM } else { 2000 };
            let bytes = frame(MAC, PEER, length, sent);
            machine.arrive(&bytes);
            machine.pass(60);
            let got = machine.received();
            assert_eq!(got.len(), 1, "round {round}, frame {sent}");
            assert!(got[0].1 == bytes, "round {round}, frame {sent}");
            assert_eq!(ring_of(&got[0].0), "jumbo");
            left -= 1;
            if left < POSTED * 3 / 4 {
                machine.give_jumbo_buffers(POSTED - left);
                left = POSTED;
            }
        }
        mtu(&mut machine, 1500);
        machine.command(&[Command::new(CommandCode::ResetJumboRing, 0).pack()]);
        let events = machine.events();
        assert_eq!(events.len(), 1);
        assert_eq!(events[0].event, EventCode::JumboRingReset);
        machine.extra_producers[1] = 0;
        machine.ring(Mailbox::JumboProducer, 0);
        machine.settle();
    }
}

/// Host/NIC interface, "Extended receive BD": up to four buffers; a length of 0 ends the
/// list; odd lengths; a frame that is longer than all of them is cut.
#[test]
fn an_extended_bd_has_up_to_four_buffers() {
    let mut machine = Machine::up(&Setup::with_extended_jumbo(NO_FLAGS));
    let cases: [([u16; 4], usize, [usize; 4]); 6] = [
        ([3000, 3000, 3000, 3000], 9000, [3000, 3000, 3000, 0]),
        ([1, 2047, 999, 4000], 6000, [1, 2047, 999, 2953]),
        ([3000, 0, 3000, 3000], 2999, [2999, 0, 0, 0]),
        ([3000, 0, 3000, 3000], 4000, [3000, 0, 0, 0]),
        ([1000, 500, 0, 900], 2000, [1000, 500, 0, 0]),
        ([0, 500, 600, 900], 2000, [0, 0, 0, 0]),
    ];
    for (index, (rooms, length, used)) in cases.into_iter().enumerate() {
        machine.give_extended_buffer(rooms);
        let sent = frame(MAC, PEER, length, 5 + index as u32);
        machine.arrive(&sent);
        machine.pass(60);
        let bytes = machine.extended_bytes(index as u32, used);
        let whole: usize = used.iter().sum();
        assert_eq!(bytes, sent[..whole], "{rooms:?}");
        let mut received = machine.received();
        assert_eq!(received.len(), 1);
        let (bd, _) = received.remove(0);
        assert_eq!(usize::from(bd.length()), whole);
        assert_eq!(u32::from(bd.index()), index as u32);
        assert!(bd.flags().jumbo_ring());
        let cut = whole < length;
        assert_eq!((bd.flags().error(), bd.errors().truncated()), (cut, cut));
    }
    machine.pass(2000);
    assert_eq!(machine.drops(DropReason::BufferTooSmall), 3);
}

/// Reference 18: bad indices are reported and change nothing; the other rings and the
/// other direction go on.
#[test]
fn producers_out_of_range_are_refused_in_every_ring() {
    let mut machine = full(&Setup::with_rings(NO_FLAGS));
    for (mailbox, entries) in [
        (Mailbox::StandardProducer, 512),
        (Mailbox::MiniProducer, 1024),
        (Mailbox::JumboProducer, 256),
    ] {
        for bad in [entries, 0x8000_0001, u32::MAX, 0] {
            machine.ring(mailbox, bad);
            machine.settle();
            let events = machine.events();
            assert_eq!(events.len(), 1, "{mailbox:?} {bad:#x}");
            assert_eq!(
                (events[0].event, u32::from(events[0].code)),
                (EventCode::Error, u32::from(ERROR_BAD_CONFIGURATION))
            );
        }
    }
    let sent = frame(PEER, MAC, 60, 9);
    machine.put_frame(&[&sent]);
    machine.send();
    assert_eq!(machine.wire, [sent]);
    for length in [60, 600, 6000] {
        machine.arrive(&frame(MAC, PEER, length, 1));
    }
    machine.pass(60);
    assert_eq!(machine.received().len(), 3);
}

/// A ring that is disabled has no BDs, whatever the host writes.
#[test]
fn the_producer_of_a_disabled_ring_is_refused() {
    let mut machine = Machine::up(&Setup::default());
    machine.ring(Mailbox::JumboProducer, 0);
    machine.settle();
    assert!(machine.events().is_empty(), "0 is what it was");
    for mailbox in [Mailbox::JumboProducer, Mailbox::MiniProducer] {
        machine.ring(mailbox, 1);
        machine.settle();
        assert_eq!(machine.events().len(), 1);
    }
}

/// BDs of 0 and of 65535 bytes do what they say.
#[test]
fn bds_of_extreme_lengths_are_taken_at_their_word() {
    let mut machine = Machine::boot(&Setup::default());
    for (index, bytes) in [0, u16::MAX].into_iter().enumerate() {
        let address = HOST_BASE + 0x8_0000 + 0x1000 * index as u64;
        let bd = ReceiveBd::new(address, bytes, BdFlags::new(), index as u16, 5);
        machine.put_receive_bd(bd);
    }
    let producer = machine.standard_producer();
    machine.ring(Mailbox::StandardProducer, producer);
    let up = Command::new(CommandCode::HostState, host_interface::command::STACK_UP);
    machine.command(&[up.pack()]);
    machine.pass(200_000);
    let sent = frame(MAC, PEER, 1514, 1);
    machine.arrive(&sent);
    machine.arrive(&sent);
    machine.pass(2000);
    let received = machine.received();
    assert_eq!(received.len(), 2);
    assert_eq!((received[0].1.len(), &received[1].1), (0, &sent));
    assert_eq!(machine.drops(DropReason::BufferTooSmall), 1);
}
