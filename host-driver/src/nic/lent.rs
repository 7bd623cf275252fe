//! A send ring that another device has.
//!
//! With [`SendConsumer::At`] the driver sends nothing. It writes the addresses of the buffers into the
//! BDs. A device on the bus writes frames into the buffers, the other half of BDs of one fragment,
//! and the index behind them into the card's mailbox of the send producer. The card writes the send
//! consumer index to that device.
//!
//! ```text
//!   host memory of this driver            the other device
//!   buffers ◄──────────────────────────── frame
//!   BDs ◄──────────────────────────────── length, flags
//!   the card: mailbox ◄────────────────── producer index
//!             send consumer index ──────► SendConsumer::At
//! ```

use super::config::SendConsumer;
use super::error::NicError;
use super::{Nic, Phase};
use crate::dma::DmaMemory;
use crate::transport::{Access, Transport};
use host_interface::bd::SendBd;
use spine_linker::load::peer::Ring;

/// Memory of a driver's, and where in it something begins.
#[derive(Debug, Clone)]
struct Place {
    memory: DmaMemory,
    offset: usize,
}

/// A send ring in host memory that its driver has lent.
#[derive(Debug, Clone)]
pub struct LentRing {
    bds: Place,
    buffers: Place,
    entries: u32,
    buffer_bytes: u32,
}

impl<T: Transport> Nic<T> {
    /// The send ring, for a device that has it, until the card is reset.
    ///
    /// # Errors
    /// [`NicError::RingNotLent`] without [`SendConsumer::At`], or if the ring is on the card;
    /// [`NicError::WrongState`].
    pub fn lend_ring(&mut self) -> Result<LentRing, NicError> {
        self.need(Phase::Open)?;
        let ring = &self.send.ring;
        let places = match self.config.send_consumer {
            SendConsumer::At(_) => ring.lend()?,
            SendConsumer::HostMemory | SendConsumer::Register => None,
        };
        let places = places.ok_or(NicError::RingNotLent)?;
        let [bds, buffers] = places.map(|(memory, offset)| Place {
            memory: memory.clone(),
            offset,
        });
        Ok(LentRing {
            bds,
            buffers,
            entries: ring.entries(),
            buffer_bytes: ring.slot_bytes() as u32,
        })
    }

    /// Lets this card write to the send ring of another one, and with it to all memory of the other
    /// driver's that the ring shares pages with. Returns the addresses that this card has for it.
    ///
    /// # Errors
    /// What the transport says, see [`Transport::map`].
    pub fn map_ring(&mut self, ring: &LentRing) -> Result<Ring, NicError> {
        let entries = ring.entries as usize;
        let mut map = |place: &Place, bytes: usize| -> Result<u64, NicError> {
            let file = place.memory.fd().try_clone_to_owned()?;
            let memory = self.control.transport.map(file, Access::ReadWrite)?;
            Ok(memory.address(place.offset, bytes)?)
        };
        Ok(Ring {
            bds: map(&ring.bds, entries * size_of::<SendBd>())?,
            entries: ring.entries,
            buffers: map(&ring.buffers, entries * ring.buffer_bytes as usize)?,
            buffer_bytes: ring.buffer_bytes,
        })
    }

    /// Refuses to send by a ring that another device has.
    pub(super) fn need_ring(&self) -> Result<(), NicError> {
        self.need(Phase::Open)?;
        match self.config.send_consumer {
            SendConsumer::At(_) => Err(NicError::RingLent),
            SendConsumer::HostMemory | SendConsumer::Register => Ok(()),
        }
    }
}
