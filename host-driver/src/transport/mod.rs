//! The driver's interface to a bus: registers, DMA memory, interrupts.
//!
//! One trait, [`Transport`], has several implementations: [`vfio`] for a card in this machine,
//! [`vfio_user`] for a card that another process emulates, and in-process simulators. The trait
//! accesses BAR0 in aligned 32-bit words, as the card does (Host/NIC software interface, "BAR0
//! layout").

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use thiserror::Error;

use crate::dma::{DmaError, DmaMemory};

mod port;
mod vector;
pub mod vfio;
pub mod vfio_user;

pub use eudp::Access;
pub use port::{Bell, Port};
pub use vector::Vector;

/// Why an operation of a transport failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TransportError {
    /// The card could not be reached.
    #[error("cannot reach a card at {place}: {reason}")]
    Unreachable {
        /// Socket or device that was tried.
        place: String,
        /// What went wrong.
        reason: String,
    },
    /// The other side does not speak the protocol, or is no card.
    #[error("{place} is not a card: {reason}")]
    NotACard {
        /// Socket or device that was tried.
        place: String,
        /// The reason.
        reason: String,
    },
    /// The other side went away.
    #[error("the card is gone: {0}")]
    Gone(String),
    /// No answer in time.
    #[error("the card does not answer {what} within {} ms", after.as_millis())]
    Timeout {
        /// The unanswered request.
        what: &'static str,
        /// How long the transport waited.
        after: Duration,
    },
    /// The other side refused a request.
    #[error("the card refused {what}: {reason}")]
    Refused {
        /// The request.
        what: &'static str,
        /// The reason it gave.
        reason: String,
    },
    /// A BAR or configuration offset outside the card or not aligned.
    #[error("offset {0:#x} is outside the card or not aligned")]
    BadOffset(u32),
    /// This transport supports only one thread.
    #[error("this transport to the card serves one thread only")]
    NotShared,
    /// This transport gives the card no memory of others.
    #[error("this transport cannot map memory of other processes")]
    NoForeignMemory,
    /// The card has no such interrupt.
    #[error("the card has no interrupt vector {0}")]
    NoVector(Vector),
    /// An access outside a piece of DMA memory.
    #[error(transparent)]
    Dma(#[from] DmaError),
    /// The system refused something.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Anything else that an implementation has to say.
    #[error("{0}")]
    Other(String),
}

/// Access to a card.
///
/// Offsets are bytes from the start of BAR0 or of configuration space, values are
/// the 32-bit word values that the card sees (Hardware reference, section 9:
/// a BAR access transfers the value of the word unchanged).
pub trait Transport {
    /// Reads the word at `bar_offset`. Earlier writes reach the card first.
    ///
    /// # Errors
    /// [`TransportError`] if the card does not answer.
    fn read(&mut self, bar_offset: u32) -> Result<u32, TransportError>;

    /// Writes the word at `bar_offset`. The write may be posted: it is on its way when this returns
    /// (or at the latest after [`Transport::flush`]), in order with other writes.
    ///
    /// # Errors
    /// [`TransportError`] if the card is gone.
    fn write(&mut self, bar_offset: u32, value: u32) -> Result<(), TransportError>;

    /// Writes consecutive words. Equal to one [`Transport::write`] each, in
    /// ascending order; a transport may send them as one message.
    ///
    /// # Errors
    /// [`TransportError`] if the card is gone.
    fn write_block(&mut self, bar_offset: u32, words: &[u32]) -> Result<(), TransportError> {
        let mut offset = bar_offset;
        for word in words {
            self.write(offset, *word)?;
            offset = offset.wrapping_add(4);
        }
        Ok(())
    }

    /// Reads consecutive words. Equal to one [`Transport::read`] each, in
    /// ascending order; a transport may fetch them in one message.
    ///
    /// # Errors
    /// [`TransportError`] if the card does not answer.
    fn read_block(&mut self, bar_offset: u32, out: &mut [u32]) -> Result<(), TransportError> {
        let mut offset = bar_offset;
        for word in out {
            *word = self.read(offset)?;
            offset = offset.wrapping_add(4);
        }
        Ok(())
    }

    /// Sends posted writes that the transport still holds.
    ///
    /// # Errors
    /// [`TransportError`] if the card is gone.
    fn flush(&mut self) -> Result<(), TransportError> {
        Ok(())
    }

    /// Reads a word of PCI configuration space.
    ///
    /// # Errors
    /// [`TransportError`] if the card does not answer.
    fn config_read(&mut self, offset: u32) -> Result<u32, TransportError>;

    /// Writes a word of PCI configuration space.
    ///
    /// # Errors
    /// [`TransportError`] if the card does not answer.
    fn config_write(&mut self, offset: u32, value: u32) -> Result<(), TransportError>;

    /// Allocates zeroed memory of at least `bytes` bytes for the card. The card loses it when the
    /// transport is dropped.
    ///
    /// # Errors
    /// [`TransportError`] if the system has no memory or the card refuses it.
    fn allocate(&mut self, bytes: usize) -> Result<DmaMemory, TransportError>;

