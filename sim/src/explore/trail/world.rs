//! The card, the host and both machines' tables, step by step.

use super::{Finding, Step};
use crate::machine::Machine;
use crate::timing::Parameters;
use crate::workload::transmitter::Transmitter;
use frame_pipeline::{Class, Definition, Table, sdma, send};
use host_driver::DmaMemory;
use std::collections::VecDeque;
use tigon2_model::Board;

const SDMA: usize = 0;
const SEND: usize = 1;
/// Where the frames are in host memory.
const HOST: u64 = 0x1_0000_0000;
/// Bytes of host memory for each, and how many there may be.
const SLOT: usize = 0x4000;
const SLOTS: usize = 16;
/// Bytes of a part, and of a frame that has only one.
const PART: u32 = 2048;
const SHORT: u32 = 600;
/// Where a frame's sum stands, and a sum that was stored.
const SUM_AT: usize = 40;
const SUM: [u8; 2] = [0xC5, 0x5C];
/// Bytes of a plain frame: long, so that much may happen meanwhile.
const PLAIN: u32 = 9000;
/// Nanoseconds of a byte on the wire, and of a frame's preamble.
const BYTE: u64 = 8;
const PREAMBLE: u64 = 8 * BYTE;
/// Turns of so many cycles in which anything comes to its end.
const TURN: u64 = 16;
const TURNS: usize = 20_000;
/// Steps in which the card comes to rest.
const REST: usize = 1000;

/// A descriptor that was posted.
struct Frame {
    long: bool,
    summed: bool,
    endpoint: usize,
    /// Its place in NIC memory.
    start: u32,
    completed: u32,
    given_up: bool,
}

/// All of it. The fields bear the names of the model's variables.
pub(super) struct World {
    tables: [Table; 2],
    states: [u8; 2],
    raised: VecDeque<u8>,
    chip: Transmitter,
    memory: DmaMemory,
    parts: u32,
    frames: Vec<Frame>,
    next: usize,
    fetching: usize,
    closing: Option<usize>,
    closed: [bool; 2],
    /// Transfers that have not begun: host and NIC address, bytes.
    queued: VecDeque<(u64, u32, u32)>,
    arrived: u32,
    seen: u32,
    transfers: u32,
    /// Parts of the frame in work that are in NIC memory, and those that the MAC came to before.
    here: u32,
    late: Vec<bool>,
    failed: bool,
    sum_queued: bool,
    in_time: bool,
    at_the_mac: VecDeque<usize>,
    /// The part of the frame on the wire that leaves, from 1 on; 0 for none; when it began.
    position: u32,
    begun: u64,
    plain: bool,
    sent: u32,
    stopped: bool,
    armed: bool,
    fired: bool,
    certified: u32,
    findings: Vec<Finding>,
}

type Followed = Result<(), &'static str>;

impl World {
    pub(super) fn new(tables: [Table; 2], parts: u32) -> World {
        let parameters = Parameters {
            pci_rd: 1,
            pci_wr: 1,
            jit: 0.0,
            ..Parameters::default()
        };
        let memory = DmaMemory::new(SLOT * SLOTS, HOST).expect("memory for the frames");
        let mut machine = Machine::timed(Board::default(), parameters, 1);
        machine.map(memory.clone());
        machine.hold_transmitter(true);
        World {
            tables,
            states: [0; 2],
            raised: VecDeque::new(),
            chip: Transmitter::new(machine),
            memory,
            parts,
            frames: Vec::new(),
            next: 0,
            fetching: 0,
            closing: None,
            closed: [false; 2],
            queued: VecDeque::new(),
            arrived: 0,
            seen: 0,
            transfers: 0,
            here: 0,
            late: Vec::new(),
            failed: false,
            sum_queued: false,
            in_time: false,
            at_the_mac: VecDeque::new(),
            position: 0,
            begun: 0,
            plain: false,
            sent: 0,
            stopped: false,
            armed: false,
            fired: false,
            certified: 0,
            findings: Vec::new(),
        }
    }

