//! Controls when QEMU's main loop reads the card's socket.
//!
//! The main loop watches the socket for the card's requests and for the end of the connection. But
//! a vCPU that waits for an answer also reads the socket and serves the requests that arrive
//! meanwhile. Each answer would wake the main loop needlessly, and the two threads would contend
//! for the lock. So the main loop watches an epoll descriptor, and a vCPU disables its data events
//! while it waits:
//!
//! ```text
//!   card ── socket ──┬── vCPU: sends, waits, reads the answer
//!                    └── epoll ── main loop: data, if no vCPU waits; the end, always
//! ```

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use rustix::io::Errno;

/// The end of the connection. It is reported even while data events are disabled.
const END: EventFlags = EventFlags::RDHUP;

/// The descriptor that the main loop watches.
#[derive(Debug)]
pub struct Watch {
    epoll: OwnedFd,
}

impl Watch {
    /// Watches a socket, which must be open for as long as this is used.
    pub fn new(socket: impl AsFd) -> Result<Self, Errno> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, socket, EventData::new_u64(0), END | EventFlags::IN)?;
        Ok(Watch { epoll })
    }

    /// Readable when there is something to do.
    pub fn descriptor(&self) -> RawFd {
        self.epoll.as_raw_fd()
    }

    /// Somebody else reads what comes.
    pub fn deafen(&self, socket: impl AsFd) -> Result<(), Errno> {
        epoll::modify(&self.epoll, socket, EventData::new_u64(0), END)
    }

    /// Nobody else does any more; what has come meanwhile is noticed.
    pub fn listen(&self, socket: impl AsFd) -> Result<(), Errno> {
        let events = END | EventFlags::IN;
        epoll::modify(&self.epoll, socket, EventData::new_u64(0), events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    fn is_readable(watch: &Watch) -> bool {
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let mut fds = [PollFd::new(&watch.epoll, PollFlags::IN)];
        poll(&mut fds, Some(&now)) == Ok(1)
    }

    #[test]
    fn data_is_noticed_but_not_while_somebody_else_reads() -> Result<(), Box<dyn std::error::Error>>
    {
        let (socket, mut card) = UnixStream::pair()?;
        let watch = Watch::new(&socket)?;
        assert!(!is_readable(&watch));
        watch.deafen(&socket)?;
        card.write_all(b"answer")?;
        assert!(!is_readable(&watch));
        watch.listen(&socket)?;
        assert!(is_readable(&watch), "what has come meanwhile");
        Ok(())
    }

    #[test]
    fn the_end_is_always_noticed() -> Result<(), Box<dyn std::error::Error>> {
        let (socket, card) = UnixStream::pair()?;
        let watch = Watch::new(&socket)?;
        watch.deafen(&socket)?;
        drop(card);
        assert!(is_readable(&watch));
        Ok(())
    }
}