    /// Lets the card read a memory file of someone else, or read and write it. The file is sealed
    /// against shrinking and growing ([`DmaMemory::of_file`]).
    ///
    /// # Errors
    /// [`TransportError::NoForeignMemory`] if this way to the card has none; the system's errors,
    /// and what the card says.
    fn map(&mut self, file: OwnedFd, access: Access) -> Result<DmaMemory, TransportError> {
        let _ = (file, access);
        Err(TransportError::NoForeignMemory)
    }

    /// Takes memory back that [`Transport::map`] gave. Nothing that the card has may point there.
    ///
    /// # Errors
    /// What the card or the system says; the card may reach the memory then until the transport is
    /// dropped, which is kept so long.
    fn unmap(&mut self, memory: &DmaMemory) -> Result<(), TransportError> {
        let _ = memory;
        Err(TransportError::NoForeignMemory)
    }

    /// Waits for an interrupt. Returns true if it came; it is then consumed and stays masked until
    /// [`Transport::unmask`]. Returns false if none came within `timeout`. An in-process engine
    /// runs during the wait.
    ///
    /// # Errors
    /// [`TransportError::NoVector`] if the card has no such interrupt; [`TransportError`]
    /// if the card is gone.
    fn wait(&mut self, vector: Vector, timeout: Duration) -> Result<bool, TransportError>;

    /// A descriptor that becomes readable when an interrupt is pending, for `poll` with other
    /// descriptors; [`Transport::wait`] still consumes the interrupt. None if the engine runs in
    /// process, or if the card has no such interrupt.
    fn vector_fd(&self, vector: Vector) -> Option<BorrowedFd<'_>> {
        let _ = vector;
        None
    }

    /// Unmasks an interrupt. If the card's line is still asserted it comes again.
    ///
    /// # Errors
    /// [`TransportError::NoVector`] if the card has no such interrupt; [`TransportError`]
    /// if the card is gone.
    fn unmask(&mut self, vector: Vector) -> Result<(), TransportError>;

    /// Creates another thread's access to the same card. The card stays reachable, and keeps its
    /// DMA memory, until the transport and all its ports are dropped.
    ///
    /// # Errors
    /// [`TransportError::NotShared`] if that is impossible; the system's errors.
    fn port(&mut self) -> Result<Box<dyn Port>, TransportError> {
        Err(TransportError::NotShared)
    }

    /// Counts of the card's emulator that explain a stall, as `name=value name=value ..`; None
    /// without such counts.
    ///
    /// # Errors
    /// [`TransportError`] if the card does not answer.
    fn counts(&mut self) -> Result<Option<String>, TransportError> {
        Ok(None)
    }

    /// Resets the PCI function. The card keeps its DMA memory.
    ///
    /// # Errors
    /// [`TransportError`] if the card does not answer.
    fn reset(&mut self) -> Result<(), TransportError>;
}

/// Transports behind a pointer are transports.
macro_rules! forward {
    ($type:ty) => {
        impl<T: Transport + ?Sized> Transport for $type {
            fn read(&mut self, bar_offset: u32) -> Result<u32, TransportError> {
                (**self).read(bar_offset)
            }
            fn write(&mut self, bar_offset: u32, value: u32) -> Result<(), TransportError> {
                (**self).write(bar_offset, value)
            }
            fn write_block(
                &mut self,
                bar_offset: u32,
                words: &[u32],
            ) -> Result<(), TransportError> {
                (**self).write_block(bar_offset, words)
            }
            fn read_block(
                &mut self,
                bar_offset: u32,
                out: &mut [u32],
            ) -> Result<(), TransportError> {
                (**self).read_block(bar_offset, out)
            }
            fn flush(&mut self) -> Result<(), TransportError> {
                (**self).flush()
            }
            fn config_read(&mut self, offset: u32) -> Result<u32, TransportError> {
                (**self).config_read(offset)
            }
            fn config_write(&mut self, offset: u32, value: u32) -> Result<(), TransportError> {
                (**self).config_write(offset, value)
            }
            fn allocate(&mut self, bytes: usize) -> Result<DmaMemory, TransportError> {
                (**self).allocate(bytes)
            }
            fn map(&mut self, file: OwnedFd, access: Access) -> Result<DmaMemory, TransportError> {
                (**self).map(file, access)
            }
            fn unmap(&mut self, memory: &DmaMemory) -> Result<(), TransportError> {
                (**self).unmap(memory)
            }
            fn wait(&mut self, vector: Vector, timeout: Duration) -> Result<bool, TransportError> {
                (**self).wait(vector, timeout)
            }
            fn vector_fd(&self, vector: Vector) -> Option<BorrowedFd<'_>> {
                (**self).vector_fd(vector)
            }
            fn port(&mut self) -> Result<Box<dyn Port>, TransportError> {
                (**self).port()
            }
            fn counts(&mut self) -> Result<Option<String>, TransportError> {
                (**self).counts()
            }
            fn unmask(&mut self, vector: Vector) -> Result<(), TransportError> {
                (**self).unmask(vector)
            }
            fn reset(&mut self) -> Result<(), TransportError> {
                (**self).reset()
            }
        }
    };
}

forward!(&mut T);
forward!(Box<T>);
