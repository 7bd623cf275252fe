//! The wire between the card and its peer.
//!
//! At 1000 Mb/s each byte takes 8 ns, at 100 ten times and at 10 a hundred times as long; each
//! frame has 8 bytes of preamble before it, 4 of CRC and 12 of gap after it, and each direction
//! carries one frame at a time. A frame for the card arrives with its last byte; the wire holds it
//! while the card cannot take it, like a peer that obeys pause frames. A [line](line) to another
//! card holds nothing: there pause frames travel, and the other card obeys them.

mod line;

pub(crate) use line::Departure;

use line::Line;
use std::collections::VecDeque;
use tigon2_chip::mac::RxError;

/// Picoseconds of a byte at 1 Mb/s.
const BYTE_PS: u64 = 8_000_000;
/// Bytes before a frame.
const PREAMBLE: u64 = 8;
/// Bytes of CRC behind a frame.
const CRC: u64 = 4;
/// Bytes of gap between frames.
const GAP: u64 = 12;
/// Shortest frame without CRC.
const SHORTEST: usize = 60;

/// A frame on the wire, without CRC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// When its last byte is on the wire, in nanoseconds since power-on.
    pub at: u64,
    /// From the destination address on.
    pub bytes: Vec<u8>,
}

/// Who answers the card's frames: gets each frame when it has left, gives back frames
/// that are put on the wire at once.
pub type Peer = Box<dyn FnMut(&Frame) -> Vec<Vec<u8>> + Send>;

/// Both directions of the wire.
pub struct Wire {
    /// Picoseconds of a byte.
    byte_ps: u64,
    to_card: VecDeque<Arriving>,
    to_card_free: u64,
    held: bool,
    /// Times that a frame was held.
    refused: u64,
    /// Nanoseconds by which frames were held, in all.
    late: u64,
    from_card: VecDeque<Frame>,
    from_card_free: u64,
    peer: Option<Peer>,
    /// The way to another card, if one is at the other end.
    line: Option<Line>,
}

/// A frame on its way to the card.
struct Arriving {
    frame: Frame,
    error: RxError,
    /// Its number, if another card sends it.
    number: Option<u64>,
}

impl Default for Wire {
    fn default() -> Self {
        Wire {
            byte_ps: BYTE_PS / 1000,
            to_card: VecDeque::new(),
            to_card_free: 0,
            held: false,
            refused: 0,
            late: 0,
            from_card: VecDeque::new(),
            from_card_free: 0,
            peer: None,
            line: None,
        }
    }
}

impl Wire {
    /// The speed in Mb/s of the frames that begin from now on.
    pub fn set_speed(&mut self, megabits: u32) {
        self.byte_ps = BYTE_PS / u64::from(megabits.max(1));
    }

    /// Picoseconds of a byte.
    pub(crate) fn byte_ps(&self) -> u64 {
        self.byte_ps
    }

    /// Nanoseconds from the first preamble byte to the end of the CRC.
    fn duration(&self, length: usize) -> u64 {
        ((PREAMBLE + length.max(SHORTEST) as u64 + CRC) * self.byte_ps).div_ceil(1000)
    }

    fn gap(&self) -> u64 {
        (GAP * self.byte_ps).div_ceil(1000)
    }

    /// Puts a frame on the wire towards the card, `at` at the earliest and behind the
    /// frames that are on it already. Returns when it will have arrived.
    pub fn send(&mut self, at: u64, bytes: Vec<u8>) -> u64 {
        self.send_damaged(at, bytes, RxError::NONE)
    }

    /// The same of a frame that arrives with receive errors.
    pub fn send_damaged(&mut self, at: u64, bytes: Vec<u8>, error: RxError) -> u64 {
        let end = at.max(self.to_card_free) + self.duration(bytes.len());
        self.to_card_free = end + self.gap();
        self.to_card.push_back(Arriving {
            frame: Frame { at: end, bytes },
            error,
            number: None,
        });
        end
    }

    /// When the next frame arrives at the card.
    pub fn next_arrival(&self) -> Option<u64> {
        self.to_card.front().map(|next| next.frame.at)
    }

    /// When the next frame's first preamble byte is on the wire, and its length. A wire that
    /// had to [`hold`](Wire::hold) it begins with it later.
    pub fn next_start(&self) -> Option<(u64, usize)> {
        let frame = &self.to_card.front()?.frame;
        let length = frame.bytes.len();
        Some((frame.at.saturating_sub(self.duration(length)), length))
    }

    /// The frame that has arrived by `now`, if any.
    pub fn arrived(&self, now: u64) -> Option<&Frame> {
        let next = self.to_card.front().map(|next| &next.frame);
        next.filter(|frame| frame.at <= now)
    }

    /// The next frame, whether it has arrived or not, and how it was damaged.
    pub fn next_frame(&self) -> Option<(&[u8], RxError)> {
        let next = self.to_card.front()?;
        Some((&next.frame.bytes, next.error))
    }

    /// Takes the frame of [`Wire::arrived`] off the wire. If the wire had to hold it, the
    /// frames behind it are later by as much.
    pub fn take_arrived(&mut self, now: u64) -> Option<Frame> {
        self.arrived(now)?;
        self.take_next(now)
    }

