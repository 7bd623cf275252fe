//! Summarises a recording: the duration of each step of the frames.

use comfy_table::{CellAlignment, Table, presets::UTF8_BORDERS_ONLY};
use serde::Serialize;
use tigon2_sim::timeline::Timeline;
use tigon2_sim::timeline::packets::{Packet, Stage};
use tigon2_sim::workload::experiment::Experiment;

/// `target/reports/trace.json`.
#[derive(Debug, Serialize)]
pub struct Summary {
    firmware: String,
    experiment: Experiment,
    datagram: usize,
    /// Cycles since power-on.
    from_cycle: u64,
    to_cycle: u64,
    /// What was kept and what was left out for want of room.
    pub events: usize,
    /// Events before the window that were left out.
    pub left_out: u64,
    /// Frames that are seen.
    pub frames: usize,
    /// Those whose whole way is in the window.
    pub complete: usize,
    legs: Vec<Leg>,
}

/// From one step of the frames' way to the next.
#[derive(Debug, Serialize)]
struct Leg {
    direction: &'static str,
    leg: &'static str,
    mean_us: f64,
    least_us: f64,
    most_us: f64,
}

/// Where a leg begins or ends: the start or the end of a stage's first step.
type Mark = (Stage, bool);

const OUT: [(&str, Mark, Mark); 5] = [
    (
        "mailbox to BDs fetched",
        (Stage::Mailbox, false),
        (Stage::Fetch, true),
    ),
    (
        "BDs fetched to data read",
        (Stage::Fetch, true),
        (Stage::Data, true),
    ),
    (
        "data read to wire",
        (Stage::Data, true),
        (Stage::Mac, false),
    ),
    ("on the wire", (Stage::Mac, false), (Stage::Mac, true)),
    (
        "mailbox to interrupt",
        (Stage::Mailbox, false),
        (Stage::Interrupt, true),
    ),
];
const IN: [(&str, Mark, Mark); 5] = [
    ("on the wire", (Stage::Mac, false), (Stage::Mac, true)),
    (
        "wire to data written",
        (Stage::Mac, true),
        (Stage::Data, true),
    ),
    (
        "data to return BD",
        (Stage::Data, true),
        (Stage::Return, true),
    ),
    (
        "return BD to index",
        (Stage::Return, true),
        (Stage::Index, true),
    ),
    (
        "wire to interrupt",
        (Stage::Mac, true),
        (Stage::Interrupt, true),
    ),
];

impl Summary {
    /// Of the frames of a recording.
    pub fn new(
        firmware: &str,
        experiment: Experiment,
        datagram: usize,
        timeline: &Timeline,
        packets: &[Packet],
    ) -> Summary {
        let mut legs = Vec::new();
        for (outgoing, direction, list) in [(true, "out", OUT), (false, "in", IN)] {
            let frames: Vec<&Packet> = packets
                .iter()
                .filter(|packet| packet.outgoing == outgoing && packet.complete)
                .collect();
            for (leg, from, to) in list {
                legs.extend(measure(timeline, &frames, direction, leg, from, to));
            }
        }
        Summary {
            firmware: firmware.to_owned(),
            experiment,
            datagram,
            from_cycle: timeline.shown.start,
            to_cycle: timeline.shown.end,
            events: timeline.events.len(),
            left_out: timeline.left_out,
            frames: packets.len(),
            complete: packets.iter().filter(|packet| packet.complete).count(),
            legs,
        }
    }

    /// For people.
    pub fn table(&self) -> Table {
        let mut table = Table::new();
        table
            .load_style(UTF8_BORDERS_ONLY)
            .set_header(["frame", "leg", "mean, us", "least", "most"]);
        for leg in &self.legs {
            table.add_row([
                leg.direction.to_owned(),
                leg.leg.to_owned(),
                format!("{:.2}", leg.mean_us),
                format!("{:.2}", leg.least_us),
                format!("{:.2}", leg.most_us),
            ]);
        }
        for column in table.column_iter_mut().skip(2) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table
    }
}

/// `None` without frames.
fn measure(
    timeline: &Timeline,
    frames: &[&Packet],
    direction: &'static str,
    leg: &'static str,
    from: Mark,
    to: Mark,
) -> Option<Leg> {
    let at = |packet: &Packet, (stage, end): Mark| {
        let span = packet.step(stage)?.span;
        Some(
            timeline
                .clock
                .nanoseconds(if end { span.end } else { span.start }),
        )
    };
    let times: Vec<f64> = frames
        .iter()
        .filter_map(|packet| {
            let (from, to) = (at(packet, from)?, at(packet, to)?);
            Some((to as f64 - from as f64) / 1000.0)
        })
        .collect();
    let least_us = times.iter().copied().reduce(f64::min)?;
    let most_us = times.iter().copied().reduce(f64::max)?;
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    Some(Leg {
        direction,
        leg,
        mean_us: (mean * 1000.0).round() / 1000.0,
        least_us,
        most_us,
    })
}
