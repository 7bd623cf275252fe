//! Tests the pictures as a reader sees them: charts of the bench, event graphs, the book's
//! drawings.

use integration_tests::stage;
use integration_tests::svg::{Picture, Place, Shape, Words};
use std::collections::{BTreeMap, BTreeSet};
use tigon_bench::chart::Chart;
use tigon_bench::pictures;
use tigon_bench::simulated::papers::{Compared, published};
use tigon_bench::simulated::plot::chart;
use tigon_bench::simulated::point::{PerFrame, Point};
use tigon_bench::simulated::task::{CONSTANT, SIZES};
use tigon2_chip::Cpu;
use tigon2_model::Direction;
use tigon2_sim::clock::Clock;
use tigon2_sim::theme;
use tigon2_sim::timeline::event::{Event, Run, Span};
use tigon2_sim::timeline::{Timeline, page, picture};
use tigon2_sim::timing::counts::Tally;
use tigon2_sim::workload::experiment::Experiment;

/// A measurement that is `share` of what Ethernet allows.
fn point(subject: (&str, &str), experiment: Experiment, datagram: usize, share: f64) -> Point {
    let limit = 1900.0 * datagram as f64 / (datagram as f64 + 66.0);
    let ping = experiment == Experiment::Ping;
    let paper = published(experiment, datagram).into_iter();
    Point {
        experiment,
        firmware: subject.0.to_owned(),
        placement: subject.1.to_owned(),
        profile: "default".to_owned(),
        traffic: CONSTANT.to_owned(),
        datagram,
        bds: 2,
        frames_per_s_tx: 0.0,
        frames_per_s_rx: 0.0,
        mbps: limit * share,
        limit_mbps: limit,
        bound_mbps: limit * 0.97,
        share_of_bound: share,
        engines_mbps: None,
        paper: paper
            .map(|figure| Compared { figure, ratio: 1.0 })
            .collect(),
        latency_us: ping.then_some(30.0 / share),
        bound_latency_us: ping.then_some(16.0),
        cpu_a_busy: 1.0,
        cpu_b_busy: 1.0,
        sram_utilisation: 0.5,
        pci_utilisation: 0.5,
        bottleneck: "CPU A",
        drops: 0,
        cpu_a: PerFrame::default(),
        cpu_b: PerFrame::default(),
    }
}

const FIRMWARES: [&str; 2] = ["uniprocessor", "parallel"];
const PLACEMENTS: [&str; 4] = ["scratch", "sram-code", "sram-data", "sram-both"];

/// Two firmwares with code and state at some places.
fn points(experiment: Experiment, placements: &[&str]) -> Vec<Point> {
    let mut points = Vec::new();
    for (n, placement) in placements.iter().enumerate() {
        for (m, firmware) in FIRMWARES.iter().enumerate() {
            let share = 0.9 - 0.12 * n as f64 - 0.05 * (1 - m) as f64;
            let subject = (*firmware, *placement);
            points.extend(SIZES.map(|size| point(subject, experiment, size, share)));
        }
    }
    points
}

fn drawn(chart: &Chart) -> Picture {
    let svg = chart.svg().expect("a drawing");
    let picture = Picture::read(&svg);
    assert!(picture.faults().is_empty(), "{:#?}", picture.faults());
    picture
}

fn figure(experiment: Experiment, placements: &[&str]) -> Chart {
    chart(experiment, &points(experiment, placements)).expect("something to show")
}

/// Whoever sees only the picture knows what was measured, of what, and how.
#[test]
fn a_chart_says_what_it_shows_and_under_which_conditions() {
    for (experiment, title, unit) in [
        (Experiment::Send, "out of the host", "Mb/s"),
        (Experiment::Receive, "into the host", "Mb/s"),
        (
            Experiment::Bidirectional,
            "both ways at equal rates",
            "Mb/s",
        ),
        (Experiment::Ping, "ping", "microseconds"),
    ] {
        let picture = drawn(&figure(experiment, &["scratch"]));
        let heading: Vec<&str> = picture.words[..2]
            .iter()
            .map(|it| it.text.as_str())
            .collect();
        assert!(heading[0].contains(title), "{heading:?}");
        for condition in [
            "simulated Tigon II",
            "timing profile default",
            "placement scratch",
            "2 BDs a sent frame",
        ] {
            assert!(heading[1].contains(condition), "{heading:?}");
        }
        assert!(picture.find("bytes of a UDP datagram").is_some());
        assert!(picture.find(unit).is_some());
    }
    let places = drawn(&figure(Experiment::Send, &PLACEMENTS));
    assert!(
        !places.words[1].text.contains("placement"),
        "{:?}",
        places.words[1]
    );
}

