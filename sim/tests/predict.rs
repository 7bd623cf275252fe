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

/// The board whose wire and bus are ten and eight times as fast.
fn ten_gigabit() -> (Board, Parameters) {
    let toml = include_str!("../../boards/tigon2/beyond-4.toml");
    let board = Board::from_toml(toml).expect("a board");
    let parameters = Parameters::from_toml(toml, "default").expect("a profile");
    (board, parameters)
}

/// Boards with their profiles: the chip's own, the same on the paper's bus, and a faster one.
fn worlds() -> Vec<(String, Board, Parameters)> {
    let toml = include_str!("../../boards/tigon2/tigon2.toml");
    let mut worlds: Vec<_> = Parameters::profiles(toml)
        .expect("profiles")
        .into_iter()
        .map(|name| {
            let parameters = Parameters::from_toml(toml, &name).expect("a profile");
            (name, Board::default(), parameters)
        })
        .collect();
    let slow = Board::with_bus(32, 33);
    worlds.push(("32 bits, 33 MHz".into(), slow, Parameters::default()));
    let (board, parameters) = ten_gigabit();
    worlds.push(("10 Gb/s".into(), board, parameters));
    assert_eq!(worlds.len(), 6);
    worlds
}

/// By how much predictions are wrong.
#[derive(Default)]
struct Errors {
    sum: f64,
    worst: f64,
    count: u32,
}

impl Errors {
    fn add(&mut self, predicted: f64, is: f64) {
        let error = (predicted / is - 1.0).abs();
        self.sum += error;
        self.worst = self.worst.max(error);
        self.count += 1;
    }

    /// At most 2 % in the mean, and 5 % each.
    fn check(self, name: &str) {
        let mean = 100.0 * self.sum / f64::from(self.count);
        let worst = 100.0 * self.worst;
        eprintln!("{name}: mean error {mean:.2} %, worst {worst:.2} %");
        assert!(mean <= 2.0 && worst <= 5.0, "{name}: {mean} %, {worst} %");
    }
}

#[test]
fn the_model_predicts_latencies_that_were_not_measured() {
    for (name, board, parameters) in worlds() {
        let at = |length| measured(board.clone(), &parameters, Cut::COARSE, length);
        let fitted = [60, 1514].map(|length| (length, at(length)));
        let model = Model::new(&board, &parameters).fitted(&fitted);
        let mut errors = Errors::default();
        for length in sizes() {
            let lead = model.lead(length, PART as usize);
            let cut = Cut {
                lead: lead as u32,
                part: PART,
                watched: true,
            };
            errors.add(model.coarse(length), at(length));
            let fine = measured(board.clone(), &parameters, cut, length);
            errors.add(model.fine(length, lead, PART as usize), fine);
        }
        errors.check(&name);
    }
}

/// With half of the first part that the model finds, frames are cut off on each board, and with all
/// of it none is.
#[test]
fn half_a_lead_is_too_little() {
    let narrow = Board::with_bus(32, 66);
    let worlds = [
        (Board::default(), Parameters::default()),
        (narrow, Parameters::default()),
        ten_gigabit(),
    ];
    for (board, parameters) in worlds {
        let model = Model::new(&board, &parameters);
        let lead = model.lead(9014, PART as usize) as u32;
        let aborted = [lead, lead / 2].map(|lead| {
            let cut = Cut { lead, ..Cut::FINE };
            let report = run(board.clone(), parameters.clone(), cut, 9014, COUNT, 7);
            let report = report.expect("all frames leave");
            assert_eq!(report.wrong, 0);
            report.aborted
        });
        eprintln!("{}: {lead} bytes, {aborted:?} cut off", board.name);
        assert!(aborted[0] == 0 && aborted[1] > 0, "{lead}: {aborted:?}");
    }
}

/// Streams at sizes that were not fitted: the wire decides on the board's own bus, the bus on the narrow
/// one. Fine and coarse are the same, but for the first frame.
#[test]
fn the_slowest_layer_decides_about_a_stream() {
    for (name, board, parameters) in worlds() {
        let model = Model::new(&board, &parameters);
        let mut errors = Errors::default();
        for length in sizes() {
            let predicted = model.bandwidth(length);
            let lead = model.lead(length, PART as usize) as u32;
            for lead in [u32::MAX, lead] {
                let cut = Cut { lead, ..Cut::FINE };
                let is = stream(board.clone(), parameters.clone(), cut, length, 3);
                let is = is.expect("all frames leave");
                eprintln!("{name}, {length}: {predicted:.1} for {is:.1} Mb/s");
                errors.add(predicted, is);
            }
        }
        errors.check(&format!("{name}, streams"));
    }
}
