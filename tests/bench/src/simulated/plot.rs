//! Plots the paper's figures: our curves, their limits, and the published points.

use super::point::Point;
use super::task::CONSTANT;
use crate::chart::{Axis, Chart, Line, Mark, Marks, Scale, Sign, Stroke};
use anyhow::Result;
use std::path::Path;
use tigon2_sim::theme::{self, Colour};
use tigon2_sim::workload::experiment::{Experiment, wire_limit};

/// BDs of a sent frame in the paper's figures.
const PAPERS_BDS: u32 = 2;
/// End of the axis of datagrams.
const BYTES: f64 = 1500.0;
/// What is left above the highest figure.
const ABOVE: f64 = 1.08;

/// Colours of firmwares, in the order in which they come.
const FIRMWARES: [Colour; 6] = [
    theme::VERMILION,
    theme::BLUE,
    theme::GREEN,
    theme::PURPLE,
    theme::ORANGE,
    theme::SKY,
];

/// The cards of the paper.
const CARDS: [(&str, Colour, Sign); 4] = [
    ("RELEASE", theme::GREEN, Sign::Square),
    ("BSD", theme::PURPLE, Sign::Triangle),
    ("PARALLEL", theme::ORANGE, Sign::Diamond),
    ("Intel ASIC", theme::INK, Sign::Wedge),
];

/// Writes `<name>-<experiment>.svg` and `.png`, if there is anything to show.
///
/// # Errors
/// If a file cannot be written.
pub fn write(folder: &Path, name: &str, experiment: Experiment, points: &[Point]) -> Result<()> {
    match chart(experiment, points) {
        Some(chart) => chart.write(folder, &format!("{name}-{}", experiment.name())),
        None => Ok(()),
    }
}

/// The figure of an experiment.
pub fn chart(experiment: Experiment, points: &[Point]) -> Option<Chart> {
    let points: Vec<&Point> = points
        .iter()
        .filter(|point| point.experiment == experiment && point.traffic == CONSTANT)
        .filter(|point| point.bds == PAPERS_BDS)
        .collect();
    let groups: Vec<&[&Point]> = points.chunk_by(|a, b| a.same_subject(b)).collect();
    let first = *groups.first()?;
    let lines = [limits(experiment, first), measured(experiment, &groups)].concat();
    let marks: Vec<Marks> = CARDS
        .into_iter()
        .filter_map(|card| published(first, card))
        .collect();
    let figures = lines.iter().flat_map(|line| line.points.iter().copied());
    let others = marks.iter().flat_map(|marks| marks.points.iter());
    let top = figures
        .chain(others.map(|mark| mark.at))
        .fold(1.0, |top, (_, figure)| f64::max(top, figure));
    let (title, figure) = titles(experiment);
    Some(Chart {
        title: title.to_owned(),
        conditions: conditions(&points),
        x: Axis {
            name: "bytes of a UDP datagram".to_owned(),
            end: BYTES,
            scale: Scale::Linear,
        },
        y: Axis {
            name: figure.to_owned(),
            end: top * ABOVE,
            scale: Scale::Linear,
        },
        lines,
        marks,
        key: [
            "printed in the paper (Kim et al. 2003)".to_owned(),
            "derived from its text".to_owned(),
        ],
    })
}

/// What a figure shows, and what its upright axis has.
const fn titles(experiment: Experiment) -> (&'static str, &'static str) {
    const RATE: &str = "Mb/s of datagrams";
    match experiment {
        Experiment::Send => (
            "UDP datagrams out of the host, as many as the card takes",
            RATE,
        ),
        Experiment::Receive => (
            "UDP datagrams into the host, as many as the card takes",
            RATE,
        ),
        Experiment::Bidirectional => (
            "UDP datagrams both ways at equal rates",
            "Mb/s of datagrams, both ways",
        ),
        Experiment::Ping => (
            "A UDP ping's time in card and host",
            "microseconds, there and back",
        ),
    }
}

/// What holds for every curve of a figure.
fn conditions(points: &[&Point]) -> String {
    let first = points[0];
    let mut words = vec!["simulated Tigon II".to_owned()];
    if points.iter().all(|point| point.profile == first.profile) {
        words.push(format!("timing profile {}", first.profile));
    }
    if points
        .iter()
        .all(|point| point.placement == first.placement)
    {
        words.push(format!("placement {}", first.placement));
    }
    words.push(format!("{PAPERS_BDS} BDs a sent frame"));
    words.push("datagrams of one size at equal distances".to_owned());
    words.join(", ")
}

