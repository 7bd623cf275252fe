//! What came through two cards, and when.

use crate::simulated::tables::{at_most, framed};
use comfy_table::Table;
use serde::Serialize;

/// What came through.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Forwarded {
    /// Bytes of a frame without CRC.
    pub bytes: usize,
    /// Packets a second that were offered.
    pub offered: f64,
    /// Packets that were offered, and that left the second card.
    pub packets: [u64; 2],
    /// Packets a second that left it.
    pub rate: f64,
    /// Microseconds from a packet's last byte in to its last byte out: the median, and the most.
    pub latency_us: [f64; 2],
    /// Microseconds between two packets that leave: the median, and the shortest but for a
    /// twentieth.
    pub period_us: [f64; 2],
    /// The first of these over the second.
    pub oscillation: f64,
    /// The host's accesses to both cards, and bytes of its memory that they touched.
    pub host: [u64; 2],
    /// Bytes that the first card has written to the second for each packet.
    pub bus_bytes: f64,
}

impl Forwarded {
    /// The share of packets that did not leave.
    pub fn loss(&self) -> f64 {
        1.0 - self.packets[1] as f64 / self.packets[0].max(1) as f64
    }
}

/// Packets that come, one each period.
pub struct Stream {
    pub(super) bytes: usize,
    pub(super) period: u64,
    /// When the next one is due, and when no more come, in nanoseconds.
    pub(super) due: u64,
    pub(super) end: u64,
    /// When each came, its last byte.
    pub arrivals: Vec<u64>,
    /// When each left, its last byte, and its number.
    pub left: Vec<(u64, u16)>,
}

impl Stream {
    /// What the times say.
    pub fn summary(&self) -> Forwarded {
        let forwarded = Forwarded {
            bytes: self.bytes,
            offered: 1e9 / self.period as f64,
            ..Forwarded::default()
        };
        summary(&self.arrivals, &self.left, forwarded)
    }
}

/// What came of it.
pub(in crate::spine) fn table(rows: &[Forwarded]) -> Table {
    let mut peers = framed(&[
        "bytes",
        "offered/s",
        "forwarded/s",
        "us",
        "at most",
        "lost",
        "oscillation",
    ]);
    for row in rows {
        peers.add_row([
            row.bytes.to_string(),
            format!("{:.0}", row.offered),
            format!("{:.0}", row.rate),
            format!("{:.1}", row.latency_us[0]),
            at_most(row.latency_us[1]),
            format!("{:.2} %", 100.0 * row.loss()),
            format!("{:.2}", row.oscillation),
        ]);
    }
    peers
}

/// What the times of arrival and of leaving say.
fn summary(arrivals: &[u64], left: &[(u64, u16)], forwarded: Forwarded) -> Forwarded {
    let times: Vec<u64> = left.iter().map(|(at, _)| *at).collect();
    let mut periods: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    periods.sort_unstable();
    let latency = |(at, number): &(u64, u16)| {
        let arrival = arrivals.get(usize::from(*number)).copied();
        at.saturating_sub(arrival.unwrap_or(*at))
    };
    let mut latencies: Vec<u64> = left.iter().map(latency).collect();
    latencies.sort_unstable();
    let part = |all: &[u64], part: f64| {
        let index = (all.len() as f64 * part) as usize;
        all.get(index.min(all.len().saturating_sub(1)))
            .copied()
            .unwrap_or(0) as f64
    };
    let span = match (times.first(), times.last()) {
        (Some(first), Some(last)) if last > first => (last - first) as f64,
        _ => f64::INFINITY,
    };
    Forwarded {
        packets: [arrivals.len() as u64, left.len() as u64],
        rate: times.len().saturating_sub(1) as f64 * 1e9 / span,
        latency_us: [part(&latencies, 0.5) / 1e3, part(&latencies, 1.0) / 1e3],
        period_us: [0.5, 0.05].map(|share| part(&periods, share) / 1e3),
        oscillation: part(&periods, 0.5) / part(&periods, 0.05).max(1.0),
        ..forwarded
    }
}
