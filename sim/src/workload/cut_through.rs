//! Frames that leave while they are being fetched, by machines whose CPU takes no time.
//!
//! SDMA and SEND of [`frame_pipeline`] run natively on the registers of the timed card, as
//! [`bound`](super::bound) does for the engines alone: what comes out is the limit for the firmware
//! that will run the same tables, and the tables are held to the model of the chip.
//!
//! ```text
//!   read ring    first part | part | part | ...        an entry each, none with bit 17
//!   TxPrd        end of frame, when the first part is there
//!   the watch    part [a, b) is in time if it is seen before the MAC can have read a
//!                and the bus could have brought b - a
//! ```

use super::WorkloadError;
use super::transmitter::{ROOM, Transmitter};
use crate::machine::Machine;
use crate::timing::Parameters;
use frame_pipeline::trace::{Checker, Entry};
use frame_pipeline::{Step, World, sdma, send};
use host_driver::DmaMemory;
use std::collections::VecDeque;
use tigon2_chip::mac::MacStatistic;
use tigon2_model::Board;

/// Where the frame is in host memory, and how much of that there is.
const HOST: u64 = 0x1_0000_0000;
const HOST_BYTES: usize = 0x1_0000;
/// Accesses of the MAC to SRAM ahead of the wire, and two for its alignment.
const READ_AHEAD: u64 = 10;
/// Picoseconds of a byte at a gigabit.
const GIGABIT_BYTE: u64 = 8000;
/// The least picoseconds of a byte on a bus of 64 bits and 66 MHz, in which 8 bytes take 15.15 ns;
/// slower ones count as this one.
const BUS_BYTE: u64 = 1800;
const BUS: u64 = 64 * 66;
/// The longest that a frame may take, in nanoseconds.
const PATIENCE: u64 = 100_000_000;

/// The most frames of a stream: the TX ring has 256.
const STREAM: usize = 200;

/// How fast bytes are, in picoseconds each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Speeds {
    /// On the wire.
    pub wire: u64,
    /// On the bus, at the fastest.
    pub bus: u64,
    /// Bytes that the MAC reads ahead of the wire.
    pub ahead: u64,
}

impl Speeds {
    /// Those of a board under a profile.
    pub fn of(board: &Board, parameters: &Parameters) -> Speeds {
        let bus = u64::from(board.pci.bits) * u64::from(board.pci.mhz);
        Speeds {
            wire: GIGABIT_BYTE / u64::from(board.mac.times.max(1)),
            bus: BUS_BYTE * BUS / bus.max(BUS),
            ahead: READ_AHEAD * u64::from(parameters.port_bytes),
        }
    }
}

/// How frames are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Bytes of the first part; a frame that is not longer leaves when it is whole.
    pub lead: u32,
    /// Bytes of the other parts.
    pub part: u32,
    /// Whether the parts are watched; without it, old bytes leave with a good CRC.
    pub watched: bool,
}

impl Cut {
    /// No frame is cut through.
    pub const COARSE: Cut = Cut {
        lead: u32::MAX,
        part: 512,
        watched: true,
    };
    /// The first 512 bytes, then a bus transaction at a time.
    pub const FINE: Cut = Cut {
        lead: 512,
        part: 512,
        watched: true,
    };
}

/// What became of the frames.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Nanoseconds from a frame's descriptor to its end on the wire, without its gap.
    pub latencies: Vec<u64>,
    /// Frames on the wire with a good CRC that are not the ones that were sent.
    pub wrong: u64,
    /// Frames that were cut, as SEND and as the card's counter 0xCC tell.
    pub aborted: u64,
    /// The latter.
    pub underruns: u32,
    /// The rows of SDMA and SEND that were taken, a bit each.
    pub rows: [u64; 2],
}

/// Sends `count` frames of `length` bytes, one at a time.
///
/// # Errors
/// When a frame does not leave, or a transition is none of the tables.
pub fn run(
    board: Board,
    parameters: Parameters,
    cut: Cut,
    length: usize,
    count: u32,
    seed: u64,
) -> Result<Report, WorkloadError> {
    let mut pipeline = start(board, parameters, cut, length, seed)?;
    let mut report = Report::default();
    for number in 0..count {
        let frame = frame(number, length);
        pipeline.memory.write_bytes(0, &frame).map_err(driver)?;
        let start = pipeline.world.chip.machine.now();
        let (sent, at) = pipeline.send()?;
        report.latencies.push(at - start);
        report.wrong += u64::from(sent != frame);
    }
    report.aborted = pipeline.world.aborted;
    report.underruns = pipeline
        .world
        .chip
        .machine
        .word(MacStatistic::Underruns.nic_address());
    report.rows = [0, 1].map(|machine| pipeline.checker.taken(machine));
    Ok(report)
}

