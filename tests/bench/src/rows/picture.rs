//! Rows of boxes as a picture (SVG).

use super::{Arrow, Row, span};
use std::fmt::Write;
use tigon2_sim::theme::{self, Colour};

const WIDTH: f64 = 1200.0;
const LEFT_LEAST: f64 = 130.0;
const RIGHT: f64 = 40.0;
const TOP: f64 = 70.0;
const ROW: f64 = 40.0;
const EDGE: f64 = 8.0;
/// Of items with an even number, with an odd one, and of no item alone.
const COLOURS: [Colour; 3] = [theme::BLUE, theme::SKY, theme::RULE];

/// What is to be drawn.
#[derive(Clone, Copy, Debug)]
pub struct Picture<'a> {
    /// What it shows.
    pub title: &'a str,
    /// What a box is, and its colours.
    pub legend: &'a str,
    /// Nanoseconds between two marks of the time.
    pub mark: u64,
    /// From top to bottom.
    pub rows: &'a [Row],
    /// Between boxes of one item.
    pub arrows: &'a [Arrow],
}

impl Picture<'_> {
    /// Its text.
    pub fn svg(&self) -> String {
        let Picture {
            title,
            legend,
            mark,
            rows,
            arrows,
        } = *self;
        let (begin, end) = span(rows);
        let long = (end - begin).max(1);
        let label = |row: &Row| theme::width(&format!("{} {}", row.name, row.of), theme::SMALL);
        let labels = rows.iter().map(label).fold(0.0, f64::max);
        let left = LEFT_LEAST.max(labels + 3.0 * EDGE);
        let scale = (WIDTH - left - RIGHT) / long as f64;
        let x = |at: u64| left + (at - begin) as f64 * scale;
        let height = TOP + ROW * rows.len() as f64 + EDGE;
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
         <text x=\"{EDGE}\" y=\"44\" fill=\"{}\">{}</text>",
            theme::TEXT + 2,
            theme::QUIET,
            theme::escaped(legend)
        ));
        for at in (0..=long).step_by(mark as usize) {
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
        for (number, row) in rows.iter().enumerate() {
            let top = TOP + ROW * number as f64;
            line(format!(
                "<path d=\"M0 {top}H{WIDTH}\" stroke=\"{}\"/>\
             <text x=\"{EDGE}\" y=\"{}\"><tspan font-weight=\"bold\">{}</tspan> {}</text>",
                theme::RULE,
                top + 24.0,
                theme::escaped(&row.name),
                theme::escaped(&row.of)
            ));
            for busy in &row.boxes {
                let colour = busy.item.map_or(2, |number| number as usize % 2);
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
        for Arrow { from, to } in arrows {
            let middle = |row: usize| TOP + ROW * (row as f64 + 0.5);
            line(format!(
                "<path d=\"M{:.1} {}L{:.1} {}\" stroke=\"{}\"/>\
             <circle cx=\"{:.1}\" cy=\"{}\" r=\"2.5\"/>",
                x(from.1),
                middle(from.0),
                x(to.1),
                middle(to.0),
                theme::INK,
                x(to.1),
                middle(to.0)
            ));
        }
        line("</svg>".to_owned());
        out
    }
}
