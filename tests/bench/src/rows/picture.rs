//! The rows as a picture (SVG).

use super::Flow;
use std::fmt::Write;
use tigon2_sim::theme::{self, Colour};

const WIDTH: f64 = 1200.0;
const LEFT: f64 = 130.0;
const RIGHT: f64 = 40.0;
const TOP: f64 = 70.0;
const ROW: f64 = 40.0;
const EDGE: f64 = 8.0;
/// Nanoseconds between two marks of the time.
const MARK: u64 = 250_000;
/// Of datagrams with an even number, with an odd one, and of no datagram alone.
const COLOURS: [Colour; 3] = [theme::BLUE, theme::SKY, theme::RULE];

/// The picture's text.
pub fn write(flow: &Flow, title: &str) -> String {
    let boxes = || flow.rows.iter().flat_map(|row| &row.boxes);
    let begin = boxes().map(|busy| busy.from).min().unwrap_or(0);
    let long = flow.nanoseconds().max(1);
    let scale = (WIDTH - LEFT - RIGHT) / long as f64;
    let x = |at: u64| LEFT + (at - begin) as f64 * scale;
    let height = TOP + ROW * flow.rows.len() as f64 + EDGE;
    let mut out = String::new();
    let mut line = |text: String| {
        // Writing to memory does not fail.
        let _ = writeln!(out, "{text}");
    };
    let (font, small) = (theme::FONT, theme::SMALL);
    line(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"{font}\" font-size=\"{small}\" fill=\"{}\">\
         <rect width=\"100%\" height=\"100%\" fill=\"{}\"/>",
        theme::INK,
        theme::PAPER
    ));
    let title = theme::escaped(title);
    line(format!(
        "<title>{title}</title><text x=\"{EDGE}\" y=\"24\" font-size=\"{}\">{title}</text>\
         <text x=\"{EDGE}\" y=\"44\" fill=\"{}\">a box: a call, a transfer, a run of a handler, a \
         frame; dark and light: one datagram and the next; grey: of any</text>",
        theme::TEXT + 2,
        theme::QUIET
    ));
    for at in (0..=long).step_by(MARK as usize) {
        let place = x(begin + at);
        line(format!(
            "<path d=\"M{place:.1} {TOP}V{height}\" stroke=\"{}\"/>\
             <text x=\"{place:.1}\" y=\"{}\" text-anchor=\"middle\" fill=\"{}\">{} µs</text>",
            theme::GRID,
            TOP - EDGE,
            theme::QUIET,
            at / 1000
        ));
    }
    for (number, row) in flow.rows.iter().enumerate() {
        let top = TOP + ROW * number as f64;
        line(format!(
            "<path d=\"M0 {top}H{WIDTH}\" stroke=\"{}\"/>\
             <text x=\"{EDGE}\" y=\"{}\"><tspan font-weight=\"bold\">{}</tspan> {}</text>",
            theme::RULE,
            top + 24.0,
            row.name,
            row.of
        ));
        for busy in &row.boxes {
            let colour = busy.datagram.map_or(2, |number| number as usize % 2);
            line(format!(
                "<rect x=\"{:.1}\" y=\"{}\" width=\"{:.1}\" height=\"{}\" fill=\"{}\"/>",
                x(busy.from),
                top + 6.0,
                ((busy.to - busy.from) as f64 * scale).max(1.0),
                ROW - 12.0,
                COLOURS[colour]
            ));
        }
    }
    line("</svg>".to_owned());
    out
}