    /// A step of the run.
    pub(super) fn follow(&mut self, step: Step) -> Followed {
        match step {
            Step::Row { machine, row } => self.row(machine, row),
            Step::Posted {
                long,
                summed,
                endpoint,
            } => self.post(long, summed, endpoint),
            Step::Skipped => {
                self.next += 1;
                Ok(())
            }
            Step::Closing => {
                self.closing = Some(1);
                Ok(())
            }
            Step::Arrived => self.arrive(),
            Step::Failed if self.queued.is_empty() => Err("the channel has nothing to fail with"),
            Step::Failed => {
                self.failed = true;
                Ok(())
            }
            Step::Begun => self.begin(),
            Step::Advanced => self.advance(),
            Step::Ended => self.end(),
            Step::Plain => self.begin_plain(),
            Step::PlainEnded => self.end_plain(),
        }
    }

    fn bytes(&self, frame: &Frame) -> u32 {
        if frame.long { self.parts * PART } else { SHORT }
    }

    fn parts_of(&self, frame: usize) -> u32 {
        let long = self.frames.get(frame).is_some_and(|frame| frame.long);
        if long { self.parts } else { 1 }
    }

    /// Frame `number` as its process has it.
    fn data(&self, number: usize) -> Vec<u8> {
        let frame = &self.frames[number];
        let byte = |at: u32| (at * 7 + at / 256) as u8 ^ (number as u8 + 1).wrapping_mul(37);
        (0..self.bytes(frame)).map(byte).collect()
    }

    /// The same as it has to leave.
    fn whole(&self, number: usize) -> Vec<u8> {
        let mut data = self.data(number);
        if self.frames[number].summed {
            data[SUM_AT..SUM_AT + SUM.len()].copy_from_slice(&SUM);
        }
        data
    }

    fn post(&mut self, long: bool, summed: bool, endpoint: usize) -> Followed {
        let number = self.frames.len();
        if number == SLOTS {
            return Err("the host has memory for fewer frames");
        }
        self.frames.push(Frame {
            long,
            summed,
            endpoint,
            start: 0,
            completed: 0,
            given_up: false,
        });
        let data = self.data(number);
        self.write(number, &data);
        Ok(())
    }

    fn write(&self, number: usize, data: &[u8]) {
        let written = self.memory.write_bytes(number * SLOT, data);
        written.expect("a frame fits into its slot");
    }

    /// Its process uses a frame's memory for something else.
    fn reuse(&self, number: usize) {
        self.write(number, &vec![0xEE; SLOT]);
    }

    /// Lets time pass until something holds.
    fn until(&mut self, mut holds: impl FnMut(&mut Transmitter) -> bool) -> bool {
        for _ in 0..TURNS {
            if holds(&mut self.chip) {
                return true;
            }
            self.chip.machine.run(TURN);
        }
        false
    }

    fn arrive(&mut self) -> Followed {
        let transfer = self.queued.pop_front().ok_or("nothing is to be fetched")?;
        self.chip.fetch([transfer]);
        if !self.until(Transmitter::see_fetched) {
            return Err("the channel does not end");
        }
        self.here = if self.transfers == 1 {
            self.parts_of(self.fetching)
        } else {
            self.here + 1
        };
        let leaving = self.at_the_mac.front() == Some(&self.fetching);
        self.late.push(leaving && self.position >= self.here);
        self.arrived += 1;
        Ok(())
    }

    fn begin(&mut self) -> Followed {
        if self.stopped || self.plain || self.position != 0 || self.at_the_mac.is_empty() {
            return Err("the MAC has no frame to begin");
        }
        self.chip.machine.hold_transmitter(false);
        if !self.until(|chip| chip.machine.is_sending()) {
            return Err("the MAC does not begin");
        }
        self.chip.machine.hold_transmitter(true);
        self.begun = self.chip.machine.now();
        self.position = 1;
        Ok(())
    }

    fn advance(&mut self) -> Followed {
        let leaving = *self.at_the_mac.front().ok_or("no frame leaves")?;
        if self.position == 0 || self.position == self.parts_of(leaving) {
            return Err("there is no part behind this one");
        }
        // The first bytes of the part have left.
        let there = PREAMBLE + u64::from(self.position * PART + 64) * BYTE;
        let at = self.begun + there;
        if !self.until(|chip| chip.machine.now() >= at) {
            return Err("time stands");
        }
        self.position += 1;
        Ok(())
    }

