//! The MAC: two descriptor rings, two buffers in SRAM, the address filter.
//!
//! Hardware reference, section 10.
//!
//! ```text
//!         TxCon      TxPrd              RxCon        RxPrd
//!           v          v                  v            v
//! TxBase ..[wait][data]..... | RxBase ...[frame][frame]........ 0x200000
//!            ▲                              ▲
//! F4 ──► [desc][desc] ◄── F0    E4 ──► [desc][desc] ◄── E0
//!  (sent by hardware)             (taken by software)
//! ```

mod filter;
mod pause;
mod receive;
mod ring;
#[cfg(test)]
mod tests;
mod transmit;

pub use filter::{Filter, FrameKind};
pub use pause::{Pause, is_flow_control, pause_frame, pause_quanta, pause_time};
pub use receive::{DropReason, Reception, Room};
pub use ring::RingPointer;
pub use transmit::{Queued, Sending, buffer_distance};

use crate::dma::PacketBuffers;
use tigon2_chip::bits::{MacRxState, MacTxState};
use tigon2_chip::mac::{RX_RING_BYTES, TX_RING_BYTES};

/// The MAC's addresses cover the SRAM and its aliases: 23 bits (10.2).
const ADDRESS_MASK: u32 = 0x007F_FFFF;

/// A pointer into a packet buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferPointer(u32);

impl BufferPointer {
    /// The address.
    #[inline]
    pub fn get(self) -> u32 {
        self.0
    }

    /// A write, by software or by side effects of DMA and MAC.
    pub fn set(&mut self, value: u32) {
        self.0 = value & ADDRESS_MASK;
    }
}

/// Registers and state of the MAC.
#[derive(Clone, Debug, Default)]
pub struct Mac {
    /// `R[C0]` and `R[D0]`.
    pub buffers: PacketBuffers,
    /// `R[C4]`: next byte to be filled.
    pub rx_producer: BufferPointer,
    /// `R[C8]`: oldest byte in use.
    pub rx_consumer: BufferPointer,
    /// `R[D4]`: transmit data is valid up to here.
    pub tx_producer: BufferPointer,
    /// `R[D8]`: transmitted up to here.
    pub tx_consumer: BufferPointer,
    /// `R[E0]`.
    pub rx_descriptor_producer: RingPointer<RX_RING_BYTES>,
    /// `R[E4]`.
    pub rx_descriptor_consumer: RingPointer<RX_RING_BYTES>,
    /// `R[E8]`.
    pub rx_descriptor_reference: RingPointer<RX_RING_BYTES>,
    /// `R[F0]`.
    pub tx_descriptor_producer: RingPointer<TX_RING_BYTES>,
    /// `R[F4]`.
    pub tx_descriptor_consumer: RingPointer<TX_RING_BYTES>,
    /// `R[F8]`.
    pub tx_descriptor_reference: RingPointer<TX_RING_BYTES>,
    /// Station address and multicast hash.
    pub filter: Filter,
    tx_state: MacTxState,
    rx_state: MacRxState,
    /// `R[214]` bits 31:16: type of inserted VLAN tags.
    pub vlan_type: u16,
    /// E0 bit 2: a frame is arriving.
    pub receiving: bool,
    /// Bytes of it that are in the RX buffer; RxPrd is that of the frames before.
    arrived: u32,
    /// The frame that is being sent.
    pub sending: Option<Sending>,
    /// Flow control.
    pub pause: Pause,
    moved_back: u64,
}

impl Mac {
    /// `R[D0]`.
    pub fn set_tx_base(&mut self, value: u32) {
        self.buffers.tx_base = value & ADDRESS_MASK;
    }

    /// `R[C0]`.
    pub fn set_rx_base(&mut self, value: u32) {
        self.buffers.rx_base = value & ADDRESS_MASK;
    }

