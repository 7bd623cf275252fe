//! Hands clients one after another from the door to the server's thread.

use crate::channel::Arrival;
use crate::socket;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

#[derive(Debug)]
pub(crate) struct Desk {
    state: Mutex<State>,
    changed: Condvar,
    /// Readable when a client has gone.
    bell: OwnedFd,
}

#[derive(Debug, Default)]
struct State {
    /// Somebody holds the device, or is on the way to it.
    taken: bool,
    arrival: Option<Arrival>,
    /// No more clients will come.
    closed: bool,
}

/// Closes the desk when it is dropped.
pub(crate) struct CloseAtEnd<'a>(&'a Desk);

impl Drop for CloseAtEnd<'_> {
    fn drop(&mut self) {
        self.0.state().closed = true;
        self.0.changed.notify_all();
    }
}

impl Desk {
    pub(crate) fn new() -> Result<Self, Errno> {
        Ok(Desk {
            state: Mutex::default(),
            changed: Condvar::new(),
            bell: socket::waker()?,
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For the server's thread: waits for the next client; `None` if none comes any more.
    pub(crate) fn next(&self) -> Option<Arrival> {
        let nobody = |state: &mut State| state.arrival.is_none() && !state.closed;
        let waited = self.changed.wait_while(self.state(), nobody);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        state.arrival.take()
    }

    /// For the server's thread: the client has gone, and nothing of it is left.
    pub(crate) fn leave(&self) {
        self.state().taken = false;
        socket::wake(&self.bell);
    }

    /// For the door: whether there is no place for a client.
    pub(crate) fn is_taken(&self) -> bool {
        self.state().taken
    }

    /// For the door: hands over a client; the place must be free.
    pub(crate) fn admit(&self, arrival: Arrival) {
        let mut state = self.state();
        state.taken = true;
        state.arrival = Some(arrival);
        self.changed.notify_all();
    }

    /// Readable when a client has gone.
    pub(crate) fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// Silences the bell.
    pub(crate) fn hear_bell(&self) {
        // Fails only if the socket is shut down already.
        let _ = rustix::io::read(&self.bell, &mut [0; 8]);
    }

    /// No more clients come when this is dropped.
    pub(crate) fn close_at_end(&self) -> CloseAtEnd<'_> {
        CloseAtEnd(self)
    }
}
