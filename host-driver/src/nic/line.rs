//! One interrupt for several waiters.
//!
//! The chip has one line, and one driver acknowledges it: mailbox 0 = 0, unmask, read back.
//! When control and queues are served by threads of their own, each of them waits for the
//! line, and whichever gets the interrupt acknowledges it for all and then rings the others'
//! bells:
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
//! No wake-up is lost. What the card has put into a ring before the acknowledgement reached
//! it, every waiter finds: each looks at its rings after it took its bell, and the bells ring
//! after the acknowledgement. What the card puts there later raises the line again. A bell
//! stays rung until its waiter takes it, so it does not matter what that waiter was about.
//! Only who has consumed the interrupt acknowledges: the line is masked until then, so two
//! acknowledgements of one interrupt, of which the second would hide the next one, cannot be.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use host_interface::bar;

use super::config::Notice;
use super::counters::Counts;
use super::error::NicError;
use crate::transport::{Bell, Port, TransportError, Vector};

/// Longest sleep of a polling driver between two looks.
pub(super) const POLL_PAUSE: Duration = Duration::from_micros(50);

/// An interrupt and the bells of all who wait for it.
struct Line {
    vector: Vector,
    bells: Vec<Bell>,
}

/// One who waits for an interrupt.
pub(super) struct Waiter {
    line: Arc<Line>,
    place: usize,
    notice: Notice,
    counts: Arc<Counts>,
}

impl Waiter {
    /// So many waiters for one interrupt. All bells ring: an interrupt may have been taken
    /// before, and each waiter looks once.
    pub fn all<const COUNT: usize>(
        vector: Vector,
        notice: Notice,
        counts: &Arc<Counts>,
    ) -> io::Result<[Self; COUNT]> {
        let bells: io::Result<Vec<Bell>> = (0..COUNT).map(|_| Bell::new()).collect();
        let line = Arc::new(Line {
            vector,
            bells: bells?,
        });
        line.bells.iter().for_each(Bell::ring);
        Ok(std::array::from_fn(|place| Self {
            line: line.clone(),
            place,
            notice,
            counts: counts.clone(),
        }))
    }

    /// True if both wait for the same interrupt of the same card.
    pub fn is_beside(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.line, &other.line)
    }

    /// The interrupt that it waits for.
    pub fn vector(&self) -> Vector {
        self.line.vector
    }

    fn bell(&self) -> Result<&Bell, TransportError> {
        let bell = self.line.bells.get(self.place);
        bell.ok_or(TransportError::NoVector(self.line.vector))
    }

    /// The descriptors to poll: the interrupt's and the bell's.
    pub fn descriptors<'a>(&'a self, port: &'a dyn Port) -> Option<[BorrowedFd<'a>; 2]> {
        let line = port.vector_fd(self.line.vector)?;
        Some([line, self.bell().ok()?.as_fd()])
    }

    /// Waits until the card may have something for this waiter: an interrupt that it or
    /// another has taken and acknowledged, or, when polling, what `has_work` finds.
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
                    // An in-process engine gets its time in here.
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
        if !port.wait(self.line.vector, timeout, bell)? {
            return Ok(bell.take());
        }
        self.counts.interrupt();
        let acknowledged = acknowledge(port, self.line.vector);
        // The others are woken also when the way to the card has failed: each of them must
        // find that out.
        for (place, bell) in self.line.bells.iter().enumerate() {
            if place != self.place {
                bell.ring();
            }
        }
        acknowledged?;
        Ok(true)
    }
}

/// Takes the interrupt away on the card and lets the next one through.
fn acknowledge(port: &mut dyn Port, vector: Vector) -> Result<(), TransportError> {
    port.write(bar::MAILBOX_HOST_INTERRUPT, 0)?;
    port.unmask(vector)?;
    // As in `Nic::acknowledge`: the card must have it before anybody looks at a ring.
    port.read(bar::MAILBOX_HOST_INTERRUPT)?;
    Ok(())
}
