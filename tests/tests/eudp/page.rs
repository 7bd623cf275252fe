//! The figures in `docs/eudp.md` are those of the bench.

use testbed::paths;
use tigon_bench::eudp::boards::worlds;
use tigon_bench::eudp::shares::measure;
use tigon_bench::eudp::{Latency, STREAMS, WAYS, bandwidths, image, latencies};
use tigon2_sim::timing::Parameters;

/// A part by which a figure may differ: the page was made by one compiler's firmware.
pub const NEAR: f64 = 0.1;
/// Microseconds by which it may: between two looks of CPU A's at what arrives.
const LOOKS: f64 = 2.0;

pub fn page() -> String {
    std::fs::read_to_string(paths::root().join("docs/eudp.md")).expect("the page")
}

/// The figures of the page's row that begins so.
pub fn figures(page: &str, begins: &str, skipped: usize) -> Vec<f64> {
    let line = page.lines().find(|line| line.starts_with(begins));
    let line = line.unwrap_or_else(|| panic!("no row {begins}"));
    let cells = line.split('|').skip(skipped);
    cells.filter_map(|cell| cell.trim().parse().ok()).collect()
}

/// Mb/s of data that the wire has time for, in frames or in fragments.
fn limit(bytes: usize, mtu: usize) -> f64 {
    // Ethernet's header, CRC, preamble and gap, and the IP header.
    const AROUND: usize = 14 + 4 + 8 + 12 + 20;
    let (room, payload) = (mtu - 20, bytes + 8);
    let frames = if payload <= room {
        1
    } else {
        payload.div_ceil(room & !7)
    };
    1000.0 * bytes as f64 / (payload + frames * AROUND) as f64
}

/// And from 1472 bytes up at least 98 % of what the wire has time for, without checksums and with them.
#[test]
fn the_page_has_the_streams_of_the_bench() {
    let image = image().unwrap_or_else(|error| panic!("{error:#}"));
    let measured = bandwidths(&image, &STREAMS, 100).unwrap_or_else(|error| panic!("{error:#}"));
    for row in measured {
        let shown = figures(&page(), &format!("| {} | {} | ", row.bytes, row.mtu), 3);
        let is: Vec<f64> = row.out.into_iter().chain(row.into).collect();
        assert_eq!(shown.len(), is.len(), "{row:?}");
        let [none, full, _] = row.out;
        let wire = limit(row.bytes, row.mtu as usize);
        for rate in [none, full].into_iter().chain(row.into) {
            let is_met = row.bytes < 1472 || rate >= 0.98 * wire;
            assert!(is_met, "{row:?}: the wire has {wire:.0}");
        }
        for (shown, is) in shown.iter().zip(is) {
            assert!(
                (shown - is).abs() <= (NEAR * is).max(1.0),
                "{row:?}: {shown}"
            );
        }
    }
}

#[test]
fn the_page_has_where_the_time_goes() {
    let image = image().unwrap_or_else(|error| panic!("{error:#}"));
    for (bytes, mtu) in WAYS {
        let way = measure(&image, bytes, mtu).unwrap_or_else(|error| panic!("{error:#}"));
        for (name, side) in ["sends", "receives"].iter().zip(way.sides) {
            let shown = figures(&page(), &format!("| {bytes} | {mtu} | {name} | "), 4);
            let is = [
                side.host, side.cpu_a, side.cpu_b, side.bus, side.wire, way.whole,
            ];
            assert_eq!(shown.len(), is.len(), "{bytes} bytes, {name}");
            for (shown, is) in shown.iter().zip(is) {
                assert!(
                    (shown - is).abs() <= LOOKS.max(NEAR * is),
                    "{shown}: {is:.1}"
                );
            }
        }
    }
}

/// And at least 96 % of what the bus has time for go out and come in.
#[test]
fn the_page_has_the_slower_buses() {
    let image = image().unwrap_or_else(|error| panic!("{error:#}"));
    let mut missed = Vec::new();
    for world in worlds().unwrap_or_else(|error| panic!("{error:#}")) {
        let row = world.measure(&image, 100);
        let row = row.unwrap_or_else(|error| panic!("{error:#}"));
        let shown = figures(&page(), &format!("| {} | ", row.world), 2);
        let streams = row.streams.iter();
        let rates = streams.flat_map(|stream| stream.out.iter().chain(&stream.into));
        let is: Vec<f64> = row.one_way.iter().chain(rates).copied().collect();
        println!("{}: {is:.1?}", row.world);
        assert_eq!(shown.len(), is.len(), "{}", row.world);
        for (shown, is) in shown.iter().zip(is) {
            let near = (NEAR * is).max(LOOKS);
            assert!((shown - is).abs() <= near, "{}: {is:.1}", row.world);
        }
        for stream in row.streams {
            let ([none, full, most], [into, most_in]) = (stream.out, stream.into);
            let is_met = none.min(full) >= 0.96 * most && into >= 0.96 * most_in;
            if world.parameters == Parameters::default() && !is_met {
                missed.push((row.world.clone(), stream));
            }
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

fn cells(row: &Latency) -> Vec<f64> {
    let all = row.out.iter().chain(&row.into).copied();
    all.chain(row.one_way()).collect()
}

#[test]
fn the_page_has_the_latencies_of_the_bench() {
    let page = page();
    let image = image().unwrap_or_else(|error| panic!("{error:#}"));
    let measured = latencies(
        &image,
        &[
            (1, 1500),
            (400, 1500),
            (1472, 1500),
            (4000, 9000),
            (8972, 9000),
        ],
    );
    let measured = measured.unwrap_or_else(|error| panic!("{error:#}"));
    for row in &measured {
        println!("{}: {:.1?}", row.bytes, cells(row));
    }
    for row in measured {
        let begins = format!("| {} | ", row.bytes);
        let cells = cells(&row);
        let figures = |line: &str| -> Vec<f64> {
            let cells = line.split('|').skip(2);
            cells.filter_map(|cell| cell.trim().parse().ok()).collect()
        };
        // Other tables have rows of these bytes, too.
        let mut rows = page.lines().filter(|line| line.starts_with(&begins));
        let line = rows.find(|line| figures(line).len() == cells.len());
        let line = line.unwrap_or_else(|| panic!("no row of {} bytes", row.bytes));
        for (shown, cell) in figures(line).iter().zip(cells) {
            assert!(
                (shown - cell).abs() <= LOOKS.max(NEAR * cell),
                "{line}: {cell:.1}"
            );
        }
    }
}
