//! DMA memory, which driver and card both read and write.
//!
//! A [`DmaMemory`] is one shared mapping of a memory file, known to the card under an I/O virtual
//! address (IOVA). The card may change any byte at any time, so the driver never takes a Rust
//! slice of the memory: it accesses it by offset, words as atomics and bytes by copying, and
//! checks each access against the length. Besides the mapped registers and the requests of kernel
//! VFIO this is the only module of the crate that uses `unsafe`.
//!
//! ```text
//!   offset 0                                   len()
//!   |------------------ mapping ------------------|   fd(): the memory file
//!   ^ iova()                                          shared with the card
//! ```
//!
//! Byte order (hardware reference, section 6.4): for descriptors, indices and blocks the card
//! keeps the *value* of each 32-bit word; for packet data it keeps the *byte sequence*.
//! [`DmaMemory::read_word`] therefore returns the number that the firmware wrote, and
//! [`DmaMemory::read_bytes`] the bytes of a frame.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use eudp::Access;
use rustix::fs::{MemfdFlags, SealFlags};
use thiserror::Error;

mod addresses;
mod mapping;
#[cfg(test)]
mod tests;

use addresses::Addresses;
use mapping::Mapping;

/// Bytes in a page; mappings and IOVAs are multiples of it.
pub const PAGE_BYTES: usize = 4096;

/// Bytes in a huge page.
pub(crate) const HUGE_PAGE_BYTES: usize = 2 << 20;

/// The largest piece of DMA memory that the driver allocates, in bytes.
pub const MAX_BYTES: usize = 256 << 20;

/// An access that does not fit the memory.
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
pub enum DmaError {
    /// The range reaches beyond the end.
    #[error("{bytes} bytes at offset {offset:#x} do not fit DMA memory of {len} bytes")]
    OutOfBounds {
        /// First byte of the access.
        offset: usize,
        /// Bytes of the access.
        bytes: usize,
        /// Bytes of the memory.
        len: usize,
    },
    /// The card has no contiguous address for the range.
    #[error("{bytes} bytes at offset {offset:#x} are not contiguous for the card")]
    NotContiguous {
        /// First byte of the range.
        offset: usize,
        /// Bytes of the range.
        bytes: usize,
    },
    /// A word access that is not 4-byte aligned.
    #[error("word access at offset {offset:#x} is not aligned")]
    Unaligned {
        /// The offset that was asked for.
        offset: usize,
    },
}

/// Shared memory with an address for the card; cheap to clone.
#[derive(Clone)]
pub struct DmaMemory {
    mapping: Arc<Mapping>,
    addresses: Addresses,
    access: Access,
}

impl std::fmt::Debug for DmaMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DmaMemory")
            .field("iova", &format_args!("{:#x}", self.iova()))
            .field("len", &self.mapping.len)
            .finish()
    }
}

