//! What connections send without a copy: the bytes stay in their application's memory.
//!
//! smoltcp gets places for the bytes instead of the bytes. When a frame leaves, the ranges that its
//! sequence numbers stand for are put in: a card reads them where they are, by further BDs; for any
//! other wire they are copied into the frame. Retransmissions come from the same memory.
//!
//! ```text
//!   pool    |....[ part ]........[ part ]....|        given: bytes given to smoltcp so far
//!                   │                │
//!   stream  ──copied──┼── part ──┼── part ──┼──►      by sequence number
//!   frame        [ header | placeholder bytes ]
//!   card         [ header ]──BD──BD──                 placeholders are dropped, the card sums
//!   other wire   [ header | bytes ]                   placeholders are filled
//! ```

use std::collections::VecDeque;
use std::sync::Arc;

use dti::mapped::Mapping;
use dti::words::read_bytes_at;
use host_driver::DmaMemory;
use host_driver::nic::InPlace;
use host_driver::stack::Wire;
use smoltcp::phy::{Device, DeviceCapabilities, TxToken};
use smoltcp::time::Instant as StackInstant;
use smoltcp::wire::{EthernetFrame, IpAddress, Ipv4Packet, TcpPacket};

use super::StackStatistics;

/// Most parts of a frame that a card gathers, beside the header.
const PARTS: usize = host_driver::nic::MAX_FRAGMENTS - 1;

/// An application's memory, as frames are made of it.
#[derive(Clone)]
pub(crate) struct Payload {
    pub(crate) memory: Arc<Mapping>,
    /// First byte of the pool.
    pub(crate) pool: usize,
    /// The same for the card; none if the wire copies.
    pub(crate) card: Option<DmaMemory>,
}

/// A part of a stream that stands in the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    /// Place in the stream.
    start: u64,
    bytes: usize,
    /// Place in the pool.
    offset: usize,
}

impl Part {
    fn end(&self) -> u64 {
        self.start + self.bytes as u64
    }
}

/// The sending direction of a connection.
#[derive(Default)]
pub(crate) struct Stream {
    /// Sequence number of the first byte, known once the SYN has left.
    first: Option<u32>,
    given: u64,
    /// Parts that the peer has not acknowledged, in order.
    parts: VecDeque<Part>,
    payload: Option<Payload>,
    /// What the wire had queued when a part last left.
    mark: u64,
}

impl Stream {
    /// Bytes were copied to smoltcp.
    pub(crate) fn copied(&mut self, bytes: usize) {
        self.given += bytes as u64;
    }

    /// Bytes of the pool were given to smoltcp as places.
    pub(crate) fn placed(&mut self, offset: usize, bytes: usize) {
        if bytes > 0 {
            self.parts.push_back(Part {
                start: self.given,
                bytes,
                offset,
            });
            self.given += bytes as u64;
        }
    }

    /// Bytes given so far.
    pub(crate) fn given(&self) -> u64 {
        self.given
    }

    /// The peer has acknowledged all but so many bytes; how many that are in all.
    pub(crate) fn acknowledged(&mut self, left: usize) -> u64 {
        let done = self.given.saturating_sub(left as u64);
        while self.parts.front().is_some_and(|part| part.end() <= done) {
            self.parts.pop_front();
        }
        done
    }

    /// Whether smoltcp may still send bytes that it does not have.
    pub(crate) fn is_elsewhere(&self) -> bool {
        !self.parts.is_empty()
    }

    /// Where the parts are.
    pub(crate) fn set_payload(&mut self, payload: Payload) {
        self.payload = Some(payload);
    }

    /// A mark of the wire, which reads no part any more when it has returned all before it.
    pub(crate) fn mark(&self) -> u64 {
        self.mark
    }

    /// The parts of a frame's payload: place in the payload, place in the pool, bytes.
    fn find(&self, sequence: u32, bytes: usize) -> Vec<(usize, usize, usize)> {
        let (Some(first), Some(oldest)) = (self.first, self.parts.front()) else {
            return Vec::new();
        };
        // The frame's place in the stream is near the oldest part's.
        let distance = sequence
            .wrapping_sub(first)
            .wrapping_sub(oldest.start as u32)
            .cast_signed();
        let from = oldest.start.cast_signed() + i64::from(distance);
        let to = from + bytes as i64;
        let overlap = |part: &Part| {
            let start = from.max(part.start.cast_signed());
            let end = to.min(part.end().cast_signed());
            let length = usize::try_from(end - start)
                .ok()
                .filter(|bytes| *bytes > 0)?;
            let into = usize::try_from(start - part.start.cast_signed()).ok()?;
            let place = usize::try_from(start - from).ok()?;
            Some((place, part.offset + into, length))
        };
        self.parts.iter().filter_map(overlap).collect()
    }
}

/// Where a frame's TCP segment is: the first byte of its payload, its end, its number.
struct Segment {
    payload: usize,
    end: usize,
    sequence: u32,
    opens: bool,
}

fn segment(frame: &[u8]) -> Option<Segment> {
    let ethernet = EthernetFrame::new_checked(frame).ok()?;
    let packet = Ipv4Packet::new_checked(ethernet.payload()).ok()?;
    let tcp = TcpPacket::new_checked(packet.payload()).ok()?;
    let start = EthernetFrame::<&[u8]>::header_len() + usize::from(packet.header_len());
    Some(Segment {
        payload: start + usize::from(tcp.header_len()),
        end: start + packet.payload().len(),
        sequence: tcp.seq_number().0.cast_unsigned(),
        opens: tcp.syn(),
    })
}

