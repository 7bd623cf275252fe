//! Runs of the receiving side, written by hand.

use super::super::script::{self, steps};
use super::*;
use frame_pipeline::{rdma, recv};

const TABLES: [Table; 2] = [recv::TABLE, rdma::TABLE];

fn row(machine: usize, from: &str, event: &str, action: &str) -> String {
    script::row(&TABLES[machine], from, event, action)
}

fn found(tables: [Table; 2], lines: &[String]) -> Vec<Finding> {
    let replayed = replay(tables, None, &steps(&lines.join("\n")));
    replayed.unwrap_or_else(|error| panic!("{error}"))
}

/// A frame that is cut through, part by part, is in its buffer.
#[test]
fn a_run_of_the_tables_finds_nothing() {
    let lines = [
        "buffer 0\nframe 0".to_owned(),
        row(0, "Idle", "Begun", "Follow"),
        row(0, "Recv", "Grown", "Open"),
        row(1, "Idle", "Opened", "WriteChunk"),
        "part\nwrite-end".to_owned(),
        row(1, "FineGrainedRdma", "Written", "Nothing"),
        "part".to_owned(),
        row(0, "RecvThrough", "Grown", "TellMore"),
        row(1, "FineGrainedRdmaDone", "More", "WriteChunk"),
        "ended 1 0 1".to_owned(),
    ];
    assert_eq!(found(TABLES, &lines), []);
}

/// Memory that is gone for a moment gives the buffer back with an error.
#[test]
fn a_transfer_that_fails_completes_its_buffer_with_an_error() {
    let lines = [
        "buffer 1\nframe 1\nended 1 1 1".to_owned(),
        row(0, "Idle", "Ended", "QueueWhole"),
        row(1, "Idle", "Waiting", "WriteWhole"),
        "write-fail".to_owned(),
    ];
    assert_eq!(found(TABLES, &lines), []);
}

/// Tables that do not look at the CRC of a frame that is cut through complete it.
#[test]
fn a_damaged_frame_shows_a_missing_look_at_the_crc() {
    let lines = [
        "buffer 0\nframe 0".to_owned(),
        row(0, "Idle", "Begun", "Follow"),
        row(0, "Recv", "Grown", "Open"),
        row(1, "Idle", "Opened", "WriteChunk"),
        "write-end\nended 0 0 0".to_owned(),
    ];
    assert_eq!(found(TABLES, &lines), []);
    let mut wrong = TABLES;
    let mut rows = recv::TABLE.rows.to_vec();
    for row in &mut rows {
        if row.action == recv::Action::TellBad as u8 {
            row.action = recv::Action::TellLast as u8;
        }
    }
    wrong[0].rows = rows.leak();
    assert_eq!(found(wrong, &lines), [Finding::WrongBytes(0)]);
}

/// A run that the card does not do is refused.
#[test]
fn a_transfer_that_nobody_has_queued_is_none() {
    let refused = replay(TABLES, None, &steps("buffer 0\nframe 0\nwrite-end"));
    assert!(refused.is_err_and(|error| error.number == 2));
}

/// A frame that the MAC gives up leaves its buffer posted, and the next one is in it.
#[test]
fn a_frame_that_is_given_up_is_none() {
    let lines = [
        "buffer 0\nframe 0".to_owned(),
        row(0, "Idle", "Begun", "Follow"),
        row(0, "Recv", "Grown", "Open"),
        row(1, "Idle", "Opened", "WriteChunk"),
        "write-end\ngive-up\nframe 0\nended 1 0 1".to_owned(),
    ];
    assert_eq!(found(TABLES, &lines), []);
    // Who looks at it behind the next one's end takes that for its own.
    let late = replay(TABLES, Some(RECV), &steps(&lines.join("\n")));
    let late = late.expect("it is followed");
    assert!(late.contains(&Finding::WrongBytes(0)), "{late:?}");
}
