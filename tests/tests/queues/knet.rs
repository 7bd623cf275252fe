//! Tests network threads on a card.

use crate::host::{PATIENCE, Queues, reference};
use host_driver::knet::{self, PaceSettings, Progress, QueueUser, Served, SharedSend, Work, cpus};
use host_driver::nic::{Control, NicError, QueueParts, QueueSettings, ReceivedFrame, SendOptions};
use integration_tests::{Engine, stories};
use std::io::IoSlice;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tigon2_sim::workload::knet::random::RandomFrames;

stories!(
    network_threads_take_every_frame_and_answer_it,
    a_thread_that_dies_leaves_the_others_their_queues,
    threads_that_poll_all_the_time_cause_no_interrupts,
);

const QUEUES: u8 = 4;
const FRAMES: usize = 400;
/// Most frames that are on their way.
const ON_THE_WAY: usize = 40;

/// Keeps what it takes, and sends some of it back.
struct Keeper<'a> {
    kept: Vec<Vec<u8>>,
    answers: Vec<Vec<u8>>,
    taken: &'a AtomicUsize,
    /// Panics at its first frame.
    dies: bool,
    /// Answers each so many frames; never for 0.
    answer: usize,
}

impl QueueUser for Keeper<'_> {
    fn frame(&mut self, frame: ReceivedFrame<'_>) -> Result<(), NicError> {
        assert!(!self.dies, "as this story wants");
        let frame = frame.to_vec()?;
        if self.answer > 0 && self.kept.len().is_multiple_of(self.answer) {
            self.answers.push(frame.clone());
        }
        self.kept.push(frame);
        self.taken.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    fn work(&mut self, send: &SharedSend) -> Result<Work, NicError> {
        if self.answers.is_empty() {
            return Ok(Work::None);
        }
        let mut turn = send.turn();
        turn.reclaim()?;
        let mut done = 0;
        while let Some(frame) = self.answers.first() {
            if !turn.queue(&[IoSlice::new(frame)], SendOptions::default())? {
                break;
            }
            self.answers.remove(0);
            done += 1;
        }
        turn.submit()?;
        Ok(if done > 0 {
            Work::Done(done)
        } else {
            Work::NoRoom
        })
    }
}

fn keepers(taken: &AtomicUsize) -> Vec<Keeper<'_>> {
    let keeper = |_| Keeper {
        kept: Vec::new(),
        answers: Vec::new(),
        taken,
        dies: false,
        answer: 0,
    };
    (0..QUEUES).map(keeper).collect()
}

