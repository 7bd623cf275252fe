//! The workload of queue mode under a schedule: frames of every kind into 1 to 8 queues, while
//! others leave.
//!
//! ```text
//!   seed ─► QueueStory: queues, classifier, key, rings, coalescing, how the host serves a queue
//!      phase 1: frames ─► card ─► queues   each frame once, whole, in order, in the queue that
//!      phase 2: the same by another          the reference names, or counted as dropped there
//!               classifier
//! ```
//!
//! The host looks at its queues only after an interrupt, or while it has not re-armed them: a
//! wake-up that is lost leaves frames in a queue, and the story fails. It may serve a queue so
//! slowly that its BDs run out; every frame that is missing must be counted then.

use super::check::Checked;
use super::disturbance::{below, choose};
use super::schedule::{Outcome, Schedule};
use super::{ExploreError, PATIENCE, QueueFault};
use crate::machine::Machine;
use crate::timeline::{Recorder, Timeline};
use crate::transport::{HostTiming, SharedMachine, SimTransport};
use crate::workload::datagram::{Flow, PEER};
use crate::workload::knet::flows::{Flows, Version};
use crate::workload::knet::random::RandomFrames;
use crate::workload::knet::reference::{Expected, Reference};
use host_driver::nic::{
    Classification, Control, QueueParts, QueueSettings, ReceiveQueue, Received, SendOptions,
    SendQueue,
};
use host_driver::rss::{ClassifierKind, HashTypes, IndirectionTable, Key};
use host_driver::{Config, Nic};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::collections::VecDeque;
use std::io::IoSlice;
use std::time::Duration;
use tigon2_model::Board;

/// Frames of a phase towards the card, and away from it.
const FRAMES: usize = 160;
const SENT: u64 = 60;
/// Bytes of the datagrams that leave.
const SENT_BYTES: [usize; 3] = [18, 300, 1472];
/// Lengths up to which some frames are filled, without CRC.
const LENGTHS: [usize; 4] = [61, 128, 600, 1514];
/// The card's time without a frame after which it is asked what it has dropped, and after which a
/// story has failed.
const QUIET_NS: u64 = 3_000_000;
const STALL_MS: u64 = 80;
/// Turns of the host's loop.
const TURNS: u64 = 2_000_000;

/// What the seed has chosen.
#[derive(Clone, Debug)]
pub struct QueueStory {
    settings: QueueSettings,
    /// The classification of the second phase.
    then: Classification,
    host: HostTiming,
    /// Frames that may wait on the wire.
    depth: usize,
    /// Frames that are taken of a queue at a time.
    budget: u32,
    /// A queue is polled for up to so many turns before it is re-armed.
    polls: u64,
    /// The longest that the host sleeps, in microseconds.
    patience: u64,
    flows: usize,
}

impl QueueStory {
    /// The story of a seed.
    pub fn new(seed: u64) -> (QueueStory, SplitMix64) {
        // Not the numbers of the schedule.
        let mut random = SplitMix64::seed_from_u64(seed ^ 0x6B6E_6574);
        let any = &mut random;
        // Powers of two fit every classifier.
        let queues = choose(any, [1, 2, 2, 3, 4, 4, 5, 6, 7, 8]);
        let story = QueueStory {
            settings: QueueSettings {
                queues,
                classification: classification(any, queues),
                entries: choose(any, [64, 128, 256, 512]),
                coalescing_ticks: choose(any, [5, 60, 300]),
                coalescing_frames: choose(any, [0, 1, 5, 16, 64]),
            },
            then: classification(any, queues),
            host: HostTiming {
                read_ns: choose(any, [100, 500, 2000]),
                write_ns: choose(any, [20, 60, 500]),
                ..HostTiming::default()
            },
            depth: choose(any, [1, 4, 30]),
            budget: choose(any, [1, 8, u32::MAX]),
            polls: choose(any, [1, 1, 2, 8]),
            patience: choose(any, [3, 30, 300]),
            flows: choose(any, [1, 4, 40]),
        };
        (story, random)
    }
}

/// A classification that is valid for so many queues.
fn classification(any: &mut SplitMix64, queues: u8) -> Classification {
    let mut kind = choose(
        any,
        [
            ClassifierKind::Toeplitz,
            ClassifierKind::Toeplitz,
            ClassifierKind::SourceAddress,
            ClassifierKind::RoundRobin,
            ClassifierKind::Single,
        ],
    );
    if kind == ClassifierKind::SourceAddress && !queues.is_power_of_two() {
        kind = ClassifierKind::Toeplitz;
    }
    let mut own = Key::PUBLISHED;
    any.fill_bytes(&mut own.0);
    let mut table = [0; host_interface::queue::TABLE_ENTRIES];
    table.fill_with(|| below(any, queues.into()) as u8);
    Classification {
        kind,
        hash_types: choose(any, [HashTypes::ALL, HashTypes::USUAL]),
        key: choose(any, [Key::PUBLISHED, Key::SYMMETRIC, own]),
        table: choose(
            any,
            [None, IndirectionTable::new(table, queues.into()).ok()],
        ),
    }
}