/// What no firmware comes beyond.
fn limits(experiment: Experiment, points: &[&Point]) -> Vec<Line> {
    let line = |name: &str, stroke, value: &dyn Fn(&Point) -> Option<f64>| Line {
        name: name.to_owned(),
        colour: theme::QUIET,
        stroke,
        sign: None,
        points: curve(points, value),
    };
    let bound = "bound: CPUs that take no time";
    if experiment == Experiment::Ping {
        return vec![line(bound, Stroke::Short, &|point| point.bound_latency_us)];
    }
    vec![
        Line {
            points: ethernet(experiment),
            ..line("Ethernet's limit", Stroke::Solid, &|_| None)
        },
        line(bound, Stroke::Short, &|point| Some(point.bound_mbps)),
    ]
}

/// What the wire allows, by its formula.
fn ethernet(experiment: Experiment) -> Vec<(f64, f64)> {
    let ways = match experiment {
        Experiment::Bidirectional => 2.0,
        _ => 1.0,
    };
    let sizes = (18..1472).step_by(20).chain([1472]);
    sizes
        .map(|size| {
            (
                size as f64,
                ways * wire_limit(size) * size as f64 * 8.0 / 1e6,
            )
        })
        .collect()
}

/// A curve for each firmware, placement and profile: a colour for each firmware, a dash and a
/// sign for each of its others.
fn measured(experiment: Experiment, groups: &[&[&Point]]) -> Vec<Line> {
    let mut firmwares: Vec<&str> = Vec::new();
    let mut variations: Vec<(&str, &str)> = Vec::new();
    for point in groups.iter().map(|group| group[0]) {
        if !firmwares.contains(&point.firmware.as_str()) {
            firmwares.push(&point.firmware);
        }
        let variation = (point.placement.as_str(), point.profile.as_str());
        if !variations.contains(&variation) {
            variations.push(variation);
        }
    }
    let varies = |part: fn(&(&str, &str)) -> String| {
        let first = part(&variations[0]);
        variations.iter().any(|variation| part(variation) != first)
    };
    let placements = varies(|it| it.0.to_owned());
    let profiles = varies(|it| it.1.to_owned());
    let lines = groups.iter().map(|group| {
        let point = group[0];
        let firmware = firmwares.iter().position(|it| *it == point.firmware);
        let variation = variations
            .iter()
            .position(|it| *it == (point.placement.as_str(), point.profile.as_str()));
        let (firmware, variation) = (firmware.unwrap_or(0), variation.unwrap_or(0));
        let mut name = vec![point.firmware.as_str()];
        if placements {
            name.push(&point.placement);
        }
        if profiles {
            name.push(&point.profile);
        }
        Line {
            name: name.join(", "),
            colour: FIRMWARES[firmware % FIRMWARES.len()],
            stroke: Stroke::ALL[variation % Stroke::ALL.len()],
            // Firmwares that share a colour differ by sign.
            sign: Some(Sign::ALL[(variation + firmware / FIRMWARES.len()) % Sign::ALL.len()]),
            points: curve(group, &|point| match experiment {
                Experiment::Ping => point.latency_us,
                _ => Some(point.mbps),
            }),
        }
    });
    lines.filter(|line| !line.points.is_empty()).collect()
}

fn curve(points: &[&Point], value: &dyn Fn(&Point) -> Option<f64>) -> Vec<(f64, f64)> {
    let figures = points
        .iter()
        .filter_map(|point| Some((point.datagram as f64, value(point)?)));
    figures.collect()
}

/// What the paper says of a card at the sizes that were measured.
fn published(points: &[&Point], (name, colour, sign): (&str, Colour, Sign)) -> Option<Marks> {
    let marks: Vec<Mark> = points
        .iter()
        .filter_map(|point| {
            let mut figures = point.paper.iter().map(|compared| compared.figure);
            let figure = figures.find(|figure| figure.of == name)?;
            Some(Mark {
                at: (point.datagram as f64, figure.mbps),
                derived: figure.derived,
            })
        })
        .collect();
    (!marks.is_empty()).then(|| Marks {
        name: name.to_owned(),
        colour,
        sign,
        points: marks,
    })
}
