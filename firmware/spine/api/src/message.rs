//! Messages, the buffers that they refer to, and what becomes of them.
//!
//! Paper, sections 3.2 and 3.4: a message is 256 bytes, of which 240 are arguments; a bulk
//! message refers to a buffer besides. A received frame is a message without arguments whose
//! buffer is the frame. Both are lent to the handler for its run, read only: what is to change
//! in a frame that goes out again is an effect ([`Context::patch`]).
//!
//! [`Context::patch`]: crate::Context::patch

use crate::imports;
use crate::view::View;
use core::marker::PhantomData;

/// Bytes of a message.
pub const MESSAGE_BYTES: usize = 256;
/// Bytes of its arguments.
pub const ARGUMENT_BYTES: usize = 240;
/// Words of its arguments.
pub const ARGUMENT_WORDS: usize = ARGUMENT_BYTES / 4;

/// What becomes of a message when its handler has returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Verdict {
    /// The handler has done with it what there was to do.
    Consume = 0,
    /// It is dropped and counted as that.
    Drop = 1,
    /// It goes on to the host's stack, as if no handler had been there.
    Host = 2,
}

/// A message, in the runtime's own layout.
///
/// ```text
/// +0   buffer: address of its words, bytes
/// +8   source
/// +12  arguments: address, words
/// ```
#[derive(Debug)]
#[repr(C)]
pub struct Message {
    buffer: Buffer,
    source: u32,
    arguments: *const u32,
    argument_words: u32,
    not_sync: PhantomData<*mut ()>,
}

impl Message {
    /// The data that came with it: of a frame, the frame without its CRC. Empty for a small
    /// message.
    #[inline(always)]
    pub fn buffer(&self) -> &Buffer {
        &self.buffer
    }

    /// Its arguments, at most [`ARGUMENT_WORDS`].
    #[inline(always)]
    pub fn arguments(&self) -> &[u32] {
        imports::words(self, self.arguments, self.argument_words)
    }

    /// The number of the endpoint that it comes from; 0 is the wire.
    #[inline(always)]
    pub fn source(&self) -> u32 {
        self.source
    }

    #[cfg(not(target_arch = "mips"))]
    pub(crate) fn of_model(words: &[u32], bytes: u32, arguments: &[u32], source: u32) -> Message {
        Message {
            buffer: Buffer {
                words: words.as_ptr(),
                bytes,
                not_sync: PhantomData,
            },
            source,
            arguments: arguments.as_ptr(),
            argument_words: arguments.len() as u32,
            not_sync: PhantomData,
        }
    }
}

/// Data in the card's memory, as the words that the memory holds: the first byte is the most
/// significant one of the first word.
#[derive(Debug)]
#[repr(C)]
pub struct Buffer {
    words: *const u32,
    bytes: u32,
    not_sync: PhantomData<*mut ()>,
}

impl Buffer {
    /// Of the runtime's: so many bytes at an address.
    #[inline(always)]
    pub(crate) fn of_runtime(words: *const u32, bytes: u32) -> Buffer {
        Buffer {
            words,
            bytes,
            not_sync: PhantomData,
        }
    }

    /// How many bytes.
    #[inline(always)]
    pub fn len(&self) -> u32 {
        self.bytes
    }

    /// Whether there is none.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// All whole words, and the last one if some bytes of it are data.
    #[inline(always)]
    pub fn words(&self) -> &[u32] {
        imports::words(self, self.words, self.bytes.div_ceil(4))
    }

    /// A header that begins at byte `at`: one check of the bounds for all its fields. None if
    /// the buffer ends before it, or if `at` is not where such headers begin in a frame.
    #[inline(always)]
    pub fn view<'a, V: View<'a>>(&'a self, at: u32) -> Option<V> {
        if at & 3 != V::PHASE || self.bytes < V::BYTES || at > self.bytes - V::BYTES {
            return None;
        }
        V::of(self.words().get((at >> 2) as usize..)?)
    }
}

#[cfg(target_arch = "mips")]
const _: () = {
    // The runtime's layout: firmware/src/path/spine/message.rs.
    assert!(size_of::<Message>() == 20 && size_of::<Buffer>() == 8);
};
