//! Two cards on one wire: true one-way times, and how long the wire rests.

use super::card::{Bench, PORT, microseconds};
use crate::rounds::median;
use anyhow::{Context, Result, ensure};
use eudp::{Checksum, CutThrough};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::net::Ipv4Addr;
use tigon2_model::Board;
use tigon2_sim::fabric::{Cable, Fabric};
use tigon2_sim::timeline::event::Event;
use tigon2_sim::timeline::{LIMIT, Recorder, number};
use tigon2_sim::timing::Parameters;
use tigon2_sim::{Machine, SimTransport};

/// Addresses and stations of the two hosts.
const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)];
const STATIONS: [[u8; 6]; 2] = [[2, 0x54, 0x47, 0, 1, 0], [2, 0x54, 0x47, 0, 1, 1]];

/// A buffer is filled so many in front of the one that is lent.
const AHEAD: u32 = 8;

/// Bytes to send.
fn data(number: u32, bytes: usize) -> Vec<u8> {
    let mut data = vec![0; bytes];
    SplitMix64::seed_from_u64(number.into()).fill_bytes(&mut data);
    data
}

/// Two hosts, each with an endpoint.
pub struct Pair {
    hosts: [Bench; 2],
}

impl Pair {
    /// Powers both up.
    ///
    /// # Errors
    /// If the firmware does not start or refuses.
    pub fn start(image: &[u8], cut: CutThrough, checksum: Checksum, mtu: u32) -> Result<Pair> {
        let usual = [Parameters::default(), Parameters::default()];
        Pair::of(usual, image, cut, checksum, mtu)
    }

    /// The same with a timing profile for each card.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn of(
        parameters: [Parameters; 2],
        image: &[u8],
        cut: CutThrough,
        checksum: Checksum,
        mtu: u32,
    ) -> Result<Pair> {
        let machines = parameters
            .into_iter()
            .enumerate()
            .map(|(number, parameters)| {
                let seed = 1 + number as u64;
                let mut machine = Machine::timed(Board::default(), parameters, seed);
                machine.set_mac_address(STATIONS[number]);
                machine
            });
        let fabric = Fabric::new(machines, &[(0, 1, Cable::default())]);
        let start = |number: usize| {
            let transport = SimTransport::to(&fabric.card(number));
            let there = 1 - number;
            let ends = (ADDRESSES[number], ADDRESSES[there], STATIONS[there]);
            Bench::on(transport, image, (cut, checksum, mtu), ends)
        };
        Ok(Pair {
            hosts: [start(0)?, start(1)?],
        })
    }

    /// Both hosts.
    pub(super) const fn hosts(&mut self) -> &mut [Bench; 2] {
        &mut self.hosts
    }

    /// Microseconds from a process's call to where the other process sees the datagram, there and
    /// back, halved, the median of `count` rounds. The bytes are others in each round.
    ///
    /// # Errors
    /// If one does not arrive, or not as it was sent.
    pub fn one_way(&mut self, bytes: usize, count: u32) -> Result<f64> {
        let mut times = Vec::new();
        for number in 0..count {
            // Neither of the two buffers is the other one.
            let source = number + AHEAD;
            let sent = [0, 1].map(|host| data(2 * number + host, bytes));
            for (host, sent) in self.hosts.iter_mut().zip(&sent) {
                host.fill(source, sent)?;
                host.lend(number)?;
                host.settle()?;
            }
            let begun = self.hosts[0].now();
            let [one, other] = &mut self.hosts;
            one.post_filled(PORT, source, &sent[0])?;
            other.arrived()?;
            other.post_filled(PORT, source, &sent[1])?;
            one.arrived()?;
            times.push(microseconds(one.now() - begun) / 2.0);
            for (host, sent) in [(&*other, &sent[0]), (&*one, &sent[1])] {
                let there = host.received(number, bytes)?;
                let wrong = there
                    .iter()
                    .zip(sent)
                    .position(|(there, sent)| there != sent);
                ensure!(wrong.is_none(), "byte {wrong:?} is another one");
            }
            one.settle()?;
        }
        Ok(median(&times))
    }

    /// The part of the time for which the wire rests between the first byte and the last one of
    /// `count` datagrams that are posted at once.
    ///
    /// # Errors
    /// If they do not leave.
    pub fn rests(&mut self, bytes: usize, count: usize) -> Result<f64> {
        let [one, _] = &mut self.hosts;
        let machine = one.machine().clone();
        machine
            .lock()
            .record(Recorder::new(LIMIT, number::of_datagram));
        for _ in 0..count {
            one.post_to(PORT, bytes)?;
        }
        let mut quiet = 0;
        while quiet < 2000 {
            quiet = if one.poll()?.is_some() { 0 } else { quiet + 1 };
            one.pass();
        }
        let timeline = machine.lock().recorded().context("no recording")?;
        // What a frame has around it on the wire: preamble, CRC, gap.
        const AROUND: u64 = 8 + 4 + 12;
        let mut ends = (u64::MAX, 0, 0);
        for event in &timeline.events {
            if let Event::Transmit { span, length, .. } = event {
                let busy = (u64::from(*length).max(60) + AROUND) * 8;
                let clock = timeline.clock;
                ends.0 = ends.0.min(clock.nanoseconds(span.start));
                ends.1 = ends.1.max(clock.nanoseconds(span.end));
                ends.2 += busy;
            }
        }
        let (from, to, busy) = ends;
        let time = to.saturating_sub(from).max(1);
        Ok(1.0 - (busy as f64 / time as f64).min(1.0))
    }
}
