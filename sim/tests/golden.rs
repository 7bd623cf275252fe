//! Compares the model's reference numbers with `sim/golden/model.txt`, every digit.

use std::collections::BTreeMap;
use tigon2_model::Board;
use tigon2_sim::timing::Parameters;
use tigon2_sim::timing::variation::variations;
use tigon2_sim::workload::model_table::{Row, golden_text, rows};

const BOARD: &str = include_str!("../../boards/tigon2/tigon2.toml");
const GOLDEN: &str = include_str!("../golden/model.txt");

fn table(board: &str) -> Vec<Row> {
    let parameters = Parameters::from_toml(board, "default").expect("a profile");
    let board = Board::from_toml(board).expect("a board");
    rows(&board, &parameters).expect("the engines move frames")
}

/// Each profile of the board file, on every machine alike.
#[test]
fn the_model_gives_its_golden_numbers() {
    let text = golden_text(BOARD).expect("the engines move frames");
    for (line, golden) in text.lines().zip(GOLDEN.lines()) {
        assert_eq!(
            line, golden,
            "sim/golden/model.txt says otherwise: if the model was meant to change, \
             `cargo xtask bench --golden` writes it anew"
        );
    }
    assert_eq!(text.lines().count(), GOLDEN.lines().count());
}

/// No figure of the board file is without effect: with any one of them changed, at least
/// one number of the table is another one.
#[test]
fn any_changed_parameter_breaks_the_golden_table() {
    let golden = table(BOARD);
    let mut unseen = BTreeMap::new();
    for variation in variations(BOARD) {
        let changed = table(&variation.board);
        let differs = golden.iter().zip(&changed).any(|(a, b)| a != b);
        if !differs {
            unseen.insert(variation.key, variation.to);
        }
    }
    assert!(unseen.is_empty(), "changed without effect: {unseen:?}");
}
