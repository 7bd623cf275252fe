//! The reasons for which DMA fails.

use rustix::io::Errno;
use thiserror::Error;

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
    /// The memory file behind the range cannot be read or written; it has shrunk, say.
    #[error("the file behind DMA address {address:#x}: {errno}")]
    File {
        /// First DMA address of the access to the file.
        address: u64,
        /// What the kernel said.
        errno: Errno,
    },
    /// The access would have to wait, and must not.
    #[error("DMA at {0:#x} would have to wait for the client")]
    Waits(u64),
    /// The access was taken back before it was done.
    #[error("DMA at {0:#x} was taken back")]
    Cancelled(u64),
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
