//! The curves of the paper's figures, as SVG and as PNG.

use super::point::{CONSTANT, Point};
use anyhow::{Context, Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::sync::Once;
use tigon2_sim::workload::experiment::Experiment;

/// BDs of a sent frame in the paper's figures.
const PAPERS_BDS: u32 = 2;
/// Pixels: the chart, and the names of the curves beside it.
const CHART: (u32, u32) = (900, 560);
const NAMES: u32 = 230;
const SIZE: (u32, u32) = (CHART.0 + NAMES, CHART.1);
/// Pixels from one name to the next.
const ROW: i32 = 24;
const FONT: &str = "sans-serif";

/// A curve with its name and colour.
struct Curve {
    name: String,
    colour: RGBColor,
    points: Vec<(f64, f64)>,
}

/// Writes `<name>-<experiment>.svg` and `.png`.
pub fn write(folder: &Path, name: &str, experiment: Experiment, points: &[Point]) -> Result<()> {
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
    let path = |extension: &str| folder.join(format!("{name}-{}.{extension}", experiment.name()));
    let svg = path("svg");
    draw(
        SVGBackend::new(&svg, SIZE).into_drawing_area(),
        experiment,
        &curves,
    )?;
    let mut pixels = vec![0; (SIZE.0 * SIZE.1 * 3) as usize];
    draw(
        BitMapBackend::with_buffer(&mut pixels, SIZE).into_drawing_area(),
        experiment,
        &curves,
    )?;
    write_png(&path("png"), &pixels)
}

/// Red, green and blue of each pixel, as a file.
fn write_png(path: &Path, pixels: &[u8]) -> Result<()> {
    let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
    let mut encoder = png::Encoder::new(BufWriter::new(file), SIZE.0, SIZE.1);
    encoder.set_color(png::ColorType::Rgb);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(pixels)?;
    Ok(writer.finish()?)
}

/// Colours of the measured firmwares.
const MEASURED: [RGBColor; 8] = [
    BLUE,
    RGBColor(0, 150, 190),
    RGBColor(230, 130, 0),
    RGBColor(120, 60, 160),
    RGBColor(140, 100, 60),
    RGBColor(90, 140, 20),
    RGBColor(200, 150, 170),
    RGBColor(60, 70, 110),
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
            firmware,
            placement,
            profile,
            ..
        } = &group[0];
        let points = of(group, &|point| match experiment {
            Experiment::Ping => point.latency_us,
            _ => Some(point.mbps),
        });
        add(
            &format!("{firmware}, {placement}, {profile}"),
            colour,
            points,
        );
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
    let (area_of_chart, names) = area.split_horizontally(CHART.0);
    let mut chart = ChartBuilder::on(&area_of_chart)
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
    for (curve, row) in curves.iter().zip(2..) {
        let colour = curve.colour;
        if curve.points.len() > 2 {
            let line = LineSeries::new(curve.points.iter().copied(), colour.stroke_width(2));
            chart.draw_series(line).map_err(text)?;
        }
        let dots = curve
            .points
            .iter()
            .map(|point| Circle::new(*point, 4, colour.filled()));
        chart.draw_series(dots).map_err(text)?;
        let y = row * ROW;
        let dot = Circle::new((8, y), 4, colour.filled());
        names.draw(&dot).map_err(text)?;
        let name = Text::new(curve.name.as_str(), (20, y - 7), (FONT, 14));
        names.draw(&name).map_err(text)?;
    }
    area.present().map_err(text)
}
