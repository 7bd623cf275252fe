//! Receiver and write channel of a card whose CPUs take no time, by their registers.
//!
//! ```text
//!   wire ──► receive buffer, RxPrd, RX descriptor ──► write ring ──► host memory, RxCon
//! ```

use super::bound::switch_on;
use crate::machine::Machine;
use tigon2_chip::bits::{DmaState, MacRxState, MacTxState};
use tigon2_chip::dma::{DESCRIPTOR_BYTES, DmaDescriptor, RING_BYTES, next};
use tigon2_chip::mac::{FRAME_ALIGNMENT, RX_RING_BYTES, RxDescriptor};
use tigon2_chip::memory::block;
use tigon2_chip::{HostAddress, Register};
use tigon2_model::Cpu;

/// Base K of the descriptor and buffer block.
const K: u32 = 0x12_F000;
/// Values of `R[11C]`: the assist runs, or pauses behind what it does.
const RUNS: u32 = 0x21;
const PAUSES: u32 = 0x23;

/// The card, and what firmware's variables of the rings would be.
pub(crate) struct Receiver {
    pub machine: Machine,
    /// Offsets in the rings: behind the last descriptor that was taken, behind the last entry, and
    /// behind the last one that was seen done.
    taken: u32,
    write: u32,
    write_seen: u32,
    /// The RX ring has no room.
    full: bool,
}

impl Receiver {
    /// A card that has just been powered on; its engines run from now on. It sends no pause frames.
    pub fn new(mut machine: Machine) -> Receiver {
        switch_on(&mut machine);
        let mut receiver = Receiver {
            machine,
            taken: 0,
            write: 0,
            write_seen: 0,
            full: false,
        };
        let state = MacTxState::from_bits(receiver.get(Register::MacTxState));
        let state = state.with_send_pause(false);
        receiver.set(Register::MacTxState, state.into_bits());
        receiver.set(Register::AssistState, RUNS);
        receiver
    }

    fn set(&mut self, register: Register, value: u32) {
        self.machine.register_write(Cpu::A, register, value);
    }

    fn get(&mut self, register: Register) -> u32 {
        self.machine.register_read(Cpu::A, register)
    }

    /// `R[C4]`: behind the last byte that has come.
    pub fn filled(&mut self) -> u32 {
        // Of the frame that comes in, a look from the bus finds what has come.
        self.machine.bar_read(Register::RxProducer.offset())
    }

    /// `R[C8]`: what is in front of it is free.
    pub fn freed(&mut self) -> u32 {
        self.get(Register::RxConsumer)
    }

    /// Frees what is in front of an address, if that is not free already.
    pub fn free(&mut self, end: u32) {
        if self.freed() < end {
            self.set(Register::RxConsumer, end);
        }
    }

    /// Frames that have ended and were not taken.
    pub fn ended(&mut self) -> usize {
        let behind = self.get(Register::RxDescriptorProducer) & !7;
        let ended = (behind.wrapping_sub(self.taken)) % RX_RING_BYTES;
        (ended / 8) as usize
    }

    /// Takes the next frame's descriptor.
    pub fn take(&mut self) -> RxDescriptor {
        let at = K + block::MAC_RX_RING + self.taken;
        let descriptor = RxDescriptor {
            start: self.machine.word(at),
            length_and_error: self.machine.word(at + 4),
        };
        self.taken = (self.taken + 8) % RX_RING_BYTES;
        self.return_descriptors();
        descriptor
    }

    /// From now on the RX ring has no room, or has it again.
    pub fn fill_ring(&mut self, full: bool) {
        self.full = full;
        self.return_descriptors();
    }

    fn return_descriptors(&mut self) {
        let consumer = if self.full {
            // Behind the producer: the ring has all entries but the one between.
            (self.get(Register::RxDescriptorProducer) & !7) + 8
        } else {
            self.taken
        };
        let consumer = K + block::MAC_RX_RING + consumer % RX_RING_BYTES;
        self.set(Register::RxDescriptorConsumer, consumer);
    }

    /// Whether the attention says that the MAC has given a frame up.
    pub fn gave_up(&mut self) -> bool {
        MacRxState::from_bits(self.get(Register::MacRxState)).buffer_attention()
    }

    /// Clears the attention.
    pub fn clear_gave_up(&mut self) {
        let state = self.get(Register::MacRxState);
        self.set(Register::MacRxState, state);
    }

    /// Queues a transfer to the host; whether it frees its bytes in the receive buffer.
    pub fn write(&mut self, local: u32, host: u64, length: u32, frees: bool) {
        let descriptor = DmaDescriptor {
            host: HostAddress::new(host),
            local,
            length,
            state: DmaState::new().with_start(true).with_free_rx_buffer(frees),
            ..DmaDescriptor::default()
        };
        let at = K + block::DMA_WRITE_RING + self.write;
        self.machine.load_image(at, &descriptor.to_nic_bytes());
        self.write = next(self.write, DESCRIPTOR_BYTES, RING_BYTES);
        self.set(Register::AssistWriteProducer, self.write);
    }

    /// Sees one transfer done, if there is one.
    pub fn see_written(&mut self) -> bool {
        let consumer = self.get(Register::AssistWriteConsumer) & (RING_BYTES - 1) & !7;
        let done = consumer != self.write_seen;
        if done {
            self.write_seen = next(self.write_seen, DESCRIPTOR_BYTES, RING_BYTES);
        }
        done
    }

    /// Sees that the channel has failed, if it has; then it goes on behind the transfer.
    pub fn see_failed(&mut self) -> bool {
        let failed = self.get(Register::DmaWriteState) & DmaState::ERRORS != 0;
        if failed {
            self.set(Register::AssistState, PAUSES);
            self.set(Register::DmaWriteState, 1);
            self.write_seen = next(self.write_seen, DESCRIPTOR_BYTES, RING_BYTES);
            self.set(Register::AssistWriteConsumer, self.write_seen);
            self.set(Register::AssistState, RUNS);
        }
        failed
    }
}

/// Where the room of a frame ends.
pub(crate) const fn room_end(start: u32, length_with_crc: u32) -> u32 {
    (start + length_with_crc).next_multiple_of(FRAME_ALIGNMENT)
}
