//! Events: taking them, and sleeping until there are some.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use dti::bell;
use dti::control;
use dti::layout::{ENGINE_SLEEPS, Event as RawEvent, event_queue_armed};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use crate::{DusiError, Event, EventQueue, Ual};

/// How often a waiter lets other threads run before it sleeps.
const YIELDS: usize = 5;
/// How often it looks before each time: some microseconds.
const LOOKS: usize = 200;

impl Ual {
    /// Events that wait in a queue: one load.
    ///
    /// # Errors
    /// [`DusiError::Queue`] if the engine wrote nonsense.
    pub fn number_of_events(&self, queue: EventQueue) -> Result<usize, DusiError> {
        let queue = self.queues.get(usize::from(queue.0));
        let queue = queue.ok_or(DusiError::Exhausted("event queue"))?;
        Ok(queue.waiting(&self.memory)?)
    }

    /// The oldest event of a queue, if there is one; never waits.
    ///
    /// # Errors
    /// [`DusiError::Queue`] if the engine wrote nonsense.
    pub fn done(&mut self, queue: EventQueue) -> Result<Option<Event>, DusiError> {
        let queue = self.queues.get_mut(usize::from(queue.0));
        let queue = queue.ok_or(DusiError::Exhausted("event queue"))?;
        let Some(entry) = queue.pop(&self.memory)? else {
            return Ok(None);
        };
        if bell::must_wake_for_room(&self.memory, ENGINE_SLEEPS) {
            self.ring()?;
        }
        Ok(Some(self.judge(RawEvent::of(entry))))
    }

    /// All events that there are; waits for the first one, at most `timeout`.
    ///
    /// # Errors
    /// [`DusiError::EngineEnded`] if none will come any more; [`DusiError::Queue`] if the engine
    /// wrote nonsense.
    pub fn wait_all(
        &mut self,
        queue: EventQueue,
        timeout: Duration,
    ) -> Result<Vec<Event>, DusiError> {
        let mut events = Vec::new();
        if self.wait_any(&[queue], timeout)? {
            while let Some(event) = self.done(queue)? {
                events.push(event);
            }
        }
        Ok(events)
    }

    /// Waits until one of the queues has an event, at most `timeout`; false if none has.
    ///
    /// # Errors
    /// As [`Ual::wait_all`].
    pub fn wait_any(
        &mut self,
        queues: &[EventQueue],
        timeout: Duration,
    ) -> Result<bool, DusiError> {
        if self.any(queues)? {
            return Ok(true);
        }
        let start = Instant::now();
        let mut yields = 0;
        loop {
            if start.elapsed() >= timeout {
                return self.any(queues);
            }
            if yields < YIELDS {
                yields += 1;
                for _ in 0..LOOKS {
                    std::hint::spin_loop();
                    if self.any(queues)? {
                        return Ok(true);
                    }
                }
                self.calls.yields += 1;
                std::thread::yield_now();
                if self.any(queues)? {
                    return Ok(true);
                }
                continue;
            }
            if self.arm(queues)? {
                self.calls.sleeps += 1;
                let rest = timeout.saturating_sub(start.elapsed());
                sleep(self.control.as_fd(), rest).map_err(DusiError::Wait)?;
            }
            let lives = self.disarm(queues);
            if self.any(queues)? {
                return Ok(true);
            }
            if !lives {
                return Err(DusiError::EngineEnded);
            }
        }
    }

    fn any(&self, queues: &[EventQueue]) -> Result<bool, DusiError> {
        for queue in queues {
            if self.number_of_events(*queue)? > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Lets [`Ual::as_fd`] become readable when one of the queues gets an event. True if none has
    /// one now, so that the caller may sleep.
    ///
    /// # Errors
    /// [`DusiError::Queue`] if the engine wrote nonsense.
    pub fn arm(&mut self, queues: &[EventQueue]) -> Result<bool, DusiError> {
        for queue in queues {
            bell::announce(&self.memory, event_queue_armed(usize::from(queue.0)));
        }
        Ok(!self.any(queues)?)
    }

    /// The caller is awake: takes the wake-ups. False if the engine has ended.
    pub fn disarm(&mut self, queues: &[EventQueue]) -> bool {
        for queue in queues {
            bell::awake(&self.memory, event_queue_armed(usize::from(queue.0)));
        }
        control::take_wake_ups(self.control.as_fd())
    }
}

/// Readable when an armed queue has got an event, and when the engine has ended.
impl AsFd for Ual {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }
}

fn sleep(control: BorrowedFd<'_>, limit: Duration) -> std::io::Result<()> {
    // A limit beyond what the system knows is none.
    let limit = Timespec::try_from(limit).ok();
    let mut files = [PollFd::from_borrowed_fd(control, PollFlags::IN)];
    match rustix::event::poll(&mut files, limit.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
