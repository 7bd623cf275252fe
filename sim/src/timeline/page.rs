//! A recording as one page of HTML: the event graph of SPINE's Figure 6.
//!
//! Time is on the x axis, event kinds on the y axis; each occurrence is a box, and arrows follow
//! the frames. The page contains script and data and needs no network.

use super::Timeline;
use super::packets::Packet;
use super::tracks::{Occurrence, arrows, boxes, of_events, rows};
use crate::theme::{self, escaped};
use serde::Serialize;

/// The page round the data.
const PAGE: &str = include_str!("page.html");
/// What stands in it for the title and for the data.
const TITLE: &str = "@TITLE@";
const DATA: &str = "@DATA@";
/// And for the colours.
const THEME: &str = "@THEME@";

#[derive(Serialize)]
struct Row<'a> {
    track: &'static str,
    kind: &'a str,
    /// Of its boxes, and of words on them.
    colour: String,
    words: String,
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
    let (firsts, row_of) = rows(timeline, &boxes);
    let zero = timeline.clock.nanoseconds(timeline.shown.start);
    let at = |cycle: u64| timeline.clock.nanoseconds(cycle) as i64 - zero as i64;
    let box_of = of_events(timeline, &boxes);
    let drawn = boxes.iter().enumerate().map(|(n, one)| {
        let said: Vec<String> = one
            .details
            .iter()
            .map(|(name, value)| format!("{name}: {value}"))
            .collect();
        let start = at(one.span.start);
        let duration = at(one.span.end) - start;
        (
            row_of[n],
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
        steps: arrows(packet, &box_of),
    });
    let data = Data {
        zero,
        from: 0,
        to: at(timeline.shown.end),
        left_out: timeline.left_out,
        boxes: drawn.collect(),
        frames: frames.collect(),
        rows: firsts
            .iter()
            .map(|first| {
                let Occurrence { track, kind, .. } = &boxes[*first];
                let colour = track.colour();
                Row {
                    track: track.name(),
                    kind,
                    colour: colour.to_string(),
                    words: colour.words().to_string(),
                }
            })
            .collect(),
    };
    // In a script element only "</" could end the data.
    let data = serde_json::to_string(&data)?.replace("</", "<\\/");
    let page = PAGE.replace(THEME, &theme::properties());
    Ok(page.replace(TITLE, &escaped(title)).replace(DATA, &data))
}
