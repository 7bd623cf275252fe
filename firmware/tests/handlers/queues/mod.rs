//! Tests queue mode: frames from the wire reach the queue that the classifier selects.

mod bad_input;
mod claims;
mod host;
mod protocol;

use crate::machine::{MAC, Setup, frame};
use crate::packet::{Packet, UDP};
use host::{QueueHost, control};
use host_interface::bd::destination;
use host_interface::command::{STACK_DOWN, STACK_UP};
use host_interface::extension::DropReason;
use host_interface::info::{HostAddress, RcbFlags, RingControlBlock};
use host_interface::queue::{
    BlockWord, ClassifierKind, HashType, QueueCommand, QueueControlBlock, QueueCounter,
    QueueResult, block,
};
use tigon2_model::Reception;
use tigon2_model::testing::HOST_BASE;

const NOWHERE: HostAddress = HostAddress { high: 0, low: 0 };

/// The same ring with another size.
fn with_entries(ring: RingControlBlock, entries: u16) -> RingControlBlock {
    RingControlBlock::new(ring.address.get(), entries, RcbFlags::new())
}

/// An IPv4 datagram for the card from a source address.
fn from(source: [u8; 4], seed: u32) -> Vec<u8> {
    let mut bytes = Packet::new(UDP, 100, seed).wire();
    bytes[..6].copy_from_slice(&MAC);
    bytes[26..30].copy_from_slice(&source);
    bytes
}

/// KNET, section 3.1: the lowest bits of the source address choose the queue.
#[test]
fn each_sender_has_its_queue() {
    let mut host = QueueHost::open(&control(4, ClassifierKind::SourceAddress));
    assert_eq!(host.block_word(BlockWord::Open), 4);
    let frames: Vec<_> = (0..16).map(|n| from([10, 0, 0, n], u32::from(n))).collect();
    for frame in &frames {
        assert_eq!(host.machine.arrive(frame), Reception::Accepted);
    }
    host.machine.pass(200);
    for queue in 0..4u32 {
        let received = host.received(queue);
        assert_eq!(received.len(), 4, "queue {queue}");
        for (n, (bd, bytes)) in received.iter().enumerate() {
            assert_eq!(*bytes, frames[4 * n + queue as usize]);
            assert_eq!((u32::from(bd.queue()), bd.hash()), (queue, 0));
            assert_eq!(bd.hash_type(), Some(HashType::None));
            assert_eq!(u32::from(bd.index()), n as u32);
            assert_eq!(bd.flags().destination(), destination::UNICAST);
        }
        assert_eq!(host.counter(queue, QueueCounter::Frames), 4);
    }
}

/// What is not IP goes to queue 0.
#[test]
fn frames_without_addresses_go_to_the_first_queue() {
    let mut host = QueueHost::open(&control(4, ClassifierKind::SourceAddress));
    let sent = frame(MAC, [2, 0, 0, 0, 0, 1], 200, 3);
    host.machine.arrive(&sent);
    host.machine.pass(100);
    let received = host.received(0);
    assert_eq!(received.len(), 1);
    assert_eq!(received[0].1, sent);
}

/// The published key over addresses and ports, and the table.
#[test]
fn hash_and_queue_are_those_of_the_published_function() {
    let wanted = control(3, ClassifierKind::Toeplitz);
    let mut host = QueueHost::open(&wanted);
    let key = flow_classify::Key::PUBLISHED;
    let table = flow_classify::IndirectionTable::equal(3);
    let frames: Vec<_> = (0..12)
        .map(|n| from([192, 168, n, 7 * n], n.into()))
        .collect();
    for frame in &frames {
        host.machine.arrive(frame);
    }
    host.machine.pass(200);
    let mut count = 0;
    for queue in 0..3 {
        for (bd, bytes) in host.received(queue) {
            // Bit by bit: a window of the key for each bit of addresses and ports.
            let input = &bytes[26..38];
            let hash = (0..96u32)
                .filter(|bit| input[*bit as usize / 8] >> (7 - bit % 8) & 1 != 0)
                .fold(0, |hash, bit| hash ^ key.window(bit));
            assert_eq!(bd.hash(), hash);
            assert_eq!(bd.hash_type(), Some(HashType::UdpIpv4));
            assert_eq!(u32::from(table.queue(hash)), queue);
            count += 1;
        }
    }
    assert_eq!(count, frames.len());
}

