//! The workload under a schedule: both directions at once; the seed sets sizes, rings and
//! coalescing.
//!
//! Rings wrap (the DMA rings of 64 several times, the send ring of 128 to 512 at least once in
//! most runs), frames come in bursts with pauses, and the host takes frames in batches, early or
//! late, by the index in its memory or by the card's register.

use super::ExploreError;
use super::check::Checked;
use super::disturbance::{below, choose};
use super::schedule::{Outcome, Schedule};
use crate::machine::Machine;
use crate::timeline::{Recorder, Timeline};
use crate::transport::{HostTiming, SharedMachine, SimTransport};
use crate::workload::datagram::{Flow, PEER};
use host_driver::nic::{Coalescing, ReturnRingSize, SendConsumer, SendRingSize};
use host_driver::{Config, Nic, NicError};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::SeedableRng;
use std::io::IoSlice;
use std::time::Duration;
use tigon2_model::Board;

/// Frames each way of most stories, and of a long one, in which all rings wrap.
const FRAMES: u64 = 260;
const MANY_FRAMES: u64 = 1100;
/// One of so many stories is long.
const LONG: u64 = 40;
/// Sizes of datagrams: the smallest, those round a cache line and a DMA beat, the largest.
const SIZES: [usize; 8] = [8, 18, 41, 100, 333, 700, 1024, 1472];
/// The card's time without a frame after which a story has failed.
const STALL_MS: u64 = 80;
/// The card's time after the last frame in which no other one may come.
const SILENCE: Duration = Duration::from_millis(2);
/// Time for the link, and for whatever else the driver waits for by this computer's clock.
/// Schedules run beside each other, and on a busy computer each of them may stand still for
/// seconds: a card that is stuck is found by its own time.
pub const PATIENCE: Duration = Duration::from_secs(300);
/// Turns of the host's loop.
const TURNS: u64 = 2_000_000;

/// What the seed has chosen.
#[derive(Clone, Debug)]
pub struct Story {
    config: Config,
    host: HostTiming,
    frames: u64,
    sizes: [usize; 3],
    fragments: usize,
    /// Frames that may wait on the wire, and that are queued before the driver writes the mailbox.
    depth: u64,
    batch: u64,
    /// Received frames that are taken at a time.
    budget: u32,
    /// The longest that the host sleeps, in microseconds.
    patience: u64,
}

