//! Transmit: when a queued frame may leave, and its content on the wire.
//!
//! Hardware reference, section 10.2.

use super::Mac;
use crate::environment::Sram;
use crate::memory::SramMap;
use tigon2_chip::mac::{ADDRESSES_BYTES, MIN_FRAME, TxDescriptor, TxDescriptorAt};

/// A frame that is being sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sending {
    /// The frame on the wire, without CRC.
    pub frame: Vec<u8>,
    /// The address after its data in the TX buffer.
    pub end: u32,
    /// Where its data begins there.
    pub start: u32,
    /// Bytes of its data.
    pub length: usize,
    /// Bytes of the tag behind the addresses.
    pub tag_bytes: usize,
    /// Bytes of its data that were read for good.
    pub fetched: usize,
}

/// The state of the transmitter's next descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queued {
    /// No descriptor, or the transmitter is off, stopped, paused or busy.
    Nothing,
    /// A descriptor whose data has not arrived: TxPrd does not cover it.
    Waiting,
    /// A descriptor of zero bytes.
    Empty,
    /// A frame that can leave.
    Ready(TxDescriptor),
}

/// Bytes from `from` forward to `to` in the buffer of `bytes` at `base`.
pub fn buffer_distance(base: u32, bytes: u32, from: u32, to: u32) -> u32 {
    let offset = |address: u32| i64::from(address) - i64::from(base);
    (offset(to) - offset(from)).rem_euclid(i64::from(bytes.max(1))) as u32
}

/// The address `bytes` behind `at` in the buffer (base, limit).
fn advance((base, limit): (u32, u32), at: u32, bytes: u32) -> u32 {
    match limit.checked_sub(at) {
        Some(room) if room > 0 && bytes >= room => base + (bytes - room),
        _ => at + bytes,
    }
}

/// Reads from `at` on in the buffer (base, limit), round its end; returns the address after the
/// last byte.
fn read_round(
    sram: &dyn Sram,
    map: SramMap,
    (base, limit): (u32, u32),
    mut at: u32,
    bytes: &mut [u8],
) -> u32 {
    let mut done = 0;
    while done < bytes.len() {
        let room = if at < limit { limit - at } else { u32::MAX };
        let piece = (room as usize).min(bytes.len() - done);
        map.read(sram, at, &mut bytes[done..done + piece]);
        done += piece;
        at += piece as u32;
        if at == limit {
            at = base;
        }
    }
    at
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

    /// Whether the data up to TxPrd covers the frame: the MAC waits for it (10.2, C). Distances are
    /// measured from TxCon and wrap in the buffer.
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

    /// Takes a frame out of the TX buffer, with its tag and padding, and records it as being sent
    /// (10.2).
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
        let end = read_round(sram, map, (base, limit), descriptor.start(), &mut frame);
        if let Some(tag) = tag {
            let at = ADDRESSES_BYTES.min(frame.len());
            frame.splice(at..at, tag);
        }
        if frame.len() < MIN_FRAME {
            frame.resize(MIN_FRAME, 0);
        }
        self.sending = Some(Sending {
            frame,
            end,
            start: descriptor.start(),
            fetched: 0,
            length,
            tag_bytes: tag.map_or(0, |tag| tag.len()),
        });
    }

    /// Reads the bytes of the frame that is being sent up to `until`, but for those that were read
    /// before: they may be others than those that stood there when it began.
    pub fn fetch(&mut self, sram: &dyn Sram, map: SramMap, until: usize) {
        let buffer = (self.buffers.tx_base, self.buffers.rx_base);
        let Some(sending) = &mut self.sending else {
            return;
        };
        let (from, until) = (sending.fetched, until.min(sending.length));
        if until <= from {
            return;
        }
        let mut bytes = vec![0; until - from];
        let at = advance(buffer, sending.start, from as u32);
        read_round(sram, map, buffer, at, &mut bytes);
        for (index, byte) in (from..until).zip(bytes) {
            let behind_tag = index >= ADDRESSES_BYTES;
            let index = index + if behind_tag { sending.tag_bytes } else { 0 };
            if let Some(place) = sending.frame.get_mut(index) {
                *place = byte;
            }
        }
        sending.fetched = until;
    }

    /// Whether `length` bytes from `at` on in the TX buffer are some of a frame's.
    pub fn overlaps(&self, sending: &Sending, at: u32, length: u32) -> bool {
        let (base, bytes) = (self.buffers.tx_base, self.buffers.tx_bytes());
        let inside = |address: u32| (base..self.buffers.rx_base).contains(&address);
        if !inside(at) || !inside(sending.start) {
            return false;
        }
        let ahead = buffer_distance(base, bytes, sending.start, at);
        let behind = buffer_distance(base, bytes, at, sending.start);
        (ahead as usize) < sending.length || behind < length
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
