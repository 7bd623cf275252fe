//! Arrival, report, service and re-arm of a queue as a model that is searched in full, and traces
//! of it that the firmware has to follow.
//!
//! KNET, section 3.2. The card writes a status line and raises an interrupt if the queue is armed;
//! the host takes frames and re-arms the queue by a posted mailbox write. Each of these steps may
//! happen at any time after the one before:
//!
//! ```text
//!   card   frame ─► count or time ─► report ─► status line ══► host memory ─► interrupt
//!   host   asleep ─► awake ─► takes frames ─► finds none ─► reads the count ─► re-arms ─► asleep
//!   card   re-arm word ◄══ mailbox ◄══════════════════════════════════════════════┘
//! ```
//!
//! The rules of the card are those of `path::receive::queues`, those of the host are the driver's
//! (`nic::queues::mark`). A seeded fault breaks one rule, and the search must find it.

use super::host::{QueueHost, control};
use crate::packet::{Packet, UDP};
use host_interface::queue::{ClassifierKind, QueueCounter};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use stateright::{Checker, Model, Property};

/// Frames that arrive.
const FRAMES: u8 = 4;

/// A rule that somebody broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// The card takes a re-arm word without a look at what the host has left.
    NoLookAtRearm,
    /// A report leaves the queue armed.
    StaysArmed,
    /// Frames of a polled queue do not start its time.
    NoTimeWhilePolled,
    /// The interrupt overtakes the status line.
    InterruptFirst,
    /// The driver does not re-arm a queue of which it has taken nothing.
    NoRearmOfNothing,
    /// The driver re-arms where the status line ends, not where it has taken frames.
    RearmsUnseen,
}

/// What the host's thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Thread {
    Asleep,
    Awake,
    /// It has found nothing more.
    Emptied,
}

/// A status line: the producer, and how many interrupts were raised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Status {
    producer: u8,
    interrupts: u8,
}

/// A re-arm word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Word {
    consumer: u8,
    stay_polled: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    // The card: frames whose return BDs are made, what it has told of, and the host's consumer.
    delivered: u8,
    told: Status,
    consumer: u8,
    polled: bool,
    /// Its time runs.
    timed: bool,
    /// It is to be reported.
    due: bool,
    rearms: u8,
    // On the bus, in order: status lines, each with an interrupt or not; a posted write.
    writes: Vec<(Status, bool)>,
    mailbox: Option<Word>,
    // Host memory, and the interrupt line.
    status: Status,
    line: bool,
    // The driver.
    thread: Thread,
    taken: u8,
    /// Up to where the card knows.
    reported: u8,
    /// The count of interrupts when the queue was armed.
    armed: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    Arrive,
    /// So many frames are unreported that the count is reached.
    Count,
    TimeOver,
    Report,
    Land,
    TakeWord,
    Wake,
    /// The thread's sleep is over without an interrupt.
    LookUp,
    TakeFrame,
    /// The thread reports what it took, and goes on.
    Stay,
    FindNone,
    Rearm,
}

struct Protocol {
    fault: Option<Fault>,
}

impl Protocol {
    fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }
}

impl State {
    fn new() -> State {
        State {
            delivered: 0,
            told: Status::default(),
            consumer: 0,
            polled: false,
            timed: false,
            due: false,
            rearms: 0,
            writes: Vec::new(),
            mailbox: None,
            status: Status::default(),
            line: false,
            thread: Thread::Asleep,
            taken: 0,
            reported: 0,
            armed: 0,
        }
    }

    /// Whether nothing happens any more unless a frame arrives or the thread looks up.
    fn is_quiet(&self) -> bool {
        let card = !(self.timed || self.due || self.mailbox.is_some());
        card && self.writes.is_empty() && !self.line && self.thread == Thread::Asleep
    }

