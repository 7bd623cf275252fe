//! The curves of the paper's figures, as SVG and as PNG.

use super::point::{CONSTANT, Point};
use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;
use std::path::Path;
use std::sync::Once;
use tigon2_sim::workload::experiment::Experiment;

/// BDs of a sent frame in the paper's figures.
const PAPERS_BDS: u32 = 2;
/// Pixels.
const SIZE: (u32, u32) = (900, 560);
const FONT: &str = "sans-serif";

/// A curve with its name and colour.
struct Curve {
    name: String,
    colour: RGBColor,
    points: Vec<(f64, f64)>,
}

/// Writes `bench-<experiment>.svg` and `.png`.
pub fn write(folder: &Path, experiment: Experiment, points: &[Point]) -> Result<()> {
    static FONTS: Once = Once::new();
    FONTS.call_once(|| {
        // The only way for it to fail is a font that is none.
        let _ = plotters::style::register_font(
            FONT,
            FontStyle::Normal,
            epaint_default_fonts::UBUNTU_LIGHT,
        );
    });
    let curves = curves(experiment, points);
    if curves.iter().all(|curve| curve.points.is_empty()) {
        return Ok(());
    }
    let path = |extension: &str| folder.join(format!("bench-{}.{extension}", experiment.name()));
    let svg = path("svg");
    draw(
        SVGBackend::new(&svg, SIZE).into_drawing_area(),
        experiment,
        &curves,
    )?;
    let png = path("png");
    draw(
        BitMapBackend::new(&png, SIZE).into_drawing_area(),
        experiment,
        &curves,
    )
}

/// Colours of the measured firmwares.
const MEASURED: [RGBColor; 6] = [
    BLUE,
    RGBColor(0, 150, 190),
    RGBColor(230, 130, 0),
    RGBColor(120, 60, 160),
    RGBColor(140, 100, 60),
    RGBColor(90, 140, 20),
];

fn curves(experiment: Experiment, points: &[Point]) -> Vec<Curve> {
    let of = |points: &[Point], value: &dyn Fn(&Point) -> Option<f64>| -> Vec<(f64, f64)> {
        points
            .iter()
            .filter(|point| point.experiment == experiment && point.traffic == CONSTANT)
            .filter(|point| point.bds == PAPERS_BDS)
            .filter_map(|point| Some((point.datagram as f64, value(point)?)))
            .collect()
    };
    let groups: Vec<&[Point]> = points.chunk_by(Point::same_subject).collect();
    let Some(first) = groups.first() else {
        return Vec::new();
    };
    let mut curves = Vec::new();
    let mut add = |name: &str, colour, points| {
        curves.push(Curve {
            name: name.to_owned(),
            colour,
            points,
        });
    };
    let grey = RGBColor(120, 120, 120);
    if experiment == Experiment::Ping {
        add(
            "CPUs without limit",
            grey,
            of(first, &|point| point.bound_latency_us),
        );
    } else {
        add(
            "Ethernet limit",
            BLACK,
            of(first, &|point| Some(point.limit_mbps)),
        );
        add(
            "CPUs without limit",
            grey,
            of(first, &|point| Some(point.bound_mbps)),
        );
    }
    for (group, colour) in groups.iter().zip(MEASURED.into_iter().cycle()) {
        let Point {
            firmware, profile, ..
        } = &group[0];
        let points = of(group, &|point| match experiment {
            Experiment::Ping => point.latency_us,
            _ => Some(point.mbps),
        });
        add(&format!("{firmware}, {profile}"), colour, points);
    }
    for (name, colour) in [("RELEASE", RED), ("BSD", MAGENTA), ("PARALLEL", GREEN)] {
        let figure = |point: &Point| {
            let mut figures = point.paper.iter().map(|compared| compared.figure);
            Some(figures.find(|figure| figure.of == name)?.mbps)
        };
        add(&format!("{name} (paper)"), colour, of(first, &figure));
    }
    curves.retain(|curve| !curve.points.is_empty());
    curves
}

fn draw<B: DrawingBackend>(
    area: DrawingArea<B, Shift>,
    experiment: Experiment,
    curves: &[Curve],
) -> Result<()> {
    // The backends' errors borrow from them.
    draw_on(&area, experiment, curves).map_err(|error| anyhow!("cannot draw: {error}"))
}

fn draw_on<B: DrawingBackend>(
    area: &DrawingArea<B, Shift>,
    experiment: Experiment,
    curves: &[Curve],
) -> Result<(), String> {
    let text = |error: DrawingAreaErrorKind<B::ErrorType>| error.to_string();
    let top = curves
        .iter()
        .flat_map(|curve| curve.points.iter().map(|point| point.1))
        .fold(1.0, f64::max);
    area.fill(&WHITE).map_err(text)?;
    let mut chart = ChartBuilder::on(area)
        .caption(experiment.name(), (FONT, 22))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(64)
        .build_cartesian_2d(0.0..1500.0, 0.0..top * 1.08)
        .map_err(text)?;
    let unit = match experiment {
        Experiment::Ping => "us, there and back",
        _ => "Mb/s of datagrams",
    };
    chart
        .configure_mesh()
        .x_desc("bytes of a UDP datagram")
        .y_desc(unit)
        .label_style((FONT, 14))
        .x_label_formatter(&|bytes| format!("{bytes:.0}"))
        .y_label_formatter(&|value| format!("{value:.0}"))
        .light_line_style(WHITE)
        .draw()
        .map_err(text)?;
    for curve in curves {
        let colour = curve.colour;
        if curve.points.len() > 2 {
            let line = LineSeries::new(curve.points.iter().copied(), colour.stroke_width(2));
            chart.draw_series(line).map_err(text)?;
        }
        let dots = curve
            .points
            .iter()
            .map(|point| Circle::new(*point, 4, colour.filled()));
        chart
            .draw_series(dots)
            .map_err(text)?
            .label(curve.name.as_str())
            .legend(move |(x, y)| Circle::new((x + 10, y), 4, colour.filled()));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK)
        .label_font((FONT, 14))
        .draw()
        .map_err(text)?;
    area.present().map_err(text)
}
