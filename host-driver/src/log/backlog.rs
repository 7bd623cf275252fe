//! The newest messages of a card, kept for clients of the driver.

use std::collections::VecDeque;

use super::LogFrame;

/// Most bytes that are kept, with some for each message.
const CAPACITY: usize = 1 << 20;
/// The cost of keeping a message besides its bytes.
const OVERHEAD: usize = 48;

/// The newest messages, numbered from the first one on. A client that asks from the number after
/// its last message sees from the next number how many it has missed.
#[derive(Clone, Debug, Default)]
pub struct Backlog {
    frames: VecDeque<LogFrame>,
    bytes: usize,
    /// The number of the first kept message.
    first: u64,
}

impl Backlog {
    /// Adds messages; the oldest make room.
    pub fn extend(&mut self, frames: Vec<LogFrame>) {
        for frame in frames {
            self.bytes += frame.bytes.len() + OVERHEAD;
            self.frames.push_back(frame);
            while self.bytes > CAPACITY
                && let Some(oldest) = self.frames.pop_front()
            {
                self.bytes -= oldest.bytes.len() + OVERHEAD;
                self.first += 1;
            }
        }
    }

    /// The number after the newest message.
    pub fn end(&self) -> u64 {
        self.first + self.frames.len() as u64
    }

    /// Messages from number `from` on, with the number of the first of them: it is higher than
    /// `from` if the messages in between are no longer kept.
    pub fn from(&self, from: u64) -> (u64, impl Iterator<Item = &LogFrame>) {
        let from = from.clamp(self.first, self.end());
        (from, self.frames.range((from - self.first) as usize..))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(bytes: usize) -> LogFrame {
        LogFrame {
            cpu: 1,
            bytes: vec![7; bytes],
        }
    }

    #[test]
    fn what_made_room_can_be_told_from_the_numbers() {
        let mut backlog = Backlog::default();
        backlog.extend(vec![frame(1), frame(2)]);
        let (number, frames) = backlog.from(1);
        assert_eq!((number, frames.count()), (1, 1));
        assert_eq!(backlog.from(99).0, 2, "no further than the end");
        backlog.extend(vec![frame(CAPACITY / 2 - OVERHEAD); 2]);
        assert_eq!(backlog.end(), 4);
        let (number, frames) = backlog.from(0);
        assert_eq!((number, frames.count()), (2, 2), "the first two made room");
    }
}
