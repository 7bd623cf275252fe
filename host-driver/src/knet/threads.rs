//! Starts network threads, supervises them, and ends them.
//!
//! The caller's thread has control: it takes events, watches the send ring and lets the caller
//! serve visitors. If a thread fails, its queue fails with it: the card drops the frames of this
//! queue, and the other threads continue. If the card itself has failed, all threads end, so that
//! the caller can join the parts and recover.

use std::any::Any;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use thiserror::Error;

use super::pace::PaceSettings;
use super::thread::{NetworkThread, ThreadReport};
use super::{QueueUser, SendCosts, SharedSend, cpus};
use crate::nic::{Control, NicError, QueueParts, ReceiveQueue};
use crate::transport::Transport;

/// Time between two looks of the thread that has control.
const LOOK: Duration = Duration::from_millis(2);
/// Looks between two turns of that thread at the send ring.
const WATCH: u32 = 16;

/// Why network threads were not started.
#[derive(Debug, Error)]
pub enum KnetError {
    /// Fewer CPUs than queues.
    #[error(
        "{queues} queues want a CPU each, and {}",
        if *named {
            format!("{} were named", list(cpus))
        } else {
            format!(
                "this process may use {}: fewer queues, or name a CPU for each, one twice if \
                 it is to have two",
                list(cpus)
            )
        }
    )]
    TooFewCpus {
        /// How many queues.
        queues: usize,
        /// The CPUs were named; else they are all that there are.
        named: bool,
        /// The CPUs.
        cpus: Vec<usize>,
    },
    /// A CPU that this process may not use.
    #[error("CPU {cpu} is not one of {}", list(allowed))]
    NoSuchCpu {
        /// Its number.
        cpu: usize,
        /// Those that it may use.
        allowed: Vec<usize>,
    },
    /// The system does not say which CPUs there are.
    #[error("cannot learn which CPUs this process may use: {0}")]
    Cpus(#[source] io::Error),
}

fn list(cpus: &[usize]) -> String {
    let cpus: Vec<String> = cpus.iter().map(ToString::to_string).collect();
    cpus.join(", ")
}

/// How network threads work.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// The CPU of each thread; the first ones if none are named.
    pub cpus: Vec<usize>,
    /// Budget, deferral, busy polling.
    pub pace: PaceSettings,
}

impl Settings {
    /// The CPU of each of so many queues.
    ///
    /// # Errors
    /// [`KnetError`].
    pub fn cpus_of(&self, queues: usize) -> Result<Vec<usize>, KnetError> {
        let allowed = cpus::allowed().map_err(KnetError::Cpus)?;
        cpus::choose(queues, &self.cpus, &allowed)
    }
}

/// A thread that has ended before it was told to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Death {
    /// Its queue.
    pub queue: u8,
    /// Why.
    pub reason: String,
}

/// How the threads are.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// Those that have ended.
    pub deaths: &'a [Death],
    /// What turns at the send ring have cost.
    pub send: SendCosts,
}

/// What is left when all threads have ended.
#[derive(Debug)]
pub struct Served<T: Transport> {
    /// Control and queues, but for those whose thread has panicked.
    pub parts: QueueParts<T>,
    /// What each thread did.
    pub threads: Vec<ThreadReport>,
    /// The threads that ended before they were told to.
    pub deaths: Vec<Death>,
    /// What turns at the send ring have cost.
    pub send: SendCosts,
    /// The card's failure, or that of the last thread, if that ended it all.
    pub error: Option<NicError>,
}

/// A thread's end: its queue, what it did, how it went.
type End = (ReceiveQueue, ThreadReport, Result<(), NicError>);

