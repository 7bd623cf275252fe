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
//!   mini ring       1024 x 32 bytes       0x18000
//!   jumbo ring       256 x 64 bytes       0x20000
//!                                         0x24000
//! send memory:     one slot for each BD of the send ring
//! standard, jumbo and mini memory: one slot for each of the ring's buffers
//! ```
//!
//! Slots are of a power of two of bytes, so that none lies across a boundary at which
//! the card's addresses may jump ([`DmaMemory::address`]).

use host_interface::info::{GeneralInformationBlock, HostAddress, RcbFlags, RingControlBlock};
use host_interface::ring;
use zerocopy::IntoBytes;

use super::config::Config;
use super::error::NicError;
use super::rings::{JumboRing, ReturnRingSize, SendRingPlace};
use crate::dma::DmaMemory;
use crate::transport::Transport;

/// Bytes of a send or receive slot for standard frames.
pub const SLOT_BYTES: usize = 2048;
/// Bytes of a send or receive slot for jumbo frames.
pub const JUMBO_SLOT_BYTES: usize = 16 * 1024;

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
pub(super) const MINI_RING: usize = 0x1_8000;
pub(super) const JUMBO_RING: usize = 0x2_0000;
const CONTROL_BYTES: usize = 0x2_4000;

/// Bytes that an Ethernet header and a VLAN tag add to a packet.
pub(super) const FRAME_OVERHEAD: u16 = 18;
/// Bytes of the CRC, which is delivered on request.
pub(super) const CRC_BYTES: usize = 4;

const _: () = {
    assert!(size_of::<GeneralInformationBlock>() <= EVENT_PRODUCER);
    assert!(SEND_CONSUMER + 8 <= EVENT_RING);
    assert!(EVENT_RING + (ring::EVENT_ENTRIES * ring::EVENT_BYTES) as usize <= SEND_RING);
    assert!(SEND_RING + ring::SEND_ENTRIES_MAX as usize * 16 <= STANDARD_RING);
    assert!(STANDARD_RING + ring::STANDARD_ENTRIES as usize * 32 <= RETURN_RING);
    assert!(RETURN_RING + ring::RETURN_ENTRIES as usize * 32 <= MINI_RING);
    assert!(MINI_RING + ring::MINI_ENTRIES as usize * 32 <= JUMBO_RING);
    assert!(JUMBO_RING + ring::JUMBO_ENTRIES as usize * 64 <= CONTROL_BYTES);
};

/// The pieces of DMA memory of a card.
pub(super) struct Memory {
    pub control: DmaMemory,
    pub send: DmaMemory,
    pub standard: DmaMemory,
    pub jumbo: Option<DmaMemory>,
    pub mini: Option<DmaMemory>,
}

/// Bytes of a send slot: the largest MTU that may be set later decides.
pub(super) fn send_slot(config: &Config) -> usize {
    if config.has_jumbo() {
        JUMBO_SLOT_BYTES
    } else {
        SLOT_BYTES
    }
}

/// Bytes of a slot of the mini ring.
pub(super) fn mini_slot(longest: u16) -> usize {
    (usize::from(longest) + CRC_BYTES).next_power_of_two()
}

impl Memory {
    pub fn allocate<T: Transport>(transport: &mut T, config: &Config) -> Result<Self, NicError> {
        let control = transport.allocate(CONTROL_BYTES)?;
        let send = config.send_ring.entries() as usize * send_slot(config);
        let send = transport.allocate(send)?;
        let standard = transport.allocate(usize::from(config.receive_buffers) * SLOT_BYTES)?;
        let jumbo = if config.has_jumbo() {
            let bytes = usize::from(config.jumbo_buffers) * JUMBO_SLOT_BYTES;
            Some(transport.allocate(bytes)?)
        } else {
            None
        };
        let mini = match config.mini {
            Some(longest) => {
                let bytes = usize::from(config.mini_buffers) * mini_slot(longest);
                Some(transport.allocate(bytes)?)
            }
            None => None,
        };
        Ok(Self {
            control,
            send,
            standard,
            jumbo,
            mini,
        })
    }

    /// Clears the control memory and fills in the information block.
    pub fn prepare(&self, config: &Config) -> Result<(), NicError> {
        self.control.clear(0, self.control.len())?;
        let at = |offset: usize, bytes: usize| self.control.address(offset, bytes);
        let index = |offset: usize| at(offset, 8).map(HostAddress::new);
        let none = RcbFlags::new();
        let disabled = RingControlBlock::new(0, 0, none.with_disabled(true));
        let receive = config
            .receive_checksums
            .flags()
            .with_vlan_assist(config.vlan);
        let block = GeneralInformationBlock {
            event: RingControlBlock::new(at(EVENT_RING, 0x800)?, 0, none),
            // Drivers name the command ring by this number and firmware ignores it.
            command: RingControlBlock::new(0x100, 0, none),
            send: self.send_block(config)?,
            standard: RingControlBlock::new(
                at(STANDARD_RING, 0x4000)?,
                config.standard_frame(),
                receive,
            ),
            jumbo: match config.jumbo {
                JumboRing::Normal | JumboRing::Extended => RingControlBlock::new(
                    at(JUMBO_RING, 0x4000)?,
                    0,
                    receive.with_extended_bd(config.jumbo == JumboRing::Extended),
                ),
                JumboRing::Automatic | JumboRing::Off => disabled,
            },
            mini: match config.mini {
                Some(longest) => RingControlBlock::new(at(MINI_RING, 0x8000)?, longest, receive),
                None => disabled,
            },
            receive_return: RingControlBlock::new(
                at(RETURN_RING, 0x1_0000)?,
                match config.return_ring {
                    ReturnRingSize::Entries1024 => 1024,
                    ReturnRingSize::Entries2048 => 2048,
                },
                none,
            ),
            event_producer: index(EVENT_PRODUCER)?,
            return_producer: index(RETURN_PRODUCER)?,
            send_consumer: index(SEND_CONSUMER)?,
            refresh_statistics: HostAddress::new(at(STATISTICS, 1024)?),
            ..GeneralInformationBlock::default()
        };
        for (offset, bytes) in (INFO..).step_by(4).zip(block.as_bytes().chunks_exact(4)) {
            let mut word = [0; 4];
            word.copy_from_slice(bytes);
            self.control.write_word(offset, u32::from_ne_bytes(word))?;
        }
        Ok(())
    }

    fn send_block(&self, config: &Config) -> Result<RingControlBlock, NicError> {
        let entries = config.send_ring.entries();
        let flags = config
            .send_checksums
            .flags()
            .with_vlan_assist(config.vlan)
            .with_coalesced_update_only(!config.send_interrupts_by_count);
        let (address, flags) = match config.send_ring_place {
            SendRingPlace::Host => (
                self.control.address(SEND_RING, entries as usize * 16)?,
                flags.with_host_ring(true),
            ),
            SendRingPlace::Card => (u64::from(card_send_ring(entries)), flags),
        };
        Ok(RingControlBlock::new(address, entries as u16, flags))
    }
}

/// NIC address of a send ring that lies on the card.
pub(super) fn card_send_ring(entries: u32) -> u32 {
    // Every size of `SendRingSize` has one.
    ring::nic_send_ring(entries).unwrap_or(0x3800)
}
