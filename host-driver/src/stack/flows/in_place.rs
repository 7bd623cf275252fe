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

use smoltcp::phy::{Device, DeviceCapabilities, TxToken};
use smoltcp::time::Instant as StackInstant;
use smoltcp::wire::{EthernetFrame, IpAddress, Ipv4Packet, TcpPacket};

use super::StackStatistics;
use crate::dma::DmaMemory;
use crate::nic::InPlace;
use crate::stack::Wire;

/// Most parts of a frame that a card gathers, beside the header.
const PARTS: usize = crate::nic::MAX_FRAGMENTS - 1;

/// Memory of an application, as frames are made of it.
pub trait Payload: Send + Sync {
    /// The same for the card; none if the wire copies.
    fn card(&self) -> Option<&DmaMemory>;

    /// Copies bytes from a place in it, which the caller has judged.
    fn read(&self, place: usize, bytes: &mut [u8]);
}

/// A part of a stream that stands in memory of its application.
struct Part {
    /// Place in the stream.
    start: u64,
    bytes: usize,
    memory: Arc<dyn Payload>,
    /// Place in that memory.
    place: usize,
}

/// A part of a frame's payload that stands elsewhere.
struct Piece {
    /// Place in the payload.
    at: usize,
    memory: Arc<dyn Payload>,
    /// Place in that memory.
    place: usize,
    bytes: usize,
}

impl Part {
    fn end(&self) -> u64 {
        self.start + self.bytes as u64
    }
}

/// The sending direction of a connection.
#[derive(Default)]
pub struct Stream {
    /// Sequence number of the first byte, known once the SYN has left.
    first: Option<u32>,
    given: u64,
    /// Parts that the peer has not acknowledged, in order.
    parts: VecDeque<Part>,
    /// What the wire had queued when a part last left.
    mark: u64,
}

impl Stream {
    /// Bytes were copied to smoltcp.
    pub fn copied(&mut self, bytes: usize) {
        self.given += bytes as u64;
    }

    /// Bytes at a place of an application's memory were given to smoltcp as places.
    pub fn placed(&mut self, memory: &Arc<dyn Payload>, place: usize, bytes: usize) {
        if bytes > 0 {
            self.parts.push_back(Part {
                start: self.given,
                bytes,
                memory: memory.clone(),
                place,
            });
            self.given += bytes as u64;
        }
    }

    /// Bytes given so far.
    pub fn given(&self) -> u64 {
        self.given
    }

    /// The peer has acknowledged all but so many bytes; how many that are in all.
    pub fn acknowledged(&mut self, left: usize) -> u64 {
        let done = self.given.saturating_sub(left as u64);
        while self.parts.front().is_some_and(|part| part.end() <= done) {
            self.parts.pop_front();
        }
        done
    }

    /// Whether a card reads what is sent next where it is.
    fn is_gathered(&self) -> bool {
        let oldest = self.parts.front();
        oldest.is_some_and(|part| part.memory.card().is_some())
    }

    /// Whether smoltcp may still send bytes that it does not have.
    pub fn is_elsewhere(&self) -> bool {
        !self.parts.is_empty()
    }

    /// A mark of the wire, which reads no part any more when it has returned all before it.
    pub fn mark(&self) -> u64 {
        self.mark
    }

    /// The parts of a frame's payload that stand elsewhere.
    fn find(&self, sequence: u32, bytes: usize) -> Vec<Piece> {
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
            Some(Piece {
                at: usize::try_from(start - from).ok()?,
                memory: part.memory.clone(),
                place: part.place + into,
                bytes: length,
            })
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
        let Some(found) = segment(scratch) else {
            copy(wire, self.now, scratch);
            return result;
        };
        let pieces = stream.find(found.sequence, found.end - found.payload);
        let covered: usize = pieces.iter().map(|piece| piece.bytes).sum();
        statistics.placeholders += covered as u64;
        let whole = covered == found.end - found.payload && found.end == len;
        // Who gathers must sum what it gathers.
        let sums_here = wire.capabilities().checksum.tcp.tx();
        let gathered = |piece: &Piece| piece.memory.card().is_some();
        if whole && !sums_here && (1..=PARTS).contains(&pieces.len()) && pieces.iter().all(gathered)
        {
            let parts: Vec<_> = pieces
                .iter()
                .filter_map(|piece| {
                    Some(InPlace {
                        memory: piece.memory.card()?,
                        offset: piece.place,
                        bytes: piece.bytes,
                    })
                })
                .collect();
            wire.send_in_place(scratch, found.payload, &parts);
            stream.mark = wire.queued();
            return result;
        }
        for piece in &pieces {
            let start = found.payload + piece.at;
            let into = &mut scratch[start..start + piece.bytes];
            piece.memory.read(piece.place, into);
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
        if self.stream.is_gathered() && self.wire.room_in_place() == 0 {
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

    /// Memory that is only named.
    struct Nowhere;

    impl Payload for Nowhere {
        fn card(&self) -> Option<&DmaMemory> {
            None
        }

        fn read(&self, _: usize, _: &mut [u8]) {}
    }

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
            let memory: Arc<dyn Payload> = Arc::new(Nowhere);
            let mut stream = Stream { first: Some(first), ..Stream::default() };
            let mut list = Vec::new();
            for (number, (placed, bytes)) in pieces.into_iter().enumerate() {
                let offset = number * 10_000;
                if placed {
                    stream.placed(&memory, offset, bytes);
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
            for piece in stream.find(first.wrapping_add(asked as u32), length) {
                for index in 0..piece.bytes {
                    let place = piece.place + index;
                    prop_assert_eq!(found[piece.at + index].replace(place), None);
                }
            }
            prop_assert_eq!(&found[..], &list[asked..asked + length]);
        }
    }
}
