//! The assist engines: two descriptor rings and `R[11C]`.
//!
//! Hardware reference, sections 6.2 and 6.3. Pointers are kept as offsets in the ring; the
//! upper address bits come from TxBase (rule (a) of the reference).

use super::Direction;
use tigon2_chip::bits::AssistState;
use tigon2_chip::dma::{DESCRIPTOR_BYTES, RING_BYTES, next, next_free, passed};

/// The pointers of one ring, as offsets in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ring {
    producer: u32,
    consumer: u32,
    reference: u32,
}

/// A pointer register accepts any value and keeps the offset of a descriptor (6.3, C).
fn pointer(value: u32) -> u32 {
    value & (RING_BYTES - 1) & !(DESCRIPTOR_BYTES - 1)
}

impl Ring {
    /// Offset after the last queued descriptor.
    pub fn producer(&self) -> u32 {
        self.producer
    }

    /// Offset of the descriptor in progress, or of the next one.
    pub fn consumer(&self) -> u32 {
        self.consumer
    }

    /// Offset of the descriptor that software waits for.
    pub fn reference(&self) -> u32 {
        self.reference
    }

    /// A write to the producer register: wraps (6.3, C).
    pub fn set_producer(&mut self, value: u32) {
        self.producer = pointer(value);
    }

    /// A write to the consumer register, by software that does the assist's work: wraps.
    pub fn set_consumer(&mut self, value: u32) {
        self.consumer = pointer(value);
    }

    /// A write to the reference register: wraps.
    pub fn set_reference(&mut self, value: u32) {
        self.reference = pointer(value);
    }

    /// Whether nothing is queued.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.producer == self.consumer
    }

    /// Offset of the next free descriptor, `None` when the ring is full (6.3, C).
    pub fn next_free(&self) -> Option<u32> {
        next_free(self.producer, self.consumer)
    }

    /// Event bit 14 or 15: the consumer has passed the reference (5, C!).
    #[inline]
    pub fn passed(&self) -> bool {
        passed(self.producer, self.consumer, self.reference, RING_BYTES)
    }

    /// Advances past the descriptor at the consumer.
    pub fn advance(&mut self) {
        self.consumer = next(self.consumer, DESCRIPTOR_BYTES, RING_BYTES);
    }
}

/// `R[11C]` and both rings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Assist {
    state: AssistState,
    rings: [Ring; 2],
    last: Option<Direction>,
}

impl Assist {
    /// The stored bits of `R[11C]`.
    #[inline]
    pub fn state(&self) -> AssistState {
        self.state
    }

    /// A write to `R[11C]`: the live bits are not stored (6.2).
    pub fn set_state(&mut self, value: u32) {
        self.state = AssistState::from_bits(value)
            .with_write_busy(false)
            .with_write_pending(false)
            .with_read_busy(false)
            .with_read_pending(false);
    }

    /// A ring.
    #[inline]
    pub fn ring(&self, direction: Direction) -> &Ring {
        &self.rings[direction.index()]
    }

    /// A ring.
    pub fn ring_mut(&mut self, direction: Direction) -> &mut Ring {
        &mut self.rings[direction.index()]
    }

    /// The channel that loaded a descriptor last.
    pub fn last(&self) -> Option<Direction> {
        self.last
    }

    /// Records that the channel loaded a descriptor.
    pub fn loaded(&mut self, direction: Direction) {
        self.last = Some(direction);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference 6.3: writing last + 32 stores the ring start; only the offset counts (C).
    #[test]
    fn pointer_writes_wrap_and_keep_the_offset() {
        let mut ring = Ring::default();
        ring.set_producer(0x13_3800 + 0x7E0);
        assert_eq!(ring.producer(), 0x7E0);
        ring.set_producer(0x13_3800 + 0x7E0 + 32);
        assert_eq!(ring.producer(), 0);
        ring.set_consumer(0x7FF);
        assert_eq!(ring.consumer(), 0x7E0);
        ring.advance();
        assert_eq!(ring.consumer(), 0);
        ring.set_reference(u32::MAX);
        assert_eq!(ring.reference(), 0x7E0);
    }

    /// Reference 6.3: R[10C] equals the producer unless producer + 32 == consumer (C).
    #[test]
    fn next_free_is_none_in_a_full_ring() {
        let mut ring = Ring::default();
        assert_eq!(ring.next_free(), Some(0));
        ring.set_producer(63 * 32);
        assert_eq!(ring.next_free(), None);
        ring.set_consumer(32);
        assert_eq!(ring.next_free(), Some(63 * 32));
    }

    /// Reference 5: the reference may stand on the last descriptor of a group ahead of the
    /// consumer: no event until the consumer is behind it (C!).
    #[test]
    fn one_event_for_a_group() {
        let mut ring = Ring::default();
        ring.set_producer(4 * 32);
        ring.set_reference(3 * 32);
        for done in 0..=4 {
            assert_eq!(ring.passed(), done == 4, "{done} of 4 done");
            ring.advance();
        }
    }

    /// Reference 6.2: vendor writes 0x20, 0x21, 0x25; the live bits are not stored (C).
    #[test]
    fn live_bits_are_not_stored() {
        let mut assist = Assist::default();
        assist.set_state(0xFFFF_FFFF);
        assert_eq!(assist.state().into_bits() & 0x9900, 0);
        assist.set_state(0x25);
        assert_eq!(assist.state().into_bits(), 0x25);
    }
}
