//! Streams of datagrams that a process posts without a pause, and what has its turn beside them.

use crate::card::{Card, PEER_PORT, PORT, bytes, data};
use eudp::{Checksum, Completion, CutThrough, Endpoint, EndpointConfig, INLINE_BYTES, Status};
use host_driver::DmaMemory;
use host_driver::nic::EndpointCard;
use integration_tests::Engine;
use std::time::Duration;

/// Bytes of data in the shortest frame.
pub const LEAST: usize = 18;
/// Datagrams of a stream: as many as the memory has room for.
pub const COUNT: u32 = 120;
/// Their lengths, in the descriptor and elsewhere.
const LENGTHS: [usize; 3] = [LEAST, 400, 1472];

impl Card {
    /// Posts a datagram with its data.
    fn post_inline(&mut self, number: u32, length: usize) {
        let to = (self.peer, PEER_PORT);
        let sent = bytes(number, length);
        self.with(|endpoint, card| endpoint.send_inline(card, to, &sent, number))
            .expect("it is posted");
    }

    /// Posts a stream of datagrams, each with its data in the descriptor if it has room there.
    pub fn post_all(&mut self, length: usize) {
        for number in 0..COUNT {
            self.post_some(number, length);
        }
    }

    /// Posts one of them.
    pub fn post_some(&mut self, number: u32, length: usize) {
        if length <= INLINE_BYTES as usize {
            self.post_inline(number, length);
        } else {
            self.send(number as usize * 2048, &bytes(number, length), number);
        }
    }

    /// Another endpoint on a port.
    pub fn other(&mut self, port: u16) -> Endpoint<DmaMemory> {
        let config = EndpointConfig {
            port,
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

/// The host's frames do not wait until a stream of datagrams is over, wherever their data is.
#[test]
fn the_host_has_its_turn_beside_a_stream() {
    for length in LENGTHS {
        let mut card = Card::timed(CutThrough::OfBus, Checksum::None, 1500);
        card.post_all(length);
        let frames: Vec<_> = (0..30).map(|number| card.stage.outbound(number)).collect();
        for frame in &frames {
            card.stage.transmit(&[frame]);
        }
        let (mut ours, mut plain, mut before) = (0, 0, 0);
        card.frames(COUNT as usize + 30, |frame| {
            if frame[12..14] == [8, 0] {
                assert!(data(frame) == bytes(ours, length));
                ours += 1;
            } else {
                assert!(frame == frames[plain], "frame {plain}");
                plain += 1;
                before = ours;
            }
        });
        assert_eq!((ours, plain), (COUNT, 30));
        println!("{length} bytes: {before} datagrams before the last of the host's frames");
        assert!(before < COUNT / 2, "{length} bytes: {before} datagrams");
        card.follow();
    }
}

/// Nor does what CPU A asks CPU B for, as for another endpoint.
#[test]
fn an_endpoint_opens_beside_a_stream() {
    for length in LENGTHS {
        let mut card = Card::timed(CutThrough::OfBus, Checksum::None, 1500);
        card.post_all(length);
        card.other(PORT + 1);
        let mut before = 0;
        while card.stage.engine.receive_now().is_some() {
            before += 1;
        }
        println!("{length} bytes: {before} datagrams before the other endpoint is open");
        assert!(before < COUNT / 2, "{length} bytes: {before} datagrams");
        card.frames((COUNT - before) as usize, |_| {});
        card.follow();
    }
}
