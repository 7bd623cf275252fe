//! A model of a side that sleeps and goes on: the eventfd or socket is a flag. A sleeper that does
//! not find the flag lets the other side end, and must find it then.

use loom::sync::atomic::{AtomicU64, Ordering, fence};
use loom::sync::{Arc, Mutex};
use loom::thread::JoinHandle;

use dti::bell;
use dti::ring::{Consumer, Place, Producer, ring_words};
use dti::words::Words;

/// A fault in one of the sides.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    /// The sleeper does not look again after it announced its sleep.
    NoSecondLook,
    /// The ringer looks at the word before it publishes.
    RingsFirst,
    /// The fences do nothing.
    NoFence,
    /// The ringer looks at the word for the first of two entries only.
    ForgetsTheSecond,
}

/// When the ringer looks whether the other side sleeps.
#[derive(Clone, Copy, PartialEq)]
enum Tells {
    /// After each entry.
    Each,
    /// After all of them, as a busy engine.
    Together,
}

const PLACE: Place = Place {
    start: 0,
    capacity: 2,
};
const BELL: usize = ring_words(2);

struct Memory {
    words: Vec<AtomicU64>,
    fault: Fault,
    /// The eventfd: whether it was written since it was last waited for.
    rung: Mutex<bool>,
}

impl Words for Memory {
    fn len(&self) -> usize {
        self.words.len()
    }
    fn load(&self, index: usize, order: Ordering) -> u64 {
        self.words[index].load(order)
    }
    fn store(&self, index: usize, value: u64, order: Ordering) {
        self.words[index].store(value, order);
    }
    fn swap(&self, index: usize, value: u64, order: Ordering) -> u64 {
        self.words[index].swap(value, order)
    }
    fn fence(&self) {
        if self.fault != Fault::NoFence {
            fence(Ordering::SeqCst);
        }
    }
}

impl Memory {
    fn ring(&self) {
        *self.rung.lock().expect("no panic") = true;
    }

    /// Reads the eventfd: whether it was written since the last time.
    fn read(&self) -> bool {
        std::mem::take(&mut *self.rung.lock().expect("no panic"))
    }

    fn sleep(&self, ringer: &mut Option<JoinHandle<()>>) {
        if self.read() {
            return;
        }
        if let Some(ringer) = ringer.take() {
            ringer.join().expect("no panic");
        }
        assert!(self.read(), "a lost wake-up");
    }
}

/// A side takes `ENTRIES` entries and sleeps whenever there is none.
fn sleeper(fault: Fault, tells: Tells) {
    const ENTRIES: u64 = 2;
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        let memory = Arc::new(Memory {
            words: (0..=BELL).map(|_| AtomicU64::new(0)).collect(),
            fault,
            rung: Mutex::new(false),
        });
        let other = memory.clone();
        let mut ringer = Some(loom::thread::spawn(move || {
            let mut producer = Producer::new(PLACE);
            for number in 0..ENTRIES {
                let early = fault == Fault::RingsFirst && bell::must_wake(&*other, BELL);
                producer.push(&*other, [number; 4]).expect("room");
                let looks = match (fault, tells) {
                    (Fault::RingsFirst, _) => false,
                    (Fault::ForgetsTheSecond, _) => number == 0,
                    (_, Tells::Each) => true,
                    (_, Tells::Together) => number + 1 == ENTRIES,
                };
                let late = looks && bell::must_wake(&*other, BELL);
                if early || late {
                    other.ring();
                }
            }
        }));
        let mut consumer = Consumer::new(PLACE);
        let mut taken = 0;
        while taken < ENTRIES {
            if let Some(entry) = consumer.pop(&*memory).expect("an honest producer") {
                assert_eq!(entry, [taken; 4]);
                taken += 1;
                continue;
            }
            bell::announce(&*memory, BELL);
            if fault == Fault::NoSecondLook || consumer.waiting(&*memory) == Ok(0) {
                memory.sleep(&mut ringer);
            }
            bell::awake(&*memory, BELL);
        }
        if let Some(ringer) = ringer {
            ringer.join().expect("no panic");
        }
    });
}

#[test]
fn a_sleeper_gets_every_entry() {
    sleeper(Fault::None, Tells::Each);
}

#[test]
fn a_sleeper_that_is_told_of_several_entries_together_gets_every_one() {
    sleeper(Fault::None, Tells::Together);
}

#[test]
#[should_panic(expected = "a lost wake-up")]
fn the_model_finds_a_ringer_that_forgets_the_last_entry() {
    sleeper(Fault::ForgetsTheSecond, Tells::Each);
}

#[test]
#[should_panic(expected = "a lost wake-up")]
fn the_model_finds_a_sleeper_that_does_not_look_again() {
    sleeper(Fault::NoSecondLook, Tells::Each);
}

#[test]
#[should_panic(expected = "a lost wake-up")]
fn the_model_finds_a_ringer_that_rings_first() {
    sleeper(Fault::RingsFirst, Tells::Each);
}

#[test]
#[should_panic(expected = "a lost wake-up")]
fn the_model_finds_missing_fences_of_sleeper_and_ringer() {
    sleeper(Fault::NoFence, Tells::Each);
}
