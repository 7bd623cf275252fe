//! Runs of the sending side, written by hand.

use super::super::script::{self, steps};
use super::*;
use frame_pipeline::{sdma, send};

const TABLES: [Table; 2] = [sdma::TABLE, send::TABLE];

fn row(machine: usize, from: &str, event: &str, action: &str) -> String {
    script::row(&TABLES[machine], from, event, action)
}

/// A frame that is cut through, part by part, is what was posted.
#[test]
fn a_run_of_the_tables_finds_nothing() {
    let text = [
        "post 1 0 0".to_owned(),
        row(0, "Idle", "Posted", "FetchParts"),
        "arrive".to_owned(),
        row(0, "SdmaFirst", "Arrived", "OfferEarly"),
        row(1, "Idle", "OfferedEarly", "QueueEarly"),
        "begin".to_owned(),
        "arrive".to_owned(),
        row(0, "SdmaRest", "Arrived", "Pass"),
        row(1, "Watched", "PartArrived", "Certify"),
        "advance".to_owned(),
        "arrive".to_owned(),
    ]
    .join("\n");
    assert_eq!(replay(TABLES, &steps(&text), 3), Ok(Vec::new()));
}

/// A doorbell that is cleared behind the look at its mailbox loses what was posted between.
#[test]
fn a_doorbell_that_is_cleared_last_is_lost() {
    let run = |answer: &str| {
        let fetched = row(0, "Idle", "Posted", "FetchWhole");
        format!("post 0 0 0\n{answer}\n{fetched}")
    };
    let right = "clear 0\npost 0 0 0\nlook 0";
    assert_eq!(replay(TABLES, &steps(&run(right)), 3), Ok(Vec::new()));
    let found = replay(TABLES, &steps(&run("look 0\npost 0 0 0\nclear 0")), 3);
    let found = found.expect("it is followed");
    assert!(found.contains(&Finding::Lost(1)), "{found:?}");
}

/// Tables whose deadline is never set send old bytes, if the run makes the bus late.
#[test]
fn a_late_bus_shows_a_missing_deadline() {
    let run = |early: &str| {
        [
            "post 1 0 0".to_owned(),
            row(0, "Idle", "Posted", "FetchParts"),
            "arrive".to_owned(),
            row(0, "SdmaFirst", "Arrived", "OfferEarly"),
            early.to_owned(),
            "begin\nadvance\nadvance\nend".to_owned(),
        ]
        .join("\n")
    };
    let early = row(1, "Idle", "OfferedEarly", "QueueEarly");
    // The right ones do not let it end: their deadline is served before.
    let right = replay(TABLES, &steps(&run(&early)), 3);
    assert!(right.is_err_and(|error| error.step == Step::Ended));
    let mut wrong = TABLES;
    let mut rows = send::TABLE.rows.to_vec();
    for row in &mut rows {
        if row.action == send::Action::QueueEarly as u8 {
            row.action = send::Action::Queue as u8;
        }
    }
    wrong[1].rows = rows.leak();
    let found = replay(wrong, &steps(&run(&early)), 3).expect("it is followed");
    assert!(found.contains(&Finding::WrongFrame), "{found:?}");
}
