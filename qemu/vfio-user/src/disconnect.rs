//! The reasons for which connections end.

use crate::frame::FrameError;
use crate::message::Header;
use rustix::io::Errno;
use thiserror::Error;

/// Why a connection has ended.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Disconnect {
    /// The client closed it.
    #[error("the client closed the connection")]
    Closed,
    /// [`StopHandle::stop`](crate::StopHandle::stop) was called.
    #[error("the server was told to stop")]
    Stopped,
    /// The socket failed.
    #[error("socket: {0}")]
    Io(Errno),
    /// A header whose size cannot be right.
    #[error("the client sent a header that claims a size of {} bytes", .0.size)]
    Size(Header),
    /// The client did not end a message that it had begun.
    #[error("the client did not finish a message")]
    Incomplete,
    /// The client did not answer DMA messages.
    #[error("the client does not answer DMA")]
    Unanswered,
    /// The client does not read its replies.
    #[error("the client does not read")]
    Stuck,
    /// The client sent too much while it owed a DMA reply.
    #[error("the client sent too much in front of a DMA reply")]
    Backlog,
}

impl From<FrameError> for Disconnect {
    fn from(error: FrameError) -> Self {
        match error {
            FrameError::Closed => Disconnect::Closed,
            FrameError::Io(errno) => Disconnect::Io(errno),
            FrameError::Size(header) => Disconnect::Size(header),
        }
    }
}
