//! Events: taking them, and sleeping until there are some.

use std::io;
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use dti::bell;
use dti::control;
use dti::layout::{ENGINE_SLEEPS, Event as RawEvent, event_queue_armed};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::RecvFlags;
use rustix::net::sockopt::{self, Timeout};

use crate::{DusiError, Event, EventQueue, Ual};

/// How often a waiter looks between two looks at the clock.
const LOOKS: usize = 50;
/// Time-outs that the system keeps for a sleep; it waits for ever instead of longer, and a shorter
/// one would be none.
const KEPT: RangeInclusive<Duration> = Duration::from_micros(1)..=Duration::from_secs(1 << 20);

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
        if timeout.is_zero() {
            return Ok(false);
        }
        if self.look(queues, start, timeout.min(self.patience.time()))? {
            self.patience.paid();
            return Ok(true);
        }
        self.patience.in_vain();
        // Who would bring the event may wait for this processor: it is free from here on.
        let mut first = true;
        loop {
            let rest = timeout.saturating_sub(start.elapsed());
            if rest.is_zero() {
                return self.any(queues);
            }
            let lives = if !self.arm(queues)? {
                self.awake(queues);
                true
            } else if std::mem::take(&mut first) && KEPT.contains(&timeout) {
                // It has looked for so short a time that the whole time-out is as good as the rest.
                let lives = self.sleep(timeout).map_err(DusiError::Wait)?;
                self.awake(queues);
                lives
            } else {
                self.calls.sleeps += 1;
                poll(self.control.as_fd(), rest).map_err(DusiError::Wait)?;
                self.disarm(queues)
            };
            if self.any(queues)? {
                return Ok(true);
            }
            if !lives {
                return Err(DusiError::EngineEnded);
            }
        }
    }

    /// Looks for a time; true if there is an event.
    fn look(
        &self,
        queues: &[EventQueue],
        start: Instant,
        time: Duration,
    ) -> Result<bool, DusiError> {
        loop {
            for _ in 0..LOOKS {
                std::hint::spin_loop();
                if self.any(queues)? {
                    return Ok(true);
                }
            }
            if start.elapsed() >= time {
                return Ok(false);
            }
        }
    }

    /// Sleeps until a wake-up comes, and takes it: one system call. False if the engine has ended.
    fn sleep(&mut self, timeout: Duration) -> io::Result<bool> {
        if self.timeout != Some(timeout) {
            self.calls.others += 1;
            sockopt::set_socket_timeout(&self.control, Timeout::Recv, Some(timeout))?;
            self.timeout = Some(timeout);
        }
        self.calls.sleeps += 1;
        match rustix::net::recv(&self.control, &mut [0; 8][..], RecvFlags::empty()) {
            Ok((0, _)) => Ok(false),
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => Ok(true),
            Err(Errno::CONNRESET) => Ok(false),
            Err(error) => Err(error.into()),
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
        self.awake(queues);
        let (lives, calls) = control::take_wake_ups(self.control.as_fd());
        self.calls.others += calls;
        lives
    }

    fn awake(&self, queues: &[EventQueue]) {
        for queue in queues {
            bell::awake(&self.memory, event_queue_armed(usize::from(queue.0)));
        }
    }
}

/// Readable when an armed queue has got an event, and when the engine has ended.
impl AsFd for Ual {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }
}

fn poll(control: BorrowedFd<'_>, limit: Duration) -> io::Result<()> {
    // A limit beyond what the system knows is none.
    let limit = Timespec::try_from(limit).ok();
    let mut files = [PollFd::from_borrowed_fd(control, PollFlags::IN)];
    match rustix::event::poll(&mut files, limit.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
