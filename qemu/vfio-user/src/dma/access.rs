//! Reads and writes the client's memory, range by range.

use super::error::DmaError;
use super::memory::{Memory, MemoryFile};
use super::transfer::{Bytes, Wait};
use super::{DmaTable, Ticket};
use crate::channel::Channel;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Instant;

/// How far one step of an access came.
enum Step {
    /// So many bytes were copied.
    Copied(usize),
    /// So many bytes lie in a file, from there on in the range.
    File(usize, MemoryFile, u64),
    /// So many bytes have to go by message.
    Message(usize, Arc<Channel>),
}

impl DmaTable {
    /// Whether an access to this memory may have to wait, for the client or for a file.
    pub fn waits(&self, iova: u64, len: usize) -> bool {
        if self.shared.waiting.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let last = iova.saturating_add((len as u64).saturating_sub(1));
        let table = self.table();
        let mut ranges = table.ranges.range(..=last).rev();
        ranges
            .by_ref()
            .take_while(|(_, entry)| entry.last() >= iova)
            .any(|(_, entry)| entry.waits())
    }

    /// Reads `out.len()` bytes of the client's memory.
    ///
    /// Aligned words of mapped memory are read with single atomic loads (up to 512 bytes
    /// at a time). The calling thread may hold the device's lock. It waits for a range
    /// that is not mapped, at most for the server's patience in all.
    pub fn read(&self, iova: u64, out: &mut [u8]) -> Result<(), DmaError> {
        self.read_with(self.ticket(), iova, out)
    }

    /// Writes `data` to the client's memory.
    ///
    /// Aligned words of mapped memory are written with single atomic stores (up to 512
    /// bytes at a time), and writes become visible in the order of the calls, so a host
    /// that polls an index never sees a torn or an early one. Waiting as for
    /// [`read`](Self::read).
    pub fn write(&self, iova: u64, data: &[u8]) -> Result<(), DmaError> {
        self.write_with(self.ticket(), iova, data)
    }

    /// Reads with a ticket that was taken earlier.
    pub fn read_with(&self, ticket: Ticket, iova: u64, out: &mut [u8]) -> Result<(), DmaError> {
        self.transfer(Some(ticket), iova, Bytes::Read(out))
    }

    /// Writes with a ticket that was taken earlier.
    pub fn write_with(&self, ticket: Ticket, iova: u64, data: &[u8]) -> Result<(), DmaError> {
        self.transfer(Some(ticket), iova, Bytes::Write(data))
    }

    /// Reads without waiting: what is not mapped is an error.
    pub fn read_now(&self, iova: u64, out: &mut [u8]) -> Result<(), DmaError> {
        self.transfer(None, iova, Bytes::Read(out))
    }

    /// Writes without waiting: what is not mapped is an error.
    pub fn write_now(&self, iova: u64, data: &[u8]) -> Result<(), DmaError> {
        self.transfer(None, iova, Bytes::Write(data))
    }

    /// Moves bytes, range by range. Without a ticket it must not wait.
    fn transfer(
        &self,
        ticket: Option<Ticket>,
        iova: u64,
        mut bytes: Bytes<'_>,
    ) -> Result<(), DmaError> {
        let len = bytes.len();
        if iova.checked_add((len as u64).saturating_sub(1)).is_none() {
            return Err(DmaError::Overflow(iova));
        }
        let valid = || ticket == Some(self.ticket());
        let mut since = None;
        let mut done = 0;
        while done < len {
            let address = iova + done as u64;
            let mut rest = bytes.part(done, len);
            done += match self.step(address, &mut rest)? {
                Step::Copied(n) => n,
                _ if ticket.is_none() => return Err(DmaError::Waits(address)),
                Step::File(..) => self.file(address, &mut rest, &valid)?,
                Step::Message(n, channel) => {
                    let wait = Wait {
                        since: *since.get_or_insert_with(Instant::now),
                        valid: &valid,
                    };
                    channel.dma(wait, address, rest.part(0, n))?;
                    n
                }
            };
        }
        Ok(())
    }

    /// Reads or writes a file: as far as one range goes, or not at all if it is no more.
    fn file(
        &self,
        address: u64,
        rest: &mut Bytes<'_>,
        valid: &dyn Fn() -> bool,
    ) -> Result<usize, DmaError> {
        let _files = self.files();
        if !valid() {
            return Err(DmaError::Cancelled(address));
        }
        // Who takes a range away waits for the lock, so what is found now stays.
        match self.step(address, rest)? {
            Step::File(n, file, at) => file.access(address, at, rest.part(0, n)).map(|()| n),
            Step::Copied(n) => Ok(n),
            Step::Message(..) => Ok(0),
        }
    }

    /// Held while a file is read or written.
    pub(super) fn files(&self) -> MutexGuard<'_, ()> {
        let files = self.shared.files.lock();
        files.unwrap_or_else(PoisonError::into_inner)
    }

    /// Does as much of an access as lies in one range. The table is locked for a copy, but
    /// not for anything else, which may take long.
    fn step(&self, address: u64, bytes: &mut Bytes<'_>) -> Result<Step, DmaError> {
        let table = self.table();
        let entry = match table.ranges.range(..=address).next_back() {
            Some((_, entry)) if entry.last() >= address => entry,
            _ => return Err(DmaError::Unmapped(address)),
        };
        let permitted = match bytes {
            Bytes::Read(_) => entry.range.readable,
            Bytes::Write(_) => entry.range.writable,
        };
        if !permitted {
            return Err(DmaError::Denied(address));
        }
        let offset = address - entry.range.iova;
        let there = usize::try_from(entry.range.size - offset).unwrap_or(usize::MAX);
        let n = bytes.len().min(there);
        match &entry.memory {
            Memory::Mapped(mapping) => {
                let at = usize::try_from(offset).map_err(|_| DmaError::Unmapped(address))?;
                let inside = match bytes.part(0, n) {
                    Bytes::Read(out) => mapping.read(at, out),
                    Bytes::Write(data) => mapping.write(at, data),
                };
                inside
                    .then_some(Step::Copied(n))
                    .ok_or(DmaError::Unmapped(address))
            }
            Memory::File(file) => Ok(Step::File(n, file.clone(), offset)),
            Memory::Messages => {
                let channel = table.channel.clone().ok_or(DmaError::Disconnected)?;
                Ok(Step::Message(n, channel))
            }
        }
    }
}
