//! Errors of the client.

use crate::channel::errno_from;
use crate::frame::FrameError;
use crate::message::Command;
use rustix::io::Errno;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why a client's request failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The socket cannot be connected to.
    #[error("cannot connect to {}: {source}", path.display())]
    Connect {
        /// The socket's file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Somebody listens on the socket, but does not speak vfio-user.
    #[error("not a vfio-user server: {0}")]
    NotVfioUser(String),
    /// No answer to VERSION: busy with another client, or no vfio-user server.
    #[error(
        "the server does not answer VERSION: it is busy with another client, or is no vfio-user server"
    )]
    Busy,
    /// The server speaks another major version.
    #[error("the server speaks vfio-user {major}.{minor}")]
    VersionMismatch {
        /// Its major version.
        major: u16,
        /// Its minor version.
        minor: u16,
    },
    /// The server refused a command.
    #[error("the server refused {command:?}: {errno}")]
    Refused {
        /// The command.
        command: Command,
        /// What the server said.
        errno: Errno,
    },
    /// The server did not answer in time.
    #[error("the server did not answer {0:?} in time")]
    Timeout(Command),
    /// The server has closed the connection.
    #[error("the server closed the connection")]
    Disconnected,
    /// The server answered with a malformed message.
    #[error("malformed answer to {0:?}")]
    Malformed(Command),
    /// The server sent something that is no message; the connection is of no use.
    #[error("the server sent something that is no message")]
    Garbage,
    /// A transfer is larger than the server takes.
    #[error("a transfer of {bytes} bytes is too large: the server takes {max}")]
    TooLarge {
        /// Bytes of the transfer.
        bytes: usize,
        /// Bytes that the server takes.
        max: usize,
    },
    /// The socket failed.
    #[error("socket: {0}")]
    Io(#[from] io::Error),
}

impl ClientError {
    /// Is the connection of no use any more?
    pub fn is_fatal(&self) -> bool {
        !matches!(
            self,
            Self::Refused { .. } | Self::TooLarge { .. } | Self::Malformed(_) | Self::Timeout(_)
        )
    }

    pub(super) fn refused(command: Command, errno: u32) -> Self {
        Self::Refused {
            command,
            errno: errno_from(errno),
        }
    }

    pub(super) fn from_socket(errno: Errno) -> Self {
        match errno {
            Errno::PIPE | Errno::CONNRESET => Self::Disconnected,
            other => Self::Io(other.into()),
        }
    }
}

impl From<FrameError> for ClientError {
    fn from(error: FrameError) -> Self {
        match error {
            FrameError::Closed => Self::Disconnected,
            FrameError::Size(_) => Self::Garbage,
            FrameError::Io(errno) => Self::from_socket(errno),
        }
    }
}