    fn end(&mut self) -> Followed {
        let leaving = *self.at_the_mac.front().ok_or("no frame leaves")?;
        if self.position != self.parts_of(leaving) {
            return Err("the frame is not at its end");
        }
        if self.is_overdue() {
            return Err("the deadline is served before");
        }
        if !self.until(Transmitter::see_sent) {
            return Err("the frame does not end");
        }
        self.at_the_mac.pop_front();
        self.position = 0;
        self.sent += 1;
        Ok(())
    }

    /// The margin: a deadline is served before the CRC leaves.
    const fn is_overdue(&self) -> bool {
        self.armed && !self.fired && self.position > self.certified
    }

    fn begin_plain(&mut self) -> Followed {
        if !self.mac_is_idle() {
            return Err("the MAC is at work");
        }
        let start = self.chip.place(PLAIN);
        self.chip.machine.load_image(start, &[0x11; PLAIN as usize]);
        self.chip.give(start, PLAIN);
        self.chip.machine.hold_transmitter(false);
        let begins = self.until(|chip| chip.machine.is_sending());
        self.chip.machine.hold_transmitter(true);
        self.plain = true;
        begins.then_some(()).ok_or("the MAC does not begin")
    }

    fn end_plain(&mut self) -> Followed {
        if !self.plain || !self.until(Transmitter::see_sent) {
            return Err("no plain frame ends");
        }
        self.plain = false;
        Ok(())
    }

    fn mac_is_idle(&self) -> bool {
        self.position == 0 && self.at_the_mac.is_empty() && !self.plain
    }

    fn is_idle(&self, machine: usize) -> bool {
        self.states[machine] == 0
    }

    /// A machine takes a row.
    fn row(&mut self, machine: usize, row: usize) -> Followed {
        let table = self.tables[machine];
        let row = *table.rows.get(row).ok_or("the table has no such row")?;
        if self.states[machine] != row.from {
            return Err("the machine is in another state");
        }
        match table.classes[usize::from(row.event)] {
            Class::External if !self.is_pending(machine, row.event) => {
                return Err("the event has not come");
            }
            Class::External => self.acknowledge(machine, row.event),
            Class::Signal => {
                let raised = self.raised.iter().position(|event| *event == row.event);
                self.raised
                    .remove(raised.ok_or("SEND was told nothing of it")?);
            }
        }
        let in_time = 1 << send::Condition::InTime as u8;
        if machine == SEND && row.mask & in_time != 0 {
            // The clock errs in one direction only.
            self.in_time = row.value & in_time != 0;
            if self.in_time && self.is_late() {
                return Err("the part is late");
            }
        }
        if self.conditions(machine) & row.mask != row.value {
            return Err("its conditions do not hold");
        }
        self.take(machine, row);
        Ok(())
    }

    fn is_late(&self) -> bool {
        let part = (self.seen as usize).checked_sub(1);
        part.and_then(|part| self.late.get(part))
            .is_some_and(|late| *late)
    }

    fn take(&mut self, machine: usize, row: frame_pipeline::Row) {
        self.states[machine] = row.to;
        let action = usize::from(row.action);
        match machine {
            SDMA => self.fetch_side(sdma::Sdma::ACTIONS[action]),
            _ => self.send_side(send::Send::ACTIONS[action]),
        }
    }

    fn is_pending(&self, machine: usize, event: u8) -> bool {
        let is = |of: u8| of == event;
        if machine == SEND {
            return is(send::Event::Deadline as u8) && self.armed && !self.fired
                || is(send::Event::Sent as u8) && self.sent != 0;
        }
        let open = |frame: &Frame| !self.closed[frame.endpoint];
        is(sdma::Event::Failed as u8) && self.failed && self.arrived == 0
            || is(sdma::Event::Arrived as u8) && self.arrived != 0
            || is(sdma::Event::SumStored as u8) && self.sum_queued
            || is(sdma::Event::Closed as u8) && self.closing.is_some()
            || is(sdma::Event::Posted as u8) && self.frames.get(self.next).is_some_and(open)
    }

    fn acknowledge(&mut self, machine: usize, event: u8) {
        let is = |of: u8| of == event;
        if machine == SEND {
            if is(send::Event::Deadline as u8) {
                self.fired = true;
            } else {
                self.sent -= 1;
            }
        } else if is(sdma::Event::Failed as u8) {
            self.failed = false;
        } else if is(sdma::Event::Arrived as u8) {
            self.arrived -= 1;
            self.seen += 1;
            self.in_time = !self.is_late();
        } else if is(sdma::Event::SumStored as u8) {
            self.sum_queued = false;
            let at = self.frames[self.fetching].start + SUM_AT as u32;
            self.chip.machine.load_image(at, &SUM);
        } else if is(sdma::Event::Posted as u8) {
            self.fetching = self.next;
            self.next += 1;
            self.seen = 0;
        }
    }

