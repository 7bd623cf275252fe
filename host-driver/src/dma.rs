//! DMA memory: what the driver and the card both read and write.
//!
//! A [`DmaMemory`] is one shared mapping of a memory file, known to the card
//! under an I/O virtual address (IOVA). The card may change any byte at any
//! time, so the memory is never handed out as a Rust slice: it is read and
//! written by offset, words as atomics and bytes by copying, and each access
//! is checked against the length. This is the only module of the crate that
//! uses `unsafe`.
//!
//! ```text
//!   offset 0                                   len()
//!   |------------------ mapping ------------------|   fd(): the memory file
//!   ^ iova()                                          shared with the card
//! ```
//!
//! Byte order (Hardware reference, section 6.4): the card moves descriptors,
//! indices and blocks so that the *value* of each 32-bit word is kept, and
//! packet data so that the *byte sequence* is kept. [`DmaMemory::read_word`]
//! therefore gives the number that the firmware wrote, and
//! [`DmaMemory::read_bytes`] the bytes of a frame.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};
use thiserror::Error;

/// Bytes in a page; mappings and IOVAs are multiples of it.
pub const PAGE_BYTES: usize = 4096;

/// The largest single piece of DMA memory that the driver makes, in bytes.
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
    /// A word access that is not 4-byte aligned.
    #[error("word access at offset {offset:#x} is not aligned")]
    Unaligned {
        /// The offset that was asked for.
        offset: usize,
    },
}

/// The mapping itself; unmapped when the last handle goes.
struct Mapping {
    base: NonNull<u8>,
    len: usize,
    file: OwnedFd,
}

// SAFETY: the mapping is plain memory that belongs to no thread; every access
// goes through raw pointers or atomics and none hands out a reference.
unsafe impl Send for Mapping {}
// SAFETY: as above; concurrent accesses are words as atomics, or byte copies
// whose contents nobody relies on while another party writes them.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: base and len are exactly what mmap returned, and no handle
        // is left that could touch the memory.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.len) };
    }
}

/// Shared memory with an address on the card's side; cheap to clone.
#[derive(Clone)]
pub struct DmaMemory {
    mapping: Arc<Mapping>,
    iova: u64,
}

impl std::fmt::Debug for DmaMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DmaMemory")
            .field("iova", &format_args!("{:#x}", self.iova))
            .field("len", &self.mapping.len)
            .finish()
    }
}

impl DmaMemory {
    /// Makes zeroed memory of at least `bytes` bytes (rounded up to pages) that
    /// the card will know as `iova`. The memory file is sealed against
    /// shrinking, so that neither side can take pages away from the other.
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
        let file =
            rustix::fs::memfd_create("tigon-dma", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        rustix::fs::ftruncate(&file, len as u64)?;
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
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
        Ok(Self {
            mapping: Arc::new(Mapping { base, len, file }),
            iova,
        })
    }

    /// Address of offset 0 as the card sees it.
    #[must_use]
    pub fn iova(&self) -> u64 {
        self.iova
    }

    /// Address of `offset` as the card sees it, if `bytes` bytes from there on are
    /// at consecutive addresses.
    ///
    /// # Errors
    /// [`DmaError`] if the range is outside the memory, or if the card's addresses
    /// jump within it.
    pub fn address(&self, offset: usize, bytes: usize) -> Result<u64, DmaError> {
        self.at(offset, bytes)?;
        Ok(self.iova + offset as u64)
    }

    /// Bytes of the memory (a multiple of [`PAGE_BYTES`]).
    #[must_use]
    pub fn len(&self) -> usize {
        self.mapping.len
    }

