//! How applications come and go, and what wakes a sleeping engine.
//!
//! One epoll descriptor watches the listening socket, the applications' control sockets and, for
//! their edges, the doorbells. So a sleeping engine waits for two descriptors: this and the wire's.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use dti::bell::Doorbell;
use dti::control::{self, Answer, Heard};
use dti::layout::Sizes;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

/// Connections that have not said yet what they want.
const MOST_STRANGERS: usize = 32;
/// How long they have for it.
const PATIENCE: Duration = Duration::from_secs(1);
/// Tokens of the epoll descriptor: doorbells and the listening socket only wake.
const WAKES: u64 = u64::MAX;
/// Someone said something.
const STRANGER: u64 = u64::MAX - 1;

/// The door.
pub(super) struct Door {
    epoll: OwnedFd,
    listener: Option<(OwnedFd, PathBuf)>,
    strangers: Vec<(OwnedFd, Instant)>,
}

impl Door {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            listener: None,
            strangers: Vec::new(),
        })
    }

    /// Lets applications attach at a path.
    pub(super) fn listen(&mut self, path: &Path) -> io::Result<()> {
        let socket = control::listen(path)?;
        self.watch(socket.as_fd(), WAKES, EventFlags::IN)?;
        self.listener = Some((socket, path.to_owned()));
        Ok(())
    }

    fn watch(&self, file: BorrowedFd<'_>, token: u64, flags: EventFlags) -> io::Result<()> {
        epoll::add(&self.epoll, file, EventData::new_u64(token), flags)?;
        Ok(())
    }

    /// Watches an application's sockets.
    pub(super) fn enter(
        &self,
        number: usize,
        control: BorrowedFd<'_>,
        doorbell: &Doorbell,
    ) -> io::Result<()> {
        let edges = EventFlags::IN | EventFlags::ET;
        self.watch(doorbell.as_fd(), WAKES, edges)?;
        self.watch(control, number as u64, EventFlags::IN | EventFlags::RDHUP)
    }

    /// Watches them no more. The doorbell would stay: the application has a handle of it.
    pub(super) fn leave(&self, control: BorrowedFd<'_>, doorbell: &Doorbell) {
        let _ = epoll::delete(&self.epoll, doorbell);
        let _ = epoll::delete(&self.epoll, control);
    }

    /// Takes what has happened, without waiting: applications whose control socket has something
    /// to say.
    pub(super) fn look(&mut self) -> io::Result<Vec<usize>> {
        const ROOM: epoll::Event = epoll::Event {
            flags: EventFlags::empty(),
            data: EventData::new_u64(0),
        };
        let mut events = [ROOM; 64];
        let now = Timespec::default();
        let count = match epoll::wait(&self.epoll, &mut events[..], Some(&now)) {
            Ok(count) => count,
            Err(Errno::INTR) => 0,
            Err(error) => return Err(error.into()),
        };
        let tokens = events[..count].iter().map(|event| event.data.u64());
        Ok(tokens
            .filter(|token| *token < STRANGER)
            .filter_map(|token| usize::try_from(token).ok())
            .collect())
    }

    /// Applications that want to attach, with their sizes.
    pub(super) fn callers(&mut self) -> io::Result<Vec<(OwnedFd, Sizes)>> {
        if let Some((listener, _)) = &self.listener {
            while self.strangers.len() < MOST_STRANGERS {
                let Some(stranger) = control::accept(listener.as_fd())? else {
                    break;
                };
                self.watch(stranger.as_fd(), STRANGER, EventFlags::IN)?;
                self.strangers.push((stranger, Instant::now()));
            }
        }
        let mut callers = Vec::new();
        for (stranger, since) in std::mem::take(&mut self.strangers) {
            match control::hear(stranger.as_fd()) {
                Heard::Nothing if since.elapsed() < PATIENCE => {
                    self.strangers.push((stranger, since));
                }
                Heard::Hello(sizes) => {
                    epoll::delete(&self.epoll, &stranger)?;
                    callers.push((stranger, sizes));
                }
                Heard::Registration(..) | Heard::Nonsense => {
                    let file = stranger.as_fd();
                    control::answer(file, Answer::Version, (0, Sizes::default()), &[]);
                }
                Heard::Nothing | Heard::End => {}
            }
        }
        Ok(callers)
    }

    /// Sleeps until something happens here or at the wire, at most for `limit`.
    pub(super) fn sleep(&self, wire: Option<BorrowedFd<'_>>, limit: Duration) -> io::Result<()> {
        let limit = if self.strangers.is_empty() {
            limit
        } else {
            limit.min(PATIENCE)
        };
        let timeout =
            Timespec::try_from(limit).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        let door = PollFd::new(&self.epoll, PollFlags::IN);
        let wire = wire.map(|wire| PollFd::from_borrowed_fd(wire, PollFlags::IN));
        let mut files: Vec<PollFd<'_>> = std::iter::once(door).chain(wire).collect();
        match rustix::event::poll(&mut files, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        if let Some((_, path)) = &self.listener {
            // If it is gone already that is as well.
            let _ = std::fs::remove_file(path);
        }
    }
}
