//! Tests that frames arrive in the queue that the reference computes, each once, whole, in order.

use crate::host::{BURST, Queues, reference};
use host_driver::nic::{QueueSettings, Received};
use host_interface::queue::{ClassifierKind, HashTypes};
use integration_tests::{Engine, stories};
use tigon2_sim::workload::knet::random::RandomFrames;

stories!(
    toeplitz_sorts_random_frames,
    source_addresses_sort_random_frames,
    a_single_queue_takes_all,
    datagrams_in_turn_fill_all_queues,
);

/// Frames of a story, in bursts.
const BURSTS: usize = 16;

/// Sends random frames and compares what comes with the reference.
fn sorts<E: Engine>(settings: &QueueSettings, seed: u64) -> Vec<Vec<Received>> {
    let mut card = Queues::<E>::open(settings);
    let reference = reference(settings);
    let mut turn = 0;
    let mut random = RandomFrames::new(seed);
    let mut all = vec![Vec::new(); settings.queues.into()];
    for _ in 0..BURSTS {
        let frames: Vec<_> = (0..BURST).map(|_| card.inbound(random.frame())).collect();
        let mut expected = vec![Vec::new(); settings.queues.into()];
        for frame in &frames {
            let answer = reference.classify(frame, &mut turn);
            expected[answer.queue as usize].push((frame.clone(), answer.hash_type, answer.hash));
        }
        let came = card.exchange(&frames);
        for (number, (came, expected)) in came.iter().zip(&expected).enumerate() {
            let frames = came.iter();
            let came: Vec<_> = frames
                .map(|frame| (frame.bytes.clone(), frame.hash.0, frame.hash.1))
                .collect();
            assert_eq!(came, *expected, "queue {number}");
        }
        for (all, came) in all.iter_mut().zip(came) {
            all.extend(came);
        }
    }
    let counters = card.control.queue_counters().expect("the card is there");
    for (number, (counters, frames)) in counters.iter().zip(&all).enumerate() {
        assert_eq!(counters.frames as usize, frames.len(), "queue {number}");
        assert_eq!(
            (counters.dropped(), counters.bad_indices),
            (0, 0),
            "{counters:?}"
        );
    }
    assert_eq!(card.control.drops().total(), 0);
    let received = card.control.counters().frames_received;
    assert_eq!(received, (BURSTS * BURST) as u64);
    all
}

fn toeplitz_sorts_random_frames<E: Engine>() {
    let mut settings = QueueSettings::new(4);
    settings.classification.hash_types = HashTypes::ALL;
    let all = sorts::<E>(&settings, 1);
    assert!(
        all.iter().all(|frames| frames.len() > 20),
        "all queues are used"
    );
}

fn source_addresses_sort_random_frames<E: Engine>() {
    let settings = QueueSettings::new(8).with_classifier(ClassifierKind::SourceAddress);
    let all = sorts::<E>(&settings, 2);
    assert!(
        all.iter().all(|frames| frames.len() > 10),
        "all queues are used"
    );
}

fn a_single_queue_takes_all<E: Engine>() {
    let settings = QueueSettings::new(2).with_classifier(ClassifierKind::Single);
    let all = sorts::<E>(&settings, 3);
    assert!(all[1].is_empty());
}

fn datagrams_in_turn_fill_all_queues<E: Engine>() {
    let settings = QueueSettings::new(3).with_classifier(ClassifierKind::RoundRobin);
    let all = sorts::<E>(&settings, 4);
    assert!(
        all.iter().all(|frames| frames.len() > 50),
        "all queues are used"
    );
}
