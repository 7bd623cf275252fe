//! A recording in the Trace Event format, which ui.perfetto.dev and chrome://tracing read.
//!
//! One thread for each track, one slice ("X") for each box, and for each frame a flow ("s",
//! "t", "f") through its steps in the order of time. Times are microseconds since power-on.

use super::Timeline;
use super::packets::{Packet, Step};
use super::tracks::{Occurrence, Track, boxes};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// The one process.
const PROCESS: u32 = 1;

#[derive(Serialize)]
struct Slice<'a> {
    ph: &'static str,
    pid: u32,
    tid: u32,
    name: &'a str,
    cat: &'static str,
    ts: f64,
    dur: f64,
    args: Map<String, Value>,
}

#[derive(Serialize)]
struct Flow<'a> {
    ph: &'static str,
    pid: u32,
    tid: u32,
    name: &'a str,
    cat: &'static str,
    id: usize,
    ts: f64,
    /// The flow belongs to the slice around it, not to the next one.
    bp: &'static str,
}

/// The file's text.
///
/// # Errors
/// None in practice: the values are numbers and plain text.
pub fn write(timeline: &Timeline, packets: &[Packet]) -> serde_json::Result<String> {
    let mut lines = vec![serde_json::to_string(&json!({
        "ph": "M", "pid": PROCESS, "name": "process_name", "args": {"name": "tigon2"},
    }))?];
    for track in Track::ALL {
        let tid = tid(track);
        for (name, value) in [
            ("thread_name", json!({"name": track.name()})),
            ("thread_sort_index", json!({"sort_index": tid})),
        ] {
            let line = json!({"ph": "M", "pid": PROCESS, "tid": tid, "name": name, "args": value});
            lines.push(serde_json::to_string(&line)?);
        }
    }
    let boxes = boxes(timeline, packets);
    let mut track_of = vec![None; timeline.events.len()];
    for one in &boxes {
        track_of[one.event] = Some(one.track);
        lines.push(serde_json::to_string(&slice(timeline, packets, one))?);
    }
    for (id, packet) in packets.iter().enumerate() {
        flow(timeline, packet, id, &track_of, &mut lines)?;
    }
    let head = json!({
        "tool": concat!("tigon2-sim ", env!("CARGO_PKG_VERSION")),
        "from_cycle": timeline.shown.start,
        "to_cycle": timeline.shown.end,
        "events_left_out": timeline.left_out,
        "frames": packets.len(),
    });
    Ok(format!(
        "{{\"displayTimeUnit\":\"ns\",\"otherData\":{},\"traceEvents\":[\n{}\n]}}\n",
        serde_json::to_string(&head)?,
        lines.join(",\n")
    ))
}

fn slice<'a>(timeline: &Timeline, packets: &[Packet], one: &'a Occurrence) -> Slice<'a> {
    let mut args: Map<String, Value> = one
        .details
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.as_str().into()))
        .collect();
    if !one.packets.is_empty() {
        let names: Vec<String> = one.packets.iter().map(|n| packets[*n].name()).collect();
        args.insert("frames".into(), names.join(", ").into());
    }
    let (start, end) = (
        microseconds(timeline, one.span.start),
        microseconds(timeline, one.span.end),
    );
    Slice {
        ph: "X",
        pid: PROCESS,
        tid: tid(one.track),
        name: &one.kind,
        cat: one.track.name(),
        ts: start,
        dur: round(end - start),
        args,
    }
}

fn flow(
    timeline: &Timeline,
    packet: &Packet,
    id: usize,
    track_of: &[Option<Track>],
    lines: &mut Vec<String>,
) -> serde_json::Result<()> {
    let drawn = |step: &&Step| track_of[step.event].is_some();
    let mut steps: Vec<&Step> = packet.steps.iter().filter(drawn).collect();
    steps.sort_by_key(|step| step.span);
    steps.dedup_by_key(|step| step.event);
    if steps.len() < 2 {
        return Ok(());
    }
    let (name, last) = (packet.name(), steps.len() - 1);
    for (n, step) in steps.into_iter().enumerate() {
        let Some(track) = track_of[step.event] else {
            continue;
        };
        let ph = match n {
            0 => "s",
            n if n == last => "f",
            _ => "t",
        };
        lines.push(serde_json::to_string(&Flow {
            ph,
            pid: PROCESS,
            tid: tid(track),
            name: &name,
            cat: "frame",
            id,
            ts: microseconds(timeline, step.span.start),
            bp: "e",
        })?);
    }
    Ok(())
}

const fn tid(track: Track) -> u32 {
    track as u32 + 1
}

fn microseconds(timeline: &Timeline, cycle: u64) -> f64 {
    timeline.clock.nanoseconds(cycle) as f64 / 1000.0
}

/// To whole nanoseconds: what a difference of such times is.
fn round(microseconds: f64) -> f64 {
    (microseconds * 1000.0).round() / 1000.0
}