/// KNET, section 3.2: a polled queue raises no interrupt; re-arming an empty one lets the next
/// frame raise it.
#[test]
fn a_polled_queue_is_silent_until_it_is_armed_again() {
    let mut host = QueueHost::open(&control(2, ClassifierKind::SourceAddress));
    host.machine.arrive(&from([10, 0, 0, 1], 1));
    host.machine.pass(100);
    assert_eq!((host.machine.interrupts, host.status(1)), (1, (1, 1)));
    assert_eq!(host.status(0), (0, 0), "the other queue has nothing");
    assert_eq!(host.received(1).len(), 1);

    host.machine.arrive(&from([10, 0, 0, 3], 2));
    host.machine.pass(100);
    assert_eq!(
        (host.machine.interrupts, host.status(1)),
        (1, (2, 1)),
        "polled"
    );
    assert_eq!(host.received(1).len(), 1);
    host.rearm(1);
    host.machine.pass(100);
    assert_eq!(host.machine.interrupts, 1, "nothing is left");

    host.machine.arrive(&from([10, 0, 0, 5], 3));
    host.machine.pass(100);
    assert_eq!((host.machine.interrupts, host.status(1)), (2, (3, 2)));
}

/// A queue with a long time does not keep one with a short time waiting, in this session or in the
/// next.
#[test]
fn each_queue_is_reported_by_its_own_time() {
    let mut wanted = control(2, ClassifierKind::SourceAddress);
    wanted.queue[0].coalescing_ticks = 2_000_000;
    let mut host = QueueHost::open(&wanted);
    host.machine.arrive(&from([10, 0, 0, 2], 1));
    host.machine.arrive(&from([10, 0, 0, 1], 2));
    host.machine.pass(200);
    assert_eq!((host.status(0), host.status(1)), ((0, 0), (1, 1)));
    host.stack(STACK_DOWN);
    assert_eq!(host.command(QueueCommand::Close), (QueueResult::Done, 0));
    let wanted = control(1, ClassifierKind::SourceAddress);
    assert_eq!(host.ask_open(&wanted), (QueueResult::Done, 0));
    host.give(0, 16);
    host.stack(STACK_UP);
    host.machine.arrive(&from([10, 0, 0, 2], 3));
    host.machine.pass(200);
    assert_eq!(host.status(0), (1, 1));
}

/// Frames that come between the last look and the re-arm word raise the interrupt, after the
/// queue's own time; frames that the thread was told of and left raise it at once.
#[test]
fn nothing_is_lost_between_empty_and_armed() {
    let mut host = QueueHost::open(&control(2, ClassifierKind::SourceAddress));
    host.machine.arrive(&from([10, 0, 0, 1], 1));
    host.machine.pass(100);
    host.received(1);
    // The thread finds nothing more; a frame comes; the thread re-arms where it is.
    host.machine.arrive(&from([10, 0, 0, 1], 2));
    let before = host.machine.interrupts;
    host.rearm(1);
    assert_eq!(host.machine.interrupts, before, "its time is not over");
    host.machine.pass(100);
    assert_eq!(host.machine.interrupts, before + 1);
    host.machine.acknowledge();
    host.rearm_at(1, 1, false);
    assert_eq!(
        host.machine.interrupts,
        before + 2,
        "at once: frame 1 is left"
    );
    assert_eq!(host.received(1).len(), 1);
    host.rearm(1);
    host.machine.pass(100);
    assert_eq!(host.machine.interrupts, before + 2, "nothing is left");
    assert_eq!(host.counter(1, QueueCounter::Rearms), 3);
}

/// Staying polled tells the consumer index and nothing else.
#[test]
fn a_thread_that_stays_polling_gets_no_interrupt() {
    let mut host = QueueHost::open(&control(1, ClassifierKind::Single));
    host.machine.arrive(&from([10, 0, 0, 1], 1));
    host.machine.pass(100);
    let before = host.machine.interrupts;
    host.machine.arrive(&from([10, 0, 0, 1], 2));
    host.received(0);
    host.rearm_at(0, 1, true);
    host.machine.pass(200);
    assert_eq!(host.machine.interrupts, before);
    assert_eq!(host.received(0).len(), 1);
}

