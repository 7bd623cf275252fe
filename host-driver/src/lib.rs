//! Linux userspace driver for the Tigon II (AceNIC).
//!
//! From the bottom: [`dma`] is memory that driver and card share, [`transport`]
//! the way to the card's registers, memory and interrupt.

#![deny(unsafe_code)]

#[allow(unsafe_code)]
pub mod dma;
pub mod transport;

pub use dma::{DmaError, DmaMemory};
pub use transport::{Transport, TransportError};
