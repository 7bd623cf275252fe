//! The simulator as a target of gdb: both CPUs as threads, forward and backward.
//!
//! ```text
//!   gdb ── remote protocol ── serve: gdbstub ── Session ── channel ── RunControl, a Probe
//!                                                  │                    │ stops
//!                                                  └── starts ──► Workload: driver, card, wire
//! ```
//!
//! Time and traffic stop while gdb inspects the card: the run depends only on firmware and seed,
//! however long the user stays at a breakpoint. This makes reverse execution possible:
//! `reverse-continue` and `reverse-stepi` run the same simulation again from power-on up to an
//! earlier point. The new run does not repeat changes that gdb has made to memory or registers.
//!
//! | module | what |
//! | --- | --- |
//! | `arch` | the CPUs as gdb sees them |
//! | `stops` | breakpoints and watched memory |
//! | `run_control` | the simulation's side, on its own thread |
//! | `session` | runs, and the backward search |
//! | `target` | gdb's requests |
//! | [`workload`] | the traffic |

mod arch;
mod run_control;
mod session;
mod stops;
mod target;
pub mod workload;

use crate::machine::probe::Probe;
use gdbstub::conn::Connection;
use gdbstub::stub::state_machine::GdbStubStateMachine;
use gdbstub::stub::{DisconnectReason, GdbStub, GdbStubError, MultiThreadStopReason};
use run_control::News;
use session::{Lost, Session};
use std::collections::VecDeque;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use thiserror::Error;

/// What runs in the simulation: it gives the probe to its machine before anything runs,
/// does the same each time it is called, and calls
/// [`Machine::end_probe`](crate::Machine::end_probe) when it is over. It is over at the
/// first error of the driver once the probe has left.
pub type Workload = Arc<dyn Fn(Box<dyn Probe>) + Send + Sync>;

/// Why a session has ended otherwise than by gdb.
#[derive(Debug, Error)]
pub enum GdbError {
    /// The connection failed.
    #[error("the connection to gdb: {0}")]
    Connection(#[from] io::Error),
    /// The simulation ended without being asked to.
    #[error(transparent)]
    Lost(#[from] Lost),
    /// gdb and the stub do not understand each other.
    #[error("gdb's protocol: {0}")]
    Protocol(String),
}

/// What a session waits for.
enum Event {
    /// Bytes from gdb; none when it has gone.
    Bytes(Vec<u8>),
    /// From the run of this number.
    News(u64, News),
    /// The run of this number is over.
    Over(u64),
}

/// Serves one gdb until it leaves. The simulation begins when this is called, and stands at
/// its first instruction.
///
/// # Errors
/// [`GdbError`].
pub fn serve(
    input: impl Read + Send + 'static,
    output: impl Connection<Error = io::Error>,
    workload: Workload,
) -> Result<(), GdbError> {
    let (sender, events) = mpsc::channel();
    let mut session = Session::start(workload, sender.clone());
    // gdb may ask as soon as it has connected, so the card has to stand by then.
    loop {
        match events.recv().map_err(|_| Lost)? {
            Event::News(run, news) => {
                if session.hear(run, news).is_some() {
                    break;
                }
            }
            Event::Over(_) => return Err(Lost.into()),
            Event::Bytes(_) => {}
        }
    }
    std::thread::spawn(move || read(input, &sender));
    let stub = GdbStub::new(output);
    let mut bytes = VecDeque::new();
    let mut machine = stub.run_state_machine(&mut session).map_err(protocol)?;
    loop {
        machine = match machine {
            GdbStubStateMachine::Idle(idle) => match next(&session, &events, &mut bytes)? {
                Heard::Byte(byte) => idle.incoming_data(&mut session, byte).map_err(protocol)?,
                Heard::News(..) => idle.into(),
                Heard::Gone => return Ok(()),
            },
            GdbStubStateMachine::Running(running) => match next(&session, &events, &mut bytes)? {
                Heard::Byte(byte) => running
                    .incoming_data(&mut session, byte)
                    .map_err(protocol)?,
                Heard::News(run, news) => match session.hear(run, news) {
                    Some(reason) => running
                        .report_stop(&mut session, reason)
                        .map_err(protocol)?,
                    None => running.into(),
                },
                Heard::Gone => return Ok(()),
            },
            GdbStubStateMachine::CtrlCInterrupt(interrupted) => {
                session.interrupt();
                // The simulation reports when it has stopped.
                let reason: Option<MultiThreadStopReason<u32>> = None;
                interrupted
                    .interrupt_handled(&mut session, reason)
                    .map_err(protocol)?
            }
            GdbStubStateMachine::Disconnected(gone) => {
                return match gone.get_reason() {
                    DisconnectReason::TargetExited(_)
                    | DisconnectReason::TargetTerminated(_)
                    | DisconnectReason::Disconnect
                    | DisconnectReason::Kill => Ok(()),
                };
            }
        };
    }
}

/// What a session hears.
enum Heard {
    Byte(u8),
    News(u64, News),
    Gone,
}

fn next(
    session: &Session,
    events: &Receiver<Event>,
    bytes: &mut VecDeque<u8>,
) -> Result<Heard, GdbError> {
    loop {
        if let Some(byte) = bytes.pop_front() {
            return Ok(Heard::Byte(byte));
        }
        match events.recv().map_err(|_| Lost)? {
            Event::Bytes(none) if none.is_empty() => return Ok(Heard::Gone),
            Event::Bytes(some) => bytes.extend(some),
            Event::News(run, news) => return Ok(Heard::News(run, news)),
            Event::Over(run) if session.is_now(run) => return Err(Lost.into()),
            Event::Over(_) => {}
        }
    }
}

fn read(mut input: impl Read, events: &Sender<Event>) {
    let mut buffer = [0; 4096];
    loop {
        // A connection that fails has ended.
        let bytes = input.read(&mut buffer).unwrap_or(0);
        let ended = events.send(Event::Bytes(buffer[..bytes].to_vec())).is_err();
        if bytes == 0 || ended {
            return;
        }
    }
}

fn protocol(error: GdbStubError<Lost, io::Error>) -> GdbError {
    if error.is_target_error() {
        return error.into_target_error().map_or(Lost, |lost| lost).into();
    }
    if error.is_connection_error() {
        let source = error.into_connection_error();
        return source.map_or_else(|| Lost.into(), |(source, _)| source.into());
    }
    GdbError::Protocol(error.to_string())
}
