//! The anonymous pool: buffers for receives that brought none.
//!
//! A receive of the region [`dti::layout::ANONYMOUS`] takes a free buffer when bytes are there, and
//! its event names it; the application gives it back by a release. The pool's size also bounds the
//! receive windows of the application's connections in sum: each byte that a window promises has
//! had a place from the start.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;

use dti::layout::{ANONYMOUS_BYTES, Sizes, Status};
use dti::mapped::Mapping;
use dti::words::write_bytes;

use host_driver::stack::flows::Id;

/// The pool.
pub(crate) struct Anonymous {
    memory: Mapping,
    sizes: Sizes,
    free: Vec<u32>,
    /// The application has the buffer.
    lent: Vec<bool>,
    /// Connections whose receives wait for a buffer.
    starved: VecDeque<Id>,
    /// Bytes of the receive buffers of all connections.
    promised: u64,
}

impl Anonymous {
    pub(crate) fn new(memory: Mapping, sizes: Sizes) -> Self {
        Self {
            memory,
            sizes,
            // The first one first.
            free: (0..sizes.anonymous).rev().collect(),
            lent: vec![false; sizes.anonymous as usize],
            starved: VecDeque::new(),
            promised: 0,
        }
    }

    /// Its memory file, to hand to the application.
    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.memory.file()
    }

    /// A connection's window may promise so many bytes more.
    pub(crate) fn promise(&mut self, bytes: u32) -> Result<(), Status> {
        let promised = self.promised + u64::from(bytes);
        if promised > self.sizes.anonymous_bytes() {
            return Err(Status::Quota);
        }
        self.promised = promised;
        Ok(())
    }

    /// A connection with such a window has ended.
    pub(crate) fn keep(&mut self, bytes: u32) {
        self.promised = self.promised.saturating_sub(u64::from(bytes));
    }

    /// Bytes that windows promise now.
    pub(crate) fn promised(&self) -> u64 {
        self.promised
    }

    /// Buffers that the application has.
    pub(crate) fn lent(&self) -> usize {
        self.lent.len() - self.free.len()
    }

    /// Whether a buffer is free.
    pub(crate) fn has_free(&self) -> bool {
        !self.free.is_empty()
    }

    /// Lends a buffer with some bytes, at most [`ANONYMOUS_BYTES`].
    pub(crate) fn lend(&mut self, bytes: &[u8]) -> Option<u32> {
        let number = self.free.pop()?;
        self.lent[number as usize] = true;
        let part = &bytes[..bytes.len().min(ANONYMOUS_BYTES)];
        write_bytes(&self.memory, Sizes::anonymous_start(number), part);
        Some(number)
    }

    /// A receive waits for a buffer.
    pub(crate) fn starve(&mut self, id: Id) {
        if !self.starved.contains(&id) {
            self.starved.push_back(id);
        }
    }

    /// The application gives a buffer back.
    pub(crate) fn release(&mut self, number: u64) -> Result<(), Status> {
        let number = u32::try_from(number).map_err(|_| Status::BadHandle)?;
        match self.lent.get_mut(number as usize) {
            Some(lent) if *lent => {
                *lent = false;
                self.free.push(number);
                Ok(())
            }
            _ => Err(Status::BadHandle),
        }
    }

    /// Connections whose receives may go on, one for each free buffer.
    pub(crate) fn fed(&mut self) -> Vec<Id> {
        let count = self.free.len().min(self.starved.len());
        self.starved.drain(..count).collect()
    }
}
