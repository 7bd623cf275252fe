//! Tests a thread for each queue.

use crate::host::{PATIENCE, Queues, reference};
use host_driver::nic::{QueueSettings, ReceiveQueue};
use integration_tests::{Engine, stories};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;
use tigon2_sim::workload::knet::random::RandomFrames;

stories!(every_queue_has_its_thread);

const FRAMES: usize = 600;
/// Most frames that are on their way: fewer than a queue has buffers.
const ON_THE_WAY: usize = 100;

/// Takes frames until `over`.
fn serve(queue: &mut ReceiveQueue, taken: &AtomicUsize, over: &AtomicBool) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    while !over.load(Ordering::Acquire) {
        let more = queue.receive(16, |frame| {
            frames.push(frame.to_vec()?);
            Ok(())
        });
        let more = more.unwrap_or_else(|error| panic!("{error}"));
        taken.fetch_add(more as usize, Ordering::AcqRel);
        if more == 0 {
            // Short: the last frame may be another queue's.
            let short = std::time::Duration::from_millis(5);
            queue.wait(short).unwrap_or_else(|error| panic!("{error}"));
        }
    }
    frames
}

/// Whether `came` is `expected` without some frames; how many.
fn without(expected: &[Vec<u8>], came: &[Vec<u8>]) -> Option<usize> {
    let mut left = expected.iter();
    let all = came.iter().all(|frame| left.any(|other| other == frame));
    all.then(|| expected.len() - came.len())
}

/// No lock is taken between them, and none takes another's interrupt away.
///
/// Under QEMU the system may leave CPU B's thread waiting while all others run. Nobody fetches BDs
/// then, and what arrives for a queue whose 128 BDs are used up is dropped and counted. No frame is
/// missing otherwise, and none at all where the CPUs run in step.
fn every_queue_has_its_thread<E: Engine>()
where
    E::Transport: Send,
{
    let settings = QueueSettings::new(4);
    let mut card = Queues::<E>::open(&settings);
    let reference = reference(&settings);
    let mut random = RandomFrames::new(5);
    let frames: Vec<_> = (0..FRAMES).map(|_| card.inbound(random.frame())).collect();
    let mut expected = vec![Vec::new(); 4];
    for frame in &frames {
        expected[reference.classify(frame, &mut 0).queue as usize].push(frame.clone());
    }
    let (taken, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let mut queues = std::mem::take(&mut card.receive);
    let came: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = queues
            .iter_mut()
            .map(|queue| scope.spawn(|| serve(queue, &taken, &over)))
            .collect();
        let mut sent = 0;
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            let counters = card.control.queue_counters().expect("the card is there");
            let dropped: u32 = counters.iter().map(|queue| queue.dropped()).sum();
            let done = taken.load(Ordering::Acquire) + dropped as usize;
            if done >= FRAMES {
                break;
            }
            while sent < FRAMES && sent - done.min(sent) < ON_THE_WAY {
                card.engine.send(&frames[sent]);
                sent += 1;
            }
            thread::yield_now();
        }
        over.store(true, Ordering::Release);
        threads
            .into_iter()
            .map(|thread| thread.join().expect("the thread has its frames"))
            .collect()
    });
    let counters = card.control.queue_counters().expect("the card is there");
    for ((expected, came), counters) in expected.iter().zip(&came).zip(&counters) {
        let missing = without(expected, came);
        assert_eq!(missing, Some(counters.no_buffer as usize), "{counters:?}");
        assert_eq!(counters.dropped(), counters.no_buffer, "{counters:?}");
        assert!(!E::IN_STEP || counters.dropped() == 0, "{counters:?}");
    }
}
