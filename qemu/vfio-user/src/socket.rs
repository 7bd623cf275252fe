//! Sends and receives bytes and file descriptors over a Unix socket, never past a deadline.
//!
//! Sockets are non-blocking, and `poll` waits for them; a closed peer is an error and never a
//! SIGPIPE.

use rustix::cmsg_space;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

use crate::message::MAX_MESSAGE_FDS;

/// Outcome of [`wait`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    /// The first descriptor is ready, or has something to say (hang-up, error).
    Ready,
    /// The second descriptor is ready to be read.
    Woken,
    /// The deadline has passed.
    TimedOut,
}

/// Waits until `fd` is ready for `events`, `wake` (if there is one) is readable, or
/// the deadline has passed. Without a deadline it waits as long as it takes.
pub(crate) fn wait(
    fd: BorrowedFd<'_>,
    events: PollFlags,
    wake: Option<BorrowedFd<'_>>,
    deadline: Option<Instant>,
) -> Result<Waited, Errno> {
    // poll() ignores nothing but negative numbers, so a missing `wake` is `fd`
    // again, with no events asked for.
    let (second, second_events) = match wake {
        Some(wake) => (wake, PollFlags::IN),
        None => (fd, PollFlags::empty()),
    };
    loop {
        let timeout = deadline.map(|d| timespec(d.saturating_duration_since(Instant::now())));
        let mut fds = [
            PollFd::from_borrowed_fd(fd, events),
            PollFd::from_borrowed_fd(second, second_events),
        ];
        match poll(&mut fds, timeout.as_ref()) {
            Ok(0) => return Ok(Waited::TimedOut),
            Ok(_) if wake.is_some() && !fds[1].revents().is_empty() => return Ok(Waited::Woken),
            Ok(_) => return Ok(Waited::Ready),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}

/// Sends as much of `bytes` as there is room for; `fds` go with the first of them.
pub(crate) fn send_some(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    fds: &[BorrowedFd<'_>],
) -> Result<usize, Errno> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MAX_MESSAGE_FDS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(Errno::TOOBIG);
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    sendmsg(socket, &[IoSlice::new(bytes)], &mut ancillary, flags)
}

/// What one [`receive`] brought.
#[derive(Debug)]
pub(crate) struct Received {
    /// Bytes; 0 at the end of the stream.
    pub(crate) bytes: usize,
    /// Descriptors that came with the last of these bytes.
    pub(crate) fds: Vec<OwnedFd>,
    /// More descriptors came than anybody may send; the surplus is closed.
    pub(crate) fds_lost: bool,
}

/// Reads what is there, at most `buffer.len()` bytes; `AGAIN` if nothing is.
pub(crate) fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<Received, Errno> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MAX_MESSAGE_FDS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let result = recvmsg(
        socket,
        &mut [IoSliceMut::new(buffer)],
        &mut ancillary,
        flags,
    )?;
    let mut fds = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fds.extend(rights);
        }
    }
    let mut fds_lost = result.flags.contains(ReturnFlags::CTRUNC);
    if fds.len() > MAX_MESSAGE_FDS {
        // Alignment of the ancillary buffer may leave room for one more.
        fds.truncate(MAX_MESSAGE_FDS);
        fds_lost = true;
    }
    Ok(Received {
        bytes: result.bytes,
        fds,
        fds_lost,
    })
}

/// A descriptor that becomes readable, and stays so, after a call of [`wake`].
pub(crate) fn waker() -> Result<OwnedFd, Errno> {
    use rustix::event::{EventfdFlags, eventfd};
    eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
}

/// Wakes all who wait with a [`waker`].
pub(crate) fn wake(waker: impl AsFd) {
    // Fails only if the counter is full, and then it is readable.
    let _ = rustix::io::write(waker, &1u64.to_ne_bytes());
}
