//! The analytic model beside the firmware: what a datagram takes from the call to the end on the wire.
//!
//! ```text
//!   stored        o  + max(fetch(data), h) + wire(frame)
//!   cut through   o' + fetch(data of the first part) + wire(frame)
//! ```
//!
//! The headers are the firmware's and not fetched: it stores them while the data comes, which takes
//! `h`. What firmware and library take for each datagram is measured: `o` at 1472 bytes, whose data
//! takes longer than the headers, `h` at 67, whose data does not, and `o'` at 6200, as nothing
//! shorter than 4 KB is cut through. All else is arithmetic.

use eudp::{Checksum, CutThrough};
use tigon_bench::eudp::Bench;
use tigon_bench::eudp::boards::{World, worlds};
use tigon2_model::Board;
use tigon2_sim::workload::predict::Model;

use crate::card::image;

/// Bytes of a frame around its data.
const HEADERS: usize = 42;
/// Datagrams of each size.
const COUNT: u32 = 60;
/// Bytes of a first part; the parts behind it are faster than the wire, whatever they have.
const LEAD: u32 = 3584;
/// What the overheads are taken from.
const FITTED: [usize; 2] = [67, 1472];
const FITTED_CUT: usize = 6200;

/// Sizes of which none was fitted: frames of 1500 bytes, then longer ones.
const SHORT: [usize; 15] = [
    83, 131, 190, 251, 333, 404, 487, 555, 640, 733, 851, 977, 1100, 1234, 1401,
];
const LONG: [usize; 15] = [
    2200, 2555, 3001, 3333, 3777, 4123, 4600, 5051, 5555, 6007, 6500, 7077, 7654, 8200, 8970,
];

/// Those of frames that are cut through: what comes behind the first part is worth it.
const CUT: [usize; 15] = [
    5051, 5300, 5555, 5800, 6007, 6250, 6500, 6800, 7077, 7350, 7654, 7900, 8200, 8555, 8970,
];

/// Predicted and measured microseconds.
type Points = Vec<(usize, f64, f64)>;

fn measure(bench: &mut Bench, bytes: usize) -> f64 {
    let time = bench.out(bytes, COUNT);
    time.unwrap_or_else(|error| panic!("{bytes} bytes: {error:#}"))
}

fn start(image: &[u8], world: &World, cut: CutThrough, mtu: u32) -> Bench {
    let bench = world.start(image, (cut, Checksum::None, mtu));
    bench.unwrap_or_else(|error| panic!("{error:#}"))
}

/// What is arithmetic of a datagram of which `fetched` bytes are there when its frame leaves, and for
/// which CPU B works so many microseconds meanwhile.
fn arithmetic(model: &Model, fetched: usize, meanwhile: f64, bytes: usize) -> f64 {
    let fetch = model.fetch(fetched) / 1000.0;
    fetch.max(meanwhile) + model.wire(bytes + HEADERS) / 1000.0
}

/// Frames that leave when they are whole.
fn stored(image: &[u8], world: &World, model: &Model) -> Points {
    let mut short = start(image, world, CutThrough::Off, 1500);
    let mut long = start(image, world, CutThrough::Off, 9000);
    let [small, large] = FITTED.map(|bytes| measure(&mut short, bytes));
    let overhead = large - arithmetic(model, FITTED[1], 0.0, FITTED[1]);
    let headers = small - overhead - model.wire(FITTED[0] + HEADERS) / 1000.0;
    println!("{overhead:.2} us for each, {headers:.2} us for its headers");
    let fetched = FITTED.map(|bytes| model.fetch(bytes) / 1000.0);
    assert!(
        fetched[0] <= headers && headers <= fetched[1],
        "{fetched:?}"
    );
    let mut points = Points::new();
    for (bench, sizes) in [(&mut short, SHORT), (&mut long, LONG)] {
        points.extend(sizes.map(|bytes| {
            let predicted = overhead + arithmetic(model, bytes, headers, bytes);
            (bytes, predicted, measure(bench, bytes))
        }));
    }
    points
}

/// Frames that leave when their first part is there.
fn cut(image: &[u8], world: &World, model: &Model) -> Points {
    let mut bench = start(image, world, CutThrough::Lead(LEAD), 9000);
    let fine = |bytes| arithmetic(model, LEAD as usize - HEADERS, 0.0, bytes);
    let overhead = measure(&mut bench, FITTED_CUT) - fine(FITTED_CUT);
    println!("{overhead:.2} us for each that is cut through");
    let point = |bytes| (bytes, overhead + fine(bytes), measure(&mut bench, bytes));
    let points = CUT.into_iter().map(point).collect();
    let [through, aborted] = bench.cuts().unwrap_or_else(|error| panic!("{error:#}"));
    assert_eq!(through, COUNT * (CUT.len() as u32 + 1));
    // A stall of the bus may cut one off, which is sent again whole.
    assert!(100 * aborted <= through, "{aborted} of {through}");
    points
}

fn judge(name: &str, points: &Points) {
    let mut errors = Vec::new();
    for (bytes, predicted, is) in points {
        let error = (predicted / is - 1.0).abs();
        println!(
            "{name}, {bytes}: {predicted:.2} for {is:.2} us, {:.2} %",
            100.0 * error
        );
        errors.push(error);
    }
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    let worst = errors.iter().copied().fold(0.0, f64::max);
    println!(
        "{name}: mean {:.2} %, worst {:.2} %",
        100.0 * mean,
        100.0 * worst
    );
    assert!(mean <= 0.02 && worst <= 0.05, "{name}: {mean}, {worst}");
}

#[test]
fn the_model_predicts_the_firmwares_latencies() {
    let image = image();
    let worlds = worlds().unwrap_or_else(|error| panic!("{error:#}"));
    assert_eq!(worlds.len(), 4 + 3, "profiles, and slower buses");
    for world in worlds {
        let model = Model::new(&world.board, &world.parameters);
        let points = stored(&image, &world, &model);
        judge(&format!("{}, stored", world.name), &points);
        if world.board == Board::default() {
            let points = cut(&image, &world, &model);
            judge(&format!("{}, cut through", world.name), &points);
        }
    }
}
