//! The data of one access, and how long it may wait.

use std::time::Instant;

/// What is moved, and which way.
pub(crate) enum Bytes<'a> {
    /// From the client's memory.
    Read(&'a mut [u8]),
    /// To the client's memory.
    Write(&'a [u8]),
}

impl Bytes<'_> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Bytes::Read(out) => out.len(),
            Bytes::Write(data) => data.len(),
        }
    }

    /// `len` bytes from `at` on, or as many as there are.
    pub(crate) fn part(&mut self, at: usize, len: usize) -> Bytes<'_> {
        let at = at.min(self.len());
        let end = at.saturating_add(len).min(self.len());
        match self {
            Bytes::Read(out) => Bytes::Read(&mut out[at..end]),
            Bytes::Write(data) => Bytes::Write(&data[at..end]),
        }
    }
}

/// How long an access may wait.
#[derive(Clone, Copy)]
pub(crate) struct Wait<'a> {
    /// When it began to.
    pub(crate) since: Instant,
    /// Whether it was not taken back.
    pub(crate) valid: &'a dyn Fn() -> bool,
}
