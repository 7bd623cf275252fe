//! Checks that every frame arrives exactly once, in order, with every byte.

use super::FrameFault;
use crate::timeline::number;
use crate::workload::datagram::{Flow, Mismatch};

/// Frames of one direction: flows of several sizes that share one count.
#[derive(Clone, Debug)]
pub struct Checked {
    flows: Vec<Flow>,
    /// The flow of each frame.
    order: Vec<u8>,
    due: u64,
}

impl Checked {
    /// Frame n belongs to the flow that `order` names for it.
    pub fn new(flows: Vec<Flow>, order: Vec<u8>) -> Checked {
        Checked {
            flows,
            order,
            due: 0,
        }
    }

    /// Frames in all.
    pub fn all(&self) -> u64 {
        self.order.len() as u64
    }

    /// Frames that have come.
    pub fn come(&self) -> u64 {
        self.due
    }

    /// Frame `number`; `None` behind the last one.
    pub fn frame(&self, number: u64) -> Option<Vec<u8>> {
        let flow = *self.order.get(usize::try_from(number).ok()?)?;
        let flow = self.flows.get(usize::from(flow))?;
        Some(flow.numbered(number))
    }

    /// A frame comes out.
    ///
    /// # Errors
    /// [`FrameFault`] if it is not the one that is due, byte by byte; short frames come
    /// padded.
    pub fn take(&mut self, frame: &[u8]) -> Result<(), FrameFault> {
        let number = number::of_datagram(frame);
        let Some(right) = self.frame(self.due) else {
            return Err(FrameFault::Twice {
                number: number.unwrap_or(u64::MAX),
            });
        };
        match number {
            Some(number) if number != self.due => {
                return Err(FrameFault::Order {
                    number,
                    due: self.due,
                });
            }
            _ => {}
        }
        let differs = frame.iter().zip(&right).position(|(a, b)| a != b);
        let offset = differs.or((frame.len() < right.len()).then_some(frame.len()));
        if let Some(offset) = offset {
            return Err(FrameFault::Bytes(Mismatch::Bytes {
                number: self.due,
                offset,
            }));
        }
        self.due += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::datagram::PEER;

    fn checked() -> Checked {
        let flows = [18, 100].map(|bytes| Flow::new([2; 6], PEER, bytes));
        Checked::new(flows.to_vec(), vec![0, 1, 1, 0])
    }

    #[test]
    fn frames_come_once_and_in_order() {
        let mut all = checked();
        let frames: Vec<_> = (0..4).filter_map(|n| all.frame(n)).collect();
        assert_eq!(all.take(&frames[0]), Ok(()));
        let again = FrameFault::Order { number: 0, due: 1 };
        assert_eq!(all.take(&frames[0]), Err(again));
        let ahead = FrameFault::Order { number: 2, due: 1 };
        assert_eq!(all.take(&frames[2]), Err(ahead));
        for frame in &frames[1..] {
            assert_eq!(all.take(frame), Ok(()));
        }
        assert_eq!(all.come(), all.all());
        let twice = FrameFault::Twice { number: 3 };
        assert_eq!(all.take(&frames[3]), Err(twice));
        assert_eq!(all.frame(4), None);
    }

    #[test]
    fn every_byte_counts() {
        let all = checked();
        let frame = all.frame(0).expect("a frame");
        for offset in 0..frame.len() {
            let mut wrong = frame.clone();
            wrong[offset] ^= 0x10;
            assert!(all.clone().take(&wrong).is_err(), "byte {offset}");
        }
        assert!(all.clone().take(&frame[..frame.len() - 1]).is_err());
        let mut padded = frame;
        padded.resize(80, 0);
        assert!(all.clone().take(&padded).is_ok());
    }
}
