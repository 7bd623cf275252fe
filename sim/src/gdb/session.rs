//! A session: a sequence of runs of the simulation, one for each change of direction.
//!
//! ```text
//!   reverse-continue at X:   power-on ───────► X - window ── checks each ──► X   found: F
//!                            power-on ───────────────► F                         stands at F
//! ```
//!
//! Nothing is recorded on the way. The same firmware with the same traffic takes the same path,
//! and up to the window the run has full speed. If a window contains no match, the next run uses a
//! window that begins earlier.

use super::run_control::{Halt, Mode, News, Order, RunControl, Why};
use super::stops::Stops;
use super::{Event, Workload};
use crate::machine::Machine;
use crate::machine::probe::Position;
use gdbstub::common::{Signal, Tid};
use gdbstub::stub::MultiThreadStopReason;
use gdbstub::target::ext::base::reverse_exec::ReplayLogPosition;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;
use thiserror::Error;
use tigon2_chip::Cpu;
use tigon2_model::CpuFault;

/// The first window of a search, in cycles, and how much longer the next one is.
const WINDOW: u64 = 20_000;
const LONGER: u64 = 32;

/// The simulation has ended without being asked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the simulation is gone")]
pub struct Lost;

/// How to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    Forward(Option<Cpu>),
    Backward(Option<Cpu>),
}

/// A run of the simulation.
struct Run {
    orders: Sender<Order>,
    thread: JoinHandle<()>,
}

/// A search for the last stop before a position.
struct Search {
    step: Option<Cpu>,
    until: Position,
    window: u64,
}

/// A simulation that gdb stops, looks into and lets go on, both ways.
pub struct Session {
    workload: Workload,
    events: Sender<Event>,
    run: Option<Run>,
    runs: u64,
    interrupt: Arc<AtomicBool>,
    /// What to stop at.
    pub(super) stops: Stops,
    pub(super) plan: Plan,
    /// The CPU whose registers gdb has read last: that of the selected thread.
    pub(super) selected: Cpu,
    /// Where it stands, and where the first instruction stood.
    at: Position,
    first: Option<Position>,
    search: Option<Search>,
    /// What to say on arrival.
    arrival: Option<MultiThreadStopReason<u32>>,
    /// How what runs on the card has ended.
    pub(super) end: Option<String>,
}

/// The thread by which gdb knows a CPU.
pub(super) fn thread_of(cpu: Cpu) -> Tid {
    Tid::MIN.saturating_add(cpu.index())
}

/// The CPU that gdb knows by a thread.
pub(super) fn cpu_of(thread: Tid) -> Cpu {
    if thread == thread_of(Cpu::B) {
        Cpu::B
    } else {
        Cpu::A
    }
}

impl Session {
    /// Starts the simulation; it stands at its first instruction once the event says so.
    pub(super) fn start(workload: Workload, events: Sender<Event>) -> Session {
        let mut session = Session {
            workload,
            events,
            run: None,
            runs: 0,
            interrupt: Arc::default(),
            stops: Stops::default(),
            plan: Plan::Forward(None),
            selected: Cpu::A,
            at: Position::default(),
            first: None,
            search: None,
            arrival: None,
            end: None,
        };
        session.restart(Mode::To(Position::default()));
        session
    }

    /// Ends the run, if there is one, and begins another one.
    fn restart(&mut self, mode: Mode) {
        self.leave();
        self.runs += 1;
        let number = self.runs;
        let (orders, receiver) = mpsc::channel();
        let events = self.events.clone();
        // A session that is gone needs no news.
        let report = move |news| drop(events.send(Event::News(number, news)));
        let probe = RunControl::new(receiver, report, self.interrupt.clone(), mode);
        let (workload, events) = (self.workload.clone(), self.events.clone());
        let thread = std::thread::spawn(move || {
            workload(Box::new(probe));
            drop(events.send(Event::Over(number)));
        });
        self.run = Some(Run { orders, thread });
    }

    /// Whether this is the run that is looked at, and none that was left.
    pub(super) fn is_now(&self, run: u64) -> bool {
        run == self.runs
    }

    /// Ends the run.
    pub(super) fn leave(&mut self) {
        if let Some(Run { orders, thread }) = self.run.take() {
            // The probe detects that there are no more orders.
            drop(orders);
            // A panic has been reported by its thread.
            let _ = thread.join();
        }
    }

    fn order(&self, order: Order) -> Result<(), Lost> {
        let run = self.run.as_ref().ok_or(Lost)?;
        run.orders.send(order).map_err(|_| Lost)
    }

