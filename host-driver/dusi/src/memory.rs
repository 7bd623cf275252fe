//! Registered memory, and buffers of the anonymous pool.

use std::os::fd::{AsFd, BorrowedFd};

use dti::control;
use dti::layout::{ANONYMOUS_BYTES, Descriptor, Operation, QUIET, Sizes, region_argument};
use dti::words::{read_bytes, write_bytes};

use crate::pool::{Busy, Region};
use crate::{Buffer, DusiError, EventQueue, Ual};

impl Ual {
    /// Registers memory for payload, with protection tag 0.
    ///
    /// # Errors
    /// [`DusiError::Exhausted`], [`DusiError::Queue`].
    pub fn register(&mut self, bytes: usize) -> Result<Region, DusiError> {
        self.register_with_tag(bytes, 0)
    }

    /// Registers memory for payload. Operations show the engine the region's protection tag.
    ///
    /// # Errors
    /// [`DusiError::Exhausted`], [`DusiError::Queue`].
    pub fn register_with_tag(&mut self, bytes: usize, tag: u32) -> Result<Region, DusiError> {
        let region = self.pool.take(bytes, tag);
        let region = region.ok_or(DusiError::Exhausted("pool memory"))?;
        let posted = self.post_region(Operation::Register, &region);
        match posted {
            Ok(()) => Ok(region),
            Err(error) => {
                self.pool.give(region);
                Err(error)
            }
        }
    }

    /// Registers bytes of the application's own memory file, from an offset on that is a multiple
    /// of 8: a `memfd` that is sealed against shrinking and growing, and is not of huge pages. One
    /// that is sealed against writing can only be sent from. The region may be used once the event
    /// has come; the application maps the file itself to read and write it.
    ///
    /// # Errors
    /// [`DusiError::Exhausted`], [`DusiError::Wait`] if too many registrations wait.
    pub fn register_file(
        &mut self,
        file: BorrowedFd<'_>,
        (offset, length): (u32, u32),
        tag: u32,
        done: (EventQueue, u64),
    ) -> Result<Region, DusiError> {
        let region = self.pool.name(offset, length, tag);
        let region = region.ok_or(DusiError::Exhausted("region"))?;
        let work = Descriptor {
            operation: Operation::Register as u16,
            queue: done.0.number(),
            socket: 0,
            tag: done.1,
            offset,
            length,
            argument: region_argument(region.number(), tag),
        };
        match control::register(self.control.as_fd(), work, file) {
            Ok(()) => Ok(region),
            Err(error) => {
                self.pool.give(region);
                Err(DusiError::Wait(error))
            }
        }
    }

    /// Gives a buffer of the anonymous pool back.
    ///
    /// # Errors
    /// [`DusiError::Queue`].
    pub fn release(&mut self, buffer: Buffer) -> Result<(), DusiError> {
        self.post(release(buffer, QUIET, 0))
    }

    /// As [`Ual::release`], with an event.
    ///
    /// # Errors
    /// [`DusiError::Queue`].
    pub fn release_with(
        &mut self,
        buffer: Buffer,
        (queue, tag): (EventQueue, u64),
    ) -> Result<(), DusiError> {
        self.post(release(buffer, queue.number(), tag))
    }

    /// Reads the bytes of a buffer of the anonymous pool.
    ///
    /// # Errors
    /// [`DusiError::Range`] if it has fewer, or is none.
    pub fn read_buffer(&self, buffer: Buffer, bytes: &mut [u8]) -> Result<(), DusiError> {
        let fits = bytes.len() <= buffer.len() && buffer.len() <= ANONYMOUS_BYTES;
        if !fits || buffer.number >= self.sizes.anonymous {
            return Err(DusiError::Range);
        }
        let start = Sizes::anonymous_start(buffer.number);
        read_bytes(&self.anonymous, start, bytes);
        Ok(())
    }

    fn post_region(&mut self, operation: Operation, region: &Region) -> Result<(), DusiError> {
        self.post(Descriptor {
            operation: operation as u16,
            queue: QUIET,
            socket: 0,
            tag: 0,
            offset: region.offset(),
            length: region.len() as u32,
            argument: region_argument(region.number(), region.tag()),
        })
    }

    /// Ends a region that no operation uses.
    ///
    /// # Errors
    /// [`Busy`], with the region, if an operation uses it or the work queue is full.
    pub fn deregister(&mut self, region: Region) -> Result<(), Busy> {
        let free = !self.pool.in_use(&region);
        if free && self.post_region(Operation::Deregister, &region).is_ok() {
            self.pool.give(region);
            Ok(())
        } else {
            Err(Busy(region))
        }
    }

    /// Writes into a region from its start.
    ///
    /// # Errors
    /// [`DusiError::Range`].
    pub fn write(&self, region: &Region, bytes: &[u8]) -> Result<(), DusiError> {
        self.write_part(region, 0, bytes)
    }

    /// Writes into a region from an offset on, a multiple of 8; the rest of the last eight bytes
    /// becomes 0.
    ///
    /// # Errors
    /// [`DusiError::Range`].
    pub fn write_part(
        &self,
        region: &Region,
        offset: usize,
        bytes: &[u8],
    ) -> Result<(), DusiError> {
        region.range(offset, bytes.len(), true)?;
        if region.is_foreign() {
            return Err(DusiError::Range);
        }
        let start = (region.offset() as usize + offset) / 8;
        write_bytes(&self.memory, self.sizes.pool_start() + start, bytes);
        Ok(())
    }

    /// Reads a region from its start.
    ///
    /// # Errors
    /// [`DusiError::Range`].
    pub fn read(&self, region: &Region, bytes: &mut [u8]) -> Result<(), DusiError> {
        self.read_part(region, 0, bytes)
    }

    /// Reads a region from an offset on, a multiple of 8.
    ///
    /// # Errors
    /// [`DusiError::Range`].
    pub fn read_part(
        &self,
        region: &Region,
        offset: usize,
        bytes: &mut [u8],
    ) -> Result<(), DusiError> {
        region.range(offset, bytes.len(), true)?;
        if region.is_foreign() {
            return Err(DusiError::Range);
        }
        let start = (region.offset() as usize + offset) / 8;
        read_bytes(&self.memory, self.sizes.pool_start() + start, bytes);
        Ok(())
    }
}

fn release(buffer: Buffer, queue: u16, tag: u64) -> Descriptor {
    Descriptor {
        operation: Operation::Release as u16,
        queue,
        socket: 0,
        tag,
        offset: 0,
        length: 0,
        argument: u64::from(buffer.number),
    }
}
