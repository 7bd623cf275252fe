//! A cable between two stacks of one process.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use host_driver::stack::{StackError, Wire};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::time::Instant;

/// Frames that wait in one direction; more are lost, as on a wire.
const DEPTH: usize = 1024;

struct Direction {
    frames: Mutex<VecDeque<Vec<u8>>>,
    /// Written when the first of some frames arrives.
    arrived: OwnedFd,
}

impl Direction {
    fn new() -> io::Result<Arc<Self>> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(Arc::new(Self {
            frames: Mutex::default(),
            arrived: rustix::event::eventfd(0, flags)?,
        }))
    }

    fn frames(&self) -> MutexGuard<'_, VecDeque<Vec<u8>>> {
        self.frames.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One end of the cable.
pub struct MemoryWire {
    receive: Arc<Direction>,
    transmit: Arc<Direction>,
}

/// Both ends of a new cable.
///
/// # Errors
/// The system's, for example without descriptors.
pub fn pair() -> io::Result<(MemoryWire, MemoryWire)> {
    let (one, other) = (Direction::new()?, Direction::new()?);
    let near = MemoryWire {
        receive: one.clone(),
        transmit: other.clone(),
    };
    let far = MemoryWire {
        receive: other,
        transmit: one,
    };
    Ok((near, far))
}

impl MemoryWire {
    /// Takes a frame off the wire, for who joins it to a wire of another kind.
    pub fn take(&self) -> Option<Vec<u8>> {
        self.receive.frames().pop_front()
    }

    /// Room for a frame to put on the wire.
    pub fn room(&self) -> MemoryTx<'_> {
        MemoryTx(self)
    }

    /// Puts a frame on the wire; it is lost if too many wait.
    pub fn put(&self, frame: Vec<u8>) {
        let mut frames = self.transmit.frames();
        if frames.len() < DEPTH {
            frames.push_back(frame);
            if frames.len() == 1 {
                // A counter that is full has been written before.
                let _ = rustix::io::write(&self.transmit.arrived, &1u64.to_ne_bytes());
            }
        }
    }
}

/// A received frame.
pub struct MemoryRx(Vec<u8>);

impl MemoryRx {
    /// A frame that [`MemoryWire::take`] gave, for a wire around this one.
    pub fn of(frame: Vec<u8>) -> Self {
        Self(frame)
    }
}

impl RxToken for MemoryRx {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(&self.0)
    }
}

/// Room for a frame.
pub struct MemoryTx<'a>(&'a MemoryWire);

impl TxToken for MemoryTx<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let mut frame = vec![0; len];
        let result = f(&mut frame);
        self.0.put(frame);
        result
    }
}

impl Device for MemoryWire {
    type RxToken<'t> = MemoryRx;
    type TxToken<'t> = MemoryTx<'t>;

    fn receive(&mut self, _: Instant) -> Option<(MemoryRx, MemoryTx<'_>)> {
        let frame = self.receive.frames().pop_front()?;
        Some((MemoryRx(frame), self.room()))
    }

    fn transmit(&mut self, _: Instant) -> Option<MemoryTx<'_>> {
        Some(self.room())
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = 1514;
        capabilities
    }
}

impl Wire for MemoryWire {
    fn flush(&mut self) -> Result<(), StackError> {
        Ok(())
    }

    fn wait(&mut self, timeout: Duration) -> Result<(), StackError> {
        let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
        let timeout = Timespec::try_from(timeout).map_err(|_| invalid())?;
        let mut files = [PollFd::new(&self.receive.arrived, PollFlags::IN)];
        match rustix::event::poll(&mut files, Some(&timeout)) {
            // Whoever waits looks for frames afterwards: none is lost that came before this.
            Ok(1..) => {
                let _ = rustix::io::read(&self.receive.arrived, &mut [0; 8]);
                Ok(())
            }
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(io::Error::from(error).into()),
        }
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.receive.arrived.as_fd())
    }
}
