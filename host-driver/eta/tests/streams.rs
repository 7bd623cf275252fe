//! Checked streams over a wire that loses, repeats, reorders, cuts and corrupts frames.

mod support;

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use dusi::{Socket, Status};
use eta::Settings;
use eta::memory_wire::{MemoryRx, MemoryTx, MemoryWire, pair};
use host_driver::stack::{StackError, Wire};
use smoltcp::phy::{Device, DeviceCapabilities};
use smoltcp::time::Instant;
use support::*;

/// A wire that spoils received frames, each by a random number from a seed.
struct Faulty {
    wire: MemoryWire,
    /// Faults of each kind in a thousand frames.
    rate: u64,
    seed: u64,
    /// Frames that are late, or come a second time.
    late: VecDeque<Vec<u8>>,
}

impl Faulty {
    fn new(wire: MemoryWire, rate: u64, seed: u64) -> Self {
        Self {
            wire,
            rate,
            seed,
            late: VecDeque::new(),
        }
    }

    fn random(&mut self) -> u64 {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        self.seed >> 8
    }

    fn strikes(&mut self) -> bool {
        self.random() % 1000 < self.rate
    }

    /// The next frame as it arrives.
    fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            let Some(mut frame) = self.wire.take() else {
                return self.late.pop_front();
            };
            if self.strikes() {
                continue;
            }
            if self.strikes() {
                self.late.push_back(frame.clone());
            }
            if self.strikes() {
                let length = self.random() as usize % frame.len();
                frame.truncate(length);
            }
            if self.strikes() && !frame.is_empty() {
                let place = self.random() as usize % frame.len();
                frame[place] ^= 1 << (self.random() % 8);
            }
            if self.strikes() {
                self.late.push_back(frame);
                continue;
            }
            return Some(frame);
        }
    }
}

impl Device for Faulty {
    type RxToken<'t> = MemoryRx;
    type TxToken<'t> = MemoryTx<'t>;

    fn receive(&mut self, _: Instant) -> Option<(MemoryRx, MemoryTx<'_>)> {
        let frame = self.next()?;
        Some((MemoryRx::of(frame), self.wire.room()))
    }

    fn transmit(&mut self, _: Instant) -> Option<MemoryTx<'_>> {
        Some(self.wire.room())
    }

    fn capabilities(&self) -> DeviceCapabilities {
        self.wire.capabilities()
    }
}

impl Wire for Faulty {
    fn flush(&mut self) -> Result<(), StackError> {
        self.wire.flush()
    }

    fn wait(&mut self, timeout: Duration) -> Result<(), StackError> {
        let late = !self.late.is_empty();
        self.wire.wait(if late { Duration::ZERO } else { timeout })
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.wire.descriptor().filter(|_| self.late.is_empty())
    }
}

/// Bytes that tell their place.
fn bytes(start: usize, length: usize) -> Vec<u8> {
    (start..start + length)
        .map(|place| (place * 31 + place / 251) as u8)
        .collect()
}

/// Sends a stream in pieces of many lengths, ends it, and gives its length.
fn source(from: &mut Application, on: Socket, total: usize) {
    let (mut sent, mut length) = (0, 1);
    while sent < total {
        let part = length.min(total - sent);
        // By turns with a copy and without one.
        let piece = bytes(sent, part);
        if length % 2 == 0 {
            send_in_place(from, on, &piece);
        } else {
            send(from, on, &piece);
        }
        sent += part;
        length = length * 3 % 70_001 + 1;
    }
    assert_eq!(from.status(|ual, done| ual.shutdown(on, done)), Status::Ok);
}

fn sink(to: &mut Application, on: Socket, total: usize) {
    let mut got = 0;
    let region = to.region(48 * 1024);
    loop {
        let (_, event) = to.run(|ual, done| ual.receive(on, &region, done));
        assert_eq!(event.status, Status::Ok, "after {got} bytes");
        if event.length == 0 {
            break;
        }
        let mut part = vec![0; event.length];
        to.ual.read(&region, &mut part).expect("in it");
        assert!(part == bytes(got, event.length), "bytes {got}.. differ");
        got += event.length;
    }
    assert_eq!(got, total);
}

#[test]
fn every_byte_arrives_once_and_in_order_over_a_bad_wire() {
    // smoltcp retransmits after a second at the earliest, so few bytes at the worst rate.
    for (rate, total, seed) in [
        (0, 4 << 20, 1),
        (1, 1 << 20, 2),
        (10, 200_000, 3),
        (30, 60_000, 4),
    ] {
        let (one, other) = pair().expect("descriptors");
        let near = Running::start(
            Faulty::new(one, rate, seed << 32 | 1),
            1,
            Settings::default(),
        );
        let far = Running::start(
            Faulty::new(other, rate, seed << 32 | 3),
            2,
            Settings::default(),
        );
        let (mut server, mut client) = (Application::new(&near), Application::new(&far));
        let listener = server.listener(80, 4);
        let (child, socket) = connected(&mut server, listener, &mut client, address(1, 80));
        let client = std::thread::spawn(move || {
            source(&mut client, socket, total);
            sink(&mut client, socket, total / 2);
            client
        });
        sink(&mut server, child, total);
        source(&mut server, child, total / 2);
        client.join().expect("no panic");
        assert_eq!(near.statistics().expelled + far.statistics().expelled, 0);
    }
}
