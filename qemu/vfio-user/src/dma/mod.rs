//! The client's memory as the device sees it: the table of DMA maps.
//!
//! A range with a memory file that cannot shrink is mapped and copied directly; all other ranges
//! are accessed in ways that may block (`memory`). An access may cross from one range into the
//! next.
//!
//! ```text
//!   iova 0x0000        0x10000        0x18000        0x20000
//!        |  memfd, rw  |   (nothing)  |  messages, r  |
//!        mapping: memcpy  -> Unmapped    DMA_READ over the socket
//! ```
//!
//! Any thread may use the table while the server's thread changes it. A change waits for copies in
//! progress, so no thread accesses the memory after the reply to DMA_UNMAP; it does not wait for
//! messages.
//!
//! A device that must not wait for its client (because others wait for the device) checks
//! [`DmaTable::waits`] first, uses [`DmaTable::read_now`] and [`DmaTable::write_now`], and leaves
//! the rest to another thread, with a [`Ticket`]: no byte is transferred after
//! [`DmaTable::cancel`] or after the client has disconnected.

mod access;
pub(crate) mod error;
#[allow(unsafe_code)]
mod mapping;
mod memory;
mod range;
pub(crate) mod transfer;

pub use error::DmaError;
pub use range::DmaRange;

use crate::channel::Channel;
use memory::{FileId, Memory, MemoryFile};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};

/// Most ranges at a time, announced as `max_dma_maps`. Each may take a mapping of this
/// process, of which Linux gives it 65530 by default, and threads and allocators need some.
pub const MAX_MAPS: usize = 4096;

/// Most bytes that are mapped at a time, so that the address space remains this process's.
pub const MAX_MAPPED_BYTES: u64 = 1 << 40;

/// Most memory files that are kept open at a time because they may shrink.
pub const MAX_FILES: usize = 64;

/// The DMA maps of the connected client; clones share them.
#[derive(Clone, Debug, Default)]
pub struct DmaTable {
    shared: Arc<Shared>,
}

/// The permission to access the memory of the client that was connected when it was given,
/// until it is taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(u64);

#[derive(Debug, Default)]
struct Shared {
    table: RwLock<Table>,
    /// Held while a file is read or written, so that a change can wait for it.
    files: Mutex<()>,
    /// Of the tickets that are valid.
    ticket: AtomicU64,
    /// Ranges that are not mapped.
    waiting: AtomicUsize,
}

#[derive(Debug, Default)]
struct Table {
    /// By first address; never overlapping.
    ranges: BTreeMap<u64, Entry>,
    mapped_bytes: u64,
    /// The files behind ranges that are not mapped, each opened once.
    files: Vec<(FileId, Weak<OwnedFd>)>,
    channel: Option<Arc<Channel>>,
}

#[derive(Debug)]
struct Entry {
    range: DmaRange,
    memory: Memory,
}

impl DmaTable {
    /// An empty table.
    pub fn new() -> Self {
        Self::default()
    }

