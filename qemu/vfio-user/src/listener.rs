//! The listening socket and its file.

use crate::socket::{self, Waited};
use rustix::event::PollFlags;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use thiserror::Error;

/// How long to wait for descriptors or memory before accepting again.
const SHORTAGE_PAUSE: Duration = Duration::from_millis(100);

/// Why a server cannot listen.
#[derive(Debug, Error)]
#[error("cannot listen on {}: {source}", path.display())]
pub struct BindError {
    path: PathBuf,
    source: io::Error,
}

impl BindError {
    pub(crate) fn new(path: &Path, source: io::Error) -> Self {
        Self {
            path: path.to_owned(),
            source,
        }
    }
}

/// A listening socket; its file is removed when it is dropped.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: UnixListener,
    path: PathBuf,
}

impl Listener {
    pub(crate) fn bind(path: &Path) -> Result<Self, BindError> {
        let socket = match UnixListener::bind(path) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_stale(path) => {
                std::fs::remove_file(path).and_then(|()| UnixListener::bind(path))
            }
            other => other,
        };
        let bound = socket.and_then(|socket| {
            socket.set_nonblocking(true)?;
            Ok(socket)
        });
        match bound {
            Ok(socket) => Ok(Self {
                socket,
                path: path.to_owned(),
            }),
            Err(error) => Err(BindError::new(path, error)),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Waits for the next client; `None` once `wake` is readable.
    pub(crate) fn accept(&self, wake: BorrowedFd<'_>) -> io::Result<Option<OwnedFd>> {
        loop {
            match socket::wait(self.socket.as_fd(), PollFlags::IN, Some(wake), None)? {
                Waited::Woken => return Ok(None),
                Waited::Ready | Waited::TimedOut => {}
            }
            match self.socket.accept() {
                Ok((stream, _)) => return Ok(Some(stream.into())),
                Err(error) if is_passing(&error) => {}
                Err(error) if is_shortage(&error) => {
                    // The client stays in the queue until there is room for it.
                    let later = Some(Instant::now() + SHORTAGE_PAUSE);
                    if socket::wait(wake, PollFlags::IN, None, later)? != Waited::TimedOut {
                        return Ok(None);
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// Is this the file of a server that is gone?
fn is_stale(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket())
        && UnixStream::connect(path)
            .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

/// Does accept() fail because of this one client only?
fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, Interrupted, WouldBlock};
    matches!(error.kind(), ConnectionAborted | Interrupted | WouldBlock)
}

/// Is the process or the system short of descriptors or memory?
fn is_shortage(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)
    )
}

impl Drop for Listener {
    fn drop(&mut self) {
        // If somebody has removed it already, it is as it should be.
        let _ = std::fs::remove_file(&self.path);
    }
}