/// Each line has its name at its right end, and no name covers another one.
#[test]
fn lines_have_their_names_at_their_ends() {
    for placements in [&PLACEMENTS[..1], &PLACEMENTS[..]] {
        let chart = figure(Experiment::Bidirectional, placements);
        assert_eq!(chart.lines.len(), 2 + 2 * placements.len());
        let picture = drawn(&chart);
        let end = picture.shapes.iter().filter(|it| it.name == "polyline");
        let end = end
            .flat_map(|it| &it.points)
            .map(|it| it.0)
            .fold(0.0, f64::max);
        let names: Vec<&Words> = chart
            .lines
            .iter()
            .map(|line| {
                let mut all = picture.words.iter().filter(|it| it.text == line.name);
                let name = all.next().unwrap_or_else(|| panic!("no {}", line.name));
                assert!(all.next().is_none(), "{} twice", line.name);
                assert!(name.from.0 > 0.6 * end, "{name:?}");
                name
            })
            .collect();
        for (n, one) in names.iter().enumerate() {
            for other in &names[n + 1..] {
                let apart = (one.from.1 - other.from.1).abs();
                assert!(apart >= f64::from(theme::TEXT), "{one:?} {other:?}");
            }
        }
    }
}

/// Without its colour, too, each line is another: two that share a dash and a sign are of
/// another firmware, and the name is at the end.
#[test]
fn no_two_lines_look_alike() {
    let chart = figure(Experiment::Receive, &PLACEMENTS);
    let looks: BTreeSet<String> = chart
        .lines
        .iter()
        .map(|line| format!("{} {:?} {:?}", line.colour, line.stroke, line.sign))
        .collect();
    assert_eq!(looks.len(), chart.lines.len());
    let dashes = chart
        .lines
        .iter()
        .filter(|line| line.name.starts_with("parallel"));
    let dashes: BTreeSet<String> = dashes
        .map(|line| format!("{:?} {:?}", line.stroke, line.sign))
        .collect();
    assert_eq!(dashes.len(), PLACEMENTS.len());
}

/// What the paper has are points: filled where it says the number, hollow where that was
/// worked out; no line goes through any.
#[test]
fn published_figures_are_points_and_derived_ones_are_hollow() {
    let chart = figure(Experiment::Bidirectional, &["scratch"]);
    let said: Vec<Place> = chart
        .marks
        .iter()
        .flat_map(|marks| marks.points.iter().filter(|mark| !mark.derived))
        .map(|mark| mark.at)
        .collect();
    assert_eq!(
        said,
        [
            (1472.0, 938.0),
            (600.0, 1000.0),
            (1472.0, 1553.0),
            (1472.0, 1882.0)
        ]
    );
    let derived = chart.marks.iter().flat_map(|marks| &marks.points);
    assert!(derived.filter(|mark| mark.derived).count() > 5);

    let with = drawn(&chart);
    for words in [
        "printed in the paper",
        "derived from its text",
        "RELEASE",
        "Intel ASIC",
    ] {
        assert!(with.find(words).is_some(), "no {words}");
    }
    // Ours are joined by lines. A sign is closed, and its outline goes round it.
    let closed = |points: &[Place]| points.first() == points.last();
    let (signs, lines): (Vec<&Shape>, Vec<&Shape>) = with
        .shapes
        .iter()
        .filter(|it| ["polygon", "polyline"].contains(&it.name.as_str()))
        .partition(|it| it.name == "polygon" || closed(&it.points));
    let colours = chart.marks.iter().map(|marks| marks.colour.to_string());
    let colours: BTreeSet<String> = colours.collect();
    let (mut filled, mut hollow) = (0, 0);
    for sign in signs {
        if sign.name == "polyline" {
            hollow += 1;
        } else if colours.contains(&sign.fill) {
            filled += 1;
        } else {
            continue;
        }
        let at = sign.middle();
        let near = |it: &Place| (it.0 - at.0).abs() < 1.5 && (it.1 - at.1).abs() < 1.5;
        let crossed = lines.iter().flat_map(|it| &it.points).any(near);
        assert!(!crossed, "a line through {at:?}");
    }
    // The key has one of each card.
    assert_eq!(filled, said.len() + chart.marks.len());
    let derived = chart.marks.iter().flat_map(|marks| &marks.points);
    assert_eq!(hollow, derived.filter(|mark| mark.derived).count());
}

