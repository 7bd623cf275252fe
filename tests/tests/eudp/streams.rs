//! Streams of datagrams that a process posts without a pause.

use crate::card::{Card, PEER_PORT, PORT, bytes};
use eudp::{Completion, Endpoint, EndpointConfig, INLINE_BYTES, Status};
use host_driver::DmaMemory;
use host_driver::nic::EndpointCard;
use integration_tests::Engine;
use std::time::Duration;

/// Bytes of data in the shortest frame.
pub const LEAST: usize = 18;
/// Datagrams of a stream: as many as the memory has room for.
pub const COUNT: u32 = 120;

impl Card {
    /// Posts a datagram with its data.
    fn post_inline(&mut self, number: u32, length: usize) {
        let to = (self.peer, PEER_PORT);
        let sent = bytes(number, length);
        self.with(|endpoint, card| endpoint.send_inline(card, to, &sent, number))
            .expect("it is posted");
    }

    /// Posts a datagram, with its data in the descriptor if it has room there.
    pub fn post_some(&mut self, number: u32, length: usize) {
        if length <= INLINE_BYTES as usize {
            self.post_inline(number, length);
        } else {
            self.send(number as usize * 2048, &bytes(number, length), number);
        }
    }

    /// Another endpoint.
    pub fn other(&mut self) -> Endpoint<DmaMemory> {
        let config = EndpointConfig {
            port: PORT + 1,
            ..*self.endpoint.config()
        };
        let mut lent = EndpointCard(&mut self.stage.nic);
        self.eudp.open(&mut lent, config).expect("an endpoint")
    }

    /// Has the library tell the card of what waits, and take completions. Returns their cookies.
    fn completed_now(&mut self) -> Vec<u32> {
        let mut all = Vec::new();
        while let Some(completion) = self
            .with(|endpoint, card| endpoint.poll(card))
            .expect("the card is there")
        {
            match completion {
                Completion::Sent {
                    cookie,
                    status: Status::Done,
                } => all.push(cookie),
                other => panic!("{other:?}"),
            }
        }
        all
    }

    /// The next frames, of `most` datagrams and the host's; `see` gets each.
    pub fn frames(&mut self, most: usize, mut see: impl FnMut(&[u8])) -> Vec<u32> {
        let end = self.now() + 1_000_000_000;
        let (mut seen, mut cookies) = (0, Vec::new());
        while seen < most {
            cookies.extend(self.completed_now());
            self.stage.turn();
            assert!(self.now() < end, "{seen} of {most} have left");
            while let Some(frame) = self.stage.wire_now() {
                see(&frame);
                seen += 1;
            }
        }
        self.stage.engine.pass(Duration::from_micros(100));
        cookies.extend(self.completed_now());
        cookies
    }
}
