//! Models of the ring and the doorbell under every interleaving and every order of memory that
//! loom knows, with seeded faults that the models must find.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering, fence};

use dti::bell;
use dti::ring::{Consumer, Place, Producer, RingError, ring_words};
use dti::words::Words;

/// A fault in the memory that the ring runs on.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    /// Indices are published without order.
    RelaxedIndices,
    /// The bell's fences do nothing.
    NoFence,
}

/// Only the words that a ring of two entries and a bell use are atomics of the model.
struct Memory {
    words: Vec<AtomicU64>,
    fault: Fault,
}

const PLACE: Place = Place {
    start: 0,
    capacity: 2,
};
const BELL: usize = ring_words(2);

impl Memory {
    fn new(fault: Fault) -> Arc<Self> {
        Arc::new(Self {
            words: (0..=BELL).map(|_| AtomicU64::new(0)).collect(),
            fault,
        })
    }

    fn order(&self, order: Ordering) -> Ordering {
        match self.fault {
            Fault::RelaxedIndices => Ordering::Relaxed,
            _ => order,
        }
    }
}

impl Words for Memory {
    fn len(&self) -> usize {
        self.words.len()
    }
    fn load(&self, index: usize, order: Ordering) -> u64 {
        self.words[index].load(self.order(order))
    }
    fn store(&self, index: usize, value: u64, order: Ordering) {
        self.words[index].store(value, self.order(order));
    }
    fn swap(&self, index: usize, value: u64, order: Ordering) -> u64 {
        self.words[index].swap(value, self.order(order))
    }
    fn fence(&self) {
        if self.fault != Fault::NoFence {
            fence(Ordering::SeqCst);
        }
    }
}

fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// An entry, once seen, is whole.
fn ring(fault: Fault) {
    check(move || {
        let memory = Memory::new(fault);
        let other = memory.clone();
        let producer = loom::thread::spawn(move || {
            let mut producer = Producer::new(PLACE);
            producer.push(&*other, [1, 2, 3, 4]).expect("room");
            producer.push(&*other, [5, 6, 7, 8]).expect("room");
        });
        let mut consumer = Consumer::new(PLACE);
        let mut expected = [[1, 2, 3, 4], [5, 6, 7, 8]].into_iter();
        while let Some(entry) = consumer.pop(&*memory).expect("an honest producer") {
            assert_eq!(Some(entry), expected.next());
        }
        producer.join().expect("no panic");
        while let Some(entry) = consumer.pop(&*memory).expect("an honest producer") {
            assert_eq!(Some(entry), expected.next());
        }
        assert_eq!(expected.next(), None);
    });
}

/// Who goes to sleep has seen the entry, or will be woken.
fn doorbell(fault: Fault) {
    check(move || {
        let memory = Memory::new(fault);
        let other = memory.clone();
        let ringer = loom::thread::spawn(move || {
            Producer::new(PLACE).push(&*other, [9; 4]).expect("room");
            bell::must_wake(&*other, BELL)
        });
        bell::announce(&*memory, BELL);
        let seen = Consumer::new(PLACE).waiting(&*memory) != Ok(0);
        let woken = ringer.join().expect("no panic");
        assert!(seen || woken, "a lost wake-up");
    });
}

#[test]
fn entries_are_whole_and_in_order() {
    ring(Fault::None);
}

#[test]
#[should_panic]
fn the_model_finds_indices_published_without_order() {
    ring(Fault::RelaxedIndices);
}

#[test]
fn no_wake_up_is_lost() {
    doorbell(Fault::None);
}

#[test]
#[should_panic(expected = "a lost wake-up")]
fn the_model_finds_a_missing_fence() {
    doorbell(Fault::NoFence);
}

#[test]
fn an_impossible_index_is_an_error() {
    check(|| {
        let memory = Memory::new(Fault::None);
        memory.store(0, 3, Ordering::Release);
        assert_eq!(Consumer::new(PLACE).pop(&*memory), Err(RingError::Nonsense));
        memory.store(8, 1, Ordering::Release);
        let refused = Producer::new(PLACE).push(&*memory, [0; 4]);
        assert_eq!(refused, Err(RingError::Nonsense));
    });
}
