//! A recording as one page of HTML: the event graph of SPINE's Figure 6.
//!
//! Time on x, event kinds on y, a box for each occurrence, arrows along the frames. The page
//! needs no network: script and data are in it.

use super::Timeline;
use super::packets::Packet;
use super::tracks::{Track, boxes};
use serde::Serialize;
use std::collections::BTreeMap;

/// The page round the data.
const PAGE: &str = include_str!("page.html");
/// What stands in it for the title and for the data.
const TITLE: &str = "@TITLE@";
const DATA: &str = "@DATA@";

#[derive(Serialize)]
struct Row<'a> {
    track: &'static str,
    kind: &'a str,
}

/// A box: row, start and duration in nanoseconds, details, frames.
type Drawn<'a> = (usize, i64, i64, String, &'a [usize]);

#[derive(Serialize)]
struct Frame {
    name: String,
    outgoing: bool,
    length: u32,
    complete: bool,
    /// Boxes, and which of them caused each: places in the list of boxes.
    steps: Vec<(usize, Option<usize>)>,
}

#[derive(Serialize)]
struct Data<'a> {
    /// Nanoseconds since power-on of time 0.
    zero: u64,
    /// What is shown first.
    from: i64,
    to: i64,
    left_out: u64,
    rows: Vec<Row<'a>>,
    boxes: Vec<Drawn<'a>>,
    frames: Vec<Frame>,
}

/// The page's text.
///
/// # Errors
/// None in practice: the values are numbers and plain text.
pub fn write(timeline: &Timeline, packets: &[Packet], title: &str) -> serde_json::Result<String> {
    let boxes = boxes(timeline, packets);
    // Handlers from the most urgent one down, the rest by name.
    let mut rows: BTreeMap<(Track, u8, &str), usize> = BTreeMap::new();
    let key = |n: usize| {
        let one = &boxes[n];
        let urgency = match &timeline.events[one.event] {
            super::event::Event::Run(run) => u8::MAX - run.bit,
            _ => 0,
        };
        (one.track, urgency, one.kind.as_str())
    };
    for n in 0..boxes.len() {
        rows.insert(key(n), 0);
    }
    for (place, row) in rows.values_mut().enumerate() {
        *row = place;
    }
    let zero = timeline.clock.nanoseconds(timeline.shown.start);
    let at = |cycle: u64| timeline.clock.nanoseconds(cycle) as i64 - zero as i64;
    let mut box_of = vec![None; timeline.events.len()];
    for (n, one) in boxes.iter().enumerate() {
        box_of[one.event] = Some(n);
    }
    let drawn = boxes.iter().enumerate().map(|(n, one)| {
        let said: Vec<String> = one
            .details
            .iter()
            .map(|(name, value)| format!("{name}: {value}"))
            .collect();
        let start = at(one.span.start);
        let duration = at(one.span.end) - start;
        (
            rows[&key(n)],
            start,
            duration,
            said.join("\n"),
            one.packets.as_slice(),
        )
    });
    let frames = packets.iter().map(|packet| Frame {
        name: packet.name(),
        outgoing: packet.outgoing,
        length: packet.length,
        complete: packet.complete,
        steps: steps(packet, &box_of),
    });
    let data = Data {
        zero,
        from: 0,
        to: at(timeline.shown.end),
        left_out: timeline.left_out,
        boxes: drawn.collect(),
        frames: frames.collect(),
        rows: rows
            .keys()
            .map(|(track, _, kind)| Row {
                track: track.name(),
                kind,
            })
            .collect(),
    };
    // In a script element only "</" could end the data.
    let data = serde_json::to_string(&data)?.replace("</", "<\\/");
    let title = title.replace('&', "&amp;").replace('<', "&lt;");
    Ok(PAGE.replace(TITLE, &title).replace(DATA, &data))
}

/// The steps that are drawn, each behind the nearest one before it that is.
fn steps(packet: &Packet, box_of: &[Option<usize>]) -> Vec<(usize, Option<usize>)> {
    let drawn = |step: usize| box_of[packet.steps[step].event];
    let mut steps = Vec::new();
    for (n, step) in packet.steps.iter().enumerate() {
        let Some(place) = drawn(n) else { continue };
        let mut cause = step.after;
        while let Some(before) = cause.filter(|before| drawn(*before).is_none()) {
            cause = packet.steps[before].after;
        }
        steps.push((place, cause.and_then(drawn)));
    }
    steps
}
