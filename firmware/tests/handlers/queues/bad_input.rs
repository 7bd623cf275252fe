//! Tests a host that gives nonsense in queue mode: every command is answered, every frame is
//! delivered or counted, and afterwards all is as it was.

use super::host::{QueueHost, control};
use super::{from, with_entries};
use crate::machine::{GUARD, Setup};
use host_interface::command::{STACK_DOWN, STACK_UP};
use host_interface::info::HostAddress;
use host_interface::queue::{
    BlockWord, ClassifierKind, QueueCommand, QueueControlBlock, QueueCounter, QueueResult, block,
};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use tigon2_model::testing::HOST_BASE;
use zerocopy::IntoBytes;

/// Not memory of the host.
const NOWHERE: u64 = 0xDEAD_0000_0000;

fn below(random: &mut SplitMix64, limit: u32) -> u32 {
    ((u64::from(random.next_u32()) * u64::from(limit)) >> 32) as u32
}

/// The card sorts frames of both queues, and closes them.
fn is_well(host: &mut QueueHost) {
    let block = control(2, ClassifierKind::SourceAddress);
    assert_eq!(host.ask_open(&block), (QueueResult::Done, 0));
    for queue in 0..2 {
        host.give(queue, 16);
    }
    host.stack(STACK_UP);
    for turn in 0..3 {
        for source in 0..8 {
            host.machine.arrive(&from([10, 0, 0, source], turn));
        }
        host.machine.pass(200);
        for queue in 0..2 {
            assert_eq!(host.received(queue).len(), 4, "turn {turn}");
            host.give(queue, 4);
            host.rearm(queue);
        }
    }
    host.stack(STACK_DOWN);
    assert_eq!(host.ask(QueueCommand::Close), (QueueResult::Done, 0));
    assert!(!host.machine.is_stopped());
}

/// The card reads the block once, into its own memory, and judges and uses that copy.
#[test]
fn a_control_block_that_changes_after_the_answer_means_nothing() {
    let mut host = QueueHost::open(&control(4, ClassifierKind::SourceAddress));
    let mut random = SplitMix64::seed_from_u64(4);
    let mut nonsense = QueueControlBlock::default();
    for round in 0..20u32 {
        random.fill_bytes(nonsense.as_mut_bytes());
        host.write_control(&nonsense);
        for source in 0..4 {
            host.machine.arrive(&from([10, 0, 0, source], round));
        }
        host.machine.pass(200);
        for queue in 0..4 {
            let frames = host.received(queue);
            assert_eq!(frames.len(), 1, "round {round}, queue {queue}");
            host.give(queue, 1);
            host.rearm(queue);
        }
    }
    host.stack(STACK_DOWN);
    assert_eq!(host.ask(QueueCommand::Close), (QueueResult::Done, 0));
    is_well(&mut host);
}

