//! The listening socket and its file.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{CWD, RenameFlags};
use rustix::io::Errno;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use thiserror::Error;

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
    /// Listens at `path`. The file is there only once it can be connected to, so
    /// whoever waits for it need not try twice.
    pub(crate) fn bind(path: &Path) -> Result<Self, BindError> {
        let socket = listen(path).map_err(|error| BindError::new(path, error))?;
        Ok(Self {
            socket,
            path: path.to_owned(),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The next client, if there is one.
    pub(crate) fn accept(&self) -> io::Result<Accepted> {
        match self.socket.accept() {
            Ok((stream, _)) => Ok(Accepted::Client(stream.into())),
            Err(error) if is_passing(&error) => Ok(Accepted::Nobody),
            Err(error) if is_shortage(&error) => Ok(Accepted::Shortage),
            Err(error) => Err(error),
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// What accepting brings.
#[derive(Debug)]
pub(crate) enum Accepted {
    Client(OwnedFd),
    /// No client at the moment.
    Nobody,
    /// There are no descriptors or no memory; the client stays in the queue.
    Shortage,
}

/// Binding makes the file and only then listens; so it is made under another name.
fn listen(path: &Path) -> io::Result<UnixListener> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}", std::process::id()));
    let early = PathBuf::from(name);
    let socket = UnixListener::bind(&early)?;
    let published = socket.set_nonblocking(true).and_then(|()| {
        if is_stale(path) {
            std::fs::remove_file(path)?;
        }
        publish(&early, path)
    });
    if let Err(error) = published {
        // Nothing else can be done about a file that cannot be removed.
        let _ = std::fs::remove_file(&early);
        return Err(error);
    }
    Ok(socket)
}

/// Gives a socket its name, unless another one has it.
fn publish(early: &Path, path: &Path) -> io::Result<()> {
    match rustix::fs::renameat_with(CWD, early, CWD, path, RenameFlags::NOREPLACE) {
        Err(Errno::EXIST) => Err(io::ErrorKind::AddrInUse.into()),
        other => Ok(other?),
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
        // If it is removed already, nothing remains to be done.
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_that_is_there_can_be_connected_to() {
        let folder = tempfile::tempdir().expect("a folder");
        for round in 0..200 {
            let path = folder.path().join(round.to_string());
            std::thread::scope(|scope| {
                let client = scope.spawn(|| {
                    while !path.exists() {
                        std::hint::spin_loop();
                    }
                    UnixStream::connect(&path).map(drop)
                });
                let _listener = Listener::bind(&path).expect("a free name");
                client.join().expect("no panic").expect("it listens");
            });
        }
    }

    #[test]
    fn a_living_socket_keeps_its_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("card");
        let _first = Listener::bind(&path).expect("a free name");
        let error = Listener::bind(&path).expect_err("taken");
        assert_eq!(error.source.kind(), io::ErrorKind::AddrInUse);
        assert_eq!(std::fs::read_dir(folder.path()).expect("it").count(), 1);
    }
}