    /// Does the steps that the machine of the tests does without time.
    fn settle(mut self, protocol: &Protocol) -> State {
        loop {
            let step = if self.mailbox.is_some() {
                Step::TakeWord
            } else if self.due {
                Step::Report
            } else if !self.writes.is_empty() {
                Step::Land
            } else {
                return self;
            };
            self = protocol.next_state(&self, step).expect("it is enabled");
        }
    }
}

impl Model for Protocol {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![State::new()]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        let mut may = |condition: bool, step| {
            if condition {
                steps.push(step);
            }
        };
        let unreported = state.delivered > state.told.producer;
        may(state.delivered < FRAMES, Step::Arrive);
        may(unreported && !state.due, Step::Count);
        may(state.timed, Step::TimeOver);
        may(state.due, Step::Report);
        may(!state.writes.is_empty(), Step::Land);
        may(state.mailbox.is_some(), Step::TakeWord);
        match state.thread {
            Thread::Asleep => {
                may(state.line, Step::Wake);
                may(true, Step::LookUp);
            }
            Thread::Awake => {
                let more = state.status.producer > state.taken;
                may(more, Step::TakeFrame);
                may(!more, Step::FindNone);
                may(state.reported != state.taken, Step::Stay);
            }
            Thread::Emptied => may(true, Step::Rearm),
        }
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut state = last.clone();
        match step {
            Step::Arrive => {
                state.delivered += 1;
                let starts = !(self.has(Fault::NoTimeWhilePolled) && state.polled);
                state.timed |= starts;
            }
            Step::Count => state.due = true,
            Step::TimeOver => (state.timed, state.due) = (false, true),
            Step::Report => {
                let interrupts = !state.polled;
                state.told.producer = state.delivered;
                state.told.interrupts += u8::from(interrupts);
                state.polled = !self.has(Fault::StaysArmed);
                (state.timed, state.due) = (false, false);
                state.writes.push((state.told, interrupts));
                if interrupts && self.has(Fault::InterruptFirst) {
                    state.line = true;
                }
            }
            Step::Land => {
                let (status, interrupts) = state.writes.remove(0);
                state.status = status;
                state.line |= interrupts && !self.has(Fault::InterruptFirst);
            }
            Step::TakeWord => {
                let word = state.mailbox.take()?;
                state.consumer = word.consumer;
                state.polled = word.stay_polled;
                state.rearms += u8::from(!word.stay_polled);
                let left = word.consumer != state.told.producer;
                state.due |= left && !word.stay_polled && !self.has(Fault::NoLookAtRearm);
            }
            Step::Wake => (state.line, state.thread) = (false, Thread::Awake),
            Step::LookUp => state.thread = Thread::Awake,
            Step::TakeFrame => state.taken += 1,
            Step::FindNone => state.thread = Thread::Emptied,
            Step::Stay => {
                state.mailbox = Some(Word {
                    consumer: state.taken,
                    stay_polled: state.armed != state.status.interrupts,
                });
                state.reported = state.taken;
            }
            Step::Rearm => {
                // Another status line may have come since it found none.
                let interrupts = state.status.interrupts;
                let known = state.reported == state.taken;
                if !(known && (state.armed == interrupts || self.has(Fault::NoRearmOfNothing))) {
                    let consumer = if self.has(Fault::RearmsUnseen) {
                        state.status.producer
                    } else {
                        state.taken
                    };
                    state.mailbox = Some(Word {
                        consumer,
                        stay_polled: false,
                    });
                    state.armed = interrupts;
                    state.reported = state.taken;
                }
                state.thread = Thread::Asleep;
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("a quiet queue is empty", |_, state: &State| {
                !state.is_quiet() || state.taken == state.delivered
            }),
            Property::always("one interrupt for each time armed", |_, state: &State| {
                state.told.interrupts <= state.rearms + 1
            }),
            Property::always("the host takes what is there", |_, state: &State| {
                state.taken <= state.status.producer && state.status.producer <= state.delivered
            }),
            Property::always("the card knows what was taken", |_, state: &State| {
                state.consumer <= state.taken
            }),
            Property::sometimes("all frames in one interrupt", |_, state: &State| {
                state.is_quiet() && state.taken == FRAMES && state.status.interrupts == 1
            }),
            Property::sometimes("an interrupt for each frame", |_, state: &State| {
                state.is_quiet() && state.taken == FRAMES && state.status.interrupts == FRAMES
            }),
        ]
    }
}

