//! Serves the server's DMA messages.

use rustix::io::Errno;

/// The client's memory, for a server that reads and writes it by messages.
///
/// Only needed for ranges mapped without a file. The server's messages are served
/// while the client waits for an answer, and in [`Client::serve`](super::Client::serve).
pub trait DmaHandler: Send {
    /// Copies client memory at a DMA address to `out`.
    fn dma_read(&mut self, address: u64, out: &mut [u8]) -> Result<(), Errno>;
    /// Copies `data` to client memory at a DMA address.
    fn dma_write(&mut self, address: u64, data: &[u8]) -> Result<(), Errno>;
}
