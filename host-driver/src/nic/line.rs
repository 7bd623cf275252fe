//! One interrupt line for several waiters.
//!
//! The chip has one line, and one thread acknowledges it: mailbox 0 = 0, unmask, read back. When
//! control and queues have their own threads, all of them wait for the line. The thread that gets
//! the interrupt acknowledges it for all and then rings the others' bells:
//!
//! ```text
//!  waiter 0        waiter 1        waiter 2
//!  poll line, bell poll line, bell (looks at its rings)
//!      |               |               |
//!      +---- line -----+               |      the card raises its interrupt
//!      | consumed      | EAGAIN        |      one read of the eventfd succeeds
//!      | mailbox 0, unmask, read back  |      from here on the card raises the next
//!      | ring 1, 2     |               |
//!      |               | bell taken    |
//!      |               | looks         | poll: its bell rings already
//! ```
//!
//! No wake-up is lost. Every waiter finds what the card has put into a ring before the
//! acknowledgement arrived, because each reads its rings after it took its bell, and the bells
//! ring after the acknowledgement. Anything that the card adds later raises the line again. A bell
//! stays rung until its waiter takes it, so it does not matter what that waiter was doing. Only
//! the thread that consumed the interrupt acknowledges it, and the line is masked until then, so
//! an interrupt is never acknowledged twice; a second acknowledgement would hide the next
//! interrupt.
//!
//! In queue mode a receive queue has a status line, written before its interrupts, which counts
//! them. The acknowledging thread wakes only those queues whose count has changed.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use host_interface::bar;

use super::config::Notice;
use super::counters::Counts;
use super::error::NicError;
use super::region::Table;
use crate::transport::{Bell, Port, TransportError, Vector};

/// Longest sleep of a polling driver between two checks.
pub(super) const POLL_PAUSE: Duration = Duration::from_micros(50);

/// An interrupt and its waiters.
struct Line {
    vector: Vector,
    places: Vec<Place>,
}

/// A waiter, as the others see it.
struct Place {
    bell: Bell,
    /// None: any interrupt may be for it.
    watch: Option<Watch>,
}

/// The status line of a queue: its second word counts the interrupts raised for that queue.
///
/// The count only increases, so unlike an index it cannot be the same again after a whole ring.
pub(super) struct Watch {
    status: Table<4>,
    /// The count for which the bell was last rung.
    seen: AtomicU32,
}

impl Watch {
    /// Watches a queue without an interrupt so far.
    pub fn new(status: Table<4>) -> Self {
        let seen = AtomicU32::new(0);
        Self { status, seen }
    }

    /// Whether an interrupt was raised for the queue since the last call. If two acknowledgements
    /// call at the same time, one of them gets true.
    fn has_come(&self) -> bool {
        let Ok([_, interrupts, ..]) = self.status.read(0) else {
            return true;
        };
        self.seen.swap(interrupts, Ordering::AcqRel) != interrupts
    }
}

/// A waiter for an interrupt.
pub(super) struct Waiter {
    line: Arc<Line>,
    place: usize,
    notice: Notice,
    counts: Arc<Counts>,
}

impl Waiter {
    /// A waiter for one interrupt for each watch. All bells ring at first: an interrupt may have
    /// been taken before, so each waiter checks once.
    pub fn all(
        vector: Vector,
        notice: Notice,
        counts: &Arc<Counts>,
        watches: impl IntoIterator<Item = Option<Watch>>,
    ) -> io::Result<impl Iterator<Item = Self>> {
        let mut places = Vec::new();
        for watch in watches {
            let bell = Bell::new()?;
            bell.ring();
            places.push(Place { bell, watch });
        }
        let count = places.len();
        let line = Arc::new(Line { vector, places });
        let counts = counts.clone();
        Ok((0..count).map(move |place| Self {
            line: line.clone(),
            place,
            notice,
            counts: counts.clone(),
        }))
    }

    /// Whether both wait for the same interrupt of the same card.
    pub fn is_beside(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.line, &other.line)
    }

    /// The interrupt that it waits for.
    pub fn vector(&self) -> Vector {
        self.line.vector
    }

    fn bell(&self) -> Result<&Bell, TransportError> {
        let place = self.line.places.get(self.place);
        let place = place.ok_or(TransportError::NoVector(self.line.vector))?;
        Ok(&place.bell)
    }

    /// Takes the bell; true if it was rung.
    pub fn take_bell(&self) -> bool {
        self.bell().is_ok_and(Bell::take)
    }

    /// The descriptors to poll: the interrupt's and the bell's.
    pub fn descriptors<'a>(&'a self, port: &'a dyn Port) -> Option<[BorrowedFd<'a>; 2]> {
        let line = port.vector_fd(self.line.vector)?;
        Some([line, self.bell().ok()?.as_fd()])
    }

    /// Waits until the card may have something for this waiter: an interrupt that it or another
    /// thread has acknowledged, or, when polling, until `has_work` returns true.
    pub fn wait(
        &self,
        port: &mut dyn Port,
        timeout: Duration,
        has_work: impl Fn() -> Result<bool, NicError>,
    ) -> Result<bool, NicError> {
        port.flush()?;
        match self.notice {
            Notice::Interrupt => self.wait_interrupt(port, timeout),
            Notice::Polling => {
                let start = Instant::now();
                loop {
                    if has_work()? {
                        return Ok(true);
                    }
                    let left = timeout.saturating_sub(start.elapsed());
                    if left.is_zero() {
                        return Ok(false);
                    }
                    // An in-process engine runs during this wait.
                    port.wait(self.line.vector, left.min(POLL_PAUSE), self.bell()?)?;
                }
            }
        }
    }

    fn wait_interrupt(&self, port: &mut dyn Port, timeout: Duration) -> Result<bool, NicError> {
        let bell = self.bell()?;
        if bell.take() {
            return Ok(true);
        }
        let start = Instant::now();
        let mut left = timeout;
        loop {
            if !port.wait(self.line.vector, left, bell)? {
                return Ok(bell.take());
            }
            if self.share_interrupt(port)? {
                return Ok(true);
            }
            // The interrupt was for others.
            left = timeout.saturating_sub(start.elapsed());
        }
    }

    /// Acknowledges an interrupt and rings the bells of the waiters that it may be for; true if it
    /// may be for this one.
    fn share_interrupt(&self, port: &mut dyn Port) -> Result<bool, NicError> {
        self.counts.interrupt();
        let acknowledged = acknowledge(port, self.line.vector);
        let mut own = false;
        for (number, place) in self.line.places.iter().enumerate() {
            // If the transport has failed, all are woken: each must find that out.
            let has_come = place.watch.as_ref().is_none_or(Watch::has_come);
            if number == self.place {
                own = has_come;
            } else if has_come || acknowledged.is_err() {
                place.bell.ring();
            }
        }
        acknowledged?;
        Ok(own)
    }
}

/// Deasserts the interrupt on the card and unmasks the next one.
fn acknowledge(port: &mut dyn Port, vector: Vector) -> Result<(), TransportError> {
    port.write(bar::MAILBOX_HOST_INTERRUPT, 0)?;
    port.unmask(vector)?;
    // As in `Nic::acknowledge`: the card must have received it before anything reads a ring.
    port.read(bar::MAILBOX_HOST_INTERRUPT)?;
    Ok(())
}
