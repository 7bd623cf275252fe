//! Memory files that two processes map.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use rustix::fs::{FsWord, MemfdFlags, OFlags, SealFlags};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

use crate::words::Words;

/// The file system of memory files with pages of the usual size.
const TMPFS: FsWord = 0x0102_1994;

/// A memory file that can neither shrink nor grow, mapped for reading and writing.
#[derive(Debug)]
pub struct Mapping {
    file: OwnedFd,
    start: NonNull<AtomicU64>,
    words: usize,
    writable: bool,
}

// SAFETY: the mapping belongs to the process and not to a thread, and stays until `Mapping` is
// dropped; it is accessed only as atomic words.
unsafe impl Send for Mapping {}
// SAFETY: as above; all accesses through a shared reference are atomic.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Makes a memory file of `words` zero words and seals its size.
    ///
    /// # Errors
    /// The system's, for example without memory.
    pub fn create(words: usize) -> Result<Self, Errno> {
        let file =
            rustix::fs::memfd_create("dti", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        rustix::fs::ftruncate(&file, (words * 8) as u64)?;
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        Self::open(file)
    }

    /// Maps a memory file of the other side.
    ///
    /// # Errors
    /// `EPERM` if the file could shrink or grow, `EINVAL` if it is empty, and the system's.
    pub fn open(file: OwnedFd) -> Result<Self, Errno> {
        Self::map(file, true)
    }

    /// Maps any memory file of the other side. One that is sealed against writing, or was opened
    /// for reading only, is mapped so ([`Mapping::is_writable`]).
    ///
    /// # Errors
    /// As [`Mapping::open`]; `EPERM` also for a file of huge pages, whose memory may not be there
    /// when it is touched.
    pub fn open_foreign(file: OwnedFd) -> Result<Self, Errno> {
        if rustix::fs::fstatfs(&file)?.f_type != TMPFS {
            return Err(Errno::PERM);
        }
        let against_writing = SealFlags::WRITE | SealFlags::FUTURE_WRITE;
        let read_only = rustix::fs::fcntl_get_seals(&file)?.intersects(against_writing);
        let access = rustix::fs::fcntl_getfl(&file)? & OFlags::ACCMODE;
        Self::map(file, !read_only && access == OFlags::RDWR)
    }

    fn map(file: OwnedFd, writable: bool) -> Result<Self, Errno> {
        let fixed = SealFlags::SHRINK | SealFlags::GROW;
        if !rustix::fs::fcntl_get_seals(&file)?.contains(fixed) {
            return Err(Errno::PERM);
        }
        let bytes = usize::try_from(rustix::fs::fstat(&file)?.st_size).map_err(|_| Errno::INVAL)?;
        let words = bytes / 8;
        if words == 0 {
            return Err(Errno::INVAL);
        }
        let rights = if writable {
            ProtFlags::READ | ProtFlags::WRITE
        } else {
            ProtFlags::READ
        };
        // SAFETY: a new mapping at an address of the system's choice; nothing else stands there.
        let start = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                words * 8,
                rights,
                MapFlags::SHARED,
                &file,
                0,
            )?
        };
        let start = NonNull::new(start.cast()).ok_or(Errno::NOMEM)?;
        Ok(Self {
            file,
            start,
            words,
            writable,
        })
    }

    /// Whether it may be written; a store into one that may not panics.
    pub fn is_writable(&self) -> bool {
        self.writable
    }

    /// The memory file, to hand to the other side.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    fn all(&self) -> &[AtomicU64] {
        // SAFETY: `start` is page-aligned, `words` words are mapped until `self` is dropped, the
        // file's seals keep them there, and any bits are an `AtomicU64`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.words) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this is the mapping made in `open`; borrows of it have ended. It cannot fail.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.words * 8) };
    }
}

impl Words for Mapping {
    fn len(&self) -> usize {
        self.words
    }
    fn load(&self, index: usize, order: Ordering) -> u64 {
        self.all()[index].load(order)
    }
    fn store(&self, index: usize, value: u64, order: Ordering) {
        assert!(self.writable, "the memory file is sealed against writing");
        self.all()[index].store(value, order);
    }
    fn swap(&self, index: usize, value: u64, order: Ordering) -> u64 {
        assert!(self.writable, "the memory file is sealed against writing");
        self.all()[index].swap(value, order)
    }
    fn fence(&self) {
        fence(Ordering::SeqCst);
    }
}