/// A queue that nobody serves drops; the others go on, and no frame waits.
#[test]
fn a_queue_without_buffers_holds_nobody_up() {
    let mut host = QueueHost::open(&control(2, ClassifierKind::SourceAddress));
    for n in 0..40u32 {
        // Even senders only: queue 0 has 16 buffers.
        assert_eq!(
            host.machine.arrive(&from([10, 0, 0, 2], n)),
            Reception::Accepted
        );
    }
    host.machine.arrive(&from([10, 0, 0, 1], 99));
    host.machine.pass(200);
    assert_eq!(host.received(1).len(), 1);
    assert_eq!(host.received(0).len(), 16);
    assert_eq!(host.counter(0, QueueCounter::NoBuffer), 24);
    assert_eq!(host.counter(0, QueueCounter::Frames), 16);
    assert_eq!(host.machine.drops(DropReason::NoReceiveBd), 24);
    host.give(0, 4);
    host.rearm(0);
    host.machine.arrive(&from([10, 0, 0, 2], 100));
    host.machine.pass(200);
    assert_eq!(host.received(0).len(), 1);
}

/// The rings go round, with a window that is smaller than the ring.
#[test]
fn every_frame_comes_once_and_in_order_while_rings_go_round() {
    let mut wanted = control(2, ClassifierKind::SourceAddress);
    for queue in &mut wanted.queue {
        queue.buffers = with_entries(queue.buffers, 512);
        queue.returns = with_entries(queue.returns, 128);
    }
    let mut host = QueueHost::open(&wanted);
    let (mut sent, mut got) = (vec![Vec::new(); 2], vec![Vec::new(); 2]);
    for n in 0..2000u32 {
        let queue = (n * n + n / 3) as usize % 2;
        let frame = from([10, 0, 0, queue as u8], n);
        assert_eq!(host.machine.arrive(&frame), Reception::Accepted);
        sent[queue].push(frame);
        if n % 9 == 8 {
            host.machine.pass(60);
            for queue in 0..2 {
                let received = host.received(queue);
                host.give(queue, received.len() as u32);
                host.rearm(queue);
                got[queue as usize].extend(received.into_iter().map(|(_, bytes)| bytes));
            }
        }
    }
    host.machine.pass(100);
    for queue in 0..2 {
        got[queue as usize].extend(host.received(queue).into_iter().map(|(_, bytes)| bytes));
    }
    assert!(got == sent);
}

/// Back to classic mode without a reset, and into queue mode again.
#[test]
fn closed_queues_leave_classic_mode_as_it_was() {
    let mut host = QueueHost::open(&control(4, ClassifierKind::SourceAddress));
    host.machine.arrive(&from([10, 0, 0, 1], 1));
    assert_eq!(host.command(QueueCommand::Close), (QueueResult::Done, 0));
    assert_eq!(
        host.received(1).len(),
        1,
        "it was handed over before the answer"
    );
    assert_eq!(host.block_word(BlockWord::Open), 0);
    let frames: Vec<_> = (0..20).map(|n| from([10, 0, 0, n], n.into())).collect();
    for frame in &frames {
        host.machine.arrive(frame);
    }
    host.machine.pass(200);
    let received = host.machine.received();
    assert_eq!(received.len(), frames.len());
    for (index, ((bd, bytes), sent)) in received.iter().zip(&frames).enumerate() {
        assert_eq!(bytes, sent);
        assert_eq!(
            (usize::from(bd.index()), bd.hash(), bd.kind()),
            (index, 0, 0)
        );
    }
    host.stack(STACK_DOWN);
    // The tables of a hash lie where the return BDs of classic mode are made.
    let wanted = control(2, ClassifierKind::Toeplitz);
    assert_eq!(host.try_open(&wanted), (QueueResult::Done, 0));
    assert_eq!(host.command(QueueCommand::Close), (QueueResult::Done, 0));
    host.stack(STACK_UP);
    host.machine.give_buffers(20);
    for frame in &frames {
        host.machine.arrive(frame);
    }
    host.machine.pass(200);
    for ((bd, bytes), sent) in host.machine.received().iter().zip(&frames) {
        assert_eq!(bytes, sent);
        assert_eq!((bd.hash(), bd.kind(), bd.checksums), (0, 0, 0));
        assert_eq!(bd.errors_and_vlan, 0);
    }
}

