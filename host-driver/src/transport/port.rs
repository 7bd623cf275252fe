//! A thread's own access to a shared card.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;

use super::{TransportError, Vector};

/// Registers and interrupt of a card, for one thread of several.
///
/// [`super::Transport::port`] creates one. A queue with its own thread rings its mailboxes through
/// it. Writes of one port arrive in order. Writes of two ports arrive in any order until one
/// reads: a read follows all writes of its own port. The card keeps its DMA memory as long as
/// there is a port.
pub trait Port: Send {
    /// Reads the word at `bar_offset`. Earlier writes of this port reach the card first.
    ///
    /// # Errors
    /// [`TransportError`] if the card does not answer.
    fn read(&mut self, bar_offset: u32) -> Result<u32, TransportError>;

    /// Writes the word at `bar_offset`. The write may be posted: it is on its way when this
    /// returns or at the latest after [`Port::flush`].
    ///
    /// # Errors
    /// [`TransportError`] if the card is gone.
    fn write(&mut self, bar_offset: u32, value: u32) -> Result<(), TransportError>;

    /// Sends posted writes that the port still holds.
    ///
    /// # Errors
    /// [`TransportError`] if the card is gone.
    fn flush(&mut self) -> Result<(), TransportError> {
        Ok(())
    }

    /// Waits for an interrupt as [`super::Transport::wait`] does. If several threads wait for the
    /// same one, one of them gets it. Ends early, with false, when `bell` is rung.
    ///
    /// # Errors
    /// [`TransportError::NoVector`] if the card has no such interrupt; [`TransportError`] if
    /// the card is gone.
    fn wait(
        &mut self,
        vector: Vector,
        timeout: Duration,
        bell: &Bell,
    ) -> Result<bool, TransportError>;

    /// The descriptor of an interrupt, as [`super::Transport::vector_fd`].
    fn vector_fd(&self, vector: Vector) -> Option<BorrowedFd<'_>> {
        let _ = vector;
        None
    }

    /// Unmasks an interrupt, as [`super::Transport::unmask`].
    ///
    /// # Errors
    /// As [`super::Transport::unmask`].
    fn unmask(&mut self, vector: Vector) -> Result<(), TransportError>;
}

/// Wakes one waiter: the thread that has consumed a shared interrupt rings the others' bells.
///
/// A ring stays pending until it is taken; several rings count as one.
#[derive(Debug)]
pub struct Bell(OwnedFd);

impl Bell {
    /// A bell that was not rung.
    ///
    /// # Errors
    /// What the system says.
    pub fn new() -> io::Result<Self> {
        Ok(Self(eventfd(
            0,
            EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK,
        )?))
    }

