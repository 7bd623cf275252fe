//! Throughput over connections: the curves of the paper's figures 5 to 8.

use super::{Bench, percent, rounded};
use crate::chart::{Axis, Chart, Line, Scale, Sign, Stroke};
use crate::simulated::tables::framed;
use anyhow::Result;
use comfy_table::Table;
use serde::Serialize;
use std::path::Path;
use tigon2_sim::hosts::account::Activity;
use tigon2_sim::hosts::policy::PolicyKind::{
    self, Interrupt, Knet, KnetDeferred, KnetRr, Napi, Rps,
};
use tigon2_sim::hosts::web::SendCall;
use tigon2_sim::theme::{self, Colour};
use tigon2_sim::workload::knet::figures::CONNECTIONS;
use tigon2_sim::workload::knet::web::{Measured, Point, measure as look};

/// Connections of a quick look.
const QUICK: [usize; 4] = [4, 16, 48, 80];
/// End of the axis of connections.
const MOST: f64 = 84.0;
/// What is left above the highest figure.
const ABOVE: f64 = 1.08;

/// A figure of the paper.
struct Figure {
    /// In names of files.
    name: &'static str,
    title: &'static str,
    curves: Vec<Curve>,
}

struct Curve {
    name: &'static str,
    colour: Colour,
    stroke: Stroke,
    sign: Sign,
    point: Point,
}

/// A point of a curve.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    figure: &'static str,
    curve: &'static str,
    connections: usize,
    mbps: f64,
    files_per_s: f64,
    latency_us: f64,
    /// Share of all CPUs' time, by what it was used for.
    time: Vec<(&'static str, f64)>,
    interrupts_per_s: f64,
    /// Interrupts for a hundred frames to the card.
    interrupts_in_100: f64,
    card: Vec<f64>,
    wire: f64,
}

fn colour(policy: PolicyKind) -> (Colour, Sign) {
    match policy {
        Interrupt => (theme::PURPLE, Sign::Wedge),
        Napi => (theme::BLUE, Sign::Square),
        Rps => (theme::GREEN, Sign::Diamond),
        Knet | KnetDeferred => (theme::VERMILION, Sign::Circle),
        KnetRr => (theme::ORANGE, Sign::Triangle),
    }
}

fn curve(name: &'static str, stroke: Stroke, point: Point) -> Curve {
    let (colour, sign) = colour(point.policy);
    Curve {
        name,
        colour,
        stroke,
        sign,
        point,
    }
}

fn figures() -> Vec<Figure> {
    use Stroke::{Long, Short, Solid};
    let point = Point::new;
    let jumbo = |policy| Point {
        mtu: 9000,
        ..point(policy)
    };
    let copied = |policy| Point {
        call: SendCall::Sendmsg,
        ..point(policy)
    };
    let small = |policy| Point {
        file_bytes: 5 * 1024,
        ..point(policy)
    };
    let four = |policy| Point {
        ports: 4,
        ..point(policy)
    };
    vec![
        Figure {
            name: "mtu-9000",
            title: "Files of 20 KB, MTU 9000, sendfile (the paper's Figure 5)",
            curves: vec![
                curve("napi", Solid, jumbo(Napi)),
                curve("knet", Solid, jumbo(Knet)),
                curve("knet-rr", Solid, jumbo(KnetRr)),
            ],
        },
        Figure {
            name: "mtu-1500",
            title: "Files of 20 KB, MTU 1500 (the paper's Figure 6)",
            curves: vec![
                curve("napi", Solid, point(Napi)),
                curve("napi, sendmsg", Short, copied(Napi)),
                curve("knet", Solid, point(Knet)),
                curve("knet, sendmsg", Short, copied(Knet)),
                curve("knet-deferred", Long, point(KnetDeferred)),
                curve("rps", Solid, point(Rps)),
                curve("interrupt", Solid, point(Interrupt)),
            ],
        },
        Figure {
            name: "5-kb",
            title: "Files of 5 KB, MTU 1500, sendfile (the paper's Figure 7)",
            curves: vec![
                curve("napi", Solid, small(Napi)),
                curve("knet", Solid, small(Knet)),
            ],
        },
        Figure {
            name: "ports",
            title: "Files of 20 KB, MTU 1500, from one port and from four (the paper's Figure 8)",
            curves: vec![
                curve("napi, 1 port", Solid, point(Napi)),
                curve("napi, 4 ports", Short, four(Napi)),
                curve("knet, 1 port", Solid, point(Knet)),
                curve("knet, 4 ports", Short, four(Knet)),
            ],
        },
    ]
}