/// A block that the host is changing while the card reads it: any mixture of two blocks, and single
/// words of nonsense. It is refused or opens queues that close again.
#[test]
fn any_control_block_is_answered() {
    let mut host = QueueHost::new(&Setup::default());
    let mut random = SplitMix64::seed_from_u64(5);
    let (mut opened, mut refused) = (0, 0);
    for round in 0..400u32 {
        let kinds = [
            ClassifierKind::Toeplitz,
            ClassifierKind::SourceAddress,
            ClassifierKind::RoundRobin,
        ];
        let mut any = || control(below(&mut random, 9), kinds[below(&mut random, 3) as usize]);
        let (mut block, other) = (any(), any());
        let words = size_of::<QueueControlBlock>() / 4;
        let torn = below(&mut random, words as u32) as usize * 4;
        block.as_mut_bytes()[torn..].copy_from_slice(&other.as_bytes()[torn..]);
        for _ in 0..below(&mut random, 3) {
            let at = below(&mut random, words as u32) as usize * 4;
            let value = match below(&mut random, 4) {
                0 => 0,
                1 => u32::MAX,
                2 => below(&mut random, 1024) << 16,
                // Nothing that lies in the guarded memory.
                _ => HOST_BASE as u32 + below(&mut random, GUARD.start as u32),
            };
            block.as_mut_bytes()[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }
        let (result, _) = host.ask_open(&block);
        if result != QueueResult::Done {
            refused += 1;
            continue;
        }
        opened += 1;
        host.stack(STACK_UP);
        for queue in 0..8 {
            host.mailbox(block::BUFFER_MAILBOX + queue, 16);
            host.machine.arrive(&from([10, 0, 0, queue as u8], round));
        }
        host.machine.pass(500);
        host.stack(STACK_DOWN);
        assert_eq!(
            host.ask(QueueCommand::Close),
            (QueueResult::Done, 0),
            "round {round}"
        );
        assert!(!host.machine.is_stopped(), "round {round}");
    }
    assert!(opened > 40 && refused > 40, "{opened} and {refused}");
    assert!(host.machine.guard_is_untouched());
    is_well(&mut host);
}

/// What the card cannot write or read costs the frames of that queue, which are counted, and nobody
/// else's.
#[test]
fn a_queue_outside_of_memory_harms_no_other() {
    type Change = fn(&mut QueueControlBlock);
    let cases: [(&str, Change); 3] = [
        ("status line", |block| {
            block.queue[1].status = HostAddress::new(NOWHERE);
        }),
        ("return ring", |block| {
            block.queue[1].returns.address = HostAddress::new(NOWHERE + 0x1_0000);
        }),
        ("buffer ring", |block| {
            block.queue[1].buffers.address = HostAddress::new(NOWHERE + 0x2_0000);
        }),
    ];
    for (what, change) in cases {
        let mut block = control(2, ClassifierKind::SourceAddress);
        change(&mut block);
        let mut host = QueueHost::new(&Setup::default());
        assert_eq!(host.ask_open(&block), (QueueResult::Done, 0), "{what}");
        host.give(0, 16);
        host.mailbox(block::BUFFER_MAILBOX + 1, 16);
        host.stack(STACK_UP);
        for round in 0..10 {
            for source in 0..8 {
                host.machine.arrive(&from([10, 0, 0, source], round));
            }
            host.machine.pass(500);
            assert_eq!(host.received(0).len(), 4, "{what}, round {round}");
            host.give(0, 4);
            host.rearm(0);
        }
        let count = |host: &mut QueueHost, counter| host.counter(1, counter);
        let given = count(&mut host, QueueCounter::Frames);
        let dropped = count(&mut host, QueueCounter::NoBuffer);
        assert_eq!(given + dropped, 40, "{what}");
        host.stack(STACK_DOWN);
        assert_eq!(host.ask(QueueCommand::Close), (QueueResult::Done, 0));
        is_well(&mut host);
    }
}

/// Re-arm words and producers at any rate, valid or not, of queues that are open or not.
#[test]
fn a_storm_of_mailbox_writes_ends_in_order() {
    let mut wanted = control(3, ClassifierKind::Toeplitz);
    wanted.queue[2].buffers = with_entries(wanted.queue[2].buffers, 512);
    let mut host = QueueHost::open(&wanted);
    let mut random = SplitMix64::seed_from_u64(6);
    let mut arrived = 0;
    for round in 0..3000u32 {
        let queue = below(&mut random, 8);
        match below(&mut random, 4) {
            // What no thread could have taken.
            0 => host.rearm_at(
                queue,
                32 + below(&mut random, 0xFFF0),
                random.next_u32() & 1 == 0,
            ),
            1 => host.mailbox(
                block::REARM_MAILBOX + queue,
                random.next_u32() | 0x7FFF_8000,
            ),
            2 => host.mailbox(block::BUFFER_MAILBOX + queue, random.next_u32() | 0x400),
            _ if queue < 3 => host.rearm(queue),
            _ => host.rearm_at(queue, 0, false),
        }
        if round % 100 == 99 {
            let frame = from([10, 0, round as u8, 1], round);
            host.machine.arrive(&frame);
            arrived += 1;
            host.machine.pass(100);
        }
    }
    host.machine.pass(500);
    let came: usize = (0..3).map(|queue| host.received(queue).len()).sum();
    let dropped: u32 = (0..3)
        .map(|queue| host.counter(queue, QueueCounter::NoBuffer))
        .sum();
    assert_eq!(came as u32 + dropped, arrived);
    assert!(host.counter(0, QueueCounter::BadIndices) > 100);
    host.stack(STACK_DOWN);
    assert_eq!(host.ask(QueueCommand::Close), (QueueResult::Done, 0));
    is_well(&mut host);
}

/// Commands in any order and in any state, while frames arrive: each has its answer, and what it is
/// follows from the state.
#[test]
fn queues_open_and_close_in_any_state_while_frames_arrive() {
    let mut host = QueueHost::new(&Setup::default());
    let mut random = SplitMix64::seed_from_u64(7);
    let (mut up, mut open, mut changes) = (false, false, 0);
    for round in 0..600u32 {
        for _ in 0..below(&mut random, 6) {
            let source = [10, 0, 0, random.next_u32() as u8];
            host.machine.arrive(&from(source, round));
        }
        host.machine.pass(below(&mut random, 100).into());
        match below(&mut random, 5) {
            0 => {
                up = !up;
                host.stack(if up { STACK_UP } else { STACK_DOWN });
            }
            1 => {
                let kind = [ClassifierKind::SourceAddress, ClassifierKind::Toeplitz];
                let block = control(1 << below(&mut random, 4), kind[round as usize % 2]);
                let expected = match (open, up) {
                    (true, _) => QueueResult::AlreadyOpen,
                    (_, true) => QueueResult::StackUp,
                    _ => QueueResult::Done,
                };
                // The block of open queues stays as it is.
                let answer = if expected == QueueResult::Done {
                    host.ask_open(&block)
                } else {
                    host.ask(QueueCommand::Open)
                };
                assert_eq!(answer.0, expected, "round {round}");
                if expected == QueueResult::Done {
                    (open, changes) = (true, changes + 1);
                    (0..block.queues).for_each(|queue| host.give(queue, 16));
                }
            }
            2 => {
                if open {
                    let (result, _) = host.ask(QueueCommand::Close);
                    assert_eq!(result, QueueResult::Done, "round {round}");
                } else {
                    host.ask_in_vain(QueueCommand::Close);
                }
                open = false;
            }
            3 if open => {
                let (result, _) = host.ask(QueueCommand::UpdateClassifier);
                assert_eq!(result, QueueResult::Done, "round {round}");
            }
            3 => host.ask_in_vain(QueueCommand::UpdateClassifier),
            _ => {
                for queue in 0..8 {
                    host.rearm_at(queue, below(&mut random, 64), false);
                }
            }
        }
        assert!(!host.machine.is_stopped(), "round {round}");
        assert_eq!(host.block_word(BlockWord::Open) != 0, open, "round {round}");
    }
    assert!(changes > 20, "{changes}");
    if open {
        assert_eq!(host.ask(QueueCommand::Close), (QueueResult::Done, 0));
    }
    host.stack(STACK_DOWN);
    is_well(&mut host);
}