    /// Rings it.
    pub fn ring(&self) {
        // It fails when the count is full, and then the bell rings already.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Takes a pending ring; true if there was one.
    #[must_use]
    pub fn take(&self) -> bool {
        rustix::io::read(&self.0, &mut [0; 8]).is_ok()
    }

    /// Whether a ring is pending.
    #[must_use]
    pub fn is_rung(&self) -> bool {
        let mut fds = [PollFd::new(&self.0, PollFlags::IN)];
        matches!(poll(&mut fds, Some(&Timespec::default())), Ok(ready) if ready > 0)
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Takes the count of an interrupt's eventfd; true if it was not 0.
pub(super) fn consume(interrupt: &OwnedFd) -> Result<bool, TransportError> {
    match rustix::io::read(interrupt, &mut [0; 8]) {
        Ok(_) => Ok(true),
        Err(Errno::AGAIN) => Ok(false),
        Err(error) => Err(TransportError::Io(error.into())),
    }
}

/// The timeout of a poll.
pub(super) fn timespec(timeout: Duration) -> Timespec {
    Timespec::try_from(timeout).unwrap_or(Timespec {
        tv_sec: i64::from(i32::MAX),
        tv_nsec: 0,
    })
}

/// Waits for an interrupt's eventfd or a bell, and for the end of `peer`.
pub(super) fn wait_shared(
    interrupt: &OwnedFd,
    bell: &Bell,
    peer: Option<BorrowedFd<'_>>,
    timeout: Duration,
) -> Result<bool, TransportError> {
    let start = Instant::now();
    loop {
        // The usual case under load costs one system call.
        if consume(interrupt)? {
            return Ok(true);
        }
        // Another waiter may have been faster: it rings the bell once it has acknowledged, and
        // returning before that would report that no interrupt came.
        let left = timeout.saturating_sub(start.elapsed());
        if left.is_zero() {
            return Ok(false);
        }
        let mut fds = vec![
            PollFd::new(interrupt, PollFlags::IN),
            PollFd::new(bell, PollFlags::IN),
        ];
        // Another thread reads what the peer sends; its end concerns every waiter.
        fds.extend(peer.map(|peer| PollFd::from_borrowed_fd(peer, PollFlags::empty())));
        match poll(&mut fds, Some(&timespec(left))) {
            Ok(0) => return Ok(false),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(TransportError::Io(error.into())),
        }
        let ready = |place| {
            fds.get(place)
                .is_some_and(|fd: &PollFd<'_>| !fd.revents().is_empty())
        };
        if ready(2) {
            return Err(TransportError::Gone("it closed the connection".into()));
        }
        if ready(1) {
            return consume(interrupt);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_are_kept_and_are_one() {
        let bell = Bell::new().expect("a descriptor");
        assert!(!bell.is_rung() && !bell.take());
        bell.ring();
        bell.ring();
        assert!(bell.is_rung() && bell.take());
        assert!(!bell.is_rung() && !bell.take());
    }

    /// One of two waiters gets the interrupt, and a bell ends the other's wait.
    #[test]
    fn an_interrupt_is_taken_once() {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let interrupt = eventfd(0, flags).expect("a descriptor");
        let bell = Bell::new().expect("a descriptor");
        let wait = |timeout| wait_shared(&interrupt, &bell, None, timeout).expect("no error");
        rustix::io::write(&interrupt, &1_u64.to_ne_bytes()).expect("room");
        assert!(wait(Duration::from_secs(10)));
        assert!(!wait(Duration::ZERO));
        bell.ring();
        assert!(!wait(Duration::from_secs(3600)), "the bell ends the wait");
        assert!(bell.take());
    }

    /// The slower of two waiters sleeps on until the faster rings its bell.
    #[test]
    fn who_came_too_late_waits_for_its_bell() {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let interrupt = eventfd(0, flags).expect("a descriptor");
        let bells = [(); 2].map(|()| Bell::new().expect("a descriptor"));
        let wait = |own: &Bell, other: &Bell| {
            let long = Duration::from_secs(3600);
            if wait_shared(&interrupt, own, None, long).expect("no error") {
                std::thread::sleep(Duration::from_millis(1));
                other.ring();
            } else {
                assert!(own.take(), "nothing had come");
            }
        };
        for _ in 0..100 {
            std::thread::scope(|scope| {
                scope.spawn(|| wait(&bells[0], &bells[1]));
                scope.spawn(|| wait(&bells[1], &bells[0]));
                std::thread::sleep(Duration::from_micros(200));
                rustix::io::write(&interrupt, &1_u64.to_ne_bytes()).expect("room");
            });
        }
    }

    #[test]
    fn the_end_of_the_peer_is_told_to_every_waiter() {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let interrupt = eventfd(0, flags).expect("a descriptor");
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().expect("sockets");
        let bells = [(); 2].map(|()| Bell::new().expect("a descriptor"));
        drop(theirs);
        for bell in &bells {
            let waited = wait_shared(&interrupt, bell, Some(ours.as_fd()), Duration::from_secs(9));
            assert!(matches!(waited, Err(TransportError::Gone(_))));
        }
    }
}