/// Runs the story of a seed under its schedule. With a recorder, what happened comes back
/// whether it went well or not.
///
/// # Errors
/// [`ExploreError`]: the first thing that went wrong.
pub fn run(
    firmware: &[u8],
    seed: u64,
    recorder: Option<Recorder>,
) -> (Result<Outcome, ExploreError>, Option<Timeline>) {
    let (story, random) = QueueStory::new(seed);
    let mut transport = SimTransport::new(Machine::new(Board::default()));
    transport.set_timing(story.host);
    let machine = transport.machine();
    let result = play(firmware, seed, &story, random, transport, recorder);
    let timeline = machine.lock().recorded();
    (result, timeline)
}

fn play(
    firmware: &[u8],
    seed: u64,
    story: &QueueStory,
    random: SplitMix64,
    transport: SimTransport,
    recorder: Option<Recorder>,
) -> Result<Outcome, ExploreError> {
    let machine = transport.machine();
    let config = Config {
        firmware_timeout: PATIENCE,
        command_timeout: PATIENCE,
        watchdog: PATIENCE,
        ..Config::default()
    };
    let mut nic = Nic::probe(transport, config)?;
    nic.load(firmware)?;
    let parts = nic
        .open_queues(&story.settings)
        .map_err(|split| split.error)?;
    let mut host = Host::new(parts, machine, story, random, seed, recorder)?;
    host.carry(&story.settings.classification)?;
    host.control.set_classification(&story.then)?;
    host.carry(&story.then)?;
    host.schedule.check_accesses()?;
    Ok(host.schedule.outcome(host.came as u64 + host.out.come()))
}

/// What a queue must still get, and what has come.
#[derive(Debug, Default)]
struct Due {
    frames: VecDeque<(Vec<u8>, Expected)>,
    came: usize,
    /// Frames that were passed over: the card must have dropped them.
    missing: usize,
}

impl Due {
    /// A frame comes out of the queue; those in front of it do not come any more.
    fn take(&mut self, received: &Received) -> Result<(), QueueFault> {
        loop {
            let Some((frame, expected)) = self.frames.pop_front() else {
                return Err(QueueFault::Unexpected {
                    bytes: received.bytes.len(),
                    frames: self.came,
                });
            };
            if frame == received.bytes {
                let word = |hash_type, hash: u32| u64::from(hash_type) << 32 | u64::from(hash);
                let found = word(received.hash.0 as u8, received.hash.1);
                let expected = word(expected.hash_type as u8, expected.hash);
                if found != expected {
                    return Err(QueueFault::Hash {
                        frame: self.came,
                        found,
                        expected,
                    });
                }
                self.came += 1;
                return Ok(());
            }
            self.missing += 1;
        }
    }
}

/// The host, a thread's work for each queue, and the other end of the wire.
struct Host<'a> {
    control: Control<SimTransport>,
    send: SendQueue,
    receive: Vec<ReceiveQueue>,
    schedule: Schedule,
    story: &'a QueueStory,
    random: SplitMix64,
    frames: RandomFrames,
    flows: [Flows; 2],
    out: Checked,
    queued: u64,
    due: Vec<Due>,
    /// For how many turns each queue is still polled.
    polled: Vec<u64>,
    came: usize,
}

