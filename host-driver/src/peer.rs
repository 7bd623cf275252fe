//! The far end of the wire: a unix datagram socket to QEMU.
//!
//! QEMU's `-netdev dgram` sends each frame that leaves the card as one datagram, and delivers each
//! datagram to the card as a frame. [`DatagramWire`] is the other end, raw
//! ([`DatagramWire::receive_frame`], [`DatagramWire::send_frame`]) or with a network stack
//! ([`crate::stack::Host`]).

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::time::Instant as StackInstant;

use crate::stack::service::Service;
use crate::stack::{Identity, StackError, Wire};

/// Largest frame that is received, with room for jumbo frames.
const LARGEST_FRAME: usize = 9216;
/// Largest packet that the stack sends by default.
const MTU: u16 = 1500;
/// Bytes of an Ethernet header.
const ETHERNET_HEADER: usize = 14;
/// Frames that wait while the other side's queue is full.
const BACKLOG: usize = 512;

/// The far end of a wire that is a pair of unix datagram sockets.
pub struct DatagramWire {
    socket: UnixDatagram,
    local: PathBuf,
    remote: PathBuf,
    buffer: Vec<u8>,
    backlog: VecDeque<Vec<u8>>,
    mtu: u16,
    /// Frames that were lost because nothing listens at the other end.
    pub lost: u64,
}

impl DatagramWire {
    /// Binds the socket `local`; frames go to the socket `remote`, which need not exist yet.
    /// Replaces a socket that an earlier run left behind.
    ///
    /// # Errors
    /// What the system says.
    pub fn bind(local: &Path, remote: &Path) -> io::Result<Self> {
        use std::os::unix::fs::FileTypeExt;
        if let Ok(found) = std::fs::symlink_metadata(local)
            && found.file_type().is_socket()
        {
            std::fs::remove_file(local)?;
        }
        let socket = UnixDatagram::bind(local)?;
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket,
            local: local.to_owned(),
            remote: remote.to_owned(),
            buffer: vec![0; LARGEST_FRAME],
            backlog: VecDeque::new(),
            mtu: MTU,
            lost: 0,
        })
    }

    /// The same wire with a stack that sends packets of up to `mtu` bytes, at most
    /// 9000.
    #[must_use]
    pub fn with_mtu(mut self, mtu: u16) -> Self {
        self.mtu = mtu.min(crate::nic::MAX_MTU);
        self
    }

    /// A frame that the card has put on the wire, or None if there is none now.
    ///
    /// # Errors
    /// What the system says.
    pub fn receive_frame(&mut self) -> io::Result<Option<Vec<u8>>> {
        match self.socket.recv(&mut self.buffer) {
            Ok(bytes) => Ok(self.buffer.get(..bytes).map(<[u8]>::to_vec)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Puts a frame on the wire towards the card. Returns false without sending it if the other
    /// side's queue is full.
    ///
    /// # Errors
    /// The system's error. A missing socket is no error: the frame is lost, as on an unplugged
    /// cable.
    pub fn send_frame(&mut self, frame: &[u8]) -> io::Result<bool> {
        match self.socket.send_to(frame, &self.remote) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
                ) =>
            {
                self.lost += 1;
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }

    /// Waits until a frame has arrived, at most for `timeout`. True if one has.
    ///
    /// # Errors
    /// What the system says.
    pub fn wait_frame(&mut self, timeout: Duration) -> io::Result<bool> {
        let mut flags = PollFlags::IN;
        if !self.backlog.is_empty() {
            flags |= PollFlags::OUT;
        }
        wait_fd(self.socket.as_fd(), flags, timeout)
    }

    fn send_backlog(&mut self) -> io::Result<()> {
        while let Some(frame) = self.backlog.pop_front() {
            if !self.send_frame(&frame)? {
                self.backlog.push_front(frame);
                break;
            }
        }
        Ok(())
    }
}

impl Drop for DatagramWire {
    fn drop(&mut self) {
        // If it is gone already that is as well.
        let _ = std::fs::remove_file(&self.local);
    }
}

impl AsFd for DatagramWire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Waits for one descriptor; true if it is ready. A signal ends the wait.
pub(crate) fn wait_fd(fd: BorrowedFd<'_>, flags: PollFlags, timeout: Duration) -> io::Result<bool> {
    let mut fds = [PollFd::from_borrowed_fd(fd, flags)];
    let timeout = rustix::event::Timespec::try_from(timeout)
        .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    match rustix::event::poll(&mut fds, Some(&timeout)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// A frame for the stack.
pub struct WireRx(Vec<u8>);

impl RxToken for WireRx {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(&self.0)
    }
}

/// Room for a frame from the stack.
pub struct WireTx<'a>(&'a mut VecDeque<Vec<u8>>);

impl TxToken for WireTx<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let mut frame = vec![0; len];
        let result = f(&mut frame);
        self.0.push_back(frame);
        result
    }
}

impl Device for DatagramWire {
    type RxToken<'a> = WireRx;
    type TxToken<'a> = WireTx<'a>;

    fn receive(&mut self, _: StackInstant) -> Option<(WireRx, WireTx<'_>)> {
        if self.backlog.len() >= BACKLOG {
            return None;
        }
        // An error shows again when the wire is flushed or waited for.
        let frame = self.receive_frame().ok().flatten()?;
        Some((WireRx(frame), WireTx(&mut self.backlog)))
    }

    fn transmit(&mut self, _: StackInstant) -> Option<WireTx<'_>> {
        (self.backlog.len() < BACKLOG).then_some(WireTx(&mut self.backlog))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = usize::from(self.mtu) + ETHERNET_HEADER;
        capabilities
    }
}

impl Wire for DatagramWire {
    fn flush(&mut self) -> Result<(), StackError> {
        Ok(self.send_backlog()?)
    }

    fn wait(&mut self, timeout: Duration) -> Result<(), StackError> {
        self.wait_frame(timeout)?;
        Ok(())
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        // Frames that wait to be sent need another look.
        self.backlog.is_empty().then(|| self.socket.as_fd())
    }
}

/// Answers pings and serves the measuring protocol on a wire until `stop` is set.
///
/// # Errors
/// [`StackError`] if the wire failed.
pub fn serve<W: Wire>(wire: W, identity: Identity, stop: &AtomicBool) -> Result<(), StackError> {
    let mut service = Service::new(wire, identity);
    while !stop.load(Ordering::Relaxed) {
        let delay = service.turn()?;
        if !delay.is_zero() {
            service.wait(delay)?;
        }
    }
    Ok(())
}