    /// `R[D4]` becomes this, by software or by a transfer that ends a frame.
    pub fn cover(&mut self, end: u32) {
        let before = self.covered();
        self.tx_producer.set(end);
        // What the MAC may have read is taken from it.
        let is_back = self.tx_state.enable() && self.covered() < before;
        self.moved_back += u64::from(is_back);
    }

    /// Bytes from TxCon to TxPrd.
    fn covered(&self) -> u32 {
        let (base, bytes) = (self.buffers.tx_base, self.buffers.tx_bytes());
        let (from, to) = (self.tx_consumer.get(), self.tx_producer.get());
        buffer_distance(base, bytes, from, to)
    }

    /// `R[C8]` becomes this, by software or by a transfer that frees its bytes.
    pub fn free(&mut self, end: u32) {
        let before = self.in_use();
        self.rx_consumer.set(end);
        // Bytes that were free already are in use again.
        let is_back = self.rx_state.enable() && self.in_use() > before;
        self.moved_back += u64::from(is_back);
    }

    /// Bytes from RxCon to RxPrd.
    fn in_use(&self) -> u32 {
        let (base, bytes) = (self.buffers.rx_base, self.buffers.rx_bytes());
        let (from, to) = (self.rx_consumer.get(), self.rx_producer.get());
        buffer_distance(base, bytes, from, to)
    }

    /// How often TxPrd or RxCon has moved back since the last reset, while the MAC was enabled.
    #[inline]
    pub fn moved_back(&self) -> u64 {
        self.moved_back
    }

    /// `R[200]`.
    #[inline]
    pub fn tx_state(&self) -> MacTxState {
        self.tx_state
    }

    /// A write to `R[200]`: bit 0 resets and clears itself, without disturbing the pointers
    /// (10.1, C), and the other bits of the same write are stored; bits 29:24 are write-1-to-clear
    /// (10.4, C). Returns whether a frame was on the wire, which ends cut.
    pub fn set_tx_state(&mut self, value: u32) -> bool {
        let value = MacTxState::from_bits(value);
        if value.reset() {
            self.tx_state = value.with_reset(false).with_attention(0);
            self.pause = Pause::default();
            return self.sending.take().is_some();
        }
        let attention = self.tx_state.attention() & !value.attention();
        self.tx_state = value.with_attention(attention);
        false
    }

    /// The stored bits of `R[220]`; 18 and 19 come from the link.
    #[inline]
    pub fn rx_state(&self) -> MacRxState {
        self.rx_state
    }

    /// A write to `R[220]`: bit 0 resets and clears itself, without disturbing the pointers
    /// (10.1, C); attention bits are write-1-to-clear, the rest is stored (10.4, C). With a
    /// signal present, clearing bit 1 raises attention 25 (10.4, C!).
    pub fn set_rx_state(&mut self, value: u32, signal: bool) {
        const ATTENTION: u32 = MacRxState::ATTENTION;
        if MacRxState::from_bits(value).reset() {
            self.rx_state = MacRxState::new();
            self.arrived = 0;
            return;
        }
        let was_enabled = self.rx_state.enable();
        let attention = self.rx_state.into_bits() & ATTENTION & !value;
        self.rx_state = MacRxState::from_bits(value & !ATTENTION | attention)
            .with_synchronised(false)
            .with_code_words(false);
        if was_enabled && !self.rx_state.enable() && signal {
            self.rx_state.set_sync_attention(true);
        }
    }

    /// Attention 25: the signal appeared or disappeared (11).
    pub fn sync_changed(&mut self) {
        self.rx_state.set_sync_attention(true);
    }

    /// Attention 30: no room for a frame (10.3, C).
    pub fn buffer_full(&mut self) {
        self.rx_state.set_buffer_attention(true);
    }

    /// Event bit 25.
    #[inline]
    pub fn rx_attention(&self) -> bool {
        self.rx_state.into_bits() & MacRxState::ATTENTION != 0
    }

    /// Event bit 26.
    #[inline]
    pub fn tx_attention(&self) -> bool {
        self.tx_state.attention() != 0
    }

