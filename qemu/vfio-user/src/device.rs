//! The interface that a device implements for the server.
//!
//! The server passes every region access to a [`Device`] and does the rest itself. A device
//! usually shares its state with other threads, so the server never owns one: it locks it through
//! a [`DeviceLock`] once for each batch of requests. An `Arc<Mutex<impl Device>>` is such a lock;
//! QEMU's glue wraps the big lock.

use crate::disconnect::Disconnect;
use crate::message::{irq_info_flags, region, region_flags};
use rustix::io::Errno;
use std::sync::{Arc, Mutex, PoisonError};

/// A device behind a vfio-user socket.
///
/// Everything is called on the server's thread, inside [`DeviceLock::with`].
/// Offsets and lengths are inside the region as [`DeviceLayout`] describes it
/// (the server has refused the rest); alignment and size are as the client chose.
pub trait Device {
    /// Reads `data.len()` bytes from `offset` of region `region`.
    ///
    /// An error goes back to the client as the errno of its reply.
    fn region_read(&mut self, region: u32, offset: u64, data: &mut [u8]) -> Result<(), Errno>;

    /// Writes `data` to `offset` of region `region`.
    ///
    /// An error goes back to the client, unless the write was posted.
    fn region_write(&mut self, region: u32, offset: u64, data: &[u8]) -> Result<(), Errno>;

    /// DEVICE_RESET: put the device in the state it has after power-on.
    fn reset(&mut self) -> Result<(), Errno>;

    /// A client has connected and agreed on a version. DMA maps come later.
    fn connected(&mut self) {}

    /// The client has gone. Its DMA maps and interrupts are gone already: stop
    /// whatever would use them.
    fn disconnected(&mut self, why: &Disconnect) {
        let _ = why;
    }

    /// A batch of requests ends: the place for work that accesses have queued.
    /// The replies of the batch leave after this.
    fn batch_done(&mut self) {}
}

/// Gives the server access to its device, one batch of requests at a time.
///
/// The server holds none of its own locks while it calls [`with`](Self::with), so
/// a thread that has the device may wait for the server's socket (message DMA).
pub trait DeviceLock {
    /// The device inside.
    type Device: Device;

    /// Takes the lock, runs `f` on the device, releases the lock.
    fn with<R>(&mut self, f: impl FnOnce(&mut Self::Device) -> R) -> R;
}

impl<D: Device> DeviceLock for Arc<Mutex<D>> {
    type Device = D;

    fn with<R>(&mut self, f: impl FnOnce(&mut D) -> R) -> R {
        f(&mut self.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// One region of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Region {
    /// Bytes; 0 for a region that is not there.
    pub size: u64,
    /// The client may read it.
    pub readable: bool,
    /// The client may write it.
    pub writable: bool,
}

impl Region {
    /// A region of `size` bytes for reading and writing.
    pub const fn read_write(size: u64) -> Self {
        Self {
            size,
            readable: true,
            writable: true,
        }
    }

    /// Flags of the region in the protocol.
    pub(crate) fn flags(&self) -> u32 {
        let read = if self.readable { region_flags::READ } else { 0 };
        let write = if self.writable {
            region_flags::WRITE
        } else {
            0
        };
        read | write
    }
}

/// Regions and interrupts of a PCI device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceLayout {
    /// The regions by their number in [`region`].
    pub regions: [Region; region::COUNT as usize],
    /// The device has an interrupt pin.
    pub intx: bool,
    /// The device has one message-signalled interrupt.
    pub msi: bool,
}

impl DeviceLayout {
    /// A device with BAR 0 of `bar0` bytes, 256 bytes of configuration space and
    /// an interrupt pin.
    pub fn pci(bar0: u64) -> Self {
        let mut layout = Self {
            intx: true,
            ..Self::default()
        };
        layout.regions[region::BAR0 as usize] = Region::read_write(bar0);
        layout.regions[region::CONFIG as usize] = Region::read_write(256);
        layout
    }

    /// The same with a [region of counts](region::COUNTS) of `bytes` bytes.
    #[must_use]
    pub const fn with_counts(mut self, bytes: u64) -> Self {
        self.regions[region::COUNTS as usize] = Region {
            size: bytes,
            readable: true,
            writable: false,
        };
        self
    }

    /// Flags and number of the interrupts of kind `index`.
    pub(crate) fn irq(&self, index: u32) -> (u32, u32) {
        use crate::message::irq::{INTX, MSI};
        use irq_info_flags::{AUTOMASKED, EVENTFD, MASKABLE, NORESIZE};
        match index {
            INTX if self.intx => (EVENTFD | MASKABLE | AUTOMASKED, 1),
            MSI if self.msi => (EVENTFD | NORESIZE, 1),
            _ => (0, 0),
        }
    }
}
