//! Transmit: when a queued frame may go, and what it looks like on the wire.
//!
//! Hardware reference, section 10.2.

use super::Mac;
use crate::environment::Sram;
use crate::memory::SramMap;
use tigon2_chip::mac::{ADDRESSES_BYTES, MIN_FRAME, TxDescriptor, TxDescriptorAt};

/// A frame on its way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sending {
    /// The frame as it is on the wire, without CRC.
    pub frame: Vec<u8>,
    /// The address behind its data in the TX buffer.
    pub end: u32,
}

/// What the transmitter finds at its descriptor consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queued {
    /// No descriptor, or the transmitter is off, stopped, paused or at work.
    Nothing,
    /// A descriptor whose data is not there yet: TxPrd does not cover it.
    Waiting,
    /// A descriptor of no bytes.
    Empty,
    /// A frame that can go.
    Ready(TxDescriptor),
}

/// Bytes from `from` forward to `to` in the buffer of `bytes` at `base`.
pub fn buffer_distance(base: u32, bytes: u32, from: u32, to: u32) -> u32 {
    let offset = |address: u32| i64::from(address) - i64::from(base);
    (offset(to) - offset(from)).rem_euclid(i64::from(bytes.max(1))) as u32
}

impl Mac {
    /// Looks at the descriptor at `R[F4]`.
    pub fn queued(&self, now: u64, sram: &dyn Sram, map: SramMap) -> Queued {
        let consumer = self.tx_descriptor_consumer;
        if consumer.meets(self.tx_descriptor_producer)
            || !self.tx_state.enable()
            || self.tx_state.stop()
            || self.sending.is_some()
            || now < self.pause.held_until
        {
            return Queued::Nothing;
        }
        let at = TxDescriptorAt(consumer.get());
        let descriptor = TxDescriptor {
            start_and_flags: map.word(sram, at.start_and_flags()),
            length_and_tag: map.word(sram, at.length_and_tag()),
        };
        if descriptor.length() == 0 {
            Queued::Empty
        } else if self.covers(&descriptor) {
            Queued::Ready(descriptor)
        } else {
            Queued::Waiting
        }
    }

    /// Whether the data up to TxPrd covers the frame: the MAC waits for it (10.2, C).
    /// Distances run from TxCon round the buffer.
    fn covers(&self, descriptor: &TxDescriptor) -> bool {
        let (base, bytes) = (self.buffers.tx_base, self.buffers.tx_bytes());
        if bytes == 0 {
            return false;
        }
        let from = self.tx_consumer.get();
        let valid = buffer_distance(base, bytes, from, self.tx_producer.get());
        let start = buffer_distance(base, bytes, from, descriptor.start());
        start + descriptor.length() <= valid
    }

    /// Takes a frame out of the TX buffer, with its tag and padding, and remembers it as on
    /// its way (10.2).
    pub fn begin_sending(&mut self, sram: &dyn Sram, map: SramMap, descriptor: &TxDescriptor) {
        let (base, limit) = (self.buffers.tx_base, self.buffers.rx_base);
        let length = descriptor.length() as usize;
        let tag = descriptor.tag().map(|tag| {
            let [a, b] = self.vlan_type.to_be_bytes();
            let [c, d] = tag.to_be_bytes();
            [a, b, c, d]
        });
        let mut frame = Vec::with_capacity((length + 4).max(MIN_FRAME));
        frame.resize(length, 0);
        let mut at = descriptor.start();
        let mut done = 0;
        while done < length {
            let room = if at < limit { limit - at } else { u32::MAX };
            let piece = (room as usize).min(length - done);
            map.read(sram, at, &mut frame[done..done + piece]);
            done += piece;
            at += piece as u32;
            if at == limit {
                at = base;
            }
        }
        if let Some(tag) = tag {
            let at = ADDRESSES_BYTES.min(frame.len());
            frame.splice(at..at, tag);
        }
        if frame.len() < MIN_FRAME {
            frame.resize(MIN_FRAME, 0);
        }
        self.sending = Some(Sending { frame, end: at });
    }

    /// The frame has left: TxCon and F4 advance (10.2, C).
    pub fn finish_sending(&mut self) -> Option<Vec<u8>> {
        let sending = self.sending.take()?;
        self.tx_consumer.set(sending.end);
        self.tx_descriptor_consumer.advance();
        Some(sending.frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_run_round_the_buffer() {
        assert_eq!(buffer_distance(100, 50, 100, 140), 40);
        assert_eq!(buffer_distance(100, 50, 140, 110), 20);
        assert_eq!(
            buffer_distance(100, 50, 140, 150),
            10,
            "the end is the start"
        );
        assert_eq!(buffer_distance(100, 50, 120, 120), 0);
        assert_eq!(buffer_distance(0, 0, 7, 9), 0);
    }
}
