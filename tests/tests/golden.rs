//! Compares simulated points of checked-in firmware images with `tests/golden/bench.json`.
//!
//! The images are files, so only a change of the simulator, the driver or the board file can
//! change a digit. `cargo xtask bench --golden` regenerates images and table.

use testbed::paths::board_file;
use tigon_bench::simulated::golden;

fn read(path: &std::path::Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_golden_images_give_their_golden_points() {
    let table = read(&golden::folder().join("bench.json"));
    let table = String::from_utf8(table).expect("text");
    let images: Vec<serde_json::Value> = serde_json::from_str(&table).expect("JSON");
    assert!(!images.is_empty());
    let board = board_file().expect("the board file");
    let measured: Vec<_> = images
        .iter()
        .map(|image| {
            let firmware = image["firmware"].as_str().expect("a name");
            let bytes = read(&golden::image_file(firmware));
            golden::points(&board, firmware, &bytes).expect("the points")
        })
        .collect();
    let text = golden::text(&measured).expect("JSON");
    for (number, (line, golden)) in text.lines().zip(table.lines()).enumerate() {
        assert_eq!(
            line,
            golden,
            "bench.json, line {}: if simulator, driver or board were meant to change, \
             `cargo xtask bench --golden` writes it anew",
            number + 1
        );
    }
    assert_eq!(text, table);
}
