//! The commands of queue mode.
//!
//! [`host_interface::queue::commands`]. CPU B reads the control block and stops fetching BDs of
//! the rings that are to close, CPU A validates the block, CPU B starts the new rings, and then
//! CPU A starts sorting frames. The command stays in its ring meanwhile:
//!
//! ```text
//! A: Open --> classic rings rest -> READ ............ judge -> OPENED .......... begin, event
//! B:                                read, answer               rings, answer
//! ```

use super::SideA;
use super::cross_call::{self, Call};
use crate::io::Busy;
use crate::memory::layout::{QUEUE_BLOCK, QUEUES};
use crate::memory::shared::CONTROL_READ;
use crate::path::buffer_fetch::queues::READ;
use crate::path::receive::queues::open::{self, Refused};
use crate::record::log::log_info;
use host_interface::event;
use host_interface::extension::{Extension, State};
use host_interface::queue::{BlockWord, QueueCommand, QueueResult};
use tigon2_hal::Bus;
use tigon2_hal::events::Dispatch;

/// The progress of a command in which CPU B has two parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// No part is done.
    Idle,
    /// The queues are closed; some of their BDs may still be in flight.
    Ended,
    /// CPU B has read the control block; the result of validating it.
    Judged(Result<u32, Refused>),
}

/// Carries out a command. Firmware without queues knows none of them; while the queues are closed,
/// "open" is the only one.
///
/// # Errors
/// [`Busy`] while CPU B does its part.
pub fn command<B: Dispatch>(a: &mut SideA<B>, command: QueueCommand) -> Result<(), Busy> {
    let known = QUEUES != 0 && (a.queues.is_open() || a.queue_stage != Stage::Idle);
    let result = match command {
        QueueCommand::Open if QUEUES != 0 => open(a)?,
        QueueCommand::Close if known => close(a)?,
        QueueCommand::UpdateClassifier if known => update(a)?,
        QueueCommand::SteerFlow | QueueCommand::ForgetFlow if known => {
            Err(Refused::of(QueueResult::NotSupported))
        }
        _ => {
            a.io.post_error(event::ERROR_INVALID_COMMAND);
            return Ok(());
        }
    };
    let Refused { result, index } = result.err().unwrap_or(Refused::of(QueueResult::Done));
    log_info!(
        "queue command {=u32:#x}: {=u32}",
        command as u32,
        result as u32
    );
    let [word, _] = command.answer().pack(result, index as u16);
    a.io.post_word(word);
    Ok(())
}

fn open<B: Dispatch>(a: &mut SideA<B>) -> Result<Result<(), Refused>, Busy> {
    if a.queue_stage == Stage::Idle {
        if a.queues.is_open() {
            return Ok(Err(Refused::of(QueueResult::AlreadyOpen)));
        }
        let state = a.io.bus.load(Extension::State.nic_address());
        if state == State::StackUp as u32 {
            return Ok(Err(Refused::of(QueueResult::StackUp)));
        }
        open::settle(&a.receive, &mut a.io)?;
        open::rest(&mut a.receive, &mut a.io);
        cross_call::call(a, Call::ReadQueues)?;
        let judged = if CONTROL_READ.get(&mut a.io.bus) == READ {
            open::prepare(&mut a.queues, &mut a.io)
        } else {
            Err(Refused::of(QueueResult::ControlBlock))
        };
        set_open(&mut a.io.bus, judged.unwrap_or(0));
        a.queue_stage = Stage::Judged(judged);
    }
    cross_call::call(a, Call::QueuesOpened)?;
    let Stage::Judged(judged) = core::mem::replace(&mut a.queue_stage, Stage::Idle) else {
        return Ok(Ok(()));
    };
    match judged {
        Ok(count) => {
            open::count_read(&mut a.io.bus);
            open::begin(&mut a.receive, &mut a.queues, &mut a.io, count);
        }
        Err(_) => open::resume(&mut a.receive, &mut a.io),
    }
    Ok(judged.map(|_| ()))
}

fn close<B: Dispatch>(a: &mut SideA<B>) -> Result<Result<(), Refused>, Busy> {
    if a.queue_stage == Stage::Idle {
        open::end(&mut a.receive, &mut a.queues, &mut a.io)?;
        set_open(&mut a.io.bus, 0);
        a.queue_stage = Stage::Ended;
    }
    if a.queue_stage == Stage::Ended {
        // Not needed for the classifier: no BD of a queue is fetched after it.
        cross_call::call(a, Call::ReadClassifier)?;
        a.queue_stage = Stage::Judged(Ok(0));
    }
    cross_call::call(a, Call::QueuesOpened)?;
    a.queue_stage = Stage::Idle;
    open::resume(&mut a.receive, &mut a.io);
    Ok(Ok(()))
}

fn update<B: Dispatch>(a: &mut SideA<B>) -> Result<Result<(), Refused>, Busy> {
    cross_call::call(a, Call::ReadClassifier)?;
    if CONTROL_READ.get(&mut a.io.bus) != READ {
        return Ok(Err(Refused::of(QueueResult::ControlBlock)));
    }
    Ok(open::update(&a.receive, &mut a.queues, &mut a.io))
}

/// Publishes the number of open queues to the host and to CPU B.
fn set_open<B: Bus>(bus: &mut B, count: u32) {
    bus.store(QUEUE_BLOCK + BlockWord::Open as u32, count);
}