/// The rate of frames of `length` bytes that are posted all at once, as many as the TX buffer holds,
/// in Mb/s of their bytes: from the end of the first to that of the last.
///
/// # Errors
/// As [`run`]; [`WorkloadError::Mangled`] if one is not what was sent.
pub fn stream(
    board: Board,
    parameters: Parameters,
    cut: Cut,
    length: usize,
    seed: u64,
) -> Result<f64, WorkloadError> {
    let mut pipeline = start(board, parameters, cut, length, seed)?;
    let frame = frame(0, length);
    pipeline.memory.write_bytes(0, &frame).map_err(driver)?;
    let count = (ROOM as usize / length.next_multiple_of(8)).min(STREAM) as u32 - 1;
    pipeline.world.posted = count;
    let mut ends = Vec::new();
    for _ in 0..count {
        let (sent, at) = pipeline.sent()?;
        if sent != frame {
            return Err(WorkloadError::Mangled);
        }
        ends.push(at);
    }
    let time = ends[ends.len() - 1] - ends[0];
    Ok((ends.len() - 1) as f64 * length as f64 * 8000.0 / time as f64)
}

/// A card, and both machines in their first states.
fn start(
    board: Board,
    parameters: Parameters,
    cut: Cut,
    length: usize,
    seed: u64,
) -> Result<Pipeline, WorkloadError> {
    let memory = DmaMemory::new(HOST_BYTES, HOST).map_err(driver)?;
    let speeds = Speeds::of(&board, &parameters);
    let mut machine = Machine::timed(board, parameters, seed);
    machine.map(memory.clone());
    Ok(Pipeline::new(machine, memory, cut, length as u32, speeds))
}

fn driver(error: impl Into<host_driver::NicError>) -> WorkloadError {
    WorkloadError::Driver(error.into())
}

/// Frame `number`: no two in a row have a byte in common at a place.
fn frame(number: u32, length: usize) -> Vec<u8> {
    let byte = |at: usize| (at * 7 + at / 256) as u8 ^ (number as u8).wrapping_mul(37);
    (0..length).map(byte).collect()
}

/// Both machines, and what they act upon.
struct Pipeline {
    sdma: frame_pipeline::Machine<sdma::Sdma>,
    send: frame_pipeline::Machine<send::Send>,
    checker: Checker,
    memory: DmaMemory,
    world: Card,
}

/// The card, and what the firmware's variables would be.
struct Card {
    chip: Transmitter,
    cut: Cut,
    speeds: Speeds,
    length: u32,
    /// Descriptors that wait.
    posted: u32,
    signals: VecDeque<send::Event>,
    /// Where the frame is in the TX buffer.
    start: u32,
    /// The ends of its parts, and how many of them have been seen.
    parts: Vec<u32>,
    seen: usize,
    /// When TxPrd was set before the frame was whole; the part to be certified next.
    early: u64,
    watched: Option<usize>,
    /// When the part that has just been seen was seen.
    now: u64,
    aborted: u64,
}

impl Pipeline {
    fn new(machine: Machine, memory: DmaMemory, cut: Cut, length: u32, speeds: Speeds) -> Pipeline {
        let world = Card {
            chip: Transmitter::new(machine),
            cut,
            speeds,
            length,
            posted: 0,
            signals: VecDeque::new(),
            start: 0,
            parts: Vec::new(),
            seen: 0,
            early: 0,
            watched: None,
            now: 0,
            aborted: 0,
        };
        Pipeline {
            sdma: frame_pipeline::Machine::new(),
            send: frame_pipeline::Machine::new(),
            checker: Checker::default(),
            memory,
            world,
        }
    }

    /// Sends the frame that is in host memory: what was on the wire, and when it ended.
    fn send(&mut self) -> Result<(Vec<u8>, u64), WorkloadError> {
        self.world.posted = 1;
        self.sent()
    }

    /// The next frame on the wire, and when it ended.
    fn sent(&mut self) -> Result<(Vec<u8>, u64), WorkloadError> {
        let clock = self.world.chip.machine.clock();
        let end = self.world.chip.machine.cycle() + clock.cycle_at(PATIENCE);
        loop {
            while self.turn()? {}
            if let Some(sent) = self.world.chip.machine.take_frame() {
                // The machines see it leave, too.
                while self.turn()? {}
                return Ok((sent.bytes, sent.at));
            }
            if self.world.chip.machine.cycle() >= end {
                return Err(WorkloadError::Stalled(PATIENCE / 1_000_000));
            }
            // Until the card changes, or the deadline.
            let deadline = self.world.deadline().map(|at| clock.cycle_at(at) + 1);
            let until = deadline.unwrap_or(end).min(end);
            let until = until.max(self.world.chip.machine.cycle() + 1);
            let mut first = true;
            self.world
                .chip
                .machine
                .run_until(until, |_| !std::mem::take(&mut first));
        }
    }

