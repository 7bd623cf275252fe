//! A run of SDMA and SEND: read channel, TxPrd and `R[200]` of the card, step by step.
//!
//! ```text
//!   Step, Step, ... ──► SDMA, SEND ──► read channel, TX descriptors, TxPrd, R[200] of the card
//!                                              │
//!        Finding ◄── frames on the wire, completions
//! ```
//!
//! The wire cannot wait within a frame, so the card's bus is fast here: all parts of a frame arrive
//! while the MAC sends one of them.

mod actions;
mod bells;
mod channel_and_mac;
mod rest;
mod rows;
#[cfg(test)]
mod tests;

use super::walk::{Walk, Walked};
use super::{Diverged, Finding, Followed, Step, follow_all};
use crate::machine::Machine;
use crate::timing::Parameters;
use crate::workload::transmitter::Transmitter;
use frame_pipeline::Table;
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
struct World {
    walk: Walk,
    chip: Transmitter,
    memory: DmaMemory,
    parts: u32,
    frames: Vec<Frame>,
    next: usize,
    /// If doorbells matter: descriptors that were posted when CPU B looked, of each endpoint.
    looked: Option<[usize; 2]>,
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
}

/// Follows a run by the tables of SDMA and SEND, with frames of up to `parts` parts; then lets the
/// card come to rest.
///
/// # Errors
/// [`Diverged`] where the card cannot do what the run does.
pub fn replay(tables: [Table; 2], steps: &[Step], parts: u32) -> Result<Vec<Finding>, Diverged> {
    let mut world = World::new(tables, parts);
    let is_bell = |step: &Step| matches!(step, Step::Cleared(_) | Step::Looked(_));
    if steps.iter().any(is_bell) {
        world.listen();
    }
    follow_all(steps, |step| world.follow(step))?;
    world.rest();
    Ok(world.findings())
}

impl World {
    fn new(tables: [Table; 2], parts: u32) -> World {
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
            walk: Walk::new(tables, None),
            chip: Transmitter::new(machine),
            memory,
            parts,
            frames: Vec::new(),
            next: 0,
            looked: None,
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
        }
    }

    /// A step of the run.
    fn follow(&mut self, step: Step) -> Followed {
        match step {
            Step::Row { machine, row } => self.row(machine, row),
            Step::Posted {
                long,
                summed,
                endpoint,
            } => self.post(long, summed, endpoint),
            Step::Cleared(endpoint) => self.clear_bell(endpoint),
            Step::Looked(endpoint) => self.look(endpoint),
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
            _ => Err("it is none of the sending side"),
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
        self.ring(endpoint);
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
}
