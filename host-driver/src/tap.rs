//! The kernel's network stack as the user of the card: a TAP device.
//!
//! Frames that the kernel sends are read straight into DMA memory and frames
//! that the card received are written straight from it, so that the kernel's own
//! copy is the only one.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::OFlags;
use thiserror::Error;
use tun_rs::{DeviceBuilder, Layer, SyncDevice};

/// Frames that may wait in the kernel between the stack and the driver.
const QUEUE_FRAMES: u32 = 1000;

/// Why there is no TAP device.
#[derive(Debug, Error)]
pub enum TapError {
    /// The user may not make network devices.
    #[error(
        "no permission to make the TAP device {name}: run as root (CAP_NET_ADMIN), \
         or use the commands that need none, such as ping"
    )]
    NoPermission {
        /// Name of the device.
        name: String,
    },
    /// The machine offers no TAP devices.
    #[error("cannot make the TAP device {name}: /dev/net/tun is not there")]
    NotSupported {
        /// Name of the device.
        name: String,
    },
    /// The name cannot be one of a network device, or is taken.
    #[error("cannot make the TAP device {name}: {reason}")]
    Refused {
        /// Name of the device.
        name: String,
        /// What the system says.
        reason: String,
    },
}

/// A TAP device; it goes away when this is dropped.
pub struct Tap {
    device: SyncDevice,
    name: String,
}

impl Tap {
    /// Makes a TAP device with the card's station address, so that the stack above
    /// it answers for the card. It is left down unless `up` is set: whoever gives
    /// it an address brings it up, perhaps in a network namespace.
    ///
    /// # Errors
    /// [`TapError`], each with one clear reason.
    pub fn create(name: &str, station: [u8; 6], mtu: u16, up: bool) -> Result<Self, TapError> {
        let refuse = |error: io::Error| {
            let name = name.to_owned();
            match error.kind() {
                io::ErrorKind::PermissionDenied => TapError::NoPermission { name },
                io::ErrorKind::NotFound => TapError::NotSupported { name },
                _ => TapError::Refused {
                    name,
                    reason: error.to_string(),
                },
            }
        };
        let device = DeviceBuilder::new()
            .name(name)
            .layer(Layer::L2)
            .mac_addr(station)
            .mtu(mtu)
            .tx_queue_len(QUEUE_FRAMES)
            .enable(up)
            .build_sync()
            .map_err(refuse)?;
        let flags = rustix::fs::fcntl_getfl(&device).map_err(|error| refuse(error.into()))?;
        rustix::fs::fcntl_setfl(&device, flags | OFlags::NONBLOCK)
            .map_err(|error| refuse(error.into()))?;
        Ok(Self {
            device,
            name: name.to_owned(),
        })
    }

    /// The device's name when it was made.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
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
