//! What the driver needs of a bus: registers, DMA memory, an interrupt.
//!
//! One trait, [`Transport`], and its implementations: [`vfio`] for a card in this
//! machine, [`vfio_user`] for one that another process emulates, and whatever a
//! simulator offers in process.
//! The trait speaks of BAR0 in aligned 32-bit words, as the card does
//! (Host/NIC software interface, "BAR0 layout").

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use thiserror::Error;

use crate::dma::{DmaError, DmaMemory};

mod port;
mod vector;
pub mod vfio;
pub mod vfio_user;

pub use port::{Bell, Port};
pub use vector::Vector;

/// Why a transport could not do what it was asked for.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TransportError {
    /// Nothing could be reached under this name.
    #[error("cannot reach a card at {place}: {reason}")]
    Unreachable {
        /// Socket or device that was tried.
        place: String,
        /// What went wrong.
        reason: String,
    },
    /// Something answered that does not speak the protocol, or is no card.
    #[error("{place} is not a card: {reason}")]
    NotACard {
        /// Socket or device that was tried.
        place: String,
        /// What gave it away.
        reason: String,
    },
    /// The other side went away.
    #[error("the card is gone: {0}")]
    Gone(String),
    /// No answer in time.
    #[error("no answer to {what} within {} ms", after.as_millis())]
    Timeout {
        /// The request that stayed unanswered.
        what: &'static str,
        /// How long it was waited for.
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
    /// Only one thread can use the card this way.
    #[error("this way to the card is for one thread")]
    NotShared,
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

/// A way to a card.
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

    /// Writes the word at `bar_offset`. The write may be posted: it is on its way
    /// when this returns (or at the latest after [`Transport::flush`]), and it
    /// overtakes nothing.
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

    /// Sends off posted writes that the transport still holds back.
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

    /// Makes zeroed memory of at least `bytes` bytes that the card can reach. The
    /// card loses it when the transport is dropped.
    ///
    /// # Errors
    /// [`TransportError`] if the system has no memory or the card refuses it.
    fn allocate(&mut self, bytes: usize) -> Result<DmaMemory, TransportError>;

    /// Waits for an interrupt. Gives true if it came, which is then consumed and stays
    /// masked until [`Transport::unmask`]; false if none came within `timeout`. An
    /// in-process engine runs in here.
    ///
    /// # Errors
    /// [`TransportError::NoVector`] if the card has no such interrupt; [`TransportError`]
    /// if the card is gone.
    fn wait(&mut self, vector: Vector, timeout: Duration) -> Result<bool, TransportError>;

    /// A descriptor that becomes readable when an interrupt is there, for `poll`
    /// next to other descriptors; the interrupt is still consumed by
    /// [`Transport::wait`]. None if the engine runs in process, or if the card has no
    /// such interrupt.
    fn vector_fd(&self, vector: Vector) -> Option<BorrowedFd<'_>> {
        let _ = vector;
        None
    }

    /// Lets the next interrupt through. If the card's line is still asserted it
    /// comes again.
    ///
    /// # Errors
    /// [`TransportError::NoVector`] if the card has no such interrupt; [`TransportError`]
    /// if the card is gone.
    fn unmask(&mut self, vector: Vector) -> Result<(), TransportError>;

    /// Makes a way to the same card for another thread. The card stays reachable, and
    /// keeps its DMA memory, until the transport and all its ports are gone.
    ///
    /// # Errors
    /// [`TransportError::NotShared`] if there is none; what the system says.
    fn port(&mut self) -> Result<Box<dyn Port>, TransportError> {
        Err(TransportError::NotShared)
    }

    /// What the card's emulator has counted that explains a stall, as
    /// `name=value name=value ..`; None where nobody counts.
    ///
    /// # Errors
    /// [`TransportError`] if the card does not answer.
    fn counts(&mut self) -> Result<Option<String>, TransportError> {
        Ok(None)
    }

    /// Resets the PCI function. DMA memory stays known to the card.
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
