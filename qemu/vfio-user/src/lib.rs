//! The vfio-user protocol: messages, a robust server and a client with posted writes.
//!
//! vfio-user is VFIO over a Unix socket: the device is in one process, its driver or a virtual
//! machine in another. This crate has both ends, for a small PCI device with one BAR,
//! configuration space, an interrupt pin and DMA:
//!
//! * [`Server`] serves a [`Device`]. It validates everything that a client sends, executes
//!   commands in batches, and supports threads that do DMA ([`DmaTable`]) and raise interrupts
//!   ([`Interrupts`]). A client that violates the protocol does not block other clients
//!   ([`server`] defines who may hold the device for how long).
//! * [`Client`] has timeouts, posted writes and typed errors.
//!
//! The protocol is libvfio-user's public specification; the server is loaded into
//! QEMU, so nothing here comes from code under another licence.
//!
//! ```no_run
//! use std::sync::{Arc, Mutex};
//! use vfio_user_nic::{Device, DeviceLayout, Errno, Server, ServerConfig};
//!
//! struct Scratch([u8; 0x4000]);
//!
//! impl Device for Scratch {
//!     fn region_read(&mut self, _: u32, at: u64, data: &mut [u8]) -> Result<(), Errno> {
//!         let at = at as usize; // inside the region: the server has checked it
//!         data.copy_from_slice(&self.0[at..at + data.len()]);
//!         Ok(())
//!     }
//!     fn region_write(&mut self, _: u32, at: u64, data: &[u8]) -> Result<(), Errno> {
//!         let at = at as usize;
//!         self.0[at..at + data.len()].copy_from_slice(data);
//!         Ok(())
//!     }
//!     fn reset(&mut self) -> Result<(), Errno> {
//!         self.0.fill(0);
//!         Ok(())
//!     }
//! }
//!
//! let config = ServerConfig::new(DeviceLayout::pci(0x4000));
//! let server = Server::bind("/tmp/card.sock", config)?;
//! let device = Arc::new(Mutex::new(Scratch([0; 0x4000])));
//! let thread = server.spawn(device)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// The one exception is the memory that a client has mapped, in `dma::mapping`.
#![deny(unsafe_code)]

mod channel;
pub mod client;
mod desk;
pub mod device;
mod disconnect;
mod dispatch;
pub mod dma;
mod door;
mod frame;
mod handshake;
pub mod interrupt;
mod listener;
pub mod message;
mod patience;
pub mod server;
mod socket;
pub mod version;

pub use client::{Client, ClientError, DmaHandler, Poster};
pub use device::{Device, DeviceLayout, DeviceLock, Region};
pub use disconnect::Disconnect;
pub use dma::{DmaError, DmaRange, DmaTable, Ticket};
pub use interrupt::{InterruptCounts, Interrupts};
pub use listener::BindError;
pub use rustix::io::Errno;
pub use server::{Server, ServerConfig, ServerCounters, ServerThread, StopHandle};
