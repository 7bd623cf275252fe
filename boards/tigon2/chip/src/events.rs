//! The bits of the two main event registers `R[60]` and `R[70]`.
//!
//! Hardware reference, section 5. Hardware bits are read-only levels; the other bits
//! belong to software, separately for each CPU. The most significant set bit wins
//! (see [`crate::instruction::pri`]), so a bit's number is also its priority.

use crate::Cpu;

crate::table! {
    /// An event with a known use; the value of a variant is its bit number, so that the order
    /// is that of the priorities, lowest first. Hardware's bits are read only.
    pub enum EventBit: u8 with access {
        /// bit 1, software: a frame is followed while it arrives, when there is nothing else to do;
        /// vendor firmware has no use for it.
        FollowFrame: RW = 1,
        /// bit 2, software: frames are classified ahead; vendor firmware has no use for it.
        ClassifyAhead: RW = 2,
        /// bit 3, software: send BDs are in NIC memory and wait for their data (C).
        SendDataReady: RW = 3,
        /// bit 4, software: the host moved the send producer, BDs must be fetched (C).
        SendBdReady: RW = 4,
        /// bit 5, software: a handler that the host has loaded; vendor firmware has no use for it.
        Loaded: RW = 5,
        /// bit 6, hardware: a frame was received: (`R[E0]` & !7) != `R[E8]` (C).
        ReceiveComplete: R = 6,
        /// bit 7, software: CPU A rings CPU B; vendor firmware has its LED update here (C).
        DoorbellB: RW = 7,
        /// bit 8, software: jumbo receive BDs must be fetched (C).
        JumboReceiveBdReady: RW = 8,
        /// bit 9, software: standard receive BDs must be fetched (C).
        StandardReceiveBdReady: RW = 9,
        /// bit 10, software: CPU A reports the send consumer index to the host for CPU B; vendor's
        /// CPU B sets it at its start and nothing tests it (C).
        WriteSendConsumer: RW = 10,
        /// bit 11, software: mini receive BDs must be fetched (C).
        MiniReceiveBdReady: RW = 11,
        /// bit 14, hardware: the DMA write ring's consumer has passed its reference (C!).
        DmaWriteComplete: R = 14,
        /// bit 15, hardware: the DMA read ring's consumer has passed its reference (C!).
        DmaReadComplete: R = 15,
        /// bit 19, hardware: error bits in the write channel's state (I).
        DmaWriteAttention: R = 19,
        /// bit 20, hardware: error bits in the read channel's state (I).
        DmaReadAttention: R = 20,
        /// bit 22, hardware: the CPU's mailbox event register is not 0 (C).
        Mailbox: R = 22,
        /// bit 23, software: report the send consumer index to the host (C).
        UpdateSendConsumer: RW = 23,
        /// bit 24, software: report the receive return producer index to the host (C).
        UpdateReceiveReturnProducer: RW = 24,
        /// bit 25, hardware: an attention bit of `R[220]` is set (C).
        MacRxAttention: R = 25,
        /// bit 26, hardware: an attention bit of `R[200]` is set (I).
        MacTxAttention: R = 26,
        /// bit 27, software: CPU B rings CPU A; vendor firmware sets it at its start and waits
        /// to read it (C!).
        DoorbellA: RW = 27,
        /// bit 28, hardware: the timer reached the CPU's reference (C).
        Timer: R = 28,
        /// bit 29, software: another handler that the host has loaded, in front of all others;
        /// vendor firmware lets it through and does nothing.
        LoadedUrgent: RW = 29,
    }
}

impl EventBit {
    /// A word with only this bit set.
    #[inline]
    pub const fn mask(self) -> u32 {
        1 << self as u32
    }

    /// The event with which the other CPU rings `cpu`.
    #[inline]
    pub const fn doorbell(cpu: Cpu) -> EventBit {
        match cpu {
            Cpu::A => EventBit::DoorbellA,
            _ => EventBit::DoorbellB,
        }
    }

    /// Whether hardware drives the bit; software cannot write it then.
    #[inline]
    pub const fn is_hardware(self) -> bool {
        !self.access().is_writable()
    }
}

/// The bits that hardware drives: read-only levels, writes to them are ignored (5, C!).
pub const HARDWARE_BITS: u32 = {
    let mut bits = 0;
    let mut index = 0;
    while index < EventBit::ALL.len() {
        let event = EventBit::ALL[index];
        if !event.access().is_writable() {
            bits |= event.mask();
        }
        index += 1;
    }
    bits
};

/// The bits that a register write replaces (5, C!).
pub const SOFTWARE_BITS: u32 = !HARDWARE_BITS;

/// The event mask with which vendor firmware enters its dispatch loop (5).
pub const VENDOR_MASK: u32 = 0x33D8_CB58;

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference 5, table: which bits are hardware.
    #[test]
    fn hardware_bits_are_those_of_the_table() {
        let expected = [6, 14, 15, 19, 20, 22, 25, 26, 28];
        assert_eq!(
            HARDWARE_BITS,
            expected.iter().fold(0, |mask, bit| mask | 1 << bit)
        );
        assert_eq!(HARDWARE_BITS ^ SOFTWARE_BITS, u32::MAX);
        assert!(EventBit::Timer.is_hardware());
        assert!(
            !EventBit::DoorbellA.is_hardware(),
            "bit 27 must behave as a software bit (C!)"
        );
    }

    #[test]
    fn numbers_and_events_are_one_to_one() {
        let found: Vec<_> = (0..64).filter_map(EventBit::from_number).collect();
        assert_eq!(found, EventBit::ALL);
        assert_eq!(EventBit::SendDataReady.name(), "SendDataReady");
    }

    /// Reference 5: vendor enables every event of the packet path; the mask bit of the LED
    /// event is a gate that it opens only for an update.
    #[test]
    fn vendor_mask_covers_the_packet_path() {
        for event in [
            EventBit::SendDataReady,
            EventBit::SendBdReady,
            EventBit::ReceiveComplete,
            EventBit::DmaWriteComplete,
            EventBit::DmaReadComplete,
            EventBit::Mailbox,
            EventBit::UpdateSendConsumer,
            EventBit::UpdateReceiveReturnProducer,
            EventBit::Timer,
        ] {
            assert_ne!(VENDOR_MASK & event.mask(), 0, "{event:?}");
        }
        assert_eq!(VENDOR_MASK & EventBit::DoorbellB.mask(), 0);
    }
}
