//! Classifies the memory behind a DMA range, which decides how the device accesses it.
//!
//! SIGBUS ends a process that accesses a mapping of a file that has shrunk. So a file is mapped
//! only if it cannot shrink; the kernel guarantees that for sealed memory files:
//!
//! | file passed with the map | access |
//! | --- | --- |
//! | a memory file with `F_SEAL_SHRINK` | mapped |
//! | a memory file without (a file in a tmpfs, too) | by `pread` and `pwrite`, which give errors |
//! | another regular file, or one of huge pages | by messages |
//! | none | by messages |
//!
//! A file on a disk, a network or a FUSE file system may block a call for any time, and a hole in
//! a file of huge pages may raise SIGBUS when no huge page is left; hence messages.

use super::error::DmaError;
use super::mapping::Mapping;
use super::range::DmaRange;
use super::transfer::Bytes;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, OFlags, SealFlags, StatxFlags};
use rustix::io::Errno;
use std::sync::Arc;

/// `f_type` of a file of huge pages (Linux: `include/uapi/linux/magic.h`).
const HUGETLBFS: u32 = 0x9584_58F6;

/// Memory behind a range.
#[derive(Debug)]
pub(super) enum Memory {
    /// Copied.
    Mapped(Mapping),
    /// Moved by system calls.
    File(MemoryFile),
    /// The client moves it.
    Messages,
}

/// Part of a memory file that may shrink.
#[derive(Clone, Debug)]
pub(super) struct MemoryFile {
    pub(super) file: Arc<OwnedFd>,
    offset: u64,
}

/// Which file a descriptor leads to, and what it permits: equal for equal descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileId(u64, u64, OFlags);

impl Memory {
    /// Looks at what came with a map; maps it if that is safe.
    pub(super) fn of(range: &DmaRange, fd: OwnedFd, offset: u64) -> Result<Self, Errno> {
        let end = offset.checked_add(range.size).ok_or(Errno::INVAL)?;
        match Kind::of(&fd)? {
            Kind::Fixed(bytes) if end <= bytes => {
                may_access(&fd, range)?;
                let mapping =
                    Mapping::new(&fd, offset, range.size, range.readable, range.writable)?;
                Ok(Memory::Mapped(mapping))
            }
            Kind::Loose(bytes) if end <= bytes => {
                may_access(&fd, range)?;
                let file = Arc::new(fd);
                Ok(Memory::File(MemoryFile { file, offset }))
            }
            Kind::Other(bytes) if end <= bytes => {
                may_access(&fd, range)?;
                Ok(Memory::Messages)
            }
            Kind::Fixed(_) | Kind::Loose(_) | Kind::Other(_) => Err(Errno::INVAL),
        }
    }
}

/// Kinds of files, with their size in bytes.
enum Kind {
    /// Memory that cannot shrink.
    Fixed(u64),
    /// Memory that can.
    Loose(u64),
    /// A regular file of which nothing is known.
    Other(u64),
}

impl Kind {
    /// Asks the kernel alone: no question here goes to a file system that might wait.
    fn of(fd: &OwnedFd) -> Result<Self, Errno> {
        let seals = match rustix::fs::fcntl_get_seals(fd) {
            Ok(seals) => Some(seals),
            // No memory file.
            Err(Errno::INVAL) => None,
            Err(errno) => return Err(errno),
        };
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        let about = rustix::fs::statx(fd, "", flags, StatxFlags::TYPE | StatxFlags::SIZE)?;
        if FileType::from_raw_mode(about.stx_mode.into()) != FileType::RegularFile {
            return Err(Errno::INVAL);
        }
        let bytes = about.stx_size;
        let Some(seals) = seals else {
            return Ok(Kind::Other(bytes));
        };
        let file_system = rustix::fs::fstatfs(fd)?.f_type;
        if u32::try_from(file_system) == Ok(HUGETLBFS) {
            return Ok(Kind::Other(bytes));
        }
        Ok(if seals.contains(SealFlags::SHRINK) {
            Kind::Fixed(bytes)
        } else {
            Kind::Loose(bytes)
        })
    }
}

/// Does the descriptor permit what the range does? As for a shared mapping, it must permit
/// reading in any case.
fn may_access(fd: &OwnedFd, range: &DmaRange) -> Result<(), Errno> {
    let mode = rustix::fs::fcntl_getfl(fd)? & OFlags::RWMODE;
    if mode == OFlags::RDWR || (mode == OFlags::RDONLY && !range.writable) {
        Ok(())
    } else {
        Err(Errno::ACCESS)
    }
}

impl MemoryFile {
    /// Which file it is.
    pub(super) fn id(&self) -> Result<FileId, Errno> {
        let stat = rustix::fs::fstat(&self.file)?;
        let mode = rustix::fs::fcntl_getfl(&self.file)? & OFlags::RWMODE;
        Ok(FileId(stat.st_dev, stat.st_ino, mode))
    }

    /// Moves bytes from or to the file, `at` bytes into the range.
    pub(super) fn access(&self, address: u64, at: u64, bytes: Bytes<'_>) -> Result<(), DmaError> {
        match bytes {
            Bytes::Read(out) => self.read(address, at, out),
            Bytes::Write(data) => self.write(address, at, data),
        }
    }

    fn read(&self, address: u64, at: u64, mut out: &mut [u8]) -> Result<(), DmaError> {
        let mut place = self.offset.saturating_add(at);
        while !out.is_empty() {
            match rustix::io::pread(&self.file, &mut *out, place) {
                // The end of the file: it has shrunk.
                Ok(0) => return Err(failed(address, Errno::FAULT)),
                Ok(n) => {
                    out = out.get_mut(n..).unwrap_or_default();
                    place += n as u64;
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(failed(address, errno)),
            }
        }
        Ok(())
    }

    /// Copies into the file. A file that has shrunk does not grow again by it.
    fn write(&self, address: u64, at: u64, mut data: &[u8]) -> Result<(), DmaError> {
        let mut place = self.offset.saturating_add(at);
        let stat = rustix::fs::fstat(self.file.as_fd()).map_err(|errno| failed(address, errno))?;
        let end = place.saturating_add(data.len() as u64);
        if end > u64::try_from(stat.st_size).unwrap_or(0) {
            return Err(failed(address, Errno::FAULT));
        }
        while !data.is_empty() {
            match rustix::io::pwrite(&self.file, data, place) {
                Ok(0) => return Err(failed(address, Errno::IO)),
                Ok(n) => {
                    data = data.get(n..).unwrap_or_default();
                    place += n as u64;
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(failed(address, errno)),
            }
        }
        Ok(())
    }
}

fn failed(address: u64, errno: Errno) -> DmaError {
    DmaError::File { address, errno }
}
