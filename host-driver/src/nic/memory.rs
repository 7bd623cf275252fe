//! The memory of control: the general information block, where the card finds everything else.
//!
//! Host/NIC software interface, "General information block".

use host_interface::info::{GeneralInformationBlock, HostAddress, RcbFlags, RingControlBlock};
use host_interface::statistics;
use zerocopy::IntoBytes;

use super::buffers::BufferMemory;
use super::config::{Config, SendConsumer};
use super::error::NicError;
use super::layout::{
    BufferTable, CardLayout, ControlLayout, INFO_WORDS, ReceiveLayout, SendLayout,
};
use super::plan::Plan;
use super::receive::{ReceiveMemory, ReceiveRings};
use super::region::Table;
use super::rings::{JumboRing, ReturnRingSize, Ring};
use super::send::{SendMemory, SendRing};
use crate::dma::{DmaError, DmaMemory};
use crate::transport::{Transport, TransportError};

/// Memory that control and the card share.
pub(super) struct ControlMemory {
    info: Table<INFO_WORDS>,
    event_producer: Table<2>,
    events: Table<2>,
}

/// The memory of a card: a piece for control and one for each queue of the plan.
pub(super) struct SharedMemory {
    pub control: ControlMemory,
    pub send: Vec<SendMemory>,
    pub receive: Vec<ReceiveMemory>,
}

impl SharedMemory {
    /// Allocates the memory of a plan's queues.
    pub fn allocate<T: Transport>(transport: &mut T, plan: &Plan) -> Result<Self, TransportError> {
        let layout = CardLayout::of(plan);
        let memory = transport.allocate(layout.control.bytes)?;
        let control = ControlMemory::new(layout.control, &memory);
        let mut send = Vec::new();
        for layout in layout.send {
            let memory = transport.allocate(layout.bytes)?;
            send.push(SendMemory::new(layout, &memory));
        }
        let mut receive = Vec::new();
        for layout in layout.receive {
            let memory = transport.allocate(layout.bytes)?;
            receive.push(ReceiveMemory::new(layout, &memory));
        }
        Ok(Self {
            control,
            send,
            receive,
        })
    }
}

impl SendMemory {
    fn new(layout: SendLayout, memory: &DmaMemory) -> Self {
        Self {
            consumer: layout.consumer.within(memory),
            bds: layout.bds.map(|bds| bds.within(memory)),
            slots: layout.slots.within(memory),
        }
    }
}

impl ReceiveMemory {
    /// The regions of a layout, in memory that was allocated for it.
    pub fn new(layout: ReceiveLayout, memory: &DmaMemory) -> Self {
        let rings = layout.rings.into_iter().map(|(bds, slots)| BufferMemory {
            bds: match bds {
                BufferTable::Normal(bds) => BufferTable::Normal(bds.within(memory)),
                BufferTable::Extended(bds) => BufferTable::Extended(bds.within(memory)),
            },
            slots: slots.within(memory),
        });
        Self {
            producer: layout.producer.within(memory),
            returns: layout.returns.within(memory),
            rings: rings.collect(),
        }
    }
}

impl ControlMemory {
    pub(super) fn new(layout: ControlLayout, memory: &DmaMemory) -> Self {
        Self {
            info: layout.info.within(memory),
            event_producer: layout.event_producer.within(memory),
            events: layout.events.within(memory),
        }
    }

    /// The card's address of the information block.
    pub fn info_address(&self) -> Result<u64, DmaError> {
        self.info.address()
    }

    /// The event ring.
    pub fn events(&self) -> &Table<2> {
        &self.events
    }

    /// The event producer index, as the card has last written it.
    pub fn event_producer(&self) -> Result<u32, DmaError> {
        self.event_producer.first_word(0)
    }

    /// Writes the index that a card would write.
    #[cfg(test)]
    pub fn set_event_producer(&self, index: u32) -> Result<(), DmaError> {
        self.event_producer.write(0, &[index, 0])
    }

    /// The statistics at the start of the information block.
    pub fn statistics(&self) -> Result<[u32; statistics::WORDS], DmaError> {
        let words = self.info.read(0)?;
        let mut statistics = [0; statistics::WORDS];
        statistics
            .iter_mut()
            .zip(words)
            .for_each(|(to, word)| *to = word);
        Ok(statistics)
    }

    /// Clears the memory and fills in the information block.
    pub fn prepare(
        &self,
        config: &Config,
        send: &SendRing,
        receive: &ReceiveRings,
    ) -> Result<(), NicError> {
        self.event_producer.clear()?;
        self.events.clear()?;
        let none = RcbFlags::new();
        let disabled = RingControlBlock::new(0, 0, none.with_disabled(true));
        let flags = config
            .receive_checksums
            .flags()
            .with_vlan_assist(config.vlan);
        let ring = |kind, longest, flags| -> Result<RingControlBlock, DmaError> {
            let address = receive.address_of(kind)?;
            let block = |address| RingControlBlock::new(address, longest, flags);
            Ok(address.map_or(disabled, block))
        };
        let extended = config.jumbo == JumboRing::Extended;
        let (returns, return_producer) = receive.return_addresses()?;
        let info = self.info_address()?;
        let block = GeneralInformationBlock {
            event: RingControlBlock::new(self.events.address()?, 0, none),
            // Drivers use this number for the command ring, and firmware ignores it.
            command: RingControlBlock::new(0x100, 0, none),
            send: send_block(config, send)?,
            standard: ring(Ring::Standard, config.standard_frame(), flags)?,
            jumbo: ring(Ring::Jumbo, 0, flags.with_extended_bd(extended))?,
            mini: ring(Ring::Mini, config.mini.unwrap_or(0), flags)?,
            receive_return: RingControlBlock::new(
                returns,
                match config.return_ring {
                    ReturnRingSize::Entries1024 => 1024,
                    ReturnRingSize::Entries2048 => 2048,
                },
                none,
            ),
            event_producer: HostAddress::new(self.event_producer.address()?),
            return_producer: HostAddress::new(return_producer),
            send_consumer: HostAddress::new(match config.send_consumer {
                SendConsumer::At(address) => address,
                _ => send.consumer_address()?,
            }),
            // The block starts with the statistics; refreshed ones go there as well.
            refresh_statistics: HostAddress::new(info),
            ..GeneralInformationBlock::default()
        };
        Ok(self.info.write(0, &words_of(block.as_bytes()))?)
    }
}

/// A structure that is shared with the card, as words.
pub(super) fn words_of<const WORDS: usize>(bytes: &[u8]) -> [u32; WORDS] {
    let mut words = [0; WORDS];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
        *word = u32::from_ne_bytes(*bytes);
    }
    words
}

fn send_block(config: &Config, send: &SendRing) -> Result<RingControlBlock, DmaError> {
    let flags = config
        .send_checksums
        .flags()
        .with_vlan_assist(config.vlan)
        .with_coalesced_update_only(!config.send_interrupts_by_count)
        .with_host_ring(!send.is_on_card());
    let address = send.address()?;
    Ok(RingControlBlock::new(address, send.entries() as u16, flags))
}
