//! Read channel and transmitter of a card whose CPUs take no time, by their registers.
//!
//! ```text
//!   host memory ── read ring ──► transmit buffer ── TX descriptor, TxPrd ──► wire
//! ```

use super::bound::switch_on;
use crate::machine::Machine;
use tigon2_chip::bits::{DmaState, MacTxState};
use tigon2_chip::dma::{DESCRIPTOR_BYTES, DmaDescriptor, RING_BYTES, next};
use tigon2_chip::mac::{TX_RING_BYTES, TxDescriptor};
use tigon2_chip::memory::block;
use tigon2_chip::{HostAddress, Register};
use tigon2_model::Cpu;

/// Base K of the descriptor and buffer block, and the end of the TX buffer behind it.
const K: u32 = 0x12_F000;
const TX_END: u32 = 0x18_0000;
/// Bytes of the TX buffer.
pub(crate) const ROOM: u32 = TX_END - K - block::PACKET_BUFFERS;

/// The card, and what firmware's variables of the rings would be.
pub(crate) struct Transmitter {
    pub machine: Machine,
    /// Where the next frame goes in the TX buffer.
    position: u32,
    /// Offsets in the rings: behind the last entry, and behind the last one that was seen done.
    read: u32,
    read_seen: u32,
    transmit: u32,
    transmit_seen: u32,
}

impl Transmitter {
    /// A card that has just been powered on; its engines run from now on.
    pub fn new(mut machine: Machine) -> Transmitter {
        switch_on(&mut machine);
        let mut transmitter = Transmitter {
            machine,
            position: K + block::PACKET_BUFFERS,
            read: 0,
            read_seen: 0,
            transmit: 0,
            transmit_seen: 0,
        };
        transmitter.set(Register::AssistState, 0x21);
        transmitter
    }

    fn set(&mut self, register: Register, value: u32) {
        self.machine.register_write(Cpu::B, register, value);
    }

    fn consumer(&mut self, register: Register, ring: u32) -> u32 {
        self.machine.register_read(Cpu::B, register) & (ring - 1) & !7
    }

    /// Place in the TX buffer for a frame of so many bytes.
    pub fn place(&mut self, length: u32) -> u32 {
        let length = length.next_multiple_of(8);
        if self.position + length > TX_END {
            self.position = K + block::PACKET_BUFFERS;
        }
        let start = self.position;
        self.position += length;
        start
    }

    /// Queues transfers from the host to NIC memory: host and NIC address, bytes. None moves TxPrd.
    pub fn fetch(&mut self, transfers: impl IntoIterator<Item = (u64, u32, u32)>) {
        for (host, local, length) in transfers {
            let descriptor = DmaDescriptor {
                host: HostAddress::new(host),
                local,
                length,
                state: DmaState::new().with_start(true),
                ..DmaDescriptor::default()
            };
            let at = K + block::DMA_READ_RING + self.read;
            self.machine.load_image(at, &descriptor.to_nic_bytes());
            self.read = next(self.read, DESCRIPTOR_BYTES, RING_BYTES);
        }
        self.set(Register::AssistReadProducer, self.read);
    }

    /// Sees one transfer done, if there is one.
    pub fn see_fetched(&mut self) -> bool {
        let done = self.consumer(Register::AssistReadConsumer, RING_BYTES) != self.read_seen;
        if done {
            self.read_seen = next(self.read_seen, DESCRIPTOR_BYTES, RING_BYTES);
        }
        done
    }

    /// Gives the MAC a frame, whatever of it is there.
    pub fn give(&mut self, start: u32, length: u32) {
        let descriptor = TxDescriptor::new(start, length as u16, None);
        let at = K + block::MAC_TX_RING + self.transmit;
        let words = [descriptor.start_and_flags, descriptor.length_and_tag];
        let bytes = words.map(u32::to_be_bytes).concat();
        self.machine.load_image(at, &bytes);
        self.transmit = (self.transmit + 8) % TX_RING_BYTES;
        // The MAC measures from TxCon, which skips what was left at the buffer's end.
        if self.machine.register_read(Cpu::B, Register::TxConsumer) > start {
            self.set(Register::TxConsumer, start);
        }
        self.set(Register::TxProducer, start + length);
        self.set(Register::TxDescriptorProducer, self.transmit);
    }

    /// Sees one frame gone, if there is one.
    pub fn see_sent(&mut self) -> bool {
        let sent = self.consumer(Register::TxDescriptorConsumer, TX_RING_BYTES);
        let gone = sent != self.transmit_seen;
        if gone {
            self.transmit_seen = (self.transmit_seen + 8) % TX_RING_BYTES;
        }
        gone
    }

    /// Whether all frames were seen gone.
    pub const fn is_idle(&self) -> bool {
        self.transmit == self.transmit_seen
    }

    /// Resets the transmitter, and stops it, or lets it send the frame again.
    pub fn reset(&mut self, stop: bool) {
        let state = self.machine.register_read(Cpu::B, Register::MacTxState);
        let state = MacTxState::from_bits(state)
            .with_reset(true)
            .with_stop(stop);
        self.set(Register::MacTxState, state.into_bits());
    }

    /// Lets a stopped transmitter go on.
    pub fn resume(&mut self) {
        let state = self.machine.register_read(Cpu::B, Register::MacTxState);
        let state = MacTxState::from_bits(state).with_stop(false);
        self.set(Register::MacTxState, state.into_bits());
    }
}
