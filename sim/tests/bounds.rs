//! Compares the engines with the published bounds of the timing model: `timing.md`, section 4.

use tigon2_model::Board;
use tigon2_sim::timing::Parameters;
use tigon2_sim::workload::bound::{Demand, run};

/// (datagram, BDs of a frame, pairs a second with one channel at a time).
const PUBLISHED: [(usize, u32, f64); 6] = [
    (1472, 2, 69_800.0),
    (1472, 1, 78_700.0),
    (400, 2, 142_200.0),
    (400, 1, 184_600.0),
    (18, 2, 180_900.0),
    (18, 1, 255_900.0),
];

#[test]
fn engine_bounds_are_within_three_percent_of_the_published_ones() {
    for (datagram, fragments, published) in PUBLISHED {
        let demand = Demand {
            datagram,
            fragments,
            return_bds: 1,
            one_at_a_time: true,
        };
        let bound = run(
            Board::default(),
            Parameters::default(),
            demand,
            20_000_000,
            1,
        )
        .expect("frames move");
        let ratio = bound.pairs_per_s / published;
        println!("{datagram} B, {fragments} BDs: {bound:?}, ratio {ratio:.3}");
        assert!(
            (0.97..=1.03).contains(&ratio),
            "{datagram} B, {fragments} BDs: {:.0} pairs/s, {ratio:.3} of the published {published}",
            bound.pairs_per_s
        );
    }
}