    /// Never true: memory of no bytes cannot be made.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.mapping.len == 0
    }

    /// The memory file behind the mapping (offset 0 of the file is offset 0 here).
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.mapping.file.as_fd()
    }

    /// Checks a range and gives its first byte.
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

    /// Reads the 32-bit value at `offset`; whatever the card wrote before it is
    /// seen by later reads.
    ///
    /// # Errors
    /// [`DmaError`] if the word is outside the memory or not aligned.
    pub fn read_word(&self, offset: usize) -> Result<u32, DmaError> {
        Ok(self.word(offset)?.load(Ordering::Acquire))
    }

    /// Writes the 32-bit value at `offset`; whatever was written before is
    /// visible to the card when it sees this word.
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

    /// Lets the kernel write one `read(2)` from `source` straight into the
    /// memory: the single copy of a frame that comes from a TAP device.
    /// Gives the bytes that came.
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

    /// Lets the kernel take one `write(2)` to `target` straight from the memory.
    /// Gives the bytes that went.
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

    /// Lets the kernel take one `writev(2)` to `target`: a header, then several pieces
    /// straight from the memory. Gives the bytes that went.
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream;

    fn memory() -> DmaMemory {
        DmaMemory::new(100, 0x10_0000).expect("a page of memory")
    }

    #[test]
    fn is_zeroed_rounded_and_shared_between_clones() {
        let memory = memory();
        assert_eq!(memory.len(), PAGE_BYTES);
        assert_eq!(memory.iova(), 0x10_0000);
        assert_eq!(memory.read_word(PAGE_BYTES - 4), Ok(0));
        let clone = memory.clone();
        clone.write_word(8, 0x0102_0304).unwrap();
        assert_eq!(memory.read_word(8), Ok(0x0102_0304));
    }

    #[test]
    fn refuses_every_range_that_leaves_the_memory() {
        let memory = memory();
        let len = PAGE_BYTES;
        let out = |offset, bytes| Err(DmaError::OutOfBounds { offset, bytes, len });
        assert_eq!(memory.read_word(len).map(|_| ()), out(len, 4));
        assert_eq!(memory.write_word(usize::MAX - 3, 1), out(usize::MAX - 3, 4));
        assert_eq!(memory.read_bytes(len - 1, &mut [0; 2]), out(len - 1, 2));
        assert_eq!(memory.write_bytes(len, &[1]), out(len, 1));
        assert_eq!(memory.clear(1, usize::MAX), out(1, usize::MAX));
        assert_eq!(memory.write_words(len - 4, &[1, 2]), out(len - 4, 8));
        assert_eq!(memory.read_word(len - 4), Ok(0), "nothing was written");
        assert_eq!(memory.read_bytes(len, &mut []), Ok(()));
        let (left, _right) = UnixStream::pair().unwrap();
        assert_eq!(
            memory
                .read_from(left.as_fd(), len - 1, 2)
                .unwrap_err()
                .kind(),
            io::ErrorKind::InvalidInput
        );
    }

    #[test]
    fn refuses_unaligned_words() {
        assert_eq!(
            memory().read_word(2),
            Err(DmaError::Unaligned { offset: 2 })
        );
    }

    #[test]
    fn refuses_sizes_and_addresses_that_make_no_sense() {
        for (bytes, iova) in [
            (0, 0),
            (MAX_BYTES + 1, 0),
            (4096, 1),
            (8192, u64::MAX - 4095),
        ] {
            let error = DmaMemory::new(bytes, iova).unwrap_err();
            assert_eq!(
                error.kind(),
                io::ErrorKind::InvalidInput,
                "{bytes} {iova:x}"
            );
        }
    }

    #[test]
    fn moves_bytes_to_and_from_a_file_descriptor_without_a_buffer() {
        let memory = memory();
        let (mut left, right) = UnixStream::pair().unwrap();
        left.write_all(b"a frame").unwrap();
        assert_eq!(memory.read_from(right.as_fd(), 3, 64).unwrap(), 7);
        let mut seen = [0; 7];
        memory.read_bytes(3, &mut seen).unwrap();
        assert_eq!(&seen, b"a frame");
        assert_eq!(memory.write_to(right.as_fd(), 5, 5).unwrap(), 5);
        let mut back = [0; 5];
        left.read_exact(&mut back).unwrap();
        assert_eq!(&back, b"frame");
    }

    #[test]
    fn the_memory_file_holds_the_same_bytes_and_cannot_be_shrunk() {
        let memory = memory();
        memory.write_bytes(16, b"shared").unwrap();
        let mut seen = [0; 6];
        rustix::io::pread(memory.fd(), &mut seen, 16).unwrap();
        assert_eq!(&seen, b"shared");
        assert!(rustix::fs::ftruncate(memory.fd(), 0).is_err());
    }
}
