//! Where everything is in the memory that driver and card share.
//!
//! ```text
//! control memory                          offset
//!   general information block             0x00000  (0x490 bytes)
//!   indices that the card writes          0x00800  event, return, send: 64 bytes apart
//!   event ring       256 x  8 bytes       0x01000
//!   send ring        512 x 16 bytes       0x02000
//!   standard ring    512 x 32 bytes       0x04000
//!   return ring     2048 x 32 bytes       0x08000
//!                                         0x18000
//! send memory:    one slot of 2 KB for each BD of the send ring
//! receive memory: one slot of 2 KB for each receive buffer
//! ```

use host_interface::info::{GeneralInformationBlock, HostAddress, RcbFlags, RingControlBlock};
use host_interface::ring;
use zerocopy::IntoBytes;

use super::config::Config;
use super::error::NicError;
use crate::dma::DmaMemory;
use crate::transport::Transport;

/// Bytes of a send or receive slot.
pub const SLOT_BYTES: usize = 2048;

pub(super) const INFO: usize = 0;
pub(super) const EVENT_PRODUCER: usize = 0x800;
pub(super) const RETURN_PRODUCER: usize = 0x840;
pub(super) const SEND_CONSUMER: usize = 0x880;
/// The information block starts with the statistics, and refreshed ones go there too.
pub(super) const STATISTICS: usize = INFO;
pub(super) const EVENT_RING: usize = 0x1000;
pub(super) const SEND_RING: usize = 0x2000;
pub(super) const STANDARD_RING: usize = 0x4000;
pub(super) const RETURN_RING: usize = 0x8000;
const CONTROL_BYTES: usize = 0x1_8000;

/// Bytes that an Ethernet header and a VLAN tag add to a packet.
pub(super) const FRAME_OVERHEAD: u16 = 18;

const _: () = {
    assert!(size_of::<GeneralInformationBlock>() <= EVENT_PRODUCER);
    assert!(SEND_CONSUMER + 8 <= EVENT_RING);
    assert!(EVENT_RING + (ring::EVENT_ENTRIES * ring::EVENT_BYTES) as usize <= SEND_RING);
    assert!(SEND_RING + ring::SEND_ENTRIES_MAX as usize * 16 <= STANDARD_RING);
    assert!(STANDARD_RING + ring::STANDARD_ENTRIES as usize * 32 <= RETURN_RING);
    assert!(RETURN_RING + ring::RETURN_ENTRIES as usize * 32 <= CONTROL_BYTES);
};

/// The three pieces of DMA memory of a card.
pub(super) struct Memory {
    pub control: DmaMemory,
    pub send: DmaMemory,
    pub receive: DmaMemory,
}

impl Memory {
    pub fn allocate<T: Transport>(transport: &mut T, config: &Config) -> Result<Self, NicError> {
        Ok(Self {
            control: transport.allocate(CONTROL_BYTES)?,
            send: transport.allocate(config.send_ring.entries() as usize * SLOT_BYTES)?,
            receive: transport.allocate(usize::from(config.receive_buffers) * SLOT_BYTES)?,
        })
    }

    /// Clears the control memory and fills in the information block.
    pub fn prepare(&self, config: &Config) -> Result<(), NicError> {
        self.control.clear(0, self.control.len())?;
        let at = |offset: usize| self.control.iova() + offset as u64;
        let none = RcbFlags::new();
        let disabled = none.with_disabled(true);
        let send = none.with_host_ring(true).with_coalesced_update_only(true);
        let block = GeneralInformationBlock {
            event: RingControlBlock::new(at(EVENT_RING), 0, none),
            // Drivers name the command ring by this number and firmware ignores it.
            command: RingControlBlock::new(0x100, 0, none),
            send: RingControlBlock::new(at(SEND_RING), config.send_ring.entries() as u16, send),
            standard: RingControlBlock::new(
                at(STANDARD_RING),
                config.mtu.saturating_add(FRAME_OVERHEAD),
                none,
            ),
            jumbo: RingControlBlock::new(0, 0, disabled),
            mini: RingControlBlock::new(0, 0, disabled),
            receive_return: RingControlBlock::new(at(RETURN_RING), 2048, none),
            event_producer: HostAddress::new(at(EVENT_PRODUCER)),
            return_producer: HostAddress::new(at(RETURN_PRODUCER)),
            send_consumer: HostAddress::new(at(SEND_CONSUMER)),
            refresh_statistics: HostAddress::new(at(STATISTICS)),
            ..GeneralInformationBlock::default()
        };
        for (offset, bytes) in (INFO..).step_by(4).zip(block.as_bytes().chunks_exact(4)) {
            let mut word = [0; 4];
            word.copy_from_slice(bytes);
            self.control.write_word(offset, u32::from_ne_bytes(word))?;
        }
        Ok(())
    }
}
