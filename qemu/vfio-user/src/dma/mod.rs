//! The client's memory as the device sees it: the table of DMA maps.
//!
//! A range that came with a file descriptor is mapped and copied directly; a range
//! without one is read and written by messages to the client. An access may cross
//! from one range into the next.
//!
//! ```text
//!   iova 0x0000        0x10000        0x18000        0x20000
//!        |  memfd, rw  |   (nothing)  |  messages, r  |
//!        mapping: memcpy  -> Unmapped    DMA_READ over the socket
//! ```
//!
//! Any thread may use the table while the server's thread changes it. A change
//! waits for copies that are under way, so that after the reply to DMA_UNMAP nobody
//! touches the memory; it does not wait for messages.

#[allow(unsafe_code)]
mod mapping;

use crate::channel::Channel;
use crate::message::dma_flags;
use mapping::Mapping;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use thiserror::Error;

/// Most ranges at a time; the protocol's default for `max_dma_maps`.
pub const MAX_MAPS: usize = 65535;

/// Why a DMA access failed. Bytes before the failing one may have been transferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DmaError {
    /// No range holds this address.
    #[error("DMA address {0:#x} is not mapped")]
    Unmapped(u64),
    /// The range forbids this direction.
    #[error("DMA address {0:#x} does not permit this access")]
    Denied(u64),
    /// The access runs over the end of the address space.
    #[error("DMA access at {0:#x} runs over the end of the address space")]
    Overflow(u64),
    /// The client answered a DMA message with an error.
    #[error("the client refused DMA at {address:#x}: {errno}")]
    Refused {
        /// DMA address of the message.
        address: u64,
        /// What the client said.
        errno: Errno,
    },
    /// The client did not answer a DMA message in time.
    #[error("the client did not answer DMA at {0:#x} in time")]
    Timeout(u64),
    /// The client answered a DMA message with nonsense.
    #[error("the client answered DMA at {0:#x} with a malformed message")]
    Malformed(u64),
    /// There is no client any more.
    #[error("no client is connected")]
    Disconnected,
}

/// A range to be added to a [`DmaTable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DmaRange {
    /// First DMA address.
    pub iova: u64,
    /// Bytes, at least 1.
    pub size: u64,
    /// The device may read the range.
    pub readable: bool,
    /// The device may write the range.
    pub writable: bool,
}

impl DmaRange {
    /// A range for reading and writing.
    pub const fn read_write(iova: u64, size: u64) -> Self {
        Self {
            iova,
            size,
            readable: true,
            writable: true,
        }
    }

    /// Flags of the range in the protocol.
    pub(crate) fn flags(&self) -> u32 {
        let read = if self.readable { dma_flags::READ } else { 0 };
        let write = if self.writable { dma_flags::WRITE } else { 0 };
        read | write
    }
}

/// The DMA maps of the connected client; clones share them.
#[derive(Clone, Debug, Default)]
pub struct DmaTable {
    inner: Arc<RwLock<Table>>,
}

#[derive(Debug, Default)]
struct Table {
    /// By first address; never overlapping.
    ranges: BTreeMap<u64, Entry>,
    channel: Option<Arc<Channel>>,
}

#[derive(Debug)]
struct Entry {
    range: DmaRange,
    /// Absent: by message.
    mapping: Option<Mapping>,
}

/// How far one step of an access came.
enum Step {
    /// So many bytes were copied.
    Copied(usize),
    /// So many bytes have to go by message.
    Message(usize, Arc<Channel>),
}

impl DmaTable {
    /// An empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a range. With a file, it is `offset` bytes into it, and is mapped.
    ///
    /// Errors are those of DMA_MAP: `EINVAL` (empty, over the end of the address
    /// space or of the file), `EEXIST` (overlaps another range), `ENOSPC` (too many
    /// ranges), or what mapping the file gave.
    pub fn map(&self, range: DmaRange, file: Option<(OwnedFd, u64)>) -> Result<(), Errno> {
        // Addresses are compared by their last byte, so that a range may end with
        // the address space.
        if range.size == 0 || !(range.readable || range.writable) {
            return Err(Errno::INVAL);
        }
        let last = range.iova.checked_add(range.size - 1).ok_or(Errno::INVAL)?;
        let mapping = match &file {
            Some((fd, offset)) => Some(Mapping::new(
                fd.as_fd(),
                *offset,
                range.size,
                range.readable,
                range.writable,
            )?),
            None => None,
        };
        let mut table = self.inner.write().unwrap_or_else(PoisonError::into_inner);
        if table.ranges.len() >= MAX_MAPS {
            return Err(Errno::NOSPC);
        }
        if let Some((_, before)) = table.ranges.range(..=last).next_back()
            && before.last() >= range.iova
        {
            return Err(Errno::EXIST);
        }
        table.ranges.insert(range.iova, Entry { range, mapping });
        Ok(())
    }

