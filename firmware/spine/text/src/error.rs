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

impl fmt::Display for TextError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            TextError::Hole(at) => write!(
                formatter,
                "a hole is {{}}, {{:x}} or {{:#x}}, and a brace is doubled: byte {at} is neither"
            ),
            TextError::Control(at) => write!(formatter, "byte {at} is a control character"),
            TextError::TooLong(bytes) => write!(formatter, "{bytes} bytes, at most {BYTES_MOST}"),
            TextError::TooManyHoles(holes) => {
                write!(formatter, "{holes} holes, at most {HOLES_MOST}")
            }
        }
    }
}

impl core::error::Error for TextError {}