    /// Has something done with the machine while it stands.
    pub(super) fn ask<R: Send + 'static>(
        &self,
        what: impl FnOnce(&mut Machine) -> R + Send + 'static,
    ) -> Result<R, Lost> {
        let (answer, answers) = mpsc::channel();
        self.order(Order::Look(Box::new(move |machine| {
            // Who asked waits for it.
            drop(answer.send(what(machine)));
        })))?;
        answers.recv().map_err(|_| Lost)
    }

    /// Goes on as planned.
    pub(super) fn go(&mut self) -> Result<(), Lost> {
        match self.plan {
            Plan::Forward(step) => self.order(Order::Go(Mode::Run(self.stops.clone(), step))),
            Plan::Backward(step) => {
                self.search(Search {
                    step,
                    until: self.at,
                    window: WINDOW,
                });
                Ok(())
            }
        }
    }

    /// Asks the simulation to stop as soon as it can.
    pub(super) fn interrupt(&self) {
        self.interrupt.store(true, Ordering::Relaxed);
    }

    fn search(&mut self, search: Search) {
        self.restart(Mode::Search {
            stops: match search.step {
                None => self.stops.clone(),
                Some(_) => Stops::default(),
            },
            step: search.step,
            from: search.until.cycle.saturating_sub(search.window),
            until: search.until,
        });
        self.search = Some(search);
    }

    fn go_to(&mut self, at: Position, reason: MultiThreadStopReason<u32>) {
        self.arrival = Some(reason);
        self.restart(Mode::To(at));
    }

    /// Takes the result of a run; returns the stop to report to gdb, if any.
    pub(super) fn hear(&mut self, run: u64, news: News) -> Option<MultiThreadStopReason<u32>> {
        if !self.is_now(run) {
            return None;
        }
        match (news, self.search.take()) {
            (News::Stopped(halt), None) => {
                self.at = halt.at;
                if self.first.is_none() && halt.at.cpu.is_some() {
                    self.first = Some(halt.at);
                }
                Some(self.reason(halt))
            }
            // Ctrl-C during a search: back to where it began.
            (News::Stopped(_), Some(search)) => {
                self.go_to(search.until, signal(search.until, Signal::SIGINT));
                None
            }
            (News::Searched(Some(halt)), Some(search)) => {
                let at = halt.at;
                let reason = self.reason(halt);
                if at == search.until {
                    return Some(reason);
                }
                self.go_to(at, reason);
                None
            }
            (News::Searched(None), Some(search)) => {
                if search.window < search.until.cycle {
                    let window = search.window.saturating_mul(LONGER);
                    self.search(Search { window, ..search });
                } else {
                    let begin = MultiThreadStopReason::ReplayLog {
                        tid: Some(thread_of(Cpu::A)),
                        pos: ReplayLogPosition::Begin,
                    };
                    self.go_to(self.first.unwrap_or_default(), begin);
                }
                None
            }
            (News::Searched(_), None) => None,
        }
    }

    fn reason(&mut self, halt: Halt) -> MultiThreadStopReason<u32> {
        self.end = None;
        match halt.why {
            Why::Arrived => self
                .arrival
                .take()
                .unwrap_or_else(|| signal(halt.at, Signal::SIGTRAP)),
            Why::Step => signal(halt.at, Signal::SIGTRAP),
            Why::Break(cpu) => MultiThreadStopReason::SwBreak(thread_of(cpu)),
            Why::Watch(cpu, watch) => MultiThreadStopReason::Watch {
                tid: thread_of(cpu),
                kind: watch.kind,
                addr: watch.address,
            },
            Why::Fault(cpu, fault) => MultiThreadStopReason::SignalWithThread {
                tid: thread_of(cpu),
                signal: match fault {
                    CpuFault::Unaligned { .. } | CpuFault::BusError { .. } => Signal::SIGBUS,
                    CpuFault::ReservedInstruction => Signal::SIGILL,
                    _ => Signal::SIGTRAP,
                },
            },
            Why::Interrupt => signal(halt.at, Signal::SIGINT),
            Why::End(how) => {
                self.end = Some(how);
                MultiThreadStopReason::ReplayLog {
                    tid: Some(thread_of(Cpu::A)),
                    pos: ReplayLogPosition::End,
                }
            }
        }
    }
}

fn signal(at: Position, signal: Signal) -> MultiThreadStopReason<u32> {
    MultiThreadStopReason::SignalWithThread {
        tid: thread_of(at.cpu.unwrap_or(Cpu::A)),
        signal,
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.leave();
    }
}
