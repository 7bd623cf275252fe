//! Latency and throughput over size, as the paper's Figures 10 and 11 have them: a page with a chart of
//! each.

use super::Figures;
use crate::chart::{Axis, Chart, Line, Scale, Sign, Stroke};
use anyhow::{Context, Result};
use std::fmt::Write;
use testbed::paths;
use tigon2_sim::theme::{self, Colour};

/// What is left above the highest figure, and behind the largest size.
const ABOVE: f64 = 1.08;

/// Curves of the latencies, in the order of [`Latency::one_way`](super::Latency::one_way).
const LATENCIES: [(&str, Colour, Sign); 3] = [
    ("driver", theme::PURPLE, Sign::Triangle),
    ("stored", theme::BLUE, Sign::Square),
    ("cut through", theme::VERMILION, Sign::Circle),
];
/// Curves of the streams: out, then in.
const STREAMS: [(&str, Colour, Sign, Stroke); 5] = [
    (
        "out, no checksum",
        theme::VERMILION,
        Sign::Circle,
        Stroke::Solid,
    ),
    ("out, Full", theme::ORANGE, Sign::Square, Stroke::Solid),
    ("out, Leading", theme::PURPLE, Sign::Triangle, Stroke::Solid),
    ("in, no checksum", theme::BLUE, Sign::Diamond, Stroke::Short),
    ("in, Full", theme::GREEN, Sign::Wedge, Stroke::Short),
];

/// Both charts: latency, and throughput.
pub fn charts(figures: &Figures) -> [Chart; 2] {
    let latencies = LATENCIES.iter().enumerate();
    let latencies = latencies.map(|(n, (name, colour, sign))| {
        let rows = figures.latency.iter();
        let points = rows.map(|row| (row.bytes as f64, row.one_way()[n]));
        line((name, *colour, *sign, Stroke::Solid), points.collect())
    });
    let streams = STREAMS.iter().enumerate().map(|(n, curve)| {
        let rate = |row: &super::Bandwidth| {
            let mut rates = row.out.iter().chain(&row.into);
            Some((row.bytes as f64, *rates.nth(n)?))
        };
        let rows = figures.bandwidth.iter();
        line(*curve, rows.filter_map(rate).collect())
    });
    [
        chart(
            "One datagram at a time, from process to process (the paper's Figure 10)",
            "simulated Tigon II, each datagram in one frame, no checksum: out and in added up",
            "microseconds",
            latencies.collect(),
        ),
        chart(
            "Datagrams one behind the other (the paper's Figure 11)",
            "simulated Tigon II, packets of 1500 bytes at the most, and of 9000 for 8972 bytes",
            "Mb/s of data",
            streams.collect(),
        ),
    ]
}

fn line(
    (name, colour, sign, stroke): (&str, Colour, Sign, Stroke),
    points: Vec<(f64, f64)>,
) -> Line {
    Line {
        name: name.to_owned(),
        colour,
        stroke,
        sign: Some(sign),
        points,
    }
}

fn chart(title: &str, conditions: &str, figure: &str, lines: Vec<Line>) -> Chart {
    let most = |part: fn(&(f64, f64)) -> f64| {
        let points = lines.iter().flat_map(|line| &line.points);
        ABOVE * points.map(part).fold(1.0, f64::max)
    };
    Chart {
        title: title.to_owned(),
        conditions: conditions.to_owned(),
        x: Axis {
            name: "bytes of a datagram".to_owned(),
            end: most(|point| point.0),
            scale: Scale::Doubling,
        },
        y: Axis {
            name: figure.to_owned(),
            end: most(|point| point.1),
            scale: Scale::Linear,
        },
        lines,
        marks: Vec::new(),
        key: [String::new(), String::new()],
    }
}

/// The page.
///
/// # Errors
/// If a chart cannot be drawn.
pub fn page(figures: &Figures) -> Result<String> {
    let mut page = String::from(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <title>E-UDP: datagrams of endpoints, over their size</title>\n",
    );
    for chart in charts(figures) {
        writeln!(page, "<figure>\n{}\n</figure>", chart.svg()?)?;
    }
    Ok(page + "</html>\n")
}

/// Writes it to `target/reports/bench-eudp.html`.
///
/// # Errors
/// If it cannot be drawn or written.
pub(super) fn write(figures: &Figures) -> Result<()> {
    let path = paths::reports().join("bench-eudp.html");
    std::fs::write(&path, page(figures)?)
        .with_context(|| format!("cannot write {}", path.display()))?;
    println!("curves: {}", path.display());
    Ok(())
}