    /// Removes a range, which must be exactly one that was added (`ENOENT`).
    pub fn unmap(&self, iova: u64, size: u64) -> Result<(), Errno> {
        let mut table = self.inner.write().unwrap_or_else(PoisonError::into_inner);
        match table.ranges.get(&iova) {
            Some(entry) if entry.range.size == size => {
                table.ranges.remove(&iova);
                Ok(())
            }
            _ => Err(Errno::NOENT),
        }
    }

    /// Removes all ranges.
    pub fn unmap_all(&self) {
        self.inner
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .ranges
            .clear();
    }

    /// Number of ranges.
    pub fn len(&self) -> usize {
        self.inner
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .ranges
            .len()
    }

    /// Are there no ranges?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sets or takes away the way to the client for DMA by message.
    pub(crate) fn set_channel(&self, channel: Option<Arc<Channel>>) {
        self.inner
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .channel = channel;
    }

    /// Reads `out.len()` bytes of the client's memory.
    ///
    /// Aligned words are read with single atomic loads (up to 512 bytes at a time).
    /// The calling thread may hold the device's lock. Only a range without a file
    /// makes it wait, at most for the DMA timeout of the server.
    pub fn read(&self, iova: u64, out: &mut [u8]) -> Result<(), DmaError> {
        check_end(iova, out.len())?;
        let mut done = 0;
        while done < out.len() {
            let address = iova + done as u64;
            let rest = &mut out[done..];
            let step = self.step(address, rest.len(), false, |mapping, offset, n| {
                mapping.read(offset, &mut rest[..n])
            })?;
            done += match step {
                Step::Copied(n) => n,
                Step::Message(n, channel) => {
                    channel.dma_read(address, &mut rest[..n])?;
                    n
                }
            };
        }
        Ok(())
    }

    /// Writes `data` to the client's memory.
    ///
    /// Aligned words are written with single atomic stores (up to 512 bytes at a
    /// time), and writes become visible in the order of the calls, so a host that
    /// polls an index never sees a torn or an early one. Waiting as for
    /// [`read`](Self::read).
    pub fn write(&self, iova: u64, data: &[u8]) -> Result<(), DmaError> {
        check_end(iova, data.len())?;
        let mut done = 0;
        while done < data.len() {
            let address = iova + done as u64;
            let rest = &data[done..];
            let step = self.step(address, rest.len(), true, |mapping, offset, n| {
                mapping.write(offset, &rest[..n])
            })?;
            done += match step {
                Step::Copied(n) => n,
                Step::Message(n, channel) => {
                    channel.dma_write(address, &rest[..n])?;
                    n
                }
            };
        }
        Ok(())
    }

    /// Does as much of an access of `len` bytes as lies in one range. The table is
    /// locked for a copy, but not for a message, which may take long.
    fn step(
        &self,
        address: u64,
        len: usize,
        write: bool,
        copy: impl FnOnce(&Mapping, usize, usize) -> bool,
    ) -> Result<Step, DmaError> {
        let table = self.inner.read().unwrap_or_else(PoisonError::into_inner);
        let entry = match table.ranges.range(..=address).next_back() {
            Some((_, entry)) if entry.last() >= address => entry,
            _ => return Err(DmaError::Unmapped(address)),
        };
        if !(if write {
            entry.range.writable
        } else {
            entry.range.readable
        }) {
            return Err(DmaError::Denied(address));
        }
        let offset = address - entry.range.iova;
        let there = entry.range.size - offset;
        let n = len.min(usize::try_from(there).unwrap_or(usize::MAX));
        match &entry.mapping {
            Some(mapping) => {
                let inside = usize::try_from(offset).is_ok_and(|offset| copy(mapping, offset, n));
                if inside {
                    Ok(Step::Copied(n))
                } else {
                    Err(DmaError::Unmapped(address))
                }
            }
            None => {
                let channel = table.channel.clone().ok_or(DmaError::Disconnected)?;
                Ok(Step::Message(n, channel))
            }
        }
    }
}

impl Entry {
    fn last(&self) -> u64 {
        // Does not overflow: `map` has checked it.
        self.range.iova + (self.range.size - 1)
    }
}

fn check_end(iova: u64, len: usize) -> Result<(), DmaError> {
    match iova.checked_add((len as u64).saturating_sub(1)) {
        Some(_) => Ok(()),
        None => Err(DmaError::Overflow(iova)),
    }
}
