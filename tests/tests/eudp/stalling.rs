//! Streams from card to card while the sender's bus stalls within transactions, and their figures in
//! `docs/eudp.md`.

use crate::page::{NEAR, figures, page};
use tigon_bench::eudp::image;
use tigon_bench::eudp::stalls::{COUNT, Posted, measure, soak};

/// One frame in ten meets a stall of 5 to 50 000 cycles. All datagrams arrive once, whole and in order,
/// at 85 % or more of the rate of frames that are stored. What the firmware says of frames that it cut
/// off, both MACs say, and so many frames are sent again.
#[test]
fn a_stream_keeps_its_rate_on_a_bus_that_stalls() {
    let image = image().unwrap_or_else(|error| panic!("{error:#}"));
    let mut off = Vec::new();
    for posted in Posted::ALL {
        let row = measure(&image, posted, COUNT).unwrap_or_else(|error| panic!("{error:#}"));
        println!("{row:?}");
        for stream in [row.stored, row.through] {
            assert!((0.08..0.13).contains(&stream.stalls), "{stream:?}");
            assert_eq!(stream.seen, [stream.aborted; 3], "{stream:?}");
        }
        assert_eq!((row.stored.through, row.stored.aborted), (0, 0));
        if posted == Posted::Single {
            assert_eq!(row.through.through, COUNT);
            assert!(row.through.aborted > COUNT / 20, "{row:?}");
        }
        assert!(row.part() >= 0.85, "{row:?}");
        let shown = figures(&page(), &format!("| {} | ", posted.name()), 2);
        let is = [row.stored.rate, row.through.rate, row.part()];
        assert_eq!(shown.len(), is.len() + 2, "{posted:?}");
        let near = |(shown, is): (&f64, &f64)| (shown - is).abs() <= NEAR * is;
        if !shown.iter().zip(&is).all(near) {
            off.push((posted, is));
        }
    }
    assert!(off.is_empty(), "the page has others: {off:?}");
}

/// The slice of `cargo xtask soak --eudp` that the tests have.
#[test]
fn frames_that_stalls_cut_in_two_are_sent_again_whole() {
    let image = image().unwrap_or_else(|error| panic!("{error:#}"));
    let aborted = soak(&image, 500).unwrap_or_else(|error| panic!("{error:#}"));
    println!("{aborted} of 500 cut off");
    assert!(aborted > 50, "{aborted}");
}