/// Serves each queue by a thread of its own, bound to the CPU of the same place in `cpus`,
/// until `stop` is set or nothing can go on. There must be a CPU and a user for each queue;
/// queues beyond are left alone. `attend` is called now and then, by this thread.
pub fn serve<T: Transport, U: QueueUser>(
    parts: QueueParts<T>,
    users: &mut [U],
    cpus: &[usize],
    pace: PaceSettings,
    stop: &AtomicBool,
    mut attend: impl FnMut(&mut Control<T>, Progress<'_>),
) -> Served<T> {
    let QueueParts {
        mut control,
        send,
        receive,
    } = parts;
    let send = SharedSend::new(send);
    let quit = AtomicBool::new(false);
    let mut ends = Ends::default();
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for ((mut queue, user), cpu) in receive.into_iter().zip(users).zip(cpus) {
            let (send, quit, cpu) = (&send, &quit, *cpu);
            let number = queue.number();
            let body = move || {
                let mut report = ThreadReport {
                    queue: number,
                    ..ThreadReport::default()
                };
                let thread = NetworkThread {
                    queue: &mut queue,
                    user,
                    send,
                    pace,
                    cpu,
                    stop: quit,
                };
                let result = thread.run(&mut report);
                (queue, report, result)
            };
            let name = format!("knet{number}");
            match thread::Builder::new().name(name).spawn_scoped(scope, body) {
                Ok(thread) => threads.push((number, thread)),
                Err(error) => ends.died(number, NicError::Io(error)),
            }
        }
        for looks in 0_u32.. {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let over = threads.extract_if(.., |(_, thread)| thread.is_finished());
            over.for_each(|(number, thread)| ends.take(number, thread));
            let result = match looks.is_multiple_of(WATCH) {
                true => watch(&mut control, &send),
                false => control.take_events(),
            };
            if let Err(error) = result {
                ends.error = Some(error);
            }
            if threads.is_empty() {
                // Nobody is left.
                ends.error = ends.error.take().or(ends.last.take());
            }
            if ends.error.is_some() || threads.is_empty() {
                break;
            }
            let progress = Progress {
                deaths: &ends.deaths,
                send: send.costs(),
            };
            attend(&mut control, progress);
            thread::sleep(LOOK);
        }
        quit.store(true, Ordering::Relaxed);
        for (number, thread) in threads {
            ends.take(number, thread);
        }
    });
    let mut receive = ends.queues;
    receive.sort_by_key(ReceiveQueue::number);
    ends.threads.sort_by_key(|report| report.queue);
    let costs = send.costs();
    Served {
        parts: QueueParts {
            control,
            send: send.into_inner(),
            receive,
        },
        threads: ends.threads,
        deaths: ends.deaths,
        send: costs,
        error: ends.error,
    }
}

/// Takes events, and sees whether the card goes on sending. Threads take sent BDs back before
/// they send, so this is for the last ones of a burst.
fn watch<T: Transport>(control: &mut Control<T>, send: &SharedSend) -> Result<(), NicError> {
    control.take_events()?;
    let waiting = {
        let mut turn = send.turn();
        turn.reclaim()?;
        turn.waiting_for()
    };
    if control.watch(waiting)? {
        send.turn().excuse();
    }
    Ok(())
}

/// How threads have ended.
#[derive(Default)]
struct Ends {
    queues: Vec<ReceiveQueue>,
    threads: Vec<ThreadReport>,
    deaths: Vec<Death>,
    /// The card's failure.
    error: Option<NicError>,
    /// The failure of the thread that ended last.
    last: Option<NicError>,
}

impl Ends {
    /// A thread that is over, or was told to end.
    fn take(&mut self, number: u8, thread: ScopedJoinHandle<'_, End>) {
        match thread.join() {
            Ok((queue, report, Ok(()))) => {
                self.queues.push(queue);
                self.threads.push(report);
            }
            Ok((queue, report, Err(error))) => {
                self.threads.push(report);
                if error.is_recoverable() {
                    self.queues.push(queue);
                    self.error.get_or_insert(error);
                } else {
                    // Its queue goes with it.
                    self.died(number, error);
                }
            }
            Err(panic) => self.died(number, NicError::Io(io::Error::other(words(&*panic)))),
        }
    }

    fn died(&mut self, queue: u8, error: NicError) {
        let reason = error.to_string();
        self.deaths.push(Death { queue, reason });
        self.last = Some(error);
    }
}

/// What a thread panicked with.
fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("it panicked: {}", text.unwrap_or("without a word"))
}