/// Serves a card's queues while `wire` plays the other end; it gives true when it is done.
fn serve<E: Engine>(
    card: Queues<E>,
    users: &mut [Keeper<'_>],
    pace: PaceSettings,
    mut wire: impl FnMut(&mut E, &mut Control<E::Transport>, Progress<'_>) -> bool,
) -> (Served<E::Transport>, E) {
    let Queues {
        control,
        send,
        receive,
        mut engine,
        ..
    } = card;
    let parts = QueueParts {
        control,
        send,
        receive,
    };
    // The threads share this machine's CPUs.
    let allowed = cpus::allowed().expect("a process runs somewhere");
    let cpus: Vec<usize> = allowed.into_iter().cycle().take(users.len()).collect();
    let stop = AtomicBool::new(false);
    let end = Instant::now() + PATIENCE;
    let served = knet::serve(parts, users, &cpus, pace, &stop, |control, progress| {
        let done = wire(&mut engine, control, progress);
        assert!(Instant::now() < end, "{:?}", control.queue_counters());
        stop.store(done, Ordering::Relaxed);
    });
    (served, engine)
}

/// Frames at random, and which of them each queue gets.
fn traffic<E: Engine>(card: &Queues<E>, settings: &QueueSettings) -> [Vec<Vec<u8>>; 2] {
    let reference = reference(settings);
    let mut random = RandomFrames::new(5);
    let frames: Vec<_> = (0..FRAMES).map(|_| card.inbound(random.frame())).collect();
    let first = |frame: &&Vec<u8>| reference.classify(frame, &mut 0).queue == 0;
    let of_first = frames.iter().filter(first).cloned().collect();
    [frames, of_first]
}

/// Sends what may be on its way.
fn feed<E: Engine>(engine: &mut E, frames: &[Vec<u8>], sent: &mut usize, taken: usize) {
    while *sent < frames.len() && *sent - taken.min(*sent) < ON_THE_WAY {
        engine.send(&frames[*sent]);
        *sent += 1;
    }
}

fn network_threads_take_every_frame_and_answer_it<E: Engine>() {
    let settings = QueueSettings::new(QUEUES);
    let card = Queues::<E>::open(&settings);
    let [frames, _] = traffic(&card, &settings);
    let reference = reference(&settings);
    let taken = AtomicUsize::new(0);
    let mut users = keepers(&taken);
    for user in &mut users {
        user.answer = 1;
    }
    let (mut sent, mut answers) = (0, 0);
    let pace = PaceSettings {
        empty_polls: 2,
        defer: Some(Duration::from_micros(50)),
        ..PaceSettings::default()
    };
    let (served, _engine) = serve(card, &mut users, pace, |engine, _, _| {
        feed(engine, &frames, &mut sent, taken.load(Ordering::Acquire));
        while engine.receive_now().is_some() {
            answers += 1;
        }
        answers == FRAMES
    });
    assert!(served.error.is_none() && served.deaths.is_empty());
    let mut expected = vec![Vec::new(); usize::from(QUEUES)];
    for frame in &frames {
        expected[reference.classify(frame, &mut 0).queue as usize].push(frame.clone());
    }
    let kept: Vec<_> = users.into_iter().map(|user| user.kept).collect();
    assert_eq!(kept, expected);
    let counts: Vec<u64> = served.threads.iter().map(|thread| thread.frames).collect();
    let lengths: Vec<u64> = kept.iter().map(|kept| kept.len() as u64).collect();
    assert_eq!(counts, lengths, "each thread counts its own");
    assert!(served.send.turns > 0 && served.send.held_ns > 0);
    assert_eq!(served.parts.receive.len(), usize::from(QUEUES));
}

/// What belongs to the dead thread's queue is dropped and counted.
fn a_thread_that_dies_leaves_the_others_their_queues<E: Engine>() {
    let settings = QueueSettings::new(QUEUES);
    let card = Queues::<E>::open(&settings);
    let [frames, of_first] = traffic(&card, &settings);
    // More than the queue has buffers.
    let more = usize::try_from(settings.entries).expect("small");
    let lost: Vec<_> = of_first.iter().cycle().take(more + 20).cloned().collect();
    let others = frames.iter().filter(|frame| !of_first.contains(frame));
    let others: Vec<_> = others.cloned().collect();
    let taken = AtomicUsize::new(0);
    let mut users = keepers(&taken);
    users[0].dies = true;
    let (mut sent, mut gone) = (0, 0);
    let mut died = false;
    let (served, _engine) = serve(card, &mut users, PaceSettings::default(), {
        let (others, lost, taken) = (&others, &lost, &taken);
        let (sent, gone, died) = (&mut sent, &mut gone, &mut died);
        move |engine: &mut E, control, progress| {
            let reports = control.queue_reports().expect("the card is there");
            if *gone < lost.len() && (*gone == 0 || *died) {
                let next = lost.len().min(*gone + if *died { ON_THE_WAY } else { 1 });
                lost[*gone..next]
                    .iter()
                    .for_each(|frame| engine.send(frame));
                *gone = next;
            }
            if let [death] = progress.deaths {
                assert_eq!(death.queue, 0);
                assert!(death.reason.contains("as this story wants"), "{death:?}");
                *died = true;
            }
            feed(engine, others, sent, taken.load(Ordering::Acquire));
            *died
                && !reports[0].served
                && reports[0].card.dropped() > 0
                && taken.load(Ordering::Acquire) == others.len()
        }
    });
    assert!(served.error.is_none(), "the others go on");
    assert_eq!(served.deaths.len(), 1);
    let numbers: Vec<u8> = served
        .parts
        .receive
        .iter()
        .map(|queue| queue.number())
        .collect();
    assert_eq!(numbers, [1, 2, 3]);
    let kept: usize = users.iter().map(|user| user.kept.len()).sum();
    assert_eq!(kept, others.len());
}

fn threads_that_poll_all_the_time_cause_no_interrupts<E: Engine>() {
    let settings = QueueSettings::new(QUEUES);
    let card = Queues::<E>::open(&settings);
    let [frames, _] = traffic(&card, &settings);
    let taken = AtomicUsize::new(0);
    let mut users = keepers(&taken);
    let mut sent = 0;
    let pace = PaceSettings {
        busy: true,
        ..PaceSettings::default()
    };
    let (mut served, _engine) = serve(card, &mut users, pace, |engine, control, _| {
        feed(engine, &frames, &mut sent, taken.load(Ordering::Acquire));
        // Busy threads never wait, and in process nobody else runs the engine.
        control
            .wait(Duration::from_micros(200))
            .expect("the card is there");
        taken.load(Ordering::Acquire) == FRAMES
    });
    let counters = served.parts.control.queue_counters();
    for queue in counters.expect("the card is there") {
        assert!(queue.interrupts <= 1, "armed once, when it was opened");
    }
    assert!(served.threads.iter().all(|thread| thread.naps == 0));
}
