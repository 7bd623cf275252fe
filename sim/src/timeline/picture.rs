//! A recording as a picture (SVG): the event graph of SPINE's Figure 6, to be printed.
//!
//! As the [page](super::page), but still: the part that is looked at, with the arrows of all
//! its frames.

use super::Timeline;
use super::packets::Packet;
use super::tracks::{Track, arrows, boxes, of_events, rows};
use std::fmt::Write;

const WIDTH: f64 = 1200.0;
const LEFT: f64 = 290.0;
const TOP: f64 = 28.0;
const ROW: f64 = 20.0;
/// Pixels between two marks of the time.
const MARK: f64 = 110.0;

const fn colour(track: Track) -> &'static str {
    match track {
        Track::Host => "#57606a",
        Track::CpuA => "#0969da",
        Track::CpuB => "#8250df",
        Track::DmaRead => "#1a7f37",
        Track::DmaWrite => "#9a6700",
        Track::Pci => "#8c959f",
        Track::Transmit => "#cf222e",
        Track::Receive => "#bf3989",
        Track::Interrupt => "#24292f",
    }
}

/// The picture's text.
pub fn write(timeline: &Timeline, packets: &[Packet]) -> String {
    let boxes = boxes(timeline, packets);
    let (firsts, row_of) = rows(timeline, &boxes);
    let shown = timeline.shown;
    let scale = (WIDTH - LEFT) / shown.cycles().max(1) as f64;
    let x = |cycle: u64| LEFT + (cycle as f64 - shown.start as f64) * scale;
    let y = |row: usize| TOP + row as f64 * ROW;
    let height = y(firsts.len()) + 4.0;
    let mut out = Out(String::new());
    out.line(format_args!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"11\"><rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>"
    ));
    out.line(format_args!(
        "<clipPath id=\"c\"><rect x=\"{LEFT}\" y=\"0\" width=\"{}\" height=\"{height}\"/></clipPath>",
        WIDTH - LEFT
    ));
    marks(timeline, &mut out, &x, height);
    for (row, first) in firsts.iter().enumerate() {
        let (one, top) = (&boxes[*first], y(row));
        let new = row == 0 || boxes[firsts[row - 1]].track != one.track;
        let stroke = if new { "#8c959f" } else { "#eaeef2" };
        out.line(format_args!(
            "<path d=\"M0 {top}H{WIDTH}\" stroke=\"{stroke}\"/>\
             <text x=\"96\" y=\"{}\">{}</text>",
            top + 14.0,
            one.kind
        ));
        if new {
            out.line(format_args!(
                "<text x=\"6\" y=\"{}\" font-weight=\"bold\" fill=\"{}\">{}</text>",
                top + 14.0,
                colour(one.track),
                one.track.name()
            ));
        }
    }
    out.line(format_args!("<g clip-path=\"url(#c)\">"));
    for (n, one) in boxes.iter().enumerate() {
        if !one.span.meets(shown) {
            continue;
        }
        let (left, wide) = (x(one.span.start), one.span.cycles() as f64 * scale);
        out.line(format_args!(
            "<rect x=\"{left:.1}\" y=\"{}\" width=\"{:.1}\" height=\"{}\" fill=\"{}\"/>",
            y(row_of[n]) + 3.0,
            wide.max(1.2),
            ROW - 6.0,
            colour(one.track)
        ));
    }
    let box_of = of_events(timeline, &boxes);
    for packet in packets {
        let stroke = if packet.outgoing {
            "#cf222e"
        } else {
            "#0a7ea4"
        };
        for (to, from) in arrows(packet, &box_of) {
            let Some(from) = from else { continue };
            let (cause, step) = (boxes[from].span, boxes[to].span);
            if !cause.meets(shown) && !step.meets(shown) {
                continue;
            }
            out.line(format_args!(
                "<path d=\"M{:.1} {}L{:.1} {}\" stroke=\"{stroke}\" opacity=\".7\"/>",
                x(cause.end.min(step.start)),
                y(row_of[from]) + ROW / 2.0,
                x(step.start),
                y(row_of[to]) + ROW / 2.0
            ));
        }
    }
    out.line(format_args!("</g></svg>"));
    out.0
}

fn marks(timeline: &Timeline, out: &mut Out, x: &impl Fn(u64) -> f64, height: f64) {
    let clock = timeline.clock;
    let start = clock.nanoseconds(timeline.shown.start);
    let length = clock.nanoseconds(timeline.shown.end).saturating_sub(start);
    let rough = (length as f64 / ((WIDTH - LEFT) / MARK)).max(1.0);
    let power = 10f64.powf(libm::floor(libm::log10(rough)));
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
    let step = steps
        .into_iter()
        .find(|step| *step >= rough)
        .unwrap_or(rough);
    let step = step as u64;
    for at in (0..=length).step_by(step.max(1) as usize) {
        let place = x(clock.cycle_at(start + at));
        out.line(format_args!(
            "<path d=\"M{place:.1} {TOP}V{height}\" stroke=\"#eaeef2\"/>\
             <text x=\"{place:.1}\" y=\"17\" text-anchor=\"middle\" fill=\"#57606a\">{} µs</text>",
            at as f64 / 1000.0
        ));
    }
}

/// Text that grows by lines.
struct Out(String);

impl Out {
    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to memory does not fail.
        let _ = writeln!(self.0, "{line}");
    }
}
