//! Reads a frame in place.

/// A frame as the classifier reads it: big-endian words and halfwords, by their offset from the
/// first byte of the destination address.
///
/// Offsets are multiples of the access size, as the chip's loads require, so a frame begins at a
/// multiple of 4. The classifier never reads a byte after the frame's end.
pub trait Frame {
    /// The word at an offset that is a multiple of 4.
    fn word(&mut self, offset: u32) -> u32;

    /// The halfword at an offset that is a multiple of 2.
    fn half(&mut self, offset: u32) -> u32;
}

/// A contiguous frame.
#[derive(Clone, Copy, Debug)]
pub struct Whole<'a>(pub &'a [u8]);

impl Frame for Whole<'_> {
    /// # Panics
    /// If the offset is after the frame's end.
    fn word(&mut self, offset: u32) -> u32 {
        self.half(offset) << 16 | self.half(offset + 2)
    }

    /// # Panics
    /// If the offset is after the frame's end.
    fn half(&mut self, offset: u32) -> u32 {
        let at = offset as usize;
        u32::from(self.0[at]) << 8 | u32::from(self.0[at + 1])
    }
}

/// A frame in a buffer that may wrap at the buffer's end.
///
/// ```text
///   buffer  | ...and its end |        | start: the frame's beginning... |
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Wrapped<'a> {
    /// The buffer, a multiple of 4 bytes long.
    pub buffer: &'a [u8],
    /// Where the frame begins, a multiple of 4 within the buffer.
    pub start: usize,
    /// Bytes of the frame, no more than the buffer has.
    pub length: usize,
}

impl Frame for Wrapped<'_> {
    /// # Panics
    /// If the offset is after the frame's end.
    fn word(&mut self, offset: u32) -> u32 {
        self.half(offset) << 16 | self.half(offset + 2)
    }

    /// # Panics
    /// If the offset is after the frame's end.
    fn half(&mut self, offset: u32) -> u32 {
        let at = offset as usize;
        assert!(at + 2 <= self.length, "behind the frame's end");
        let mut place = self.start + at;
        if place >= self.buffer.len() {
            place -= self.buffer.len();
        }
        u32::from(self.buffer[place]) << 8 | u32::from(self.buffer[place + 1])
    }
}
