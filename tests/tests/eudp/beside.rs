//! An endpoint and the driver that both never rest, and their figures in `docs/eudp.md`.

use crate::page::{NEAR, figures, page};
use tigon_bench::eudp::beside::{Row, SIZES, Way, measure};
use tigon_bench::eudp::image;

/// BDs that CPU B takes in a run, so that many of the driver's frames leave in a row.
const RUN: u32 = 16;
/// What an endpoint may have in a row: its turn ends behind a frame.
const TURN: u32 = RUN + 2;
/// A part of a share by which it may differ from what is said.
const SHARE: f64 = 0.1;

fn is_near(one: f64, other: f64, part: f64) -> bool {
    (one - other).abs() <= part * other
}

/// What is on the page is measured.
fn measured(way: Way, bytes: usize) -> Row {
    let image = image().unwrap_or_else(|error| panic!("{error:#}"));
    let row = measure(&image, way, bytes).unwrap_or_else(|error| panic!("{error:#}"));
    println!("{row:?}\n{:.3?}, {:.1?} Mb/s", row.shares(), row.rates());
    let begins = format!("| {} | {} | ", way.name(), bytes + 42);
    let shown = figures(&page(), &begins, 3);
    assert_eq!(shown.len(), row.rates().len(), "{begins}");
    for (shown, is) in shown.iter().zip(row.rates()) {
        assert!(
            (shown - is).abs() <= (NEAR * is).max(1.0),
            "{shown}: {is:.1}"
        );
    }
    row
}

/// Together they fill the wire, in turns of sixteen frames: their shares are equal.
#[test]
fn long_frames_of_endpoint_and_driver_fill_the_wire_together() {
    let row = measured(Way::Out, SIZES[0]);
    let [endpoint, driver, .., sum] = row.rates();
    assert!(is_near(endpoint, driver, 0.01) && is_near(sum, driver, 0.01));
    assert_eq!(row.both.longest[1], RUN, "{row:?}");
    assert!((RUN..=TURN).contains(&row.both.longest[0]), "{row:?}");
    let [endpoint, driver] = row.shares();
    assert!(is_near(endpoint, 0.5, SHARE) && is_near(driver, 0.5, SHARE));
}

/// A process that rings for each short datagram keeps CPU B busy. All the same both have their turns.
#[test]
fn short_frames_do_not_keep_the_driver_back() {
    let row = measured(Way::Out, SIZES[1]);
    assert!(row.both.longest[0] <= TURN, "{row:?}");
    let shares = row.shares();
    assert!(shares.iter().all(|share| *share > 0.4), "{row:?}");
}

/// Of what comes in turn, both get an equal part, whether the card keeps up or not.
#[test]
fn endpoint_and_driver_get_equal_parts_of_what_comes() {
    for bytes in SIZES {
        let row = measured(Way::In, bytes);
        let [endpoint, driver] = row.shares();
        assert!(is_near(endpoint, 0.5, SHARE) && is_near(driver, 0.5, SHARE));
        let [endpoint, driver] = row.delivered();
        assert!(is_near(endpoint, driver, SHARE), "{row:?}");
        assert!(is_near(row.alone[0].frames[0], row.alone[0].offered[0], 0.01) || bytes < 100);
    }
}