impl<'a> Host<'a> {
    fn new(
        parts: QueueParts<SimTransport>,
        machine: SharedMachine,
        story: &'a QueueStory,
        mut random: SplitMix64,
        seed: u64,
        recorder: Option<Recorder>,
    ) -> Result<Host<'a>, ExploreError> {
        let QueueParts {
            mut control,
            send,
            receive,
        } = parts;
        control.wait_link(PATIENCE)?;
        let station = control.station();
        let flows = |version| Flows::new(story.flows, station, version, 18, seed);
        let order = (0..2 * SENT).map(|_| below(&mut random, 3) as u8).collect();
        let sizes = SENT_BYTES.map(|bytes| Flow::new(station, PEER, bytes));
        Ok(Host {
            control,
            send,
            polled: vec![0; receive.len()],
            due: receive.iter().map(|_| Due::default()).collect(),
            receive,
            schedule: Schedule::begin(machine, seed, recorder),
            story,
            random,
            frames: RandomFrames::new(seed),
            flows: [flows(Version::Four), flows(Version::Six)],
            out: Checked::new(sizes.to_vec(), order),
            queued: 0,
            came: 0,
        })
    }

    /// The next frame towards the card: one of a flow, or of any kind.
    fn next_frame(&mut self) -> Vec<u8> {
        let mut frame = match below(&mut self.random, 4) {
            0 => self.frames.frame(),
            1 => self.flows[1].frame(),
            _ => self.flows[0].frame(),
        };
        frame.resize(frame.len().max(60), 0);
        frame[..6].copy_from_slice(&self.control.station());
        frame[6..12].copy_from_slice(&PEER);
        if below(&mut self.random, 8) == 0 {
            let length = choose(&mut self.random, LENGTHS).max(frame.len());
            let fill = self.frames.bytes(length - frame.len());
            frame.extend(fill);
        }
        frame
    }

    /// Lets the frames of a phase pass.
    fn carry(&mut self, classification: &Classification) -> Result<(), ExploreError> {
        let reference = self.reference(classification);
        let mut turn = 0;
        let mut frames: VecDeque<_> = (0..FRAMES).map(|_| self.next_frame()).collect();
        let to_send = self.out.come() + SENT;
        let mut moved = (0, self.schedule.now());
        for due in &mut self.due {
            due.missing += due.frames.len();
            due.frames.clear();
        }
        for _ in 0..TURNS {
            self.feed(&mut frames, &reference, &mut turn);
            self.queue(to_send)?;
            let patience = 1 + below(&mut self.random, self.story.patience);
            if self.control.wait(Duration::from_micros(patience))? {
                self.control.take_events()?;
                self.send.reclaim()?;
            }
            // Others may have taken the interrupt, too: whoever waited for the answer of a command.
            for (queue, polled) in self.receive.iter().zip(&mut self.polled) {
                if queue.take_wake_up() {
                    *polled = 1 + below(&mut self.random, self.story.polls);
                }
            }
            self.serve()?;
            self.schedule.take_sent(&mut self.out)?;
            self.schedule.check_cpus()?;
            let now = self.schedule.now();
            let come = self.came as u64 + self.out.come();
            let open: usize = self.due.iter().map(|due| due.frames.len()).sum();
            let sent = self.out.come() == to_send && self.send.outstanding() == 0;
            let over = frames.is_empty() && sent;
            if over && open == 0 {
                return self.settle();
            }
            if come != moved.0 {
                moved = (come, now);
            } else if now - moved.1 > QUIET_NS && over && self.settle().is_ok() {
                return Ok(());
            } else if now - moved.1 > STALL_MS * 1_000_000 {
                break;
            }
        }
        self.settle()?;
        Err(ExploreError::Stalled {
            milliseconds: STALL_MS,
            sent: self.out.come(),
            received: self.came as u64,
            expected: to_send,
        })
    }

    fn reference(&self, classification: &Classification) -> Reference {
        let queues = self.story.settings.queues;
        let mut table = [0; host_interface::queue::TABLE_ENTRIES];
        table.copy_from_slice(classification.table(queues).entries());
        Reference {
            kind: classification.kind,
            queues: queues.into(),
            types: classification.hash_types,
            key: classification.key.0,
            table,
        }
    }

    /// Compares what is missing of each queue with what the card has dropped.
    fn settle(&mut self) -> Result<(), ExploreError> {
        let counters = self.control.queue_counters()?;
        for ((queue, due), counters) in self.due.iter().enumerate().zip(&counters) {
            let missing = due.missing + due.frames.len();
            let counted = counters.dropped();
            if missing != counted as usize {
                let fault = QueueFault::Lost { missing, counted };
                return Err(ExploreError::Queue { queue, fault });
            }
        }
        Ok(())
    }

    /// Puts frames on the wire, in bursts with pauses.
    fn feed(&mut self, frames: &mut VecDeque<Vec<u8>>, reference: &Reference, turn: &mut u32) {
        let mut machine = self.schedule.machine.lock();
        while machine.pending_frames() < self.story.depth {
            let Some(frame) = frames.pop_front() else {
                return;
            };
            let pause = match below(&mut self.random, 16) {
                0 => below(&mut self.random, 40_000),
                _ => 0,
            };
            let expected = reference.classify(&frame, turn);
            if let Some(due) = self.due.get_mut(expected.queue as usize) {
                due.frames.push_back((frame.clone(), expected));
            }
            let at = machine.now() + pause;
            machine.send_frame(at, frame);
        }
    }

    fn queue(&mut self, until: u64) -> Result<(), ExploreError> {
        while self.queued < until {
            let Some(frame) = self.out.frame(self.queued) else {
                break;
            };
            let options = SendOptions::default();
            if !self.send.queue(&[IoSlice::new(&frame)], options)? {
                break;
            }
            self.queued += 1;
            if below(&mut self.random, 3) == 0 {
                break;
            }
        }
        Ok(self.send.submit()?)
    }

    /// Serves the queues that are polled; those that have been for long enough are emptied and
    /// re-armed.
    fn serve(&mut self) -> Result<(), ExploreError> {
        let every = self.receive.iter_mut().zip(&mut self.due);
        for (number, ((queue, due), polled)) in every.zip(&mut self.polled).enumerate() {
            let Some(left) = polled.checked_sub(1) else {
                continue;
            };
            loop {
                let frames = queue.receive_described(self.story.budget)?;
                for frame in &frames {
                    due.take(frame).map_err(|fault| ExploreError::Queue {
                        queue: number,
                        fault,
                    })?;
                }
                self.came += frames.len();
                if left != 0 || frames.is_empty() {
                    break;
                }
            }
            *polled = left;
            if left == 0 {
                queue.rearm()?;
            }
        }
        Ok(())
    }
}