/// A window of 80 us, in which a handler with a long name ran, and the wire brought a frame
/// to its very end.
fn timeline() -> Timeline {
    let run = Run {
        cpu: Cpu::A,
        bit: 6,
        span: Span {
            start: 1000,
            end: 1800,
        },
        dispatch: 10,
        tally: Tally::default(),
    };
    let events = vec![
        Event::Run(run),
        Event::Bus {
            direction: Direction::Read,
            span: Span {
                start: 2000,
                end: 2400,
            },
            data: 2100,
        },
        Event::Receive {
            span: Span {
                start: 5000,
                end: 7040,
            },
            local: None,
            length: 1514,
            number: None,
        },
    ];
    Timeline {
        events,
        from: 0,
        to: 7040,
        shown: Span {
            start: 0,
            end: 7040,
        },
        left_out: 0,
        clock: Clock::new(88_000_000),
        handlers: BTreeMap::from([((0, 6), LONG.to_owned())]),
        send_entries: 512,
        return_entries: 2048,
        queue_entries: Vec::new(),
    }
}

const LONG: &str = "a_handler_whose_name_is_longer_than_all_others_of_this_firmware";

/// Its last mark of the time is whole, its longest name as well, and the signs are explained.
#[test]
fn an_event_graph_is_whole_and_explains_itself() {
    let title = "1472 bytes both ways & more, firmware <parallel>";
    let svg = picture::write(&timeline(), &[], title);
    let picture = Picture::read(&svg);
    assert!(picture.faults().is_empty(), "{:#?}", picture.faults());
    assert_eq!(picture.words[0].text, title);
    for words in [
        "80 µs",
        "a frame out of the host",
        "a frame into it",
        "a box:",
    ] {
        assert!(picture.find(words).is_some(), "no {words}: {svg}");
    }
    let name = picture.find(LONG).expect("the handler's name");
    let zero = picture.find("0 µs").expect("the first mark of the time");
    let middle = (zero.from.0 + zero.to.0) / 2.0;
    assert!(
        name.to.0 <= middle,
        "{name:?} reaches into the boxes, from {middle} on"
    );
}

/// The page has the same colours and the same key; no name is squeezed into a width, and the
/// time's last mark has room.
#[test]
fn the_page_of_an_event_graph_explains_itself() {
    let text = page::write(&timeline(), &[], "a <title>").expect("a page");
    for words in [
        "a &lt;title&gt;",
        "a frame out of the host",
        "a frame into it",
        "a box: one run of a handler",
        &format!("--out: {};", theme::OUT),
        &format!("\"colour\":\"{}\"", theme::GREEN),
        LONG,
    ] {
        assert!(text.contains(words), "no {words}");
    }
    let script = text.split("use strict").nth(1).expect("a script");
    let mut calls = script.split("fillText(").skip(1);
    assert!(
        calls.all(|call| arguments(call) == 3),
        "a fourth argument squeezes what is too long"
    );
    assert!(script.contains("width() - LEFT - RIGHT"));
    assert!(
        !script.contains('#') || !script.contains("\"#"),
        "a colour of its own"
    );
}

/// How many arguments a call has, from behind its opening parenthesis on.
fn arguments(call: &str) -> usize {
    let mut depth = 0;
    let mut count = 1;
    for letter in call.chars() {
        match letter {
            '(' | '[' => depth += 1,
            ')' if depth == 0 => return count,
            ')' | ']' => depth -= 1,
            ',' if depth == 0 => count += 1,
            _ => {}
        }
    }
    count
}

/// The book's drawings have the look of all others.
#[test]
fn the_drawings_of_the_book_look_the_same() {
    let handlers = BTreeMap::from([
        ((0, 6), "receive_complete".to_owned()),
        ((1, 4), LONG.to_owned()),
    ]);
    let elf = std::fs::read(stage::elf()).expect("the ELF");
    let memories = pictures::memories(&elf).expect("its sections");
    for (svg, title) in [
        (pictures::dispatch(&handlers), "Who runs what"),
        (memories, "What lies where"),
    ] {
        let picture = Picture::read(&svg);
        assert!(picture.faults().is_empty(), "{:#?}", picture.faults());
        let first = &picture.words[0].text;
        assert!(first.contains(title), "{first}");
    }
}
