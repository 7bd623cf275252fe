//! QEMU behind a safe trait.
//!
//! The rest of the crate uses QEMU only through [`Host`], so it can be tested without QEMU;
//! [`Qemu`] is the implementation.

use crate::ffi::HostOps;
use std::ffi::CString;
use vfio_user_nic::{DmaHandler, Errno};

/// What the card needs of the guest's machine. Every method is called with QEMU's big
/// lock held.
pub trait Host: Clone + Send + 'static {
    /// Copies out of the guest's memory; `false` if there is none.
    fn dma_read(&self, address: u64, out: &mut [u8]) -> bool;
    /// Copies into the guest's memory; `false` if there is none.
    fn dma_write(&self, address: u64, data: &[u8]) -> bool;
    /// The card is gone for good.
    fn gone(&self, message: &str);
    /// The card refused a request and continues.
    fn refused(&self, message: &str);
}

/// Serves the card's DMA messages out of the guest's memory.
pub(crate) struct GuestMemory<H>(pub(crate) H);

impl<H: Host> DmaHandler for GuestMemory<H> {
    fn dma_read(&mut self, address: u64, out: &mut [u8]) -> Result<(), Errno> {
        let done = self.0.dma_read(address, out);
        done.then_some(()).ok_or(Errno::FAULT)
    }

    fn dma_write(&mut self, address: u64, data: &[u8]) -> Result<(), Errno> {
        let done = self.0.dma_write(address, data);
        done.then_some(()).ok_or(Errno::FAULT)
    }
}

/// The QEMU that has loaded this library.
#[derive(Clone, Copy)]
pub struct Qemu {
    ops: HostOps,
}

// SAFETY: the handle in it is only given back to QEMU, which permits every thread that
// holds its big lock to call; and nothing else calls into this library.
unsafe impl Send for Qemu {}

impl Qemu {
    /// # Safety
    /// `ops` must be a complete structure of this version, with functions that stay
    /// callable with its `device` for as long as the client is open.
    pub unsafe fn new(ops: HostOps) -> Self {
        Qemu { ops }
    }

    /// Text as C wants it; nothing in it has zeros.
    fn text(message: &str) -> CString {
        CString::new(message).unwrap_or_default()
    }
}

impl Host for Qemu {
    fn dma_read(&self, address: u64, out: &mut [u8]) -> bool {
        let Ok(len) = u32::try_from(out.len()) else {
            return false;
        };
        // SAFETY: the promise of `new`; `out` may be written and has `len` bytes.
        unsafe { (self.ops.dma_read)(self.ops.device, address, out.as_mut_ptr().cast(), len) }
    }

    fn dma_write(&self, address: u64, data: &[u8]) -> bool {
        let Ok(len) = u32::try_from(data.len()) else {
            return false;
        };
        // SAFETY: the promise of `new`; `data` has `len` bytes.
        unsafe { (self.ops.dma_write)(self.ops.device, address, data.as_ptr().cast(), len) }
    }

    fn gone(&self, message: &str) {
        let message = Self::text(message);
        // SAFETY: the promise of `new`; the string ends with a zero and outlives the call.
        unsafe { (self.ops.gone)(self.ops.device, message.as_ptr()) }
    }

    fn refused(&self, message: &str) {
        let message = Self::text(message);
        // SAFETY: the promise of `new`; the string ends with a zero and outlives the call.
        unsafe { (self.ops.refused)(self.ops.device, message.as_ptr()) }
    }
}