    /// Serves one event, if there is one that need not wait, and what it signals.
    fn turn(&mut self) -> Result<bool, WorkloadError> {
        let world = &mut self.world;
        world.now = world.chip.machine.now();
        if world.chip.see_fetched() {
            world.seen += 1;
            self.fetch(sdma::Event::Arrived)?;
        } else if world.deadline().is_some_and(|at| at < world.now) {
            self.hand_over(send::Event::Deadline)?;
        } else if world.chip.see_sent() {
            self.hand_over(send::Event::Sent)?;
        } else if world.posted != 0 && !self.sdma.defers(sdma::Event::Posted) {
            world.posted -= 1;
            self.fetch(sdma::Event::Posted)?;
        } else {
            return Ok(false);
        }
        while let Some(signal) = self.world.signals.pop_front() {
            self.hand_over(signal)?;
        }
        Ok(true)
    }

    fn fetch(&mut self, event: sdma::Event) -> Result<(), WorkloadError> {
        let step = self.sdma.step(event, &mut self.world);
        self.follow(0, step)
    }

    fn hand_over(&mut self, event: send::Event) -> Result<(), WorkloadError> {
        let step = self.send.step(event, &mut self.world);
        self.follow(1, step)
    }

    fn follow(&mut self, machine: usize, step: Step) -> Result<(), WorkloadError> {
        let Step::Taken(row) = step else {
            return Err(WorkloadError::Pipeline(step));
        };
        let followed = self.checker.follow(Entry::new(machine, row));
        followed.map_err(|_| WorkloadError::Pipeline(step))
    }
}

impl Card {
    /// Queues the frame's transfers.
    fn queue(&mut self, ends: Vec<u32>) {
        self.start = self.chip.place(self.length);
        let mut from = 0;
        let start = self.start;
        self.chip.fetch(ends.iter().map(|end| {
            let transfer = (HOST + u64::from(from), start + from, end - from);
            from = *end;
            transfer
        }));
        self.parts = ends;
        self.seen = 0;
    }

    /// The last moment at which the part to be certified next may be seen.
    fn deadline(&self) -> Option<u64> {
        let part = self.watched?;
        let (from, to) = (self.parts[part - 1], self.parts[part]);
        let read = u64::from(from).saturating_sub(self.speeds.ahead) * self.speeds.wire;
        let brought = u64::from(to - from) * self.speeds.bus;
        Some(self.early + (read + brought) / 1000)
    }

    fn reset_transmitter(&mut self, stop: bool) {
        self.chip.reset(stop);
        self.watched = None;
        self.aborted += 1;
    }
}

impl World<sdma::Sdma> for Card {
    fn holds(&mut self, condition: sdma::Condition) -> bool {
        match condition {
            sdma::Condition::MayCut => self.length > self.cut.lead && self.chip.is_idle(),
            sdma::Condition::SumWanted => false,
            sdma::Condition::MoreParts => self.seen < self.parts.len(),
        }
    }

    fn act(&mut self, action: sdma::Action) {
        match action {
            sdma::Action::FetchWhole => self.queue(vec![self.length]),
            sdma::Action::FetchParts => {
                let step = self.cut.part as usize;
                let mut ends: Vec<u32> = (self.cut.lead..self.length).step_by(step).collect();
                ends.push(self.length);
                self.queue(ends);
            }
            sdma::Action::Offer => self.signals.push_back(send::Event::OfferedWhole),
            sdma::Action::OfferEarly => self.signals.push_back(send::Event::OfferedEarly),
            sdma::Action::Pass => self.signals.push_back(send::Event::PartArrived),
            sdma::Action::PassLast => self.signals.push_back(send::Event::LastArrived),
            // Memory always answers, endpoints stay, and sums are none of this workload's.
            sdma::Action::Nothing
            | sdma::Action::FetchAgain
            | sdma::Action::StoreSum
            | sdma::Action::Fail
            | sdma::Action::Close => {}
        }
    }
}

impl World<send::Send> for Card {
    fn holds(&mut self, condition: send::Condition) -> bool {
        match condition {
            send::Condition::InTime => self.deadline().is_none_or(|at| self.now <= at),
            send::Condition::MacHasMore => !self.chip.is_idle(),
        }
    }

    fn act(&mut self, action: send::Action) {
        match action {
            send::Action::Queue => self.chip.give(self.start, self.length),
            send::Action::QueueEarly => {
                self.chip.give(self.start, self.length);
                self.early = self.now;
                self.watched = self.cut.watched.then_some(1);
            }
            send::Action::Certify => self.watched = self.watched.map(|part| part + 1),
            send::Action::CertifyLast => self.watched = None,
            send::Action::Abort => self.reset_transmitter(true),
            send::Action::Repeat => self.reset_transmitter(false),
            send::Action::Resume => self.chip.resume(),
            // TxCon follows the frame by itself.
            send::Action::Nothing | send::Action::Free => {}
        }
    }
}
