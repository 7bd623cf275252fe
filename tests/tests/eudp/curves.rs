//! The curves of the bench, as a reader of the page sees them.

use integration_tests::svg::{Picture, Shape};
use tigon_bench::chart::Chart;
use tigon_bench::eudp::curves::{charts, page};
use tigon_bench::eudp::{Bandwidth, Figures, Latency};

/// Rows of some sizes, each with figures of its own.
fn figures(sizes: &[usize]) -> Figures {
    let latency = sizes.iter().map(|bytes| {
        let time = *bytes as f64 / 100.0;
        Latency {
            bytes: *bytes,
            out: [time + 60.0, time + 40.0, time + 20.0],
            into: [10.0; 3],
            cuts: [0; 2],
        }
    });
    let bandwidth = sizes.iter().map(|bytes| {
        let rate = 1000.0 * *bytes as f64 / (*bytes as f64 + 100.0);
        Bandwidth {
            bytes: *bytes,
            mtu: 1500,
            out: [rate, rate * 0.9, rate * 0.8],
            into: [rate * 0.7, rate * 0.6],
            completed: 1.0,
        }
    });
    Figures {
        latency: latency.collect(),
        bandwidth: bandwidth.collect(),
        shares: Vec::new(),
        boards: Vec::new(),
        stalls: Vec::new(),
        beside: Vec::new(),
    }
}

/// The pictures of the page.
fn pictures(figures: &Figures) -> Vec<Picture> {
    let page = page(figures).expect("a page");
    let svgs = page.split("<figure>").skip(1);
    let svgs = svgs.map(|part| part.split("</figure>").next().expect("a figure").trim());
    let pictures: Vec<_> = svgs.map(Picture::read).collect();
    for picture in &pictures {
        assert!(picture.faults().is_empty(), "{:#?}", picture.faults());
    }
    pictures
}

/// What is drawn of a line: its signs, without the one beside its name.
fn signs<'a>(picture: &'a Picture, chart: &Chart, name: &str) -> Vec<&'a Shape> {
    let line = chart.lines.iter().find(|line| line.name == name);
    let colour = line.expect("a line").colour.to_string();
    let words = picture.words.iter().find(|words| words.text == name);
    let words = words.expect("its name");
    let shapes = picture.shapes.iter();
    shapes
        .filter(|it| it.fill == colour && it.middle().0 < words.from.0 - 20.0)
        .collect()
}

/// A line for each series, with a sign for each row; the larger a size the farther right it is, and each
/// doubling as far as the other.
#[test]
fn the_page_has_a_line_for_each_series_and_a_point_for_each_row() {
    let sizes = [1, 16, 256, 4096];
    let figures = figures(&sizes);
    let (charts, pictures) = (charts(&figures), pictures(&figures));
    assert_eq!(pictures.len(), 2);
    let names = [
        &["driver", "stored", "cut through"][..],
        &[
            "out, no checksum",
            "out, Full",
            "out, Leading",
            "in, no checksum",
            "in, Full",
        ],
    ];
    for ((chart, picture), names) in charts.iter().zip(&pictures).zip(names) {
        let drawn: Vec<_> = chart.lines.iter().map(|line| &line.name[..]).collect();
        assert_eq!(drawn, names);
        for name in names {
            let signs = signs(picture, chart, name);
            assert_eq!(signs.len(), sizes.len(), "{name}");
            let places: Vec<f64> = signs.iter().map(|it| it.middle().0).collect();
            let steps: Vec<f64> = places.windows(2).map(|two| two[1] - two[0]).collect();
            assert!(steps[0] > 50.0, "{name}: {places:?}");
            let is_even = steps.iter().all(|step| (step - steps[0]).abs() < 3.0);
            assert!(is_even, "{name}: {places:?}");
        }
        for size in ["1", "64", "4096"] {
            let is_there = picture.words.iter().any(|words| words.text == size);
            assert!(is_there, "no {size} at the axis");
        }
    }
}

/// The points are the figures of the rows.
#[test]
fn the_curves_are_those_of_the_tables() {
    let figures = figures(&[1, 1472, 8972]);
    let [latency, throughput] = charts(&figures);
    for (row, n) in figures.latency.iter().zip(0..) {
        let shown = latency.lines.iter().map(|line| line.points[n]);
        let is = row.one_way().map(|time| (row.bytes as f64, time));
        assert!(shown.eq(is), "{row:?}");
    }
    for (row, n) in figures.bandwidth.iter().zip(0..) {
        let shown = throughput.lines.iter().map(|line| line.points[n]);
        let rates = row.out.into_iter().chain(row.into);
        assert!(
            shown.eq(rates.map(|rate| (row.bytes as f64, rate))),
            "{row:?}"
        );
    }
}