    /// `R[FC]`: the next free TX descriptor, `None` when the ring is full (10.1, C).
    pub fn next_free_descriptor(&self) -> Option<u32> {
        let producer = self.tx_descriptor_producer;
        (!producer.next().meets(self.tx_descriptor_consumer)).then_some(producer.get())
    }

    /// Event bit 6: (`R[E0]` & !7) != `R[E8]` (5, C).
    #[inline]
    pub fn receive_complete(&self) -> bool {
        self.rx_descriptor_producer != self.rx_descriptor_reference
    }
}

#[cfg(test)]
mod state_tests {
    use super::*;

    /// Reference 10.4: firmware clears attentions with the masks 0x08FFFFFF / 0xF7000000 (C);
    /// 18 and 19 are read-only.
    #[test]
    fn attention_bits_are_write_one_to_clear() {
        let mut mac = Mac::default();
        mac.buffer_full();
        mac.sync_changed();
        assert!(mac.rx_attention());
        mac.set_rx_state(0x0001_880A, true);
        assert_eq!(mac.rx_state().into_bits(), 0x4201_880A, "zeros leave them");
        mac.set_rx_state(mac.rx_state().into_bits() & 0x08FF_FFFF | 0x4000_0000, true);
        assert_eq!(mac.rx_state().into_bits(), 0x0201_880A);
        mac.set_rx_state(0x020D_880A, true);
        assert_eq!(mac.rx_state().into_bits(), 0x0001_880A);
        assert!(!mac.rx_attention());
    }

    /// TxPrd goes on from TxCon, and RxCon to RxPrd, round their buffers; what goes the other way is
    /// counted.
    #[test]
    fn pointers_that_move_back_are_counted() {
        let mut mac = Mac::default();
        mac.set_tx_base(0x13_4000);
        mac.set_rx_base(0x18_0000);
        mac.tx_consumer.set(0x17_FF00);
        mac.tx_producer.set(0x17_FF00);
        mac.rx_consumer.set(0x1F_FF00);
        mac.rx_producer.set(0x18_0200);
        mac.free(0x18_0200);
        mac.free(0x1F_FF00);
        assert_eq!(mac.moved_back(), 0, "neither is at work");
        mac.set_tx_state(2);
        mac.set_rx_state(2, false);
        for end in [0x17_FF00, 0x17_FFFE, 0x13_4010, 0x13_4010] {
            mac.cover(end);
        }
        for end in [0x1F_FFF0, 0x18_0008, 0x18_0200, 0x18_0200] {
            mac.free(end);
        }
        assert_eq!(mac.moved_back(), 0);
        mac.cover(0x17_FFFE);
        mac.free(0x18_0008);
        assert_eq!(mac.moved_back(), 2);
    }

    /// Reference 10.4: R[200] bit 0 clears itself, 29:24 are write-1-to-clear (C).
    #[test]
    fn transmit_state() {
        let mut mac = Mac::default();
        mac.tx_state.set_attention(0x21);
        mac.set_tx_state(0x0100_00E2);
        assert_eq!(mac.tx_state().into_bits(), 0x2000_00E2);
        assert!(mac.tx_attention());
        mac.set_tx_state(1);
        assert_eq!(mac.tx_state().into_bits(), 0);
    }

    /// Reference 10.1: later writes of 1 to R[200]/R[220] do not disturb the pointers (C).
    #[test]
    fn resets_keep_the_pointers() {
        let mut mac = Mac::default();
        mac.set_tx_base(0x13_4000);
        mac.set_rx_base(0x18_0000);
        mac.rx_producer.set(0x18_0008);
        mac.tx_descriptor_producer.set(0x13_1808);
        mac.set_tx_state(1);
        mac.set_rx_state(1, true);
        assert_eq!(mac.buffers.tx_base, 0x13_4000);
        assert_eq!(mac.rx_producer.get(), 0x18_0008);
        assert_eq!(mac.tx_descriptor_producer.get(), 0x13_1808);
        assert!(!mac.rx_attention());
    }
}