/// A wire for one connection's frames, which puts the parts in.
pub(super) struct Egress<'a, W> {
    pub(super) wire: &'a mut W,
    pub(super) stream: &'a mut Stream,
    pub(super) statistics: &'a mut StackStatistics,
    pub(super) scratch: &'a mut Vec<u8>,
}

/// Room for a frame.
pub(super) struct EgressTx<'t, W> {
    egress: Egress<'t, W>,
    now: StackInstant,
}

impl<W: Wire> TxToken for EgressTx<'_, W> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let Egress {
            wire,
            stream,
            statistics,
            scratch,
        } = self.egress;
        let opening = stream.first.is_none();
        if !stream.is_elsewhere()
            && let Some(room) = wire.transmit(self.now)
        {
            return room.consume(len, |frame| {
                let result = f(frame);
                if opening && let Some(found) = segment(frame).filter(|found| found.opens) {
                    stream.first = Some(found.sequence.wrapping_add(1));
                }
                result
            });
        }
        scratch.clear();
        scratch.resize(len, 0);
        let result = f(scratch);
        let found = segment(scratch);
        let parts = found
            .as_ref()
            .map(|found| stream.find(found.sequence, found.end - found.payload));
        let (Some(found), Some(parts), Some(payload)) = (found, parts, &stream.payload) else {
            copy(wire, self.now, scratch);
            return result;
        };
        let covered: usize = parts.iter().map(|(_, _, bytes)| bytes).sum();
        statistics.placeholders += covered as u64;
        let whole = covered == found.end - found.payload && found.end == len;
        // Who gathers must sum what it gathers.
        let sums_here = wire.capabilities().checksum.tcp.tx();
        if let Some(card) = payload.card.as_ref()
            && whole
            && !sums_here
            && (1..=PARTS).contains(&parts.len())
        {
            let parts: Vec<_> = parts
                .iter()
                .map(|(_, offset, bytes)| InPlace {
                    memory: card,
                    offset: payload.pool + offset,
                    bytes: *bytes,
                })
                .collect();
            wire.send_in_place(scratch, found.payload, &parts);
            stream.mark = wire.queued();
            return result;
        }
        for (place, offset, bytes) in &parts {
            let start = found.payload + place;
            let into = &mut scratch[start..start + bytes];
            read_bytes_at(&*payload.memory, payload.pool + offset, into);
        }
        statistics.filled += covered as u64;
        if covered > 0 && sums_here {
            sum(scratch);
        }
        copy(wire, self.now, scratch);
        result
    }
}

/// Puts a frame on a wire as it is. The room was there when the token was made.
fn copy<W: Wire>(wire: &mut W, now: StackInstant, frame: &[u8]) {
    if let Some(room) = wire.transmit(now) {
        room.consume(frame.len(), |bytes| bytes.copy_from_slice(frame));
    }
}

/// Computes a segment's checksum anew.
fn sum(frame: &mut [u8]) {
    let mut ethernet = EthernetFrame::new_unchecked(frame);
    let mut packet = Ipv4Packet::new_unchecked(ethernet.payload_mut());
    let from = IpAddress::Ipv4(packet.src_addr());
    let to = IpAddress::Ipv4(packet.dst_addr());
    TcpPacket::new_unchecked(packet.payload_mut()).fill_checksum(&from, &to);
}

impl<W: Wire> Device for Egress<'_, W> {
    type RxToken<'t>
        = W::RxToken<'t>
    where
        Self: 't;
    type TxToken<'t>
        = EgressTx<'t, W>
    where
        Self: 't;

    fn receive(&mut self, _: StackInstant) -> Option<(W::RxToken<'_>, EgressTx<'_, W>)> {
        None
    }

    fn transmit(&mut self, now: StackInstant) -> Option<EgressTx<'_, W>> {
        let gathers = self
            .stream
            .payload
            .as_ref()
            .is_some_and(|payload| payload.card.is_some());
        if gathers && self.stream.is_elsewhere() && self.wire.room_in_place() == 0 {
            return None;
        }
        self.wire.transmit(now)?;
        Some(EgressTx {
            egress: Egress {
                wire: self.wire,
                stream: self.stream,
                statistics: self.statistics,
                scratch: self.scratch,
            },
            now,
        })
    }

    fn capabilities(&self) -> DeviceCapabilities {
        self.wire.capabilities()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever is copied or placed, acknowledged and asked for, beyond the wrap of sequence
        /// numbers: each byte is found where a plain list has it.
        #[test]
        fn a_frames_bytes_are_found_where_they_were_placed(
            first in any::<u32>(),
            pieces in prop::collection::vec((any::<bool>(), 1usize..3000), 1..40),
            acknowledged in 0usize..40_000,
            asked in 0usize..60_000,
            length in 1usize..9000,
        ) {
            let mut stream = Stream { first: Some(first), ..Stream::default() };
            let mut list = Vec::new();
            for (number, (placed, bytes)) in pieces.into_iter().enumerate() {
                let offset = number * 10_000;
                if placed {
                    stream.placed(offset, bytes);
                    list.extend((offset..offset + bytes).map(Some));
                } else {
                    stream.copied(bytes);
                    list.extend(std::iter::repeat_n(None, bytes));
                }
            }
            let acknowledged = acknowledged.min(list.len());
            prop_assert_eq!(stream.acknowledged(list.len() - acknowledged), acknowledged as u64);
            // smoltcp sends what is not acknowledged.
            let asked = asked.clamp(acknowledged, list.len());
            let length = length.min(list.len() - asked);
            let mut found = vec![None; length];
            for (place, offset, bytes) in stream.find(first.wrapping_add(asked as u32), length) {
                for index in 0..bytes {
                    prop_assert_eq!(found[place + index].replace(offset + index), None);
                }
            }
            prop_assert_eq!(&found[..], &list[asked..asked + length]);
        }
    }
}
