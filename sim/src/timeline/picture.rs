//! A recording as a picture (SVG): the event graph of SPINE's Figure 6, to be printed.
//!
//! The picture is a static version of the [page](super::page): one section, with the arrows of all
//! its frames.

use super::Timeline;
use super::packets::Packet;
use super::tracks::{Track, arrows, boxes, of_events, rows};
use crate::theme::{self, escaped};
use std::fmt::Write;

const WIDTH: f64 = 1200.0;
/// Right of the last mark of the time: half of its number.
const RIGHT: f64 = 40.0;
/// Round the words.
const EDGE: f64 = 8.0;
/// Title and key; the marks of the time are below them.
const TITLE: f64 = 24.0;
const KEY: f64 = 46.0;
const TOP: f64 = 82.0;
const ROW: f64 = 20.0;
/// Pixels between two marks of the time.
const MARK: f64 = 110.0;
/// How frames into the host differ from those out, besides by colour.
const DASHES: &str = "5 3";

/// The picture's text.
pub fn write(timeline: &Timeline, packets: &[Packet], title: &str) -> String {
    let boxes = boxes(timeline, packets);
    let (firsts, row_of) = rows(timeline, &boxes);
    let shown = timeline.shown;
    // As wide as the longest names.
    let widest = |names: &mut dyn Iterator<Item = &str>| {
        names.fold(0.0, |most, name| {
            f64::max(most, theme::width(name, theme::SMALL))
        })
    };
    let kinds = 4.5 * EDGE + widest(&mut Track::ALL.iter().map(|track| track.name()));
    let left = kinds + EDGE + widest(&mut firsts.iter().map(|first| boxes[*first].kind.as_str()));
    let plot = WIDTH - left - RIGHT;
    let scale = plot / shown.cycles().max(1) as f64;
    let x = |cycle: u64| left + (cycle as f64 - shown.start as f64) * scale;
    let y = |row: usize| TOP + row as f64 * ROW;
    let height = y(firsts.len()) + EDGE;
    let mut out = Out(String::new());
    out.line(format_args!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"{}\" font-size=\"{}\" fill=\"{}\">\
         <rect width=\"100%\" height=\"100%\" fill=\"{}\"/>",
        theme::FONT,
        theme::SMALL,
        theme::INK,
        theme::PAPER
    ));
    out.line(format_args!(
        "<clipPath id=\"c\"><rect x=\"{left:.1}\" y=\"{TOP}\" width=\"{plot:.1}\" \
         height=\"{}\"/></clipPath>",
        height - TOP
    ));
    heading(&mut out, title);
    marks(timeline, &mut out, &x, plot, height);
    for (row, first) in firsts.iter().enumerate() {
        let (one, top) = (&boxes[*first], y(row));
        let new = row == 0 || boxes[firsts[row - 1]].track != one.track;
        let stroke = if new { theme::RULE } else { theme::GRID };
        out.line(format_args!(
            "<path d=\"M0 {top}H{WIDTH}\" stroke=\"{stroke}\"/>\
             <text x=\"{kinds:.1}\" y=\"{}\">{}</text>",
            top + 14.0,
            escaped(&one.kind)
        ));
        if new {
            out.line(format_args!(
                "<rect x=\"{EDGE}\" y=\"{}\" width=\"{EDGE}\" height=\"{}\" fill=\"{}\"/>\
                 <text x=\"{}\" y=\"{}\" font-weight=\"bold\">{}</text>",
                top + 3.0,
                ROW - 6.0,
                one.track.colour(),
                2.5 * EDGE,
                top + 14.0,
                one.track.name()
            ));
        }
    }
    out.line(format_args!("<g clip-path=\"url(#c)\">"));
    for (n, one) in boxes.iter().enumerate() {
        if !one.span.meets(shown) {
            continue;
        }
        let (start, wide) = (x(one.span.start), one.span.cycles() as f64 * scale);
        out.line(format_args!(
            "<rect x=\"{start:.1}\" y=\"{}\" width=\"{:.1}\" height=\"{}\" fill=\"{}\"/>",
            y(row_of[n]) + 3.0,
            wide.max(1.2),
            ROW - 6.0,
            one.track.colour()
        ));
    }
    let box_of = of_events(timeline, &boxes);
    for packet in packets {
        for (to, from) in arrows(packet, &box_of) {
            let Some(from) = from else { continue };
            let (cause, step) = (boxes[from].span, boxes[to].span);
            if !cause.meets(shown) && !step.meets(shown) {
                continue;
            }
            let from = (x(cause.end.min(step.start)), y(row_of[from]) + ROW / 2.0);
            out.arrow(
                packet.outgoing,
                from,
                (x(step.start), y(row_of[to]) + ROW / 2.0),
            );
        }
    }
    out.line(format_args!("</g></svg>"));
    out.0
}

/// What it shows, and what its signs say.
fn heading(out: &mut Out, title: &str) {
    for (name, colour) in [("out", theme::OUT), ("in", theme::IN)] {
        out.line(format_args!(
            "<marker id=\"{name}\" viewBox=\"0 0 8 6\" refX=\"8\" refY=\"3\" markerWidth=\"8\" \
             markerHeight=\"6\" orient=\"auto\"><path d=\"M0 0L8 3L0 6Z\" fill=\"{colour}\"/></marker>"
        ));
    }
    out.line(format_args!(
        "<title>{title}</title><text x=\"{EDGE}\" y=\"{TITLE}\" font-size=\"{}\">{title}</text>",
        theme::TEXT + 2,
        title = escaped(title)
    ));
    let mut x = EDGE;
    for (outgoing, words) in [
        (true, "a frame out of the host"),
        (false, "a frame into it"),
    ] {
        out.arrow(outgoing, (x, KEY - 4.0), (x + 32.0, KEY - 4.0));
        out.quiet(x + 40.0, KEY, words);
        x += 60.0 + theme::width(words, theme::SMALL);
    }
    let words = "a box: one run of a handler, one transfer, one frame on the wire; time from the \
                 left edge";
    out.quiet(x, KEY, words);
}

fn marks(timeline: &Timeline, out: &mut Out, x: &impl Fn(u64) -> f64, plot: f64, height: f64) {
    let clock = timeline.clock;
    let start = clock.nanoseconds(timeline.shown.start);
    let length = clock.nanoseconds(timeline.shown.end).saturating_sub(start);
    let rough = (length as f64 / (plot / MARK)).max(1.0);
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
            "<path d=\"M{place:.1} {TOP}V{height}\" stroke=\"{}\"/>\
             <text x=\"{place:.1}\" y=\"{}\" text-anchor=\"middle\" fill=\"{}\">{} µs</text>",
            theme::GRID,
            TOP - EDGE,
            theme::QUIET,
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

    fn quiet(&mut self, x: f64, y: f64, words: &str) {
        let colour = theme::QUIET;
        self.line(format_args!(
            "<text x=\"{x:.1}\" y=\"{y}\" fill=\"{colour}\">{words}</text>"
        ));
    }

    /// From a step of a frame to the next one.
    fn arrow(&mut self, outgoing: bool, from: (f64, f64), to: (f64, f64)) {
        let (name, colour, dashes) = match outgoing {
            true => ("out", theme::OUT, "none"),
            false => ("in", theme::IN, DASHES),
        };
        self.line(format_args!(
            "<path d=\"M{:.1} {}L{:.1} {}\" stroke=\"{colour}\" stroke-dasharray=\"{dashes}\" \
             marker-end=\"url(#{name})\"/>",
            from.0, from.1, to.0, to.1
        ));
    }
}
