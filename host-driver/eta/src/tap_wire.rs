//! A TAP device as an engine's wire: the kernel's stack is at the other end.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use host_driver::stack::{StackError, Wire};
use host_driver::tap::Tap;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::time::Instant;

/// Bytes of an Ethernet header.
const ETHERNET_HEADER: usize = 14;

/// The device.
pub struct TapWire {
    tap: Tap,
    mtu: usize,
    received: Vec<u8>,
    scratch: Vec<u8>,
    /// Frames that the kernel did not take: it is down, or its queue is full.
    pub lost: u64,
    /// smoltcp's devices cannot fail: the first error is kept for the next flush.
    failure: Option<Errno>,
}

impl TapWire {
    /// A wire over a device with this MTU.
    pub fn new(tap: Tap, mtu: u16) -> Self {
        let mtu = usize::from(mtu) + ETHERNET_HEADER;
        Self {
            tap,
            mtu,
            received: vec![0; mtu],
            scratch: vec![0; mtu],
            lost: 0,
            failure: None,
        }
    }
}

/// A received frame.
pub struct TapRx<'a>(&'a [u8]);

impl RxToken for TapRx<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(self.0)
    }
}

/// Room for a frame.
pub struct TapTx<'a> {
    tap: &'a Tap,
    scratch: &'a mut Vec<u8>,
    lost: &'a mut u64,
    failure: &'a mut Option<Errno>,
}

impl TxToken for TapTx<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        if self.scratch.len() < len {
            self.scratch.resize(len, 0);
        }
        let frame = &mut self.scratch[..len];
        frame.fill(0);
        let result = f(frame);
        match rustix::io::write(self.tap, frame) {
            Ok(_) => {}
            Err(Errno::AGAIN | Errno::NOBUFS | Errno::IO | Errno::INVAL | Errno::INTR) => {
                *self.lost += 1;
            }
            Err(error) => *self.failure = Some(error),
        }
        result
    }
}

impl Device for TapWire {
    type RxToken<'t> = TapRx<'t>;
    type TxToken<'t> = TapTx<'t>;

    fn receive(&mut self, _: Instant) -> Option<(TapRx<'_>, TapTx<'_>)> {
        let length = match rustix::io::read(&self.tap, &mut self.received[..]) {
            Ok(length) => length,
            Err(Errno::AGAIN | Errno::INTR | Errno::IO) => return None,
            Err(error) => {
                self.failure = Some(error);
                return None;
            }
        };
        let room = TapTx {
            tap: &self.tap,
            scratch: &mut self.scratch,
            lost: &mut self.lost,
            failure: &mut self.failure,
        };
        Some((TapRx(self.received.get(..length)?), room))
    }

    fn transmit(&mut self, _: Instant) -> Option<TapTx<'_>> {
        Some(TapTx {
            tap: &self.tap,
            scratch: &mut self.scratch,
            lost: &mut self.lost,
            failure: &mut self.failure,
        })
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = self.mtu;
        capabilities
    }
}

impl Wire for TapWire {
    fn flush(&mut self) -> Result<(), StackError> {
        match self.failure.take() {
            Some(error) => Err(io::Error::from(error).into()),
            None => Ok(()),
        }
    }

    fn wait(&mut self, timeout: Duration) -> Result<(), StackError> {
        if timeout.is_zero() {
            return Ok(());
        }
        let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
        let timeout = Timespec::try_from(timeout).map_err(|_| invalid())?;
        let mut files = [PollFd::new(&self.tap, PollFlags::IN)];
        match rustix::event::poll(&mut files, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(io::Error::from(error).into()),
        }
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.tap.as_fd())
    }
}
