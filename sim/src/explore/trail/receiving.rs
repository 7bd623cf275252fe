//! A run of RECV and RDMA: receiver, RxCon and write channel of the card, step by step.
//!
//! ```text
//!   Step, Step, ... ──► wire ──► receive buffer, R[C4], RX descriptors, attention
//!        │                                     │
//!        └─► RECV, RDMA ──► write ring, RxCon ─┴─► buffers, completions, counters ──► Finding
//! ```
//!
//! A frame is as long as the run makes it, and ends as the run says; so the run is read ahead. The
//! wire cannot wait within a frame and may be ahead of the run. CPU A looks at it, at a part that
//! has come or at its end, when the run says so.

mod actions;
mod channel;
mod jobs;
mod plan;
mod process;
mod rest;
mod rows;
#[cfg(test)]
mod tests;
mod wire;

use super::walk::{Walk, Walked};
use super::{Diverged, Finding, Followed, Step, follow_all};
use crate::machine::Machine;
use crate::timing::Parameters;
use crate::workload::receiver::Receiver;
use frame_pipeline::Table;
use jobs::{Ended, Job};
use plan::Plan;
use process::Process;
use std::collections::VecDeque;
use tigon2_model::Board;

const RECV: usize = 0;
const RDMA: usize = 1;
/// Bytes of a part, and of what comes behind the last one.
const PART: u32 = 2048;
const TAIL: u32 = 64;
/// Bytes behind the last part of a frame that is given up: its end has to wait for the run.
const LONG_TAIL: u32 = 0x4000;
/// Bytes behind a part that have come when it counts as there.
const AHEAD: u32 = 8;
/// Turns of so many cycles in which anything comes to its end.
const TURN: u64 = 16;
const TURNS: usize = 20_000;
/// Steps in which the card comes to rest.
const REST: usize = 1000;

/// A frame of the wire.
struct Frame {
    plan: Plan,
    /// Its place in NIC memory.
    start: u32,
    /// Parts of it that have come.
    parts: u32,
    ended: bool,
    accounts: Vec<Account>,
}

/// What CPU A says has become of a frame that is in no buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Account {
    /// Its buffer was completed with an error.
    Failed,
    /// It was counted as refused.
    Refused,
    /// It was counted as one without a buffer.
    NoBuffer,
}

/// The room of a frame, in the order of the receive buffer.
struct Room {
    frame: usize,
    end: u32,
    free: bool,
}

/// A transfer that has not begun.
struct Transfer {
    frame: usize,
    local: u32,
    slot: usize,
    /// Bytes in front of it in the buffer.
    offset: u32,
    length: u32,
    frees: bool,
    /// The buffer's completion, of so many bytes, is queued behind it.
    completes: Option<u32>,
}

/// All of it. The fields bear the names of the model's variables.
struct World {
    walk: Walk,
    chip: Receiver,
    process: Process,
    plans: VecDeque<Plan>,
    frames: Vec<Frame>,
    /// The frame that comes in, and what RECV has seen of it.
    coming: Option<usize>,
    followed: bool,
    grown: bool,
    gave_up: bool,
    /// Frames whose descriptors were not taken, and what the last one that was said.
    ended: VecDeque<usize>,
    ended_frame: Option<Ended>,
    whole_frames: VecDeque<Ended>,
    newest: Option<Ended>,
    rooms: Vec<Room>,
    /// RDMA's frames, the oldest one first.
    jobs: VecDeque<Job>,
    last_job: Option<Job>,
    queued: VecDeque<Transfer>,
    wrote: usize,
    write_failed: bool,
    /// Buffers of each endpoint that are posted.
    buffers: [VecDeque<usize>; 2],
    closing: Option<usize>,
    closed: [bool; 2],
}

/// Follows a run by the tables of RECV and RDMA, of which one may serve its least urgent event
/// first; then lets the card come to rest.
///
/// # Errors
/// [`Diverged`] where the card cannot do what the run does.
pub fn replay(
    tables: [Table; 2],
    reversed: Option<usize>,
    steps: &[Step],
) -> Result<Vec<Finding>, Diverged> {
    let mut world = World::new(Walk::new(tables, reversed), plan::plans(steps));
    follow_all(steps, |step| world.follow(step))?;
    world.rest();
    Ok(world.findings())
}

impl World {
    fn new(walk: Walk, plans: VecDeque<Plan>) -> World {
        let parameters = Parameters {
            pci_rd: 1,
            pci_wr: 1,
            jit: 0.0,
            fc: false,
            ..Parameters::default()
        };
        let process = Process::new();
        let mut machine = Machine::timed(Board::default(), parameters, 1);
        machine.map(process.memory());
        World {
            walk,
            chip: Receiver::new(machine),
            process,
            plans,
            frames: Vec::new(),
            coming: None,
            followed: false,
            grown: false,
            gave_up: false,
            ended: VecDeque::new(),
            ended_frame: None,
            whole_frames: VecDeque::new(),
            newest: None,
            rooms: Vec::new(),
            jobs: VecDeque::new(),
            last_job: None,
            queued: VecDeque::new(),
            wrote: 0,
            write_failed: false,
            buffers: Default::default(),
            closing: None,
            closed: [false; 2],
        }
    }

    /// A step of the run.
    fn follow(&mut self, step: Step) -> Followed {
        match step {
            Step::Row { machine, row } => match machine.checked_sub(2) {
                Some(machine) => self.row(machine, row),
                None => Err("it is no row of the receiving side"),
            },
            Step::Buffer(endpoint) => {
                let slot = self.process.post(endpoint)?;
                self.buffers[endpoint].push_back(slot);
                Ok(())
            }
            Step::Closing => {
                self.closing = Some(1);
                Ok(())
            }
            Step::Incoming(_) => self.begin(),
            Step::Part => self.grow(),
            Step::Received { .. } => self.end(),
            Step::GivenUp => self.give_up(),
            Step::Written => self.write(),
            Step::Unwritten => self.fail(),
            _ => Err("it is none of the receiving side"),
        }
    }

    /// Lets time pass until something holds.
    fn until(&mut self, mut holds: impl FnMut(&mut Receiver) -> bool) -> bool {
        for _ in 0..TURNS {
            if holds(&mut self.chip) {
                return true;
            }
            self.chip.machine.run(TURN);
        }
        false
    }
}