impl Story {
    /// The story of a seed.
    pub fn new(seed: u64) -> (Story, SplitMix64) {
        // Not the numbers of the schedule.
        let mut random = SplitMix64::seed_from_u64(seed ^ 0x7473_6F68);
        let any = &mut random;
        let ticks = [0, 5, 40, 300];
        let bds = [1, 2, 7, 32];
        let config = Config {
            send_ring: choose(
                any,
                [
                    SendRingSize::Entries128,
                    SendRingSize::Entries256,
                    SendRingSize::Entries512,
                ],
            ),
            return_ring: choose(
                any,
                [ReturnRingSize::Entries1024, ReturnRingSize::Entries2048],
            ),
            receive_buffers: choose(any, [24, 64, 300, 511]),
            send_consumer: choose(any, [SendConsumer::HostMemory, SendConsumer::Register]),
            coalescing: Coalescing {
                receive_ticks: choose(any, ticks),
                transmit_ticks: choose(any, ticks),
                statistics_ticks: choose(any, [200, 1_000_000]),
                max_transmit_bds: choose(any, bds),
                max_receive_bds: choose(any, bds),
            },
            ..Config::default()
        };
        let story = Story {
            config,
            host: HostTiming {
                read_ns: choose(any, [100, 500, 2000]),
                write_ns: choose(any, [20, 60, 500]),
                ..HostTiming::default()
            },
            frames: if below(any, LONG) == 0 {
                MANY_FRAMES
            } else {
                FRAMES
            },
            sizes: [(); 3].map(|()| choose(any, SIZES)),
            fragments: choose(any, [1, 1, 2, 3]),
            depth: choose(any, [1, 4, 30]),
            batch: choose(any, [1, 3, 20]),
            budget: choose(any, [1, 8, u32::MAX]),
            patience: choose(any, [3, 30, 300]),
        };
        (story, random)
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
    let transport = SimTransport::new(Machine::new(Board::default()));
    let machine = transport.machine();
    let result = run_on(transport, firmware, seed, PATIENCE, recorder);
    let timeline = machine.lock().recorded();
    (result, timeline)
}

/// What else the host does with the card in a turn.
pub type Aside<'a> = &'a mut dyn FnMut(&SharedMachine) -> Result<(), String>;

/// The same while the host does something else, too, once in each of its turns.
///
/// # Errors
/// As of [`run`], and what that says.
pub fn run_beside(
    firmware: &[u8],
    seed: u64,
    recorder: Option<Recorder>,
    aside: Aside<'_>,
) -> (Result<Outcome, ExploreError>, Option<Timeline>) {
    let transport = SimTransport::new(Machine::new(Board::default()));
    let machine = transport.machine();
    let result = run_on_beside(transport, firmware, seed, PATIENCE, recorder, aside);
    let timeline = machine.lock().recorded();
    (result, timeline)
}

/// The same on a machine without cycle model that somebody has prepared. The driver waits
/// for `patience` at least before it gives the card up, by this computer's clock:
/// [`PATIENCE`], unless somebody may stop the card in a debugger.
///
/// # Errors
/// As of [`run`].
pub fn run_on(
    transport: SimTransport,
    firmware: &[u8],
    seed: u64,
    patience: Duration,
    recorder: Option<Recorder>,
) -> Result<Outcome, ExploreError> {
    run_on_beside(transport, firmware, seed, patience, recorder, &mut |_| {
        Ok(())
    })
}

fn run_on_beside(
    mut transport: SimTransport,
    firmware: &[u8],
    seed: u64,
    patience: Duration,
    recorder: Option<Recorder>,
    aside: Aside<'_>,
) -> Result<Outcome, ExploreError> {
    let (mut story, random) = Story::new(seed);
    story.config.firmware_timeout = patience;
    story.config.command_timeout = patience;
    story.config.watchdog = patience;
    transport.set_timing(story.host);
    play(firmware, seed, &story, random, transport, recorder, aside)
}

fn play(
    firmware: &[u8],
    seed: u64,
    story: &Story,
    random: SplitMix64,
    transport: SimTransport,
    recorder: Option<Recorder>,
    aside: Aside<'_>,
) -> Result<Outcome, ExploreError> {
    let machine = transport.machine();
    let mut nic = Nic::probe(transport, story.config)?;
    nic.load(firmware)?;
    nic.open()?;
    nic.wait_link(story.config.firmware_timeout)?;
    let schedule = Schedule::begin(machine, seed, recorder);
    let mut host = Host::new(nic, schedule, story, random);
    host.carry(aside)?;
    host.finish()?;
    let frames = host.out.come() + host.into.come();
    Ok(host.schedule.outcome(frames))
}

/// The host and the other end of the wire.
struct Host<'a> {
    nic: Nic<SimTransport>,
    schedule: Schedule,
    story: &'a Story,
    random: SplitMix64,
    out: Checked,
    into: Checked,
    queued: u64,
    on_wire: u64,
}