/// What is wrong with a control block is named, and classic mode goes on.
#[test]
fn a_bad_control_block_is_refused_by_name() {
    let good = || control(4, ClassifierKind::Toeplitz);
    type Change = fn(&mut QueueControlBlock);
    let cases: [(QueueResult, u16, Change); 16] = [
        (QueueResult::QueueCount, 0, |block| block.queues = 0),
        (QueueResult::QueueCount, 0, |block| block.queues = 9),
        (QueueResult::QueueCount, 0, |block| {
            (block.queues, block.classifier) = (3, ClassifierKind::SourceAddress as u32);
        }),
        (QueueResult::Classifier, 0, |block| block.classifier = 4),
        (QueueResult::HashTypes, 0, |block| block.hash_types = 0x40),
        (QueueResult::TableEntry, 77, |block| {
            block.table[19] |= 0x0004_0000
        }),
        (QueueResult::BufferRing, 2, |block| {
            block.queue[2].buffers = with_entries(block.queue[2].buffers, 63);
        }),
        (QueueResult::BufferRing, 0, |block| {
            block.queue[0].buffers = with_entries(block.queue[0].buffers, 1024);
        }),
        (QueueResult::BufferRing, 1, |block| {
            block.queue[1].buffers.address.low += 4
        }),
        (QueueResult::BufferRing, 3, |block| {
            block.queue[3].buffers = block.queue[1].returns
        }),
        (QueueResult::ReturnRing, 1, |block| {
            block.queue[1].returns.address = NOWHERE
        }),
        (QueueResult::ReturnRing, 2, |block| {
            block.queue[2].returns = block.queue[2].buffers
        }),
        (QueueResult::StatusLine, 3, |block| {
            block.queue[3].status.low += 8
        }),
        (QueueResult::StatusLine, 0, |block| {
            block.queue[0].status = NOWHERE
        }),
        (QueueResult::Message, 1, |block| block.queue[1].message = 1),
        (QueueResult::ReturnRing, 0, |block| {
            let end = HostAddress {
                high: u32::MAX,
                low: u32::MAX - 7,
            };
            block.queue[0].returns.address = end;
        }),
    ];
    let mut host = QueueHost::new(&Setup::default());
    for (result, index, change) in cases {
        let mut block = good();
        change(&mut block);
        assert_eq!(host.try_open(&block), (result, index));
    }
    for address in [0, HOST_BASE + 0xA_0004, 0x7FFF_0000_0000] {
        host.write_control(&good());
        host.set_control(address);
        assert_eq!(
            host.command(QueueCommand::Open),
            (QueueResult::ControlBlock, 0)
        );
    }
    host.stack(STACK_UP);
    host.write_control(&good());
    assert_eq!(host.command(QueueCommand::Open), (QueueResult::StackUp, 0));
    let frame = from([10, 0, 0, 9], 5);
    host.machine.arrive(&frame);
    host.machine.pass(100);
    assert_eq!(host.machine.received()[0].1, frame);
    host.stack(STACK_DOWN);
    assert_eq!(host.try_open(&good()), (QueueResult::Done, 0));
    assert_eq!(
        host.command(QueueCommand::Open),
        (QueueResult::AlreadyOpen, 0)
    );
    assert_eq!(
        host.command(QueueCommand::SteerFlow),
        (QueueResult::NotSupported, 0)
    );
}

/// Indices that never were change nothing and are counted.
#[test]
fn indices_that_cannot_be_are_counted_and_ignored() {
    let mut host = QueueHost::open(&control(2, ClassifierKind::SourceAddress));
    host.machine.arrive(&from([10, 0, 0, 1], 1));
    host.machine.pass(100);
    let before = host.machine.interrupts;
    host.rearm_at(1, 5, false);
    host.rearm_at(1, 64, false);
    host.rearm_at(1, 0xFFFF, true);
    // The buffer producer goes back.
    host.mailbox(block::BUFFER_MAILBOX + 1, 3);
    host.mailbox(block::BUFFER_MAILBOX + 1, 0xFFFF_FFFF);
    // Of a queue that is not open: nothing at all.
    host.mailbox(block::BUFFER_MAILBOX + 7, 3);
    host.rearm_at(7, 3, false);
    assert_eq!(host.counter(1, QueueCounter::BadIndices), 5);
    assert_eq!(host.machine.interrupts, before);
    assert_eq!(host.received(1).len(), 1);
    host.rearm(1);
    host.machine.arrive(&from([10, 0, 0, 1], 2));
    host.machine.pass(100);
    assert_eq!(host.received(1).len(), 1);
}
