//! Endpoints under a schedule: datagrams of two of them out and in, beside the driver's own frames.
//!
//! ```text
//!   seed ─► EndpointStory: lengths, checksums, MTU, queues, bursts, when it closes and opens again
//!        ├► three of five: Mishaps, damaged frames, memory that is gone, fragments
//!        ├► even: Disturbance, frames leave whole
//!        ├► odd: the timed card on a bus that stalls, frames are cut through
//!        └► four of sixteen: on a bus of 32 bits and 33 MHz
//!
//!   each datagram once, whole, in its endpoint's order; each descriptor completed once
//!   each transition of the firmware's machines: one of the tables' in the state it is in;
//!   RECV's and RDMA's on a card with firmware that records them, of half the seeds
//! ```

use super::disturbance::{below, choose};
use super::schedule::{Outcome, Schedule};
use super::{EndpointFault, ExploreError, PATIENCE};
use crate::machine::Machine;
use crate::timeline::{Recorder, Timeline};
use crate::timing::Parameters;
use crate::transport::SimTransport;
use eudp::{Checksum, CutThrough, Eudp};
use host_driver::nic::EndpointCard;
use host_driver::{Config, Nic};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::SeedableRng;
use std::collections::VecDeque;
use tigon2_model::Board;

mod arriving;
mod followed;
mod host;
mod mishaps;
mod side;
mod wire;

use followed::Followed;
use host::Host;
use mishaps::{Mishaps, Odd};

/// What the seed has chosen.
#[derive(Clone, Debug)]
pub struct EndpointStory {
    mtu: u32,
    checksum: Checksum,
    cut: CutThrough,
    descriptors: u32,
    pushed: u32,
    /// Clocks of the bus, on a timed card.
    stall: Option<u64>,
    /// Whether the bus is slower than the wire.
    is_bus_slow: bool,
    /// Datagrams that are queued at once.
    burst: u64,
    /// Whether endpoint 1 is closed and opened again.
    reopens: bool,
}

impl EndpointStory {
    /// The story of a seed.
    pub fn new(seed: u64) -> (EndpointStory, SplitMix64) {
        // Not the numbers of the schedule.
        let mut random = SplitMix64::seed_from_u64(seed ^ 0x6575_6470);
        let any = &mut random;
        let timed = seed % 2 == 1;
        let story = EndpointStory {
            mtu: choose(any, [1500, 9000, 9000]),
            checksum: match choose(any, [Checksum::None, Checksum::None, Checksum::Full]) {
                Checksum::Full if seed & 2 != 0 => Checksum::Leading,
                checksum => checksum,
            },
            cut: if timed {
                choose(any, [CutThrough::OfBus, CutThrough::Lead(512)])
            } else {
                CutThrough::Off
            },
            descriptors: choose(any, [16, 32, 256]),
            is_bus_slow: seed >> 2 & 3 == 3,
            stall: timed.then(|| choose(any, [20, 75, 150, 600, 3000])),
            burst: choose(any, [1, 4, 20]),
            reopens: below(any, 3) == 0,
            pushed: choose(any, [3, 8, 16]),
        };
        (story, random)
    }
}

/// Whether a seed's schedule runs firmware in which CPU A records its transitions, too, which takes
/// CPU A some cycles. Half of the seeds' do, of whatever else the seed chooses.
pub fn is_recorded(seed: u64) -> bool {
    seed.count_ones() % 2 == 1
}

/// What became of a story: the outcome, and which rows of the four tables were taken, a bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointOutcome {
    /// As of all stories.
    pub outcome: Outcome,
    /// The rows.
    pub rows: [u64; 4],
    /// Transitions that were followed.
    pub steps: u64,
    /// Whether CPU A recorded its own.
    pub is_recorded: bool,
    /// Nanoseconds that the wire had left when a frame was cut off, at the least; none if none was.
    pub left: Option<u64>,
}

/// Runs the story of a seed under its schedule. With a recorder, what happened comes back whether
/// it went well or not.
///
/// # Errors
/// [`ExploreError`]: the first thing that went wrong.
pub fn run(
    firmware: &[u8],
    seed: u64,
    recorder: Option<Recorder>,
) -> (Result<EndpointOutcome, ExploreError>, Option<Timeline>) {
    let (story, random) = EndpointStory::new(seed);
    let board = if story.is_bus_slow {
        Board::with_bus(32, 33)
    } else {
        Board::default()
    };
    let machine = match story.stall {
        None => Machine::new(board),
        Some(clocks) => {
            let parameters = Parameters {
                pci_rd: clocks,
                jit: 1.0,
                pci_wr: match Mishaps::new(seed).write_stall {
                    0 => Parameters::default().pci_wr,
                    clocks => clocks,
                },
                ..Parameters::default()
            };
            Machine::timed(board, parameters, seed)
        }
    };
    let transport = SimTransport::new(machine);
    let machine = transport.machine();
    let result = play(firmware, seed, &story, random, transport, recorder);
    let timeline = machine.lock().recorded();
    (result, timeline)
}

fn play(
    firmware: &[u8],
    seed: u64,
    story: &EndpointStory,
    random: SplitMix64,
    transport: SimTransport,
    recorder: Option<Recorder>,
) -> Result<EndpointOutcome, ExploreError> {
    let machine = transport.machine();
    let config = Config {
        mtu: if story.mtu > 1500 { 9000 } else { 1500 },
        firmware_timeout: PATIENCE,
        command_timeout: PATIENCE,
        watchdog: PATIENCE,
        ..Config::default()
    };
    let mut nic = Nic::probe(transport, config)?;
    nic.load(firmware)?;
    nic.open()?;
    nic.wait_link(PATIENCE)?;
    let mut eudp = Eudp::find(&mut EndpointCard(&mut nic)).map_err(endpoints)?;
    eudp.set_cut_through(&mut EndpointCard(&mut nic), story.cut)
        .map_err(endpoints)?;
    let schedule = if story.stall.is_none() {
        Schedule::begin(machine.clone(), seed, recorder)
    } else {
        Schedule::watch(machine.clone(), recorder)
    };
    let mut host = Host {
        sides: Vec::new(),
        nic,
        eudp,
        machine: machine.clone(),
        schedule,
        story,
        random,
        mishaps: Mishaps::new(seed),
        trace: Followed::default(),
        lost: 0,
        odd: Odd::default(),
        plain: VecDeque::new(),
    };
    for number in 0..2 {
        let side = host.open(number)?;
        host.sides.push(side);
    }
    host.carry()?;
    if story.reopens {
        if host.mishaps.have_bad_frames() || host.mishaps.have_parted() {
            host.empty_wire()?;
        }
        let side = host.sides.remove(1);
        let lent = &mut EndpointCard(&mut host.nic);
        host.eudp.close(lent, side.endpoint).map_err(endpoints)?;
        let again = host.open(1)?;
        host.sides.push(again);
        host.carry()?;
    }
    host.finish()?;
    let frames = host.sides.iter().map(|side| u64::from(side.came)).sum();
    Ok(EndpointOutcome {
        outcome: host.schedule.outcome(frames),
        rows: [0, 1, 2, 3].map(|machine| host.trace.checker.taken(machine)),
        steps: host.trace.steps(),
        is_recorded: host.trace.has_arrivals,
        left: machine.lock().least_left_at_cut(),
    })
}

fn endpoints(error: impl std::fmt::Display) -> ExploreError {
    ExploreError::Endpoint(EndpointFault::Library(error.to_string()))
}
