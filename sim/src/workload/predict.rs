//! The analytic model of frames that are cut through: latency and bandwidth from the board file.
//!
//! It follows section 4.4 of the E-UDP paper, whose symbols stand in brackets, for the way out: layer
//! 1 is the bus, layer 2 the wire. Each has a time per packet and one per byte.
//!
//! ```text
//!   coarse   [sum of all layers]         o + fetch(n) + wire(n)
//!   fine     [lead + slowest layer]      o + fetch(T) + max(wire(n), fetch(n) - fetch(T) + wire(last part))
//!   gap-free stream, either way          n / max(again(n), wire(n) + gap)
//! ```
//!
//! `again(n)` is the read channel's time from one frame of a stream to the next. The MAC begins a frame
//! when the channel is done with it, and its first accesses to SRAM come before the channel's next
//! descriptor.
//!
//! `T` is the first part of a cut frame ([`Model::lead`]): the least for which each later part is
//! there in time on a bus whose latencies are the longest of the profile. `o` is measured, at the
//! smallest and at the largest frame of 1500 bytes only; all else is arithmetic.

use crate::timing::Parameters;
use crate::timing::mac::TRANSMIT_AHEAD;
use crate::workload::cut_through::Speeds;
use tigon2_chip::dma::DESCRIPTOR_BYTES;
use tigon2_chip::mac::{CRC_BYTES, MIN_FRAME};
use tigon2_model::Board;

/// Preamble and start delimiter, and the gap behind a frame, in bytes.
const PREAMBLE: usize = 8;
const GAP: usize = 12;
/// The engines work in whole cycles: what the steps of a transfer lose by that, in cycles.
const ROUNDING: u64 = 5;
/// The MAC's accesses to SRAM when a frame begins, a cycle each, which the channel waits for.
const MAC_FIRST: u64 = 8;
/// Leads are multiples of this; none is shorter than two of them.
const LEAD_STEP: usize = 64;

/// The board's figures, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Model {
    /// From a bus transaction's grant to its first beat, on average and at the longest.
    latency: f64,
    longest: f64,
    /// The same of a transaction that writes, on average.
    write_latency: f64,
    /// A beat of 8 bytes.
    beat: f64,
    /// A byte on the wire, and at the fastest on the bus.
    wire_byte: f64,
    bus_byte: f64,
    /// Bytes that the MAC reads ahead of the wire.
    ahead: usize,
    /// Bytes of a transaction.
    burst: usize,
    /// A cycle of the core and of the SRAM port.
    cycle: f64,
    /// Of a transfer, in cycles: its descriptor, its start, its end.
    steps: u64,
    /// Bytes of the MAC's accesses to SRAM.
    access: usize,
    /// For which the channel waits when the MAC begins a frame.
    mac_first: f64,
    /// What is measured, per frame.
    overhead: f64,
}

impl Model {
    /// A board under a profile, with nothing measured.
    pub fn new(board: &Board, parameters: &Parameters) -> Model {
        let clock = 1000.0 / f64::from(board.pci.mhz);
        let cycle = 1e9 / f64::from(board.clock.core_hz);
        let latency = clock * parameters.pci_rd as f64;
        let descriptor = (DESCRIPTOR_BYTES / parameters.port_bytes.max(1)).max(1);
        let steps = u64::from(descriptor) + parameters.dma_start + parameters.dma_end;
        let speeds = Speeds::of(board, parameters);
        Model {
            wire_byte: speeds.wire as f64 / 1000.0,
            bus_byte: speeds.bus as f64 / 1000.0,
            ahead: speeds.ahead as usize,
            latency,
            longest: latency * (1.0 + parameters.jit),
            write_latency: clock * parameters.pci_wr as f64,
            beat: clock * 64.0 / f64::from(board.pci.bits.max(1)),
            burst: parameters.burst as usize,
            cycle,
            steps,
            access: parameters.port_bytes as usize,
            mac_first: cycle * MAC_FIRST as f64,
            overhead: 0.0,
        }
    }

    /// The same with the mean of what coarse latencies (bytes, nanoseconds) have above the
    /// arithmetic.
    pub fn fitted(self, measured: &[(usize, f64)]) -> Model {
        let above = measured
            .iter()
            .map(|(bytes, latency)| latency - self.coarse(*bytes));
        Model {
            overhead: self.overhead + above.sum::<f64>() / measured.len().max(1) as f64,
            ..self
        }
    }

    fn moved(&self, bytes: usize, latency: f64) -> f64 {
        self.cycle * (self.steps + ROUNDING) as f64 + self.on_bus(bytes, latency)
    }

    fn on_bus(&self, bytes: usize, latency: f64) -> f64 {
        let transactions = bytes.div_ceil(self.burst.max(1)) as f64;
        transactions * latency + bytes.div_ceil(8) as f64 * self.beat
    }

    /// The bus's time for one transfer of `bytes` from the host's memory.
    pub fn read_on_bus(&self, bytes: usize) -> f64 {
        self.on_bus(bytes, self.latency)
    }

    /// The same of one to the host's memory.
    pub fn written_on_bus(&self, bytes: usize) -> f64 {
        self.on_bus(bytes, self.write_latency)
    }