impl DmaMemory {
    /// Allocates zeroed memory of at least `bytes` bytes (rounded up to pages) that the card will
    /// know as `iova`. The memory file is sealed against shrinking, so neither side can take pages
    /// away from the other.
    ///
    /// # Errors
    /// `InvalidInput` if `bytes` is zero or above [`MAX_BYTES`], or if `iova` is
    /// not page aligned or the range wraps; otherwise what the system says.
    pub fn new(bytes: usize, iova: u64) -> io::Result<Self> {
        if bytes == 0 || bytes > MAX_BYTES {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("DMA memory of {bytes} bytes: must be 1 to {MAX_BYTES}"),
            ));
        }
        let len = bytes.next_multiple_of(PAGE_BYTES);
        if !iova.is_multiple_of(PAGE_BYTES as u64) || iova.checked_add(len as u64).is_none() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("DMA address {iova:#x}: must be page aligned and not wrap"),
            ));
        }
        let mapping = Mapping::new(len, MemfdFlags::empty())?;
        Ok(Self {
            mapping: Arc::new(mapping),
            addresses: Addresses::at(iova),
            access: Access::ReadWrite,
        })
    }

    /// Maps a memory file of someone else, which the card will know as `iova`. The file must be
    /// sealed against shrinking and growing, so that no page of it can be taken away.
    ///
    /// # Errors
    /// `InvalidInput` if the file is empty, no multiple of pages, above [`MAX_BYTES`] or not
    /// sealed, or for `iova` as [`DmaMemory::new`]; otherwise what the system says.
    pub fn of_file(file: OwnedFd, iova: u64) -> io::Result<Self> {
        let refused = |why: &str| io::Error::new(io::ErrorKind::InvalidInput, why.to_owned());
        let fixed = SealFlags::SHRINK | SealFlags::GROW;
        if !rustix::fs::fcntl_get_seals(&file)?.contains(fixed) {
            return Err(refused("a memory file that can shrink or grow"));
        }
        let len = usize::try_from(rustix::fs::fstat(&file)?.st_size).unwrap_or(usize::MAX);
        if len == 0 || len > MAX_BYTES || !len.is_multiple_of(PAGE_BYTES) {
            return Err(refused("a memory file of an impossible size"));
        }
        if !iova.is_multiple_of(PAGE_BYTES as u64) || iova.checked_add(len as u64).is_none() {
            return Err(refused("a DMA address that is not page aligned, or wraps"));
        }
        Ok(Self {
            mapping: Arc::new(Mapping::of_file(file, len)?),
            addresses: Addresses::at(iova),
            access: Access::ReadWrite,
        })
    }

    /// The same memory, with which the card may do what `access` says.
    #[must_use]
    pub fn for_card(self, access: Access) -> Self {
        Self { access, ..self }
    }

    /// What the card may do with it.
    #[must_use]
    pub fn access(&self) -> Access {
        self.access
    }

    /// Allocates zeroed memory of at least `bytes` bytes in huge pages, which stay in place in
    /// physical memory. `find` receives an address of this process and a number of bytes, and
    /// returns the addresses of these pages for the card.
    ///
    /// `InvalidInput` as [`DmaMemory::new`]; if no such pages are free; the errors of `find`.
    pub(crate) fn huge(
        bytes: usize,
        find: impl FnOnce(u64, usize) -> io::Result<Vec<u64>>,
    ) -> io::Result<Self> {
        if bytes == 0 || bytes > MAX_BYTES {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("DMA memory of {bytes} bytes: must be 1 to {MAX_BYTES}"),
            ));
        }
        let len = bytes.next_multiple_of(HUGE_PAGE_BYTES);
        let mapping = Mapping::new(len, MemfdFlags::HUGETLB | MemfdFlags::HUGE_2MB)?;
        let mut memory = Self {
            mapping: Arc::new(mapping),
            addresses: Addresses::at(0),
            access: Access::ReadWrite,
        };
        // A page exists once it was touched, and the lock keeps it in place.
        for offset in (0..len).step_by(PAGE_BYTES) {
            memory.write_word(offset, 0).map_err(io::Error::other)?;
        }
        memory.mapping.lock()?;
        let starts = find(memory.process_address(), len)?;
        if starts.len() * HUGE_PAGE_BYTES != len {
            return Err(io::Error::other("a huge page without an address"));
        }
        memory.addresses = Addresses::in_pieces(HUGE_PAGE_BYTES, starts);
        Ok(memory)
    }

    /// Address of offset 0 in this process, for the kernel.
    #[must_use]
    pub(crate) fn process_address(&self) -> u64 {
        self.mapping.base.as_ptr() as u64
    }

    /// The card's address of offset 0.
    #[must_use]
    pub fn iova(&self) -> u64 {
        self.addresses.first()
    }

    /// The card's address of `offset`, if `bytes` bytes from there on are contiguous for the card.
    ///
    /// # Errors
    /// [`DmaError`] if the range is outside the memory, or if the card's addresses
    /// jump within it.
    pub fn address(&self, offset: usize, bytes: usize) -> Result<u64, DmaError> {
        self.at(offset, bytes)?;
        let jump = DmaError::NotContiguous { offset, bytes };
        self.addresses.of(offset, bytes).ok_or(jump)
    }

    /// Bytes of the memory (a multiple of [`PAGE_BYTES`]).
    #[must_use]
    pub fn len(&self) -> usize {
        self.mapping.len
    }

    /// Always false: memory of zero bytes cannot be created.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.mapping.len == 0
    }

    /// The memory file behind the mapping (offset 0 of the file is offset 0 here).
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.mapping.file.as_fd()
    }

    /// Checks a range and returns its first byte.
    fn at(&self, offset: usize, bytes: usize) -> Result<NonNull<u8>, DmaError> {
        let len = self.mapping.len;
        match offset.checked_add(bytes) {
            Some(end) if end <= len => {
                // SAFETY: offset <= end <= len, so the pointer stays inside the
                // mapping or one past its end.
                Ok(unsafe { self.mapping.base.add(offset) })
            }
            _ => Err(DmaError::OutOfBounds { offset, bytes, len }),
        }
    }

    /// The word at `offset` as an atomic.
    fn word(&self, offset: usize) -> Result<&AtomicU32, DmaError> {
        if !offset.is_multiple_of(4) {
            return Err(DmaError::Unaligned { offset });
        }
        let pointer = self.at(offset, 4)?;
        // SAFETY: in bounds, aligned (the mapping is page aligned), valid as long
        // as self lives, and this process accesses words only as atomics. The
        // card is another process: its aligned word stores are single stores.
        Ok(unsafe { AtomicU32::from_ptr(pointer.as_ptr().cast()) })
    }

    /// Reads the 32-bit value at `offset`; later reads see everything that the card wrote before
    /// it.
    ///
    /// # Errors
    /// [`DmaError`] if the word is outside the memory or not aligned.
    pub fn read_word(&self, offset: usize) -> Result<u32, DmaError> {
        Ok(self.word(offset)?.load(Ordering::Acquire))
    }

    /// Writes the 32-bit value at `offset`; a card that sees this word also sees all earlier
    /// writes.
    ///
    /// # Errors
    /// [`DmaError`] if the word is outside the memory or not aligned.
    pub fn write_word(&self, offset: usize, value: u32) -> Result<(), DmaError> {
        self.word(offset)?.store(value, Ordering::Release);
        Ok(())
    }

    /// Reads `out.len()` consecutive words.
    ///
    /// # Errors
    /// [`DmaError`] if any word is outside the memory or not aligned.
    pub fn read_words(&self, offset: usize, out: &mut [u32]) -> Result<(), DmaError> {
        self.at(offset, out.len().saturating_mul(4))?;
        for (index, word) in out.iter_mut().enumerate() {
            *word = self.read_word(offset + 4 * index)?;
        }
        Ok(())
    }

    /// Writes consecutive words, in ascending order.
    ///
    /// # Errors
    /// [`DmaError`] if any word is outside the memory or not aligned; nothing is
    /// written then.
    pub fn write_words(&self, offset: usize, words: &[u32]) -> Result<(), DmaError> {
        self.at(offset, words.len().saturating_mul(4))?;
        for (index, word) in words.iter().enumerate() {
            self.write_word(offset + 4 * index, *word)?;
        }
        Ok(())
    }

    /// Copies bytes out of the memory.
    ///
    /// # Errors
    /// [`DmaError`] if the range is outside the memory.
    pub fn read_bytes(&self, offset: usize, out: &mut [u8]) -> Result<(), DmaError> {
        let from = self.at(offset, out.len())?;
        // SAFETY: the source range was checked, the destination is a Rust slice
        // and cannot overlap the mapping, of which no slices exist. If the card
        // writes at the same time the copy holds some mixture of bytes, which is
        // all that a caller may expect of memory that the card owns.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), out.as_mut_ptr(), out.len()) };
        Ok(())
    }

    /// Copies bytes into the memory.
    ///
    /// # Errors
    /// [`DmaError`] if the range is outside the memory; nothing is written then.
    pub fn write_bytes(&self, offset: usize, bytes: &[u8]) -> Result<(), DmaError> {
        let to = self.at(offset, bytes.len())?;
        // SAFETY: the destination range was checked; the source is a Rust slice
        // and cannot overlap the mapping, of which no slices exist.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.as_ptr(), bytes.len()) };
        Ok(())
    }

    /// Sets a range to zero.
    ///
    /// # Errors
    /// [`DmaError`] if the range is outside the memory.
    pub fn clear(&self, offset: usize, bytes: usize) -> Result<(), DmaError> {
        let to = self.at(offset, bytes)?;
        // SAFETY: the range was checked and no reference to it exists.
        unsafe { std::ptr::write_bytes(to.as_ptr(), 0, bytes) };
        Ok(())
    }

    /// Makes the kernel write one `read(2)` from `source` straight into the memory: the only copy
    /// of a frame from a TAP device. Returns the number of bytes read.
    ///
    /// # Errors
    /// The range is outside the memory (`InvalidInput`), or what `read` says.
    pub fn read_from(
        &self,
        source: BorrowedFd<'_>,
        offset: usize,
        bytes: usize,
    ) -> io::Result<usize> {
        let to = self
            .at(offset, bytes)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        // SAFETY: the kernel writes at most `bytes` bytes to a range that was
        // checked, through a raw pointer; no reference to it exists.
        let count = unsafe { libc::read(source.as_raw_fd(), to.as_ptr().cast(), bytes) };
        usize::try_from(count).map_err(|_| io::Error::last_os_error())
    }

    /// Makes the kernel do one `write(2)` to `target` straight from the memory. Returns the number
    /// of bytes written.
    ///
    /// # Errors
    /// The range is outside the memory (`InvalidInput`), or what `write` says.
    pub fn write_to(
        &self,
        target: BorrowedFd<'_>,
        offset: usize,
        bytes: usize,
    ) -> io::Result<usize> {
        let from = self
            .at(offset, bytes)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        // SAFETY: the kernel reads exactly from a range that was checked.
        let count = unsafe { libc::write(target.as_raw_fd(), from.as_ptr().cast(), bytes) };
        usize::try_from(count).map_err(|_| io::Error::last_os_error())
    }

    /// Makes the kernel do one `writev(2)` to `target`: a header, then several pieces straight from
    /// the memory. Returns the number of bytes written.
    ///
    /// # Errors
    /// A range is outside the memory (`InvalidInput`), or what `writev` says.
    pub fn write_pieces_to(
        &self,
        target: BorrowedFd<'_>,
        header: &[u8],
        pieces: &[(usize, usize)],
    ) -> io::Result<usize> {
        let mut parts = vec![libc::iovec {
            iov_base: header.as_ptr().cast_mut().cast(),
            iov_len: header.len(),
        }];
        for (offset, bytes) in pieces {
            let from = self
                .at(*offset, *bytes)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
            parts.push(libc::iovec {
                iov_base: from.as_ptr().cast(),
                iov_len: *bytes,
            });
        }
        let count = libc::c_int::try_from(parts.len())
            .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        // SAFETY: the kernel only reads, from the borrowed header and from ranges that
        // were checked; the list of parts lives until it returns.
        let count = unsafe { libc::writev(target.as_raw_fd(), parts.as_ptr(), count) };
        usize::try_from(count).map_err(|_| io::Error::last_os_error())
    }
}
