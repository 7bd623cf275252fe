//! Where the time of a datagram goes: Figure 8 of the paper, of two cards on one wire.
//!
//! One datagram at a time, from one process to the other. Each part of a card is counted for as long
//! as it works on it; parts work at the same time, so their sum is not the way's.

use super::card::PORT;
use super::pair::Pair;
use anyhow::{Context, Result};
use comfy_table::Table;
use eudp::{Checksum, CutThrough};
use serde::Serialize;
use tigon2_chip::Cpu;
use tigon2_chip::events::EventBit;
use tigon2_sim::timeline::event::Event;
use tigon2_sim::timeline::{LIMIT, Recorder, Timeline, number};

/// Datagrams that are counted.
const COUNT: u32 = 10;

/// What one datagram costs a card and its process, in microseconds.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Shares {
    /// The process's calls, which are accesses to the card.
    pub host: f64,
    /// CPU A's handlers, but its looks at a frame that arrives.
    pub cpu_a: f64,
    /// CPU B's.
    pub cpu_b: f64,
    /// Transactions on the bus.
    pub bus: f64,
    /// Frames on the wire.
    pub wire: f64,
}

/// A size.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Way {
    /// Bytes of data.
    pub bytes: usize,
    /// Bytes of a packet on the wire.
    pub mtu: u32,
    /// From the call until the other process sees the datagram.
    pub whole: f64,
    /// Sender and receiver.
    pub sides: [Shares; 2],
}

/// Measures a size.
///
/// # Errors
/// If the firmware does not start, or a datagram does not arrive.
pub fn measure(image: &[u8], bytes: usize, mtu: u32) -> Result<Way> {
    let mut pair = Pair::start(image, CutThrough::OfBus, Checksum::None, mtu)?;
    let [one, other] = pair.hosts();
    let machines = [one.machine().clone(), other.machine().clone()];
    let (mut whole, mut calls) = (0, [0; 2]);
    let mut sides = [Shares::default(); 2];
    for number in 0..COUNT {
        let begun = other.now();
        other.lend(number)?;
        calls[1] += other.now() - begun;
        other.settle()?;
        one.settle()?;
        for machine in &machines {
            let recorder = Recorder::new(LIMIT, number::of_datagram);
            machine.lock().record(recorder);
        }
        let begun = one.now();
        one.post_to(PORT, bytes)?;
        calls[0] += one.now() - begun;
        other.arrived()?;
        whole += other.now() - begun;
        one.settle()?;
        for (side, machine) in sides.iter_mut().zip(&machines) {
            let timeline = machine.lock().recorded().context("no recording")?;
            side.add(&timeline);
        }
    }
    let each = |time: u64| time as f64 / f64::from(COUNT) / 1000.0;
    for (side, time) in sides.iter_mut().zip(calls) {
        for part in [
            &mut side.cpu_a,
            &mut side.cpu_b,
            &mut side.bus,
            &mut side.wire,
        ] {
            *part /= f64::from(COUNT) * 1000.0;
        }
        side.host = each(time);
    }
    Ok(Way {
        bytes,
        mtu,
        whole: each(whole),
        sides,
    })
}

impl Shares {
    /// Adds the nanoseconds of a recording.
    fn add(&mut self, timeline: &Timeline) {
        let looks = EventBit::FollowFrame.number();
        for event in &timeline.events {
            let (part, cycles) = match event {
                Event::Run(run) if u32::from(run.bit) == looks => continue,
                Event::Run(run) if run.cpu == Cpu::A => {
                    (&mut self.cpu_a, run.span.cycles() + run.dispatch)
                }
                Event::Run(run) => (&mut self.cpu_b, run.span.cycles() + run.dispatch),
                Event::Bus { span, .. } => (&mut self.bus, span.cycles()),
                Event::Transmit { span, .. } | Event::Receive { span, .. } => {
                    (&mut self.wire, span.cycles())
                }
                _ => continue,
            };
            *part += timeline.clock.nanoseconds(cycles) as f64;
        }
    }
}

/// The sizes as a table.
pub fn table(ways: &[Way]) -> Table {
    let mut table = crate::simulated::tables::framed(&[
        "bytes", "MTU", "side", "host", "CPU A", "CPU B", "bus", "wire", "one way",
    ]);
    for way in ways {
        for (name, side) in ["sends", "receives"].iter().zip(way.sides) {
            let mut cells = vec![way.bytes.to_string(), way.mtu.to_string()];
            cells.push((*name).to_owned());
            let parts = [
                side.host, side.cpu_a, side.cpu_b, side.bus, side.wire, way.whole,
            ];
            cells.extend(parts.map(|time| format!("{time:.1}")));
            table.add_row(cells);
        }
    }
    table
}