    /// The read channel's time for one transfer of `bytes`.
    pub fn fetch(&self, bytes: usize) -> f64 {
        self.moved(bytes, self.latency)
    }

    /// The read channel's time from one frame to the next in a stream that the bus limits.
    fn again(&self, bytes: usize) -> f64 {
        let first = (1 + bytes.div_ceil(self.access.max(1)) as u64).min(TRANSMIT_AHEAD);
        // The channel is done when it has got the last beat.
        self.cycle * (self.steps + first) as f64 + self.read_on_bus(bytes) - self.beat
    }

    /// A frame's time on the wire, without its gap.
    pub fn wire(&self, bytes: usize) -> f64 {
        (bytes.max(MIN_FRAME) + CRC_BYTES + PREAMBLE) as f64 * self.wire_byte
    }

    /// The latency of a frame that leaves when it is whole.
    pub fn coarse(&self, bytes: usize) -> f64 {
        self.overhead + self.fetch(bytes) + self.wire(bytes)
    }

    /// The latency of a frame that is cut into a first part of `lead` bytes and parts of `part`.
    pub fn fine(&self, bytes: usize, lead: usize, part: usize) -> f64 {
        if lead >= bytes {
            return self.coarse(bytes);
        }
        let rest = parts(bytes, lead, part).map(|(from, to)| self.fetch(to - from));
        let last = (bytes - lead - 1) % part.max(1) + 1;
        let bus = rest.sum::<f64>() + last as f64 * self.wire_byte;
        self.overhead + self.fetch(lead) + self.wire(bytes).max(bus)
    }

    /// The least first part with which no later one can miss its deadline while bus transactions
    /// begin as late as the profile lets them; the whole frame if there is none.
    pub fn lead(&self, bytes: usize, part: usize) -> usize {
        let leads = (2..).map(|count| count * LEAD_STEP);
        let mut leads = leads.take_while(|lead| *lead < bytes);
        let is_safe = |lead: &usize| {
            let mut there = self.mac_first;
            parts(bytes, *lead, part).all(|(from, to)| {
                there += self.moved(to - from, self.longest);
                let read = from.saturating_sub(self.ahead) as f64 * self.wire_byte;
                there <= read + (to - from) as f64 * self.bus_byte
            })
        };
        leads.find(is_safe).unwrap_or(bytes)
    }

    /// Bits of frames per second in a stream without gaps in the host, in Mb/s: the slowest layer
    /// decides, cut through or not.
    pub fn bandwidth(&self, bytes: usize) -> f64 {
        bytes as f64 * 8000.0 / self.again(bytes).max(self.slot(bytes))
    }

    /// A frame's time on the wire with its gap.
    pub fn slot(&self, bytes: usize) -> f64 {
        self.wire(bytes) + GAP as f64 * self.wire_byte
    }

    /// The number of frames in a stream from which on each is whole before the wire is free, so
    /// that fine is coarse; `None` on a bus that never gets ahead.
    pub fn turns_coarse(&self, bytes: usize, lead: usize) -> Option<u32> {
        let (bus, wire) = (self.fetch(bytes), self.slot(bytes));
        let ahead = wire - bus;
        let missing = bus - self.fetch(lead.min(bytes));
        (ahead > 0.0).then(|| 1 + (missing / ahead).ceil() as u32)
    }
}

/// The parts behind the first one.
fn parts(bytes: usize, lead: usize, part: usize) -> impl Iterator<Item = (usize, usize)> {
    let part = part.max(1);
    let starts = (lead..bytes).step_by(part);
    starts.map(move |from| (from, (from + part).min(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The arithmetic of the engines: a frame of 1514 bytes takes 6.7 us on the bus and 12.2 on
    /// the wire, and its first 512 bytes 2.4.
    #[test]
    fn the_arithmetic_is_that_of_the_engines() {
        let model = Model::new(&Board::default(), &Parameters::default());
        let near = |is: f64, ought: f64| assert!((is - ought).abs() < 0.15 * 1000.0, "{is}");
        near(model.wire(1514), 12_208.0);
        near(model.fetch(1514), 6_700.0);
        near(model.coarse(1514), 18_900.0);
        near(model.fine(1514, 512, 512), 14_650.0);
        // The wire limits a stream, and the bus is ahead from the second frame on.
        assert!((984.0..985.0).contains(&model.bandwidth(1514)));
        assert_eq!(model.turns_coarse(1514, 512), Some(2));
    }

    /// A bus slower than the wire limits the stream, never gets ahead, and needs a longer lead.
    #[test]
    fn a_slow_bus_is_the_slowest_layer() {
        let slow = Model::new(&Board::with_bus(32, 33), &Parameters::default());
        let fast = Model::new(&Board::default(), &Parameters::default());
        assert!(slow.bandwidth(1514) < 700.0);
        assert_eq!(slow.turns_coarse(1514, 512), None);
        assert!(slow.lead(1514, 512) > fast.lead(1514, 512));
        assert!(fast.lead(1514, 512) <= 512);
        assert_eq!(slow.lead(100, 512), 100);
    }
}
