//! Datagrams at a constant rate from many senders.

use super::packets::{ETHERNET_HEADER, SERVER, client_address, client_station};
use etherparse::PacketBuilder;

/// Bytes of a datagram: the smallest frame.
const BYTES: usize = 18;

/// The port that the first sender sends to; each other one has the next.
pub const FIRST_PORT: u16 = 5002;

#[derive(Clone, Debug)]
struct Sender {
    frame: Vec<u8>,
    picoseconds: u64,
    /// When its first datagram is sent.
    start: u64,
    sent: u64,
}

impl Sender {
    fn due(&self) -> u64 {
        self.start + self.sent * self.picoseconds / 1000
    }
}

/// The senders of datagrams.
#[derive(Clone, Debug)]
pub struct Source {
    senders: Vec<Sender>,
}

impl Source {
    /// Machines that send datagrams to the server with a station address, each at its rate
    /// per second, from `start` on. With equal rates they send in turn.
    pub fn new(server: [u8; 6], rates: &[f64], start: u64) -> Source {
        let sender = |(machine, rate): (usize, &f64)| {
            let from = client_address(machine);
            let builder = PacketBuilder::ethernet2(client_station(from), server)
                .ipv4(from.octets(), SERVER.octets(), 64)
                .udp(5001, FIRST_PORT + machine as u16);
            let mut frame = Vec::with_capacity(ETHERNET_HEADER + 28 + BYTES);
            builder
                .write(&mut frame, &[0; BYTES])
                .expect("writing to memory does not fail");
            let picoseconds = (1e12 / rate.max(1.0)) as u64;
            Sender {
                frame,
                picoseconds,
                start: start + picoseconds / 1000 * machine as u64 / rates.len() as u64,
                sent: 0,
            }
        };
        Source {
            senders: rates.iter().enumerate().map(sender).collect(),
        }
    }

    /// When the next datagram is sent.
    pub fn due(&self) -> u64 {
        let senders = self.senders.iter();
        senders.map(Sender::due).min().unwrap_or(u64::MAX)
    }

    /// How many have been sent.
    pub fn sent(&self) -> u64 {
        self.senders.iter().map(|sender| sender.sent).sum()
    }

    /// The frames that are due at `now`, with their times.
    pub fn act(&mut self, now: u64) -> Vec<(u64, Vec<u8>)> {
        let mut frames = Vec::new();
        while let Some(sender) = self.senders.iter_mut().min_by_key(|sender| sender.due())
            && sender.due() <= now
        {
            frames.push((sender.due(), sender.frame.clone()));
            sender.sent += 1;
        }
        frames
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::headers::{Kind, look, source};

    #[test]
    fn senders_take_turns_at_the_rate() {
        let mut senders = Source::new([2; 6], &[250_000.0; 4], 100);
        let frames = senders.act(4_100);
        assert_eq!(frames.len(), 5);
        assert_eq!(
            (frames[0].0, frames[4].0, senders.due()),
            (100, 4_100, 5_100)
        );
        let from: Vec<_> = frames.iter().map(|(_, frame)| source(frame)).collect();
        assert_eq!(from[0], Some([10, 77, 1, 0]));
        assert_eq!(from[3], Some([10, 77, 1, 3]));
        assert_eq!(from[4], from[0]);
        assert_eq!(look(&frames[1].1), Kind::Udp { service: 5003 });
    }
}
