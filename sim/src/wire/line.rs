//! The wire as a line to another card.
//!
//! The receiver at the far end has to know of a frame when its first byte is there, and of its bytes
//! when its last one is. So the sender says when a frame begins, and its bytes when it has sent them:
//!
//! ```text
//!   sender     | preamble |  frame, CRC  | gap |
//!              ▲ Begins                  ▲ known  ▲ Bytes
//!   receiver   ── delay ──| preamble |  frame, CRC  | gap |
//!                         ▲ arrives                 ▲ stored
//! ```
//!
//! Whoever moves departures to the other card does so before that card has come to the time of their
//! arrival: see [`fabric`](crate::fabric).

use super::{Arriving, Frame, Wire};
use std::collections::VecDeque;
use tigon2_chip::mac::RxError;

/// What a card puts on its line. Times are nanoseconds since power-on, frames are numbered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Departure {
    /// A frame of `length` bytes without CRC begins with its preamble.
    Begins {
        /// Which one.
        number: u64,
        /// When.
        start: u64,
        /// Its bytes.
        length: usize,
    },
    /// The bytes of a frame.
    Bytes {
        /// Which one.
        number: u64,
        /// From the destination on.
        bytes: Vec<u8>,
    },
    /// A frame ends before its end, without a good CRC.
    Cut {
        /// Which one.
        number: u64,
        /// When.
        at: u64,
    },
    /// A pause frame, which takes no time of the line.
    Control {
        /// When.
        at: u64,
        /// From the destination on.
        bytes: Vec<u8>,
    },
}

/// One end of a line.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// Frames that have begun here.
    begun: u64,
    /// The last of them has not ended.
    under_way: bool,
    departures: VecDeque<Departure>,
    /// Pause frames on their way to this card.
    controls: VecDeque<Frame>,
}

impl Line {
    fn begin(&mut self, start: u64, length: usize) {
        self.begun += 1;
        self.under_way = true;
        self.departures.push_back(Departure::Begins {
            number: self.begun,
            start,
            length,
        });
    }
}

impl Wire {
    /// Another card is at the far end from now on.
    pub(crate) fn connect(&mut self) {
        self.line = Some(Line::default());
    }

    /// Whether another card is at the far end: nothing is held for it.
    pub(crate) fn is_line(&self) -> bool {
        self.line.is_some()
    }

    /// The number of the frame that leaves, if one does.
    pub(crate) fn under_way(&self) -> Option<u64> {
        let line = self.line.as_ref()?;
        line.under_way.then_some(line.begun)
    }

    /// A frame of `length` bytes begins to leave at `start`.
    pub(crate) fn begin(&mut self, start: u64, length: usize) {
        if let Some(line) = &mut self.line {
            line.begin(start, length);
        }
    }

    /// A frame has left, and its gap has passed if it was said to [begin](Self::begin); if not, its
    /// last byte leaves at `end`.
    pub(super) fn depart(&mut self, end: u64, bytes: Vec<u8>) {
        let start = end.saturating_sub(self.duration(bytes.len()));
        let Some(line) = &mut self.line else {
            return;
        };
        if !line.under_way {
            line.begin(start, bytes.len());
        }
        line.under_way = false;
        line.departures.push_back(Departure::Bytes {
            number: line.begun,
            bytes,
        });
    }

    /// The frame that leaves was cut off.
    pub(crate) fn cut(&mut self, at: u64) {
        if let Some(line) = &mut self.line
            && std::mem::take(&mut line.under_way)
        {
            let number = line.begun;
            line.departures.push_back(Departure::Cut { number, at });
        }
    }

    /// The MAC sends a pause frame.
    pub(crate) fn control(&mut self, at: u64, bytes: Vec<u8>) {
        match &mut self.line {
            None => self.deliver(at, bytes),
            Some(line) => line.departures.push_back(Departure::Control { at, bytes }),
        }
    }

    /// What has left since this was last asked.
    pub(crate) fn departures(&mut self) -> impl Iterator<Item = Departure> {
        let line = self.line.as_mut();
        let departures = line.map(|line| std::mem::take(&mut line.departures));
        departures.into_iter().flatten()
    }

    /// A departure of the other card reaches this one, `delay` later.
    pub(crate) fn arrive(&mut self, departure: Departure, delay: u64) {
        match departure {
            Departure::Begins {
                number,
                start,
                length,
            } => {
                let end = start + delay + self.duration(length);
                self.to_card_free = end + self.gap();
                self.to_card.push_back(Arriving {
                    frame: Frame {
                        at: end,
                        bytes: vec![0; length],
                    },
                    error: RxError::NONE,
                    number: Some(number),
                });
            }
            Departure::Bytes { number, bytes } => self.fill(number, &bytes),
            Departure::Cut { number, at } => {
                if let Some(arriving) = self.arriving(number) {
                    let end = at + delay;
                    arriving.frame.at = arriving.frame.at.min(end);
                    arriving.error = RxError::CRC;
                }
            }
            Departure::Control { at, bytes } => {
                if let Some(line) = &mut self.line {
                    let at = at + delay;
                    line.controls.push_back(Frame { at, bytes });
                }
            }
        }
    }

    /// The bytes of a frame on its way to the card are these, as far as it is still on its way.
    pub(crate) fn fill(&mut self, number: u64, bytes: &[u8]) {
        if let Some(arriving) = self.arriving(number) {
            arriving.frame.bytes.clear();
            arriving.frame.bytes.extend_from_slice(bytes);
        }
    }

    /// Whether a frame of the other card's is the next one.
    pub(crate) fn is_next(&self, number: u64) -> bool {
        let next = self.to_card.front().and_then(|next| next.number);
        next == Some(number)
    }

    fn arriving(&mut self, number: u64) -> Option<&mut Arriving> {
        let mut all = self.to_card.iter_mut();
        all.find(|arriving| arriving.number == Some(number))
    }

    /// When the next pause frame reaches the card.
    pub(crate) fn next_control(&self) -> Option<u64> {
        Some(self.line.as_ref()?.controls.front()?.at)
    }

    /// The pause frame that has reached the card by `now`.
    pub(crate) fn take_control(&mut self, now: u64) -> Option<Vec<u8>> {
        let controls = &mut self.line.as_mut()?.controls;
        controls.front().filter(|frame| frame.at <= now)?;
        Some(controls.pop_front()?.bytes)
    }
}
