//! The reader's side of a live capture.

use std::io::{self, BufReader};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::record::Record;

/// How long the rest of a record may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// The frames of a card that another process drives, as they arrive.
pub struct FrameStream(BufReader<UnixStream>);

impl FrameStream {
    /// Reads frames from a socket to a driver, after a capture request.
    ///
    /// # Errors
    /// What the system says.
    pub fn new(source: BufReader<UnixStream>) -> io::Result<Self> {
        source.get_ref().set_read_timeout(Some(PATIENCE))?;
        Ok(Self(source))
    }

    /// The next record; None if there is none within `time`.
    ///
    /// # Errors
    /// `InvalidData` for what is no record; what the system says.
    pub fn next(&mut self, time: Duration) -> io::Result<Option<Record>> {
        if self.0.buffer().is_empty() {
            let time = Timespec::try_from(time).map_err(io::Error::other)?;
            let mut fds = [PollFd::new(self.0.get_ref(), PollFlags::IN)];
            match poll(&mut fds, Some(&time)) {
                Ok(0) | Err(Errno::INTR) => return Ok(None),
                Ok(_) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Record::read(&mut self.0).map(Some)
    }

    /// Requests the end: the queued frames still arrive, then [`Record::End`].
    ///
    /// # Errors
    /// What the system says.
    pub fn finish(&self) -> io::Result<()> {
        match self.0.get_ref().shutdown(Shutdown::Write) {
            // The driver was faster.
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
            other => other,
        }
    }
}