    /// Takes the frame of [`Wire::next_frame`] off the wire, which has arrived `now`.
    pub(crate) fn take_next(&mut self, now: u64) -> Option<Frame> {
        let frame = self.to_card.pop_front()?.frame;
        if std::mem::take(&mut self.held) {
            let late = now.saturating_sub(frame.at);
            self.late += late;
            self.to_card_free += late;
            for later in &mut self.to_card {
                later.frame.at += late;
            }
        }
        Some(frame)
    }

    /// The card cannot take the frame of [`Wire::arrived`] now.
    pub fn hold(&mut self) {
        self.refused += u64::from(!std::mem::replace(&mut self.held, true));
    }

    /// Frames that the card could not take when they arrived.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Nanoseconds for which a card that could not follow has held the frames towards it.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// Frames that are on their way to the card or held.
    pub fn pending(&self) -> usize {
        self.to_card.len()
    }

    /// The card sends a frame `now`.
    pub(crate) fn transmit(&mut self, now: u64, bytes: Vec<u8>) {
        let end = now.max(self.from_card_free) + self.duration(bytes.len());
        self.from_card_free = end + self.gap();
        self.deliver(end, bytes);
    }

    /// A frame from the card has left by `end`.
    pub(crate) fn deliver(&mut self, end: u64, bytes: Vec<u8>) {
        if self.line.is_some() {
            return self.depart(end, bytes);
        }
        let frame = Frame { at: end, bytes };
        if let Some(peer) = &mut self.peer {
            for answer in peer(&frame) {
                self.send(end, answer);
            }
        } else {
            self.from_card.push_back(frame);
        }
    }

    /// The oldest frame from the card that has not been taken yet.
    pub fn receive(&mut self) -> Option<Frame> {
        self.from_card.pop_front()
    }

    /// Frames from the card that have not been taken yet.
    pub fn outgoing(&self) -> usize {
        self.from_card.len()
    }

    /// Lets `peer` have the card's frames; they no longer queue up for
    /// [`Wire::receive`]. `None` takes the peer away.
    pub fn set_peer(&mut self, peer: Option<Peer>) {
        self.peer = peer;
    }
}

impl std::fmt::Debug for Wire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wire")
            .field("to_card", &self.to_card.len())
            .field("from_card", &self.from_card.len())
            .field("peer", &self.peer.is_some())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A minimum frame takes 672 ns of the wire: 8 + 60 + 4 + 12 bytes.
    #[test]
    fn frames_follow_each_other_at_line_rate() {
        let mut wire = Wire::default();
        assert_eq!(wire.send(1000, vec![0; 42]), 1000 + 72 * 8);
        assert_eq!(wire.send(0, vec![0; 60]), 1000 + 672 + 72 * 8);
        assert_eq!(
            wire.send(1_000_000, vec![0; 1514]),
            1_000_000 + (1514 + 12) * 8
        );
        assert_eq!(wire.next_arrival(), Some(1576));
        assert!(wire.take_arrived(1575).is_none());
        let frame = wire.take_arrived(1576).expect("it is there");
        assert_eq!((frame.at, frame.bytes.len(), wire.pending()), (1576, 42, 2));
    }

    #[test]
    fn slow_wires_take_longer() {
        let mut wire = Wire::default();
        wire.set_speed(100);
        assert_eq!(wire.send(0, vec![0; 60]), 5_760);
        wire.set_speed(10);
        assert_eq!(wire.send(0, vec![0; 60]), 6_720 + 57_600);
        wire.transmit(0, vec![0; 1514]);
        assert_eq!(wire.receive().map(|frame| frame.at), Some(1_526 * 800));
    }

    #[test]
    fn a_held_frame_holds_those_behind_it() {
        let mut wire = Wire::default();
        assert_eq!(wire.send(0, vec![1; 60]), 576);
        assert_eq!(wire.send(0, vec![2; 60]), 672 + 576);
        wire.hold();
        wire.hold();
        assert_eq!(wire.refused(), 1, "one frame");
        assert!(wire.take_arrived(10_576).is_some());
        assert_eq!(wire.next_arrival(), Some(10_000 + 672 + 576));
        assert_eq!(wire.send(0, vec![3; 60]), 10_000 + 2 * 672 + 576);
        assert!(wire.take_arrived(100_000).is_some());
        assert_eq!(
            wire.next_arrival(),
            Some(10_000 + 2 * 672 + 576),
            "it was only fetched late"
        );
    }

    #[test]
    fn frames_from_the_card_queue_up_with_their_times() {
        let mut wire = Wire::default();
        wire.transmit(500, vec![1; 60]);
        wire.transmit(500, vec![2; 60]);
        let times: Vec<_> = std::iter::from_fn(|| wire.receive())
            .map(|f| f.at)
            .collect();
        assert_eq!(times, [500 + 576, 500 + 672 + 576]);
    }

    #[test]
    fn a_peer_answers_behind_the_frame() {
        let mut wire = Wire::default();
        wire.set_peer(Some(Box::new(|frame| vec![frame.bytes.clone()])));
        wire.transmit(0, vec![7; 60]);
        assert_eq!(wire.receive(), None);
        assert_eq!(wire.next_arrival(), Some(576 + 576));
        let echo = wire.take_arrived(2000).expect("the echo");
        assert_eq!(echo.bytes, [7; 60]);
    }
}
