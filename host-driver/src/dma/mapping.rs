//! A memory file that is mapped into this process.

use std::io;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};

/// The mapping, unmapped with its last handle.
pub(super) struct Mapping {
    pub base: NonNull<u8>,
    pub len: usize,
    pub file: OwnedFd,
}

// SAFETY: the mapping is plain memory that belongs to no thread; every access
// goes through raw pointers or atomics and none hands out a reference.
unsafe impl Send for Mapping {}
// SAFETY: as above; concurrent accesses are words as atomics, or byte copies
// whose contents nobody relies on while another party writes them.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Creates and maps a memory file of `len` bytes, sealed against shrinking.
    pub fn new(len: usize, flags: MemfdFlags) -> io::Result<Self> {
        let flags = flags | MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("tigon-dma", flags)?;
        rustix::fs::ftruncate(&file, len as u64)?;
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        Self::of_file(file, len)
    }

    /// Maps a memory file of `len` bytes, which is sealed against shrinking.
    pub fn of_file(file: OwnedFd, len: usize) -> io::Result<Self> {
        // SAFETY: a fresh shared mapping at an address of the kernel's choice;
        // nothing else in the process knows it.
        let base = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                &file,
                0,
            )?
        };
        let base = NonNull::new(base.cast::<u8>())
            .ok_or_else(|| io::Error::other("the system mapped DMA memory at address 0"))?;
        Ok(Self { base, len, file })
    }

    /// Locks the pages in memory.
    pub fn lock(&self) -> io::Result<()> {
        // SAFETY: exactly the mapping; locking changes no contents.
        unsafe { rustix::mm::mlock(self.base.as_ptr().cast(), self.len) }.map_err(io::Error::from)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: base and len are exactly what mmap returned, and no handle
        // is left that could touch the memory.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.len) };
    }
}