    fn table(&self) -> RwLockReadGuard<'_, Table> {
        let table = self.shared.table.read();
        table.unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self) -> RwLockWriteGuard<'_, Table> {
        let table = self.shared.table.write();
        table.unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a range. With a file, it is `offset` bytes into it; what kind of file decides
    /// how its memory is moved.
    ///
    /// Errors are those of DMA_MAP: `EINVAL` (empty, over the end of the address
    /// space or of the file), `EEXIST` (overlaps another range), `ENOSPC` (too many
    /// ranges, bytes or files), or what the kernel says of the file.
    pub fn map(&self, range: DmaRange, file: Option<(OwnedFd, u64)>) -> Result<(), Errno> {
        // Addresses are compared by their last byte, so that a range may end with
        // the address space.
        if range.size == 0 || !(range.readable || range.writable) {
            return Err(Errno::INVAL);
        }
        let last = range.iova.checked_add(range.size - 1).ok_or(Errno::INVAL)?;
        let mut memory = match file {
            Some((fd, offset)) => Memory::of(&range, fd, offset)?,
            None => Memory::Messages,
        };
        let mut table = self.change();
        if table.ranges.len() >= MAX_MAPS {
            return Err(Errno::NOSPC);
        }
        if let Some((_, before)) = table.ranges.range(..=last).next_back()
            && before.last() >= range.iova
        {
            return Err(Errno::EXIST);
        }
        match &mut memory {
            Memory::Mapped(_) => {
                let bytes = table.mapped_bytes.saturating_add(range.size);
                if bytes > MAX_MAPPED_BYTES {
                    return Err(Errno::NOSPC);
                }
                table.mapped_bytes = bytes;
            }
            Memory::File(file) => table.share(file)?,
            Memory::Messages => {}
        }
        let entry = Entry { range, memory };
        let waits = usize::from(entry.waits());
        self.shared.waiting.fetch_add(waits, Ordering::Relaxed);
        table.ranges.insert(range.iova, entry);
        Ok(())
    }

    /// Removes a range, which must be exactly one that was added (`ENOENT`).
    pub fn unmap(&self, iova: u64, size: u64) -> Result<(), Errno> {
        let mut table = self.change();
        let entry = match table.ranges.get(&iova) {
            Some(entry) if entry.range.size == size => table.ranges.remove(&iova),
            _ => None,
        };
        let entry = entry.ok_or(Errno::NOENT)?;
        if matches!(entry.memory, Memory::Mapped(_)) {
            table.mapped_bytes -= size;
        }
        let waits = usize::from(entry.waits());
        self.shared.waiting.fetch_sub(waits, Ordering::Relaxed);
        drop(table);
        if waits != 0 {
            self.files_are_left_alone();
        }
        Ok(())
    }

    /// Removes all ranges.
    pub fn unmap_all(&self) {
        let mut table = self.change();
        let ranges = std::mem::take(&mut table.ranges);
        table.files.clear();
        table.mapped_bytes = 0;
        let waiting = self.shared.waiting.swap(0, Ordering::Relaxed);
        drop(table);
        // Others need not wait until the kernel has taken all of it apart.
        drop(ranges);
        if waiting != 0 {
            self.files_are_left_alone();
        }
    }

    /// Waits until nobody reads or writes a file that was found before this call.
    fn files_are_left_alone(&self) {
        drop(self.files());
    }

    /// Number of ranges.
    pub fn len(&self) -> usize {
        self.table().ranges.len()
    }

    /// Are there no ranges?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sets or takes away the way to the client for DMA by message; ends all tickets.
    pub(crate) fn set_channel(&self, channel: Option<Arc<Channel>>) {
        self.shared.ticket.fetch_add(1, Ordering::SeqCst);
        self.change().channel = channel;
    }

    /// A ticket for accesses to the client that is connected now.
    pub fn ticket(&self) -> Ticket {
        Ticket(self.shared.ticket.load(Ordering::SeqCst))
    }

    /// Takes back all tickets: accesses with them end soon with an error, and nothing of
    /// them reaches the client's memory behind the server's next reply.
    pub fn cancel(&self) {
        self.shared.ticket.fetch_add(1, Ordering::SeqCst);
        self.files_are_left_alone();
        let channel = self.table().channel.clone();
        if let Some(channel) = channel {
            channel.look_again();
        }
    }
}

impl Table {
    /// Opens a file once, however often parts of it are mapped.
    fn share(&mut self, memory: &mut MemoryFile) -> Result<(), Errno> {
        let id = memory.id()?;
        self.files.retain(|(_, file)| file.strong_count() > 0);
        let known = self.files.iter().find(|(other, _)| *other == id);
        if let Some(file) = known.and_then(|(_, file)| file.upgrade()) {
            memory.file = file;
            return Ok(());
        }
        if self.files.len() >= MAX_FILES {
            return Err(Errno::NOSPC);
        }
        self.files.push((id, Arc::downgrade(&memory.file)));
        Ok(())
    }
}

impl Entry {
    fn last(&self) -> u64 {
        // Does not overflow: `map` has checked it.
        self.range.iova + (self.range.size - 1)
    }

    fn waits(&self) -> bool {
        !matches!(self.memory, Memory::Mapped(_))
    }
}
