//! The analytic model against the timed card, at sizes that were not used to fit it.

use tigon2_model::Board;
use tigon2_sim::timing::Parameters;
use tigon2_sim::workload::cut_through::{Cut, run, stream};
use tigon2_sim::workload::predict::Model;

/// Frames of a measurement: latencies of the bus vary.
const COUNT: u32 = 60;
const PART: u32 = 512;

fn measured(board: Board, parameters: &Parameters, cut: Cut, length: usize) -> f64 {
    let report = run(board, parameters.clone(), cut, length, COUNT, 7).expect("all frames leave");
    assert_eq!((report.wrong, report.aborted), (0, 0), "{length}");
    report.latencies.iter().sum::<u64>() as f64 / f64::from(COUNT)
}

/// 30 sizes from the smallest frame to the largest jumbo one, none of which is fitted.
fn sizes() -> impl Iterator<Item = usize> {
    (0..30).map(|step| 67 + step * step * 10 + step * 17)
}

#[test]
fn the_model_predicts_latencies_that_were_not_measured() {
    let toml = include_str!("../../boards/tigon2/tigon2.toml");
    let mut slow = Board::default();
    slow.pci.bits = 32;
    slow.pci.mhz = 33;
    let mut worlds: Vec<(String, Board, Parameters)> = Parameters::profiles(toml)
        .expect("profiles")
        .into_iter()
        .map(|name| {
            let parameters = Parameters::from_toml(toml, &name).expect("a profile");
            (name, Board::default(), parameters)
        })
        .collect();
    worlds.push(("32 bits, 33 MHz".into(), slow, Parameters::default()));
    assert_eq!(worlds.len(), 5);
    for (name, board, parameters) in worlds {
        let at = |length| measured(board.clone(), &parameters, Cut::COARSE, length);
        let fitted = [60, 1514].map(|length| (length, at(length)));
        let model = Model::new(&board, &parameters).fitted(&fitted);
        let (mut sum, mut worst, mut count) = (0.0, 0.0f64, 0);
        for length in sizes() {
            let lead = model.lead(length, PART as usize);
            let cut = Cut {
                lead: lead as u32,
                part: PART,
                watched: true,
            };
            let fine = model.fine(length, lead, PART as usize);
            for (predicted, is) in [
                (model.coarse(length), at(length)),
                (fine, measured(board.clone(), &parameters, cut, length)),
            ] {
                let error = (predicted / is - 1.0).abs();
                sum += error;
                worst = worst.max(error);
                count += 1;
                assert!(error <= 0.05, "{name}, {length}: {predicted} for {is}");
            }
        }
        let mean = 100.0 * sum / f64::from(count);
        eprintln!(
            "{name}: mean error {mean:.2} %, worst {:.2} %",
            100.0 * worst
        );
        assert!(mean <= 2.0, "{name}: {mean} %");
    }
}

/// Streams: the wire decides on the board's own bus, the bus on the narrow one. Fine and coarse are
/// the same, but for the first frame.
#[test]
fn the_slowest_layer_decides_about_a_stream() {
    for (bits, mhz, limit) in [(64, 66, 984.0), (32, 33, 700.0)] {
        let mut board = Board::default();
        board.pci.bits = bits;
        board.pci.mhz = mhz;
        let parameters = Parameters::default();
        let model = Model::new(&board, &parameters);
        for length in [600, 1514, 4000, 9014] {
            let predicted = model.bandwidth(length);
            let lead = model.lead(length, PART as usize) as u32;
            for lead in [u32::MAX, lead] {
                let cut = Cut { lead, ..Cut::FINE };
                let is = stream(board.clone(), parameters.clone(), cut, length, 3);
                let is = is.expect("all frames leave");
                let error = (predicted / is - 1.0).abs();
                eprintln!("{bits} bits, {length}: {predicted:.1} for {is:.1} Mb/s");
                assert!(error <= 0.05, "{bits} bits, {length}: {predicted} for {is}");
                assert!(length != 1514 || is <= limit + 1.0, "{is}");
            }
        }
    }
}
