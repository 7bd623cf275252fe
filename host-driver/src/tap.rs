//! TAP devices: the card under the kernel's network stack.
//!
//! Frames from the kernel are read straight into DMA memory, and received frames are written
//! straight from it, so the kernel's own copy is the only one.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::OFlags;
use rustix::io::Errno;
use thiserror::Error;
use tun_rs::{DeviceBuilder, Layer, SyncDevice};

/// Frames that may wait in the kernel between the stack and the driver.
const QUEUE_FRAMES: u32 = 1000;

/// Why a TAP device cannot be created.
#[derive(Debug, Error)]
pub enum TapError {
    /// The user may not create network devices.
    #[error(
        "no permission to make the TAP device {name}: run as root (CAP_NET_ADMIN), \
         or use the commands that need none, such as ping"
    )]
    NoPermission {
        /// Name of the device.
        name: String,
    },
    /// The machine has no TAP support.
    #[error("cannot make the TAP device {name}: /dev/net/tun does not exist")]
    NotSupported {
        /// Name of the device.
        name: String,
    },
    /// The name is invalid or taken.
    #[error("cannot make the TAP device {name}: {reason}")]
    Refused {
        /// Name of the device.
        name: String,
        /// What the system says.
        reason: String,
    },
}

/// A TAP device; dropping it removes it.
pub struct Tap {
    device: SyncDevice,
    name: String,
}

impl Tap {
    /// Creates a TAP device with the card's station address, so that the stack above it answers for
    /// the card. It stays down unless `up` is set: the caller that assigns an address brings it up,
    /// perhaps in a network namespace.
    ///
    /// # Errors
    /// [`TapError`], each with one clear reason.
    pub fn create(name: &str, station: [u8; 6], mtu: u16, up: bool) -> Result<Self, TapError> {
        let device = builder(name, station, mtu, up)
            .build_sync()
            .map_err(|error| refused(name, error))?;
        Self::of(device, name)
    }

    /// Makes one as [`Tap::create`] does, which is up and has an address of a network with so many
    /// bits.
    ///
    /// # Errors
    /// [`TapError`], each with one clear reason.
    pub fn create_at(
        name: &str,
        station: [u8; 6],
        mtu: u16,
        (address, bits): (Ipv4Addr, u8),
    ) -> Result<Self, TapError> {
        let device = builder(name, station, mtu, true)
            .ipv4(address, bits, None)
            .build_sync()
            .map_err(|error| refused(name, error))?;
        Self::of(device, name)
    }

    /// Makes one as [`Tap::create`] does, with so many queues: a handle for each. The kernel
    /// hands the frames of a flow to the queue that last brought it frames of that flow, so
    /// who takes one direction of a flow and writes it here gets the other one, too.
    ///
    /// # Errors
    /// [`TapError`], each with one clear reason.
    pub fn create_queues(
        name: &str,
        station: [u8; 6],
        mtu: u16,
        up: bool,
        queues: usize,
    ) -> Result<Vec<Self>, TapError> {
        let refuse = |error| refused(name, error);
        let first = builder(name, station, mtu, up)
            .multi_queue(true)
            .build_sync()
            .map_err(refuse)?;
        let others = (1..queues).map(|_| first.try_clone().map_err(refuse));
        let others: Vec<SyncDevice> = others.collect::<Result<_, _>>()?;
        std::iter::once(first)
            .chain(others)
            .map(|device| Self::of(device, name))
            .collect()
    }

    fn of(device: SyncDevice, name: &str) -> Result<Self, TapError> {
        let refuse = |error: Errno| refused(name, error.into());
        let flags = rustix::fs::fcntl_getfl(&device).map_err(refuse)?;
        rustix::fs::fcntl_setfl(&device, flags | OFlags::NONBLOCK).map_err(refuse)?;
        Ok(Self {
            device,
            name: name.to_owned(),
        })
    }

    /// The device's name at creation.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

fn builder(name: &str, station: [u8; 6], mtu: u16, up: bool) -> DeviceBuilder {
    DeviceBuilder::new()
        .name(name)
        .layer(Layer::L2)
        .mac_addr(station)
        .mtu(mtu)
        .tx_queue_len(QUEUE_FRAMES)
        .enable(up)
}

fn refused(name: &str, error: io::Error) -> TapError {
    let name = name.to_owned();
    match error.kind() {
        io::ErrorKind::PermissionDenied => TapError::NoPermission { name },
        io::ErrorKind::NotFound => TapError::NotSupported { name },
        _ => TapError::Refused {
            name,
            reason: error.to_string(),
        },
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_too_long_is_refused_with_the_reason() {
        let name = "a-name-that-no-network-device-can-have";
        let error = Tap::create(name, [2, 0, 0, 0, 0, 1], 1500, false)
            .err()
            .expect("too long for the kernel");
        assert!(error.to_string().contains(name), "{error}");
    }
}