    /// A bit for each condition that holds.
    fn conditions(&self, machine: usize) -> u8 {
        let bit = |of: u8, holds: bool| u8::from(holds) << of;
        if machine == SEND {
            let more = !self.at_the_mac.is_empty() || self.sent != 0;
            return bit(send::Condition::InTime as u8, self.in_time)
                | bit(send::Condition::MacHasMore as u8, more);
        }
        let frame = self.frames.get(self.fetching);
        let (long, summed) = frame.map_or((false, false), |it| (it.long, it.summed));
        let idle = self.mac_is_idle() && self.is_idle(SEND);
        bit(sdma::Condition::MayCut as u8, long && !summed && idle)
            | bit(sdma::Condition::SumWanted as u8, summed)
            | bit(sdma::Condition::MoreParts as u8, self.seen < self.transfers)
    }

    fn tell(&mut self, event: send::Event) {
        self.raised.push_back(event as u8);
    }

    fn fetch_side(&mut self, action: sdma::Action) {
        use sdma::Action;
        match action {
            Action::Nothing => {}
            Action::FetchWhole => self.fetch(true),
            Action::FetchParts => self.fetch(false),
            Action::Offer => {
                self.tell(send::Event::OfferedWhole);
                self.complete();
            }
            Action::OfferEarly => self.tell(send::Event::OfferedEarly),
            Action::Pass => self.tell(send::Event::PartArrived),
            Action::PassLast => {
                self.tell(send::Event::LastArrived);
                self.complete();
            }
            Action::FetchAgain => self.tell(send::Event::PartFailed),
            Action::StoreSum => self.sum_queued = true,
            Action::Fail => {
                self.queued.clear();
                self.frames[self.fetching].given_up = true;
                self.complete();
            }
            Action::Close => {
                if let Some(endpoint) = self.closing.take() {
                    self.closed[endpoint] = true;
                    let of = |number: &usize| self.frames[*number].endpoint == endpoint;
                    (0..self.frames.len())
                        .filter(of)
                        .for_each(|number| self.reuse(number));
                }
            }
        }
    }

    fn fetch(&mut self, whole: bool) {
        if !self.queued.is_empty() || self.arrived != 0 || self.failed {
            self.findings.push(Finding::TwoMasters);
        }
        let number = self.fetching;
        let length = self.bytes(&self.frames[number]);
        let start = self.chip.place(length);
        self.frames[number].start = start;
        let part = if whole { length } else { length.min(PART) };
        let host = HOST + (number * SLOT) as u64;
        let parts = (0..length).step_by(part as usize);
        let parts = parts.map(|at| (host + u64::from(at), start + at, part));
        self.queued.extend(parts);
        self.transfers = length / part;
        self.here = 0;
        self.late.clear();
    }

    fn complete(&mut self) {
        let number = self.fetching;
        let frame = &mut self.frames[number];
        frame.completed += 1;
        if self.closed[frame.endpoint] {
            self.findings.push(Finding::AfterClose(number));
        }
        self.reuse(number);
    }

    fn send_side(&mut self, action: send::Action) {
        use send::Action;
        match action {
            Action::Nothing | Action::Free => {}
            Action::Queue | Action::QueueEarly => {
                let frame = &self.frames[self.fetching];
                let (start, length) = (frame.start, self.bytes(frame));
                if action == Action::QueueEarly && !(self.mac_is_idle() && self.sent == 0) {
                    self.findings.push(Finding::EarlyBehind(self.fetching));
                }
                self.at_the_mac.push_back(self.fetching);
                self.chip.give(start, length);
                if action == Action::QueueEarly {
                    (self.armed, self.fired, self.certified) = (true, false, 1);
                }
            }
            Action::Certify => {
                self.certified += 1;
                self.fired = false;
            }
            Action::CertifyLast => self.armed = false,
            Action::Abort => self.reset(true),
            Action::Repeat => self.reset(false),
            Action::Resume => {
                self.stopped = false;
                self.chip.resume();
            }
        }
    }

