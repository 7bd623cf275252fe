//! The example of the library, on a simulated card whose peer sends datagrams back.

#[path = "../../../host-driver/examples/datagram.rs"]
#[expect(dead_code, reason = "its main needs a card's socket")]
mod datagram;

use crate::card::{PEER_AT, image};
use eudp::{Access, Card};
use host_driver::nic::{EndpointCard, NicError};
use host_driver::{Config, DmaMemory};
use integration_tests::{Engine, Sim, Stage};
use std::os::fd::OwnedFd;
use std::time::Duration;
use tigon2_sim::SimTransport;

/// The card, which works while the example waits, and the peer.
struct Echoing<'a> {
    card: EndpointCard<'a, SimTransport>,
    engine: &'a mut Sim,
}

impl Card for Echoing<'_> {
    type Error = NicError;
    type Memory = DmaMemory;

    fn read(&mut self, address: u32, out: &mut [u32]) -> Result<(), NicError> {
        self.card.read(address, out)
    }

    fn write(&mut self, address: u32, words: &[u32]) -> Result<(), NicError> {
        self.card.write(address, words)
    }

    fn ring(&mut self, mailbox: u32, word: u32) -> Result<(), NicError> {
        self.card.ring(mailbox, word)
    }

    fn allocate(&mut self, bytes: usize) -> Result<DmaMemory, NicError> {
        self.card.allocate(bytes)
    }

    fn map(&mut self, file: OwnedFd, access: Access) -> Result<DmaMemory, NicError> {
        self.card.map(file, access)
    }

    fn unmap(&mut self, memory: &DmaMemory) -> Result<(), NicError> {
        self.card.unmap(memory)
    }

    fn wait(&mut self, turns: u32) -> bool {
        self.engine.pass(Duration::from_micros(1));
        if let Some(frame) = self.engine.receive_now() {
            self.engine.send(&returned(frame));
        }
        turns < 10_000
    }
}

/// The frame back: what is exchanged changes no sum.
fn returned(mut frame: Vec<u8>) -> Vec<u8> {
    for (at, bytes) in [(0, 6), (26, 4), (34, 2)] {
        let (first, second) = frame[at..at + 2 * bytes].split_at_mut(bytes);
        first.swap_with_slice(second);
    }
    frame
}

#[test]
fn the_example_gets_its_answer() {
    let (engine, transport) = Sim::timed("default");
    let mut stage = Stage::on(engine, transport, Config::default());
    stage.nic.load(&image()).expect("it starts");
    stage.nic.open().expect("it opens");
    let link = stage.nic.wait_link(Duration::from_secs(5));
    link.expect("a link");
    let station = stage.nic.station();
    let mut card = Echoing {
        card: EndpointCard(&mut stage.nic),
        engine: &mut stage.engine,
    };
    let answer = datagram::ask(&mut card, station, &PEER_AT, b"to and fro");
    assert_eq!(answer.expect("an answer"), b"to and fro");
}