/// The properties that a search with this fault refutes.
fn refuted(fault: Option<Fault>) -> Vec<&'static str> {
    let checker = Protocol { fault }.checker().threads(2).spawn_bfs().join();
    let mut names: Vec<_> = ["a quiet", "one interrupt", "the host", "the card"].to_vec();
    names.retain(|start| {
        checker
            .discoveries()
            .keys()
            .any(|name| name.starts_with(start))
    });
    if fault.is_none() {
        checker.assert_properties();
        let states = checker.unique_state_count();
        assert!(states > 10_000, "{states} states");
    }
    names
}

/// No frame is left in a queue that nobody will look at, whatever overtakes whatever.
#[test]
fn no_wake_up_is_lost() {
    assert_eq!(refuted(None), [""; 0]);
}

/// The search finds each broken rule.
#[test]
fn a_broken_rule_is_found() {
    let cases = [
        (Fault::NoLookAtRearm, "a quiet"),
        (Fault::StaysArmed, "one interrupt"),
        (Fault::NoTimeWhilePolled, "a quiet"),
        (Fault::InterruptFirst, "a quiet"),
        (Fault::NoRearmOfNothing, "a quiet"),
        (Fault::RearmsUnseen, "the card"),
    ];
    for (fault, property) in cases {
        let found = refuted(Some(fault));
        assert!(found.contains(&property), "{fault:?}: {found:?}");
    }
}

/// Random traces of the model, done by the firmware: after each step the status line, the
/// interrupts and the counters are the model's.
#[test]
fn the_firmware_follows_the_model() {
    const TRACES: u64 = 60;
    let protocol = Protocol { fault: None };
    for seed in 0..TRACES {
        let mut random = SplitMix64::seed_from_u64(seed);
        let mut wanted = control(1, ClassifierKind::Single);
        // By time only: the count is free in the model.
        wanted.queue[0].coalescing_frames = 0;
        let mut host = QueueHost::open(&wanted);
        let (mut state, mut trace) = (State::new(), Vec::new());
        let (mut words, mut raised) = (0, 0);
        for _ in 0..24 {
            let mut steps = Vec::new();
            protocol.actions(&state, &mut steps);
            steps.retain(|step| *step != Step::Count);
            let step = steps[random.next_u32() as usize % steps.len()];
            trace.push(step);
            let next = protocol.next_state(&state, step).expect("it is enabled");
            match step {
                Step::Arrive => {
                    let mut frame = Packet::new(UDP, 64, next.delivered.into()).wire();
                    frame[..6].copy_from_slice(&crate::machine::MAC);
                    host.machine.arrive(&frame);
                }
                Step::TimeOver => host.machine.pass(100),
                Step::Wake => host.machine.acknowledge(),
                _ => {}
            }
            if let Some(word) = next.mailbox {
                host.rearm_at(0, word.consumer.into(), word.stay_polled);
                words += 1;
            }
            let line = next.line;
            state = next.settle(&protocol);
            // An interrupt that comes before the last one was taken is one with it.
            raised += u32::from(state.line && !line);
            let expected = (
                u32::from(state.status.producer),
                u32::from(state.status.interrupts),
            );
            assert_eq!(host.status(0), expected, "seed {seed}: {trace:?}");
            assert_eq!(host.machine.interrupts, raised, "seed {seed}: {trace:?}");
        }
        let rearms = host.counter(0, QueueCounter::Rearms);
        assert_eq!(rearms, words, "seed {seed}: {trace:?}");
    }
}
