//! Memory of the client, mapped into this process.
//!
//! This is the crate's only `unsafe` code. The client, another process, can read and write this
//! memory at any time, so no reference to it is ever created: bytes are copied through raw
//! pointers, aligned words as single atomic accesses.

use rustix::fd::AsFd;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering, fence};

/// Accesses up to this many bytes go word by word if they are aligned.
const WORDWISE_BYTES: usize = 512;

/// A mapped part of a file; unmapped when dropped.
///
/// # Invariants
/// `base .. base + mapped` is a live shared mapping made by [`Mapping::new`], and
/// `start + len <= mapped`.
#[derive(Debug)]
pub(super) struct Mapping {
    base: NonNull<u8>,
    mapped: usize,
    start: usize,
    len: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread; all access is by
// copies that tolerate concurrent change (see the module's text).
unsafe impl Send for Mapping {}
// SAFETY: as above; no method hands out a reference into the mapping.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `len` bytes from `offset` of the file behind `fd`, which must reach that far
    /// for ever: touching what is behind its end would raise SIGBUS.
    pub(super) fn new(
        fd: impl AsFd,
        offset: u64,
        len: u64,
        readable: bool,
        writable: bool,
    ) -> Result<Self, Errno> {
        let page = rustix::param::page_size() as u64;
        let start = offset % page;
        let mapped = (start + len)
            .checked_next_multiple_of(page)
            .ok_or(Errno::INVAL)?;
        let mapped = usize::try_from(mapped).map_err(|_| Errno::INVAL)?;
        let mut protection = ProtFlags::empty();
        protection.set(ProtFlags::READ, readable);
        protection.set(ProtFlags::WRITE, writable);
        // SAFETY: a new mapping at an address of the kernel's choice touches no
        // memory that exists already.
        let base = unsafe {
            mmap(
                std::ptr::null_mut(),
                mapped,
                protection,
                MapFlags::SHARED,
                &fd,
                offset - start,
            )?
        };
        let base = NonNull::new(base.cast()).ok_or(Errno::NOMEM)?;
        Ok(Self {
            base,
            mapped,
            start: start as usize,
            len: len as usize,
        })
    }

    /// Pointer to `len` bytes at `offset`, if they are inside.
    fn at(&self, offset: usize, len: usize) -> Option<*mut u8> {
        if offset.checked_add(len)? > self.len {
            return None;
        }
        // SAFETY: start + offset + len <= start + self.len <= mapped (invariant), so
        // the result stays inside the mapping.
        Some(unsafe { self.base.as_ptr().add(self.start + offset) })
    }

    /// Copies from the mapping. `false`: not inside; nothing is copied.
    pub(super) fn read(&self, offset: usize, out: &mut [u8]) -> bool {
        let Some(from) = self.at(offset, out.len()) else {
            return false;
        };
        if let Some(words) = words(from, out.len()) {
            for (i, chunk) in out.chunks_exact_mut(4).enumerate().take(words) {
                // SAFETY: `from` is aligned to 4 and has out.len() valid bytes (`at`,
                // `words`); atomics permit concurrent change.
                let word = unsafe { AtomicU32::from_ptr(from.cast::<u32>().add(i)) };
                chunk.copy_from_slice(&word.load(Ordering::Relaxed).to_ne_bytes());
            }
        } else {
            // SAFETY: `from` has out.len() valid bytes (`at`); `out` is our own
            // memory, so the two do not overlap. What another process changes in the
            // meantime gives old or new bytes, and every bit pattern is a valid u8.
            unsafe { std::ptr::copy_nonoverlapping(from, out.as_mut_ptr(), out.len()) };
        }
        // What the peer published before the bytes that were read is visible now.
        fence(Ordering::Acquire);
        true
    }

    /// Copies into the mapping. `false`: not inside; nothing is copied.
    pub(super) fn write(&self, offset: usize, data: &[u8]) -> bool {
        let Some(to) = self.at(offset, data.len()) else {
            return false;
        };
        // All earlier writes are visible before any of these: a peer that sees a new
        // index sees the data it covers.
        fence(Ordering::Release);
        if let Some(words) = words(to, data.len()) {
            for (i, chunk) in data.chunks_exact(4).enumerate().take(words) {
                let value = u32::from_ne_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]);
                // SAFETY: `to` is aligned to 4 and has data.len() valid bytes (`at`,
                // `words`); atomics permit concurrent access.
                let word = unsafe { AtomicU32::from_ptr(to.cast::<u32>().add(i)) };
                word.store(value, Ordering::Relaxed);
            }
        } else {
            // SAFETY: `to` has data.len() valid bytes (`at`); `data` is our own memory,
            // so the two do not overlap. A peer that reads meanwhile gets old or new
            // bytes; this process holds no reference into the mapping.
            unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), to, data.len()) };
        }
        true
    }
}

/// Number of words, if a pointer and a length are fit for access word by word.
fn words(pointer: *mut u8, len: usize) -> Option<usize> {
    (len <= WORDWISE_BYTES && len.is_multiple_of(4) && pointer.cast::<u32>().is_aligned())
        .then_some(len / 4)
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: base and mapped are those of the mapping made in `new`; nothing
        // points into it any more, since all access borrows `self`.
        // A failure could only mean that the range was invalid, which it is not.
        let _ = unsafe { munmap(self.base.as_ptr().cast::<c_void>(), self.mapped) };
    }
}