    fn reset(&mut self, stop: bool) {
        self.chip.reset(stop);
        self.stopped |= stop;
        self.armed = false;
        self.position = 0;
        // What was on the wire ends cut.
        self.chip.machine.run(TURN);
    }
}

/// How a run ends.
impl World {
    /// Goes on until nothing can happen any more: events as they come, the most urgent first.
    pub(super) fn rest(&mut self) {
        for _ in 0..REST {
            if !self.signal() && !self.serve() && !self.go_on() {
                return;
            }
        }
    }

    fn signal(&mut self) -> bool {
        let table = self.tables[SEND];
        let state = self.states[SEND];
        let next = self
            .raised
            .iter()
            .position(|event| !table.defers(state, *event));
        let Some(event) = next.and_then(|at| self.raised.remove(at)) else {
            return false;
        };
        self.bring(SEND, event)
    }

    fn serve(&mut self) -> bool {
        for machine in [SDMA, SEND] {
            let table = self.tables[machine];
            for event in 0..table.events.len() as u8 {
                let deadline = machine == SEND && event == send::Event::Deadline as u8;
                if table.classes[usize::from(event)] == Class::External
                    && self.is_pending(machine, event)
                    && !table.defers(self.states[machine], event)
                    && (!deadline || self.is_overdue())
                {
                    self.acknowledge(machine, event);
                    return self.bring(machine, event);
                }
            }
        }
        false
    }

    /// An event comes to a machine.
    fn bring(&mut self, machine: usize, event: u8) -> bool {
        let table = self.tables[machine];
        let (state, conditions) = (self.states[machine], self.conditions(machine));
        let mut rows = table.rows.iter();
        match rows.find(|row| row.matches(state, event, conditions)) {
            Some(row) => {
                self.take(machine, *row);
                true
            }
            None => {
                let name = table.events[usize::from(event)].name;
                self.findings.push(Finding::Impossible(table.name, name));
                false
            }
        }
    }

    /// The MAC has a frame that is not whole, and no deadline looks after it: a bus that stalls shows
    /// what leaves then.
    fn is_unguarded(&self) -> bool {
        let at_the_mac = self.at_the_mac.contains(&self.fetching);
        let whole = self.here == self.parts_of(self.fetching);
        at_the_mac && !whole && !self.armed && !self.stopped
    }

    /// The bus, the wire or the host goes on.
    fn go_on(&mut self) -> bool {
        if self
            .frames
            .get(self.next)
            .is_some_and(|it| self.closed[it.endpoint])
        {
            self.next += 1;
            return true;
        }
        let moved = if !self.queued.is_empty() && !self.failed && !self.is_unguarded() {
            self.arrive()
        } else if self.plain {
            self.end_plain()
        } else if self.position == 0 {
            self.begin()
        } else {
            self.advance().or_else(|_| self.end())
        };
        moved.is_ok()
    }

    /// What is wrong, once.
    pub(super) fn findings(mut self) -> Vec<Finding> {
        let mut left: Vec<Option<Vec<u8>>> = (0..self.frames.len())
            .map(|number| Some(self.whole(number)))
            .collect();
        while let Some(sent) = self.chip.machine.take_frame() {
            if sent.bytes.iter().all(|byte| *byte == 0x11) {
                continue;
            }
            let one = left
                .iter_mut()
                .find(|frame| frame.as_ref() == Some(&sent.bytes));
            match one {
                Some(frame) => *frame = None,
                None => self.findings.push(Finding::WrongFrame),
            }
        }
        for (number, (frame, left)) in self.frames.iter().zip(left).enumerate() {
            let open = !self.closed[frame.endpoint];
            let is_sent = left.is_none();
            if frame.completed > 1 || open && frame.completed != 1 {
                self.findings
                    .push(Finding::Completed(number, frame.completed));
            }
            if frame.given_up && is_sent {
                self.findings.push(Finding::SentAfterError(number));
            } else if !frame.given_up && !is_sent && (open || frame.completed != 0) {
                self.findings.push(Finding::Lost(number));
            }
        }
        for machine in [SDMA, SEND] {
            if !self.is_idle(machine) {
                let name = self.tables[machine].name;
                self.findings.push(Finding::Restless(name));
            }
        }
        let mut seen = std::collections::HashSet::new();
        self.findings.retain(|finding| seen.insert(finding.clone()));
        self.findings
    }
}
