//! The loop of one network thread.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::pace::{Next, Pace, PaceSettings};
use super::{QueueUser, SharedSend, Work, cpus};
use crate::nic::{NicError, ReceiveQueue};

/// Longest sleep; the stop flag is looked at this often.
const NAP: Duration = Duration::from_millis(50);
/// Longest sleep while the send ring is full or an engine runs in process.
const SHORT_NAP: Duration = Duration::from_millis(1);

/// What a network thread has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadReport {
    /// Its queue.
    pub queue: u8,
    /// The CPU that it is bound to; none if it could not be.
    pub cpu: Option<u32>,
    /// Frames that it has taken.
    pub frames: u64,
    /// Times that it has looked for frames.
    pub polls: u64,
    /// Of these, times that there was nothing to do.
    pub empty_polls: u64,
    /// Times that it has armed its queue and slept.
    pub naps: u64,
}

/// What a thread works with.
pub(super) struct NetworkThread<'a, U> {
    pub queue: &'a mut ReceiveQueue,
    pub user: &'a mut U,
    pub send: &'a SharedSend,
    pub pace: PaceSettings,
    pub cpu: usize,
    pub stop: &'a AtomicBool,
}

impl<U: QueueUser> NetworkThread<'_, U> {
    /// Serves the queue until it is told to stop.
    pub fn run(mut self, report: &mut ThreadReport) -> Result<(), NicError> {
        cpus::bind(self.cpu)?;
        report.cpu = u32::try_from(self.cpu).ok();
        self.queue.bound_to(self.cpu as u32);
        let mut pace = Pace::new(self.pace);
        while !self.stop.load(Ordering::Relaxed) {
            let user = &mut *self.user;
            let taken = self
                .queue
                .receive(pace.budget(), |frame| user.frame(frame))?;
            let work = self.user.work(self.send)?;
            report.frames += u64::from(taken);
            report.polls += 1;
            let busy = matches!(work, Work::Done(_));
            if taken == 0 && !busy {
                report.empty_polls += 1;
            }
            match pace.polled(taken, busy, Instant::now()) {
                Next::Poll => {}
                Next::PollIdle => std::thread::yield_now(),
                Next::Arm => {
                    report.naps += 1;
                    self.nap(work == Work::NoRoom)?;
                }
            }
        }
        Ok(())
    }

    /// Arms the queue and sleeps until somebody has something for this thread. If frames came
    /// before it was armed the card says so at once.
    fn nap(&mut self, full: bool) -> Result<(), NicError> {
        let limit = if full { SHORT_NAP } else { NAP };
        let limit = self.user.due().unwrap_or(limit).min(limit);
        self.queue.rearm()?;
        let Some([line, bell]) = self.queue.descriptors() else {
            // An engine in process runs while it is waited for.
            self.queue.wait(limit.min(SHORT_NAP))?;
            return Ok(());
        };
        let mut fds = vec![
            PollFd::from_borrowed_fd(line, PollFlags::IN),
            PollFd::from_borrowed_fd(bell, PollFlags::IN),
        ];
        let wanted = if full {
            PollFlags::empty()
        } else {
            PollFlags::IN
        };
        let own = self.user.descriptor();
        fds.extend(own.map(|own| PollFd::from_borrowed_fd(own, wanted)));
        let timeout =
            Timespec::try_from(limit).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(io::Error::from(error).into()),
        }
        let came = |at: usize| fds.get(at).map_or(PollFlags::empty(), PollFd::revents);
        if came(2).intersects(PollFlags::ERR | PollFlags::NVAL) {
            return Err(io::Error::other("what the thread works for is gone").into());
        }
        if !(came(0) | came(1)).is_empty() {
            self.queue.woken()?;
        }
        Ok(())
    }
}