impl<'a> Host<'a> {
    fn new(
        nic: Nic<SimTransport>,
        schedule: Schedule,
        story: &'a Story,
        mut random: SplitMix64,
    ) -> Host<'a> {
        let station = nic.station();
        let mut frames = |source, destination| {
            let flow = |bytes| Flow::new(source, destination, bytes);
            let order = (0..story.frames).map(|_| below(&mut random, 3) as u8);
            let order = order.collect();
            Checked::new(story.sizes.map(flow).to_vec(), order)
        };
        let (out, into) = (frames(station, PEER), frames(PEER, station));
        Host {
            nic,
            schedule,
            story,
            random,
            out,
            into,
            queued: 0,
            on_wire: 0,
        }
    }

    /// Lets all frames pass.
    fn carry(&mut self, aside: Aside<'_>) -> Result<(), ExploreError> {
        let mut moved = (0, self.schedule.now());
        for _ in 0..TURNS {
            self.feed();
            aside(&self.schedule.machine).map_err(ExploreError::Aside)?;
            self.queue()?;
            let patience = 1 + below(&mut self.random, self.story.patience);
            if self.nic.wait(Duration::from_micros(patience))? {
                self.service()?;
            }
            self.schedule.take_sent(&mut self.out)?;
            self.schedule.check_cpus()?;
            let come = self.out.come() + self.into.come();
            if come == self.out.all() + self.into.all() {
                return Ok(());
            }
            let now = self.schedule.now();
            if come != moved.0 {
                moved = (come, now);
            } else if now - moved.1 > STALL_MS * 1_000_000 {
                break;
            }
        }
        Err(self.stalled())
    }

    fn stalled(&self) -> ExploreError {
        ExploreError::Stalled {
            milliseconds: STALL_MS,
            sent: self.out.come(),
            received: self.into.come(),
            expected: self.out.all(),
        }
    }

    /// Nothing else comes, and the host gets its BDs back.
    fn finish(&mut self) -> Result<(), ExploreError> {
        let end = self.schedule.now() + STALL_MS * 1_000_000;
        let silence = self.schedule.now() + SILENCE.as_nanos() as u64;
        loop {
            let now = self.schedule.now();
            let outstanding = self.nic.send_outstanding();
            if now >= silence && outstanding == 0 {
                break;
            }
            if now >= end {
                return Err(ExploreError::Outstanding(outstanding));
            }
            if self.nic.wait(SILENCE / 4)? {
                self.service()?;
            }
            self.schedule.take_sent(&mut self.out)?;
            self.schedule.check_cpus()?;
        }
        self.nic.check_fatal()?;
        self.schedule.check_accesses()
    }

    /// Puts frames on the wire, in bursts with pauses.
    fn feed(&mut self) {
        let mut machine = self.schedule.machine.lock();
        while (machine.pending_frames() as u64) < self.story.depth {
            let Some(frame) = self.into.frame(self.on_wire) else {
                return;
            };
            self.on_wire += 1;
            let pause = match below(&mut self.random, 16) {
                0 => below(&mut self.random, 40_000),
                _ => 0,
            };
            let at = machine.now() + pause;
            machine.send_frame(at, frame);
        }
    }

    /// Queues a batch and writes the mailbox, now and then after each frame.
    fn queue(&mut self) -> Result<(), ExploreError> {
        let batch = 1 + below(&mut self.random, self.story.batch);
        for _ in 0..batch {
            let Some(frame) = self.out.frame(self.queued) else {
                break;
            };
            let piece = frame.len().div_ceil(self.story.fragments);
            let pieces: Vec<IoSlice<'_>> = frame.chunks(piece).map(IoSlice::new).collect();
            if !self.nic.queue(&pieces)? {
                break;
            }
            self.queued += 1;
            if below(&mut self.random, 4) == 0 {
                self.nic.submit()?;
            }
        }
        self.nic.submit()?;
        Ok(())
    }

    fn service(&mut self) -> Result<(), ExploreError> {
        let mut wrong = None;
        let into = &mut self.into;
        while self.nic.receive(self.story.budget, |frame| {
            if let Err(fault) = into.take(&frame.to_vec()?) {
                wrong.get_or_insert(fault);
            }
            Ok::<(), NicError>(())
        })? != 0
        {}
        if let Some(fault) = wrong {
            let direction = "received";
            return Err(ExploreError::Frame { direction, fault });
        }
        self.nic.service()?;
        Ok(())
    }
}