fn row(figure: &'static str, curve: &'static str, point: &Point, found: &Measured) -> Row {
    let window = &found.window;
    let time = Activity::ALL.map(|activity| {
        let share = rounded(window.share(activity), 1e3);
        (activity.name(), share)
    });
    Row {
        figure,
        curve,
        connections: point.connections,
        mbps: rounded(found.mbps(), 10.0),
        files_per_s: rounded(found.rate(), 1.0),
        latency_us: rounded(found.latency_us, 1.0),
        time: time.to_vec(),
        interrupts_per_s: rounded(window.interrupts as f64 / window.seconds, 1.0),
        interrupts_in_100: rounded(window.interrupts_in_100(), 100.0),
        card: window.card.iter().map(|load| rounded(*load, 1e3)).collect(),
        wire: rounded(window.wire, 1e3),
    }
}

pub(super) fn measure(bench: Bench<'_>) -> Result<Vec<Row>> {
    let connections: &[usize] = if bench.quick { &QUICK } else { &CONNECTIONS };
    let figures = figures();
    let curves = figures
        .iter()
        .flat_map(|figure| figure.curves.iter().map(move |curve| (figure, curve)));
    let tasks: Vec<_> = curves
        .flat_map(|(figure, curve)| {
            connections.iter().map(move |connections| {
                let point = Point {
                    connections: *connections,
                    ..curve.point.clone()
                };
                (figure.name, curve.name, point)
            })
        })
        .collect();
    bench.each("curves", &tasks, |(figure, curve, point)| {
        let found = look(bench.setup, bench.profile, point, bench.duration)?;
        Ok(row(figure, curve, point, &found))
    })
}

/// A table for each figure, with what it shows.
pub(super) fn tables(rows: &[Row]) -> Vec<(&'static str, Table)> {
    let figures = figures().into_iter();
    figures
        .map(|figure| {
            let mut table = framed(&[
                "curve",
                "connections",
                "Mb/s",
                "files/s",
                "us",
                "idle",
                "misses",
                "lock wait",
                "interrupts/s",
                "in 100 frames",
                "card",
                "wire",
            ]);
            for row in rows.iter().filter(|row| row.figure == figure.name) {
                let share = |of: Activity| {
                    let found = row.time.iter().find(|(name, _)| *name == of.name());
                    percent(found.map_or(0.0, |(_, share)| *share))
                };
                table.add_row([
                    row.curve.to_owned(),
                    row.connections.to_string(),
                    format!("{:.1}", row.mbps),
                    format!("{:.0}", row.files_per_s),
                    format!("{:.0}", row.latency_us),
                    share(Activity::Idle),
                    share(Activity::Misses),
                    share(Activity::LockWait),
                    format!("{:.0}", row.interrupts_per_s),
                    format!("{:.2}", row.interrupts_in_100),
                    row.card
                        .iter()
                        .map(|load| percent(*load))
                        .collect::<Vec<_>>()
                        .join(", "),
                    percent(row.wire),
                ]);
            }
            (figure.title, table)
        })
        .collect()
}

/// Writes `bench-knet-<figure>.svg` and `.png` for each figure.
pub(super) fn plot(folder: &Path, rows: &[Row]) -> Result<()> {
    for figure in figures() {
        let line = |curve: &Curve| Line {
            name: curve.name.to_owned(),
            colour: curve.colour,
            stroke: curve.stroke,
            sign: Some(curve.sign),
            points: rows
                .iter()
                .filter(|row| row.figure == figure.name && row.curve == curve.name)
                .map(|row| (row.connections as f64, row.mbps))
                .collect(),
        };
        let lines: Vec<Line> = figure.curves.iter().map(line).collect();
        let figures = lines.iter().flat_map(|line| &line.points);
        let top = figures.fold(1.0, |top, (_, mbps)| f64::max(top, *mbps));
        let chart = Chart {
            title: figure.title.to_owned(),
            conditions: "simulated server with 4 CPUs, 4 client machines, simulated Tigon II"
                .to_owned(),
            x: Axis {
                name: "connections at a time".to_owned(),
                end: MOST,
                scale: Scale::Linear,
            },
            y: Axis {
                name: "Mb/s of files".to_owned(),
                end: top * ABOVE,
                scale: Scale::Linear,
            },
            lines,
            marks: Vec::new(),
            key: [String::new(), String::new()],
        };
        chart.write(folder, &format!("bench-knet-{}", figure.name))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Curves of a figure differ by colour or stroke, and no two have a name.
    #[test]
    fn curves_can_be_told_apart() {
        for figure in figures() {
            for (at, one) in figure.curves.iter().enumerate() {
                for other in &figure.curves[..at] {
                    assert_ne!(one.name, other.name, "{}", figure.name);
                    let look = |curve: &Curve| (curve.colour, curve.stroke);
                    assert_ne!(look(one), look(other), "{}", figure.name);
                }
            }
        }
    }
}
