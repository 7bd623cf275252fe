//! Why a text is refused.

use crate::{BYTES_MOST, HOLES_MOST};
use core::fmt;

/// Why a text is none of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextError {
    /// A brace, at this byte, that begins no hole and is not doubled.
    Hole(usize),
    /// A control character at this byte.
    Control(usize),
    /// So many bytes.
    TooLong(usize),
    /// So many holes.
    TooManyHoles(usize),
}

impl TextError {
    /// The same without its number: what the compiler prints.
    pub const fn what(self) -> &'static str {
        match self {
            TextError::Hole(_) => "a hole is {}, {:x} or {:#x}, and a brace is {{ or }}",
            TextError::Control(_) => "a text has no control characters",
            TextError::TooLong(_) => "the text is too long",
            TextError::TooManyHoles(_) => "the text has too many holes",
        }
    }
}

impl fmt::Display for TextError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = self.what();
        match *self {
            TextError::Hole(at) | TextError::Control(at) => write!(formatter, "byte {at}: {what}"),
            TextError::TooLong(bytes) => {
                write!(formatter, "{what}: {bytes} bytes, at most {BYTES_MOST}")
            }
            TextError::TooManyHoles(holes) => {
                write!(formatter, "{what}: {holes}, at most {HOLES_MOST}")
            }
        }
    }
}

impl core::error::Error for TextError {}
