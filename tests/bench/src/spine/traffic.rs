//! The host's frames beside those for handlers, each of which arrives once and in its turn.

use super::card::SpineCard;
use super::frames::{PEER, PLAIN, plain};
use anyhow::{Context, Result, ensure};
use std::collections::VecDeque;
use std::io::IoSlice;
use tigon2_model::is_flow_control;

/// Nanoseconds that the card works between two looks of the host.
pub(super) const LOOK: u64 = 23_000;
/// Looks after which a frame counts as lost.
const LOOKS: u32 = 1000;

/// The host's frames, in both directions, and those for handlers among them.
pub(super) struct Traffic {
    station: [u8; 6],
    random: u32,
    number: u32,
    count: u64,
    /// What the host is to get, in this order.
    inbound: VecDeque<Vec<u8>>,
    /// What is to come out of the wire, in this order.
    outbound: VecDeque<Vec<u8>>,
}

impl Traffic {
    /// None yet; what varies, varies by `seed`.
    pub fn new(station: [u8; 6], seed: u32) -> Traffic {
        Traffic {
            station,
            random: seed.wrapping_mul(0x9E37_79B9) | 1,
            number: 0,
            count: 0,
            inbound: VecDeque::new(),
            outbound: VecDeque::new(),
        }
    }

    /// A number below a limit; xorshift32.
    fn below(&mut self, limit: u32) -> u32 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 17;
        self.random ^= self.random << 5;
        self.random % limit
    }

    fn plain(&mut self, destination: [u8; 6], source: [u8; 6]) -> Vec<u8> {
        self.number = self.number.wrapping_add(1);
        self.count += 1;
        let length = 60 + self.below(1455) as usize;
        plain(destination, source, PLAIN, self.number, length)
    }

    /// Frames of the host's since the last call.
    pub fn take_count(&mut self) -> u64 {
        std::mem::take(&mut self.count)
    }

    /// Puts some of the host's frames on their way in both directions, and one for a handler
    /// among them.
    pub fn offer(&mut self, card: &mut SpineCard, subject: Option<&[u8]>) -> Result<()> {
        for _ in 0..self.below(3) {
            let frame = self.plain(PEER, self.station);
            ensure!(
                card.nic.queue(&[IoSlice::new(&frame)])?,
                "the send ring is full"
            );
            self.outbound.push_back(frame);
        }
        card.nic.submit()?;
        let (front, behind) = (self.below(3), self.below(2));
        let mut frames: Vec<_> = (0..front).map(|_| self.plain(self.station, PEER)).collect();
        frames.extend(subject.map(<[u8]>::to_vec));
        frames.extend((0..behind).map(|_| self.plain(self.station, PEER)));
        for frame in frames {
            card.machine.lock().send_frame(0, frame.clone());
            self.inbound.push_back(frame);
        }
        Ok(())
    }

    /// A handler has kept its frame: the host does not get it.
    pub fn without(&mut self, frame: &[u8]) {
        self.inbound.retain(|one| one != frame);
    }

    /// Lets the card work until all has arrived, with so many frames of handlers; returns those.
    pub fn settle(&mut self, card: &mut SpineCard, answers: usize) -> Result<Vec<Vec<u8>>> {
        let mut found = Vec::new();
        for _ in 0..LOOKS {
            card.nic.service()?;
            for frame in card.nic.receive_batch(64)? {
                ensure!(
                    self.inbound.pop_front().as_ref() == Some(&frame),
                    "the host got a frame of {} bytes out of turn",
                    frame.len()
                );
            }
            while let Some(frame) = card.machine.lock().take_frame() {
                if is_flow_control(&frame.bytes) {
                    continue;
                }
                if self.outbound.front() == Some(&frame.bytes) {
                    self.outbound.pop_front();
                } else {
                    found.push(frame.bytes);
                }
            }
            ensure!(
                found.len() <= answers,
                "a frame that nobody sent: {found:x?}"
            );
            if self.inbound.is_empty() && self.outbound.is_empty() && found.len() == answers {
                return Ok(found);
            }
            card.machine.pass(LOOK);
        }
        Err(anyhow::anyhow!(
            "{} frames to the host, {} of its own and {} of a handler's did not arrive",
            self.inbound.len(),
            self.outbound.len(),
            answers - found.len()
        ))
        .context(format!("frames up to {}", self.number))
    }
}
