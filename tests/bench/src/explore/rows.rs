//! Which rows of the machines' tables the schedules have taken.
//!
//! Each row is to be taken by some schedule, or is in [`NEVER`] with the reason why the firmware
//! does not take it.

use anyhow::{Result, ensure};
use frame_pipeline::{TABLES, Table};
use serde::Serialize;

/// Rows that no schedule takes, as [`name`] has them, and why. Spin takes all of them: the model has
/// more freedom than the firmware.
const NEVER: &[(&str, &str)] = &[
    (
        "SDMA SdmaFirst Arrived, not MayCut",
        "a frame is fetched in parts while the MAC has nothing and the read channel neither: what the \
         MAC could get meanwhile is fetched behind the first part",
    ),
    (
        "SDMA Sdma Arrived, MoreParts",
        "follows that row alone: of a frame that is fetched as a whole one transfer is awaited",
    ),
    (
        "RECV Idle GaveUp",
        "CPU A looks for what was given up only while it follows a frame",
    ),
    (
        "RECV Recv Grown, not MayCut",
        "CPU A looks whether a frame may be cut through before RECV hears that it has grown",
    ),
    (
        "RDMA Idle Closed",
        "a closed endpoint's buffers are forgotten with its queue, which no machine works on",
    ),
    (
        "RDMA CoarseGrainedRdma Waiting, not BufferPosted",
        "a frame without a buffer waits until RDMA has no other",
    ),
    (
        "RDMA FineGrainedRdmaDone More, not EnoughHere",
        "CPU A looks whether there is enough before RDMA hears of more",
    ),
    (
        "RDMA Aborted More",
        "CPU A does not look at a frame any more whose memory has failed, until it ends",
    ),
];

/// Schedules in which CPU A records its transitions, too, that take all other rows.
const ENOUGH: u64 = 4000;

/// In how many schedules each row was taken: by machine, by row.
#[derive(Clone, Debug, Serialize)]
pub struct Rows([Vec<u64>; 4]);

impl FromIterator<[u64; 4]> for Rows {
    /// Of the rows of each schedule, a bit each.
    fn from_iter<I: IntoIterator<Item = [u64; 4]>>(schedules: I) -> Rows {
        let mut rows = TABLES.map(|table| vec![0; table.rows.len()]);
        for taken in schedules {
            for (counts, taken) in rows.iter_mut().zip(taken) {
                for (number, count) in counts.iter_mut().enumerate() {
                    *count += taken >> number & 1;
                }
            }
        }
        Rows(rows)
    }
}

impl Rows {
    /// All rows: the machine's table, the row's number, in how many schedules it was taken.
    fn each(&self) -> impl Iterator<Item = (&'static Table, usize, u64)> {
        TABLES.into_iter().zip(&self.0).flat_map(|(table, counts)| {
            let rows = counts.iter().enumerate();
            rows.map(move |(number, count)| (table, number, *count))
        })
    }

    /// Of so many schedules in which CPU A recorded its transitions, too: checks that all rows were
    /// taken, and no others.
    ///
    /// # Errors
    /// With rows that were taken though they are in [`NEVER`]; and after [`ENOUGH`] schedules with
    /// rows that were not.
    pub fn check(&self, recorded: u64) -> Result<()> {
        let unexpected = self.unexpected();
        ensure!(
            unexpected.is_empty(),
            "taken, though it is said that no schedule can: {}",
            unexpected.join("; ")
        );
        let missing = self.missing();
        ensure!(
            missing.is_empty() || recorded < ENOUGH,
            "no schedule has taken: {}",
            missing.join("; ")
        );
        Ok(())
    }

    /// The rows that no schedule has taken, but for those that none can take.
    pub fn missing(&self) -> Vec<String> {
        self.each()
            .filter(|(.., count)| *count == 0)
            .map(|(table, number, _)| name(table, number))
            .filter(|name| !NEVER.iter().any(|(never, _)| never == name))
            .collect()
    }

    /// The rows that were taken though none can take them.
    fn unexpected(&self) -> Vec<String> {
        self.each()
            .filter(|(.., count)| *count != 0)
            .map(|(table, number, _)| name(table, number))
            .filter(|name| NEVER.iter().any(|(never, _)| never == name))
            .collect()
    }

    /// Says how many rows of each machine were taken, and which were taken least.
    pub fn print(&self) {
        for (table, counts) in TABLES.into_iter().zip(&self.0) {
            let taken = counts.iter().filter(|count| **count != 0).count();
            println!("{:5} {taken} of {} rows", table.name, counts.len());
        }
        let mut rare: Vec<_> = self.each().filter(|(.., count)| *count != 0).collect();
        rare.sort_by_key(|(.., count)| *count);
        for (table, number, count) in rare.into_iter().take(8) {
            println!("taken in {count} schedules: {}", name(table, number));
        }
        for row in self.missing() {
            println!("not taken: {row}");
        }
        println!("{} rows are known to be taken by none", NEVER.len());
    }
}

/// A row's machine, state, event and conditions.
fn name(table: &Table, number: usize) -> String {
    let row = &table.rows[number];
    let state = table.states[usize::from(row.from)].name;
    let event = table.events[usize::from(row.event)].name;
    let mut name = format!("{} {state} {event}", table.name);
    for (bit, condition) in table.conditions.iter().enumerate() {
        if row.mask >> bit & 1 == 1 {
            let not = if row.value >> bit & 1 == 1 {
                ""
            } else {
                "not "
            };
            name.push_str(&format!(", {not}{}", condition.name));
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_never_taken_is_a_row() {
        let none = Rows::from_iter([]);
        let rows: Vec<_> = none
            .each()
            .map(|(table, row, _)| name(table, row))
            .collect();
        for (never, _) in NEVER {
            let found = rows.iter().filter(|row| row == never).count();
            assert_eq!(found, 1, "{never}");
        }
        assert_eq!(none.missing().len(), rows.len() - NEVER.len());
    }

    #[test]
    fn rows_are_counted_by_schedule() {
        let all: [u64; 4] = TABLES.map(|table| (1 << table.rows.len()) - 1);
        let mut rows = Rows::from_iter([[0b101, 0, 0, 0], [0b1, 0, 0, 0]]);
        assert_eq!(rows.0[0][..3], [2, 0, 1]);
        rows = Rows::from_iter([all]);
        assert!(rows.missing().is_empty());
        assert_eq!(rows.unexpected().len(), NEVER.len());
    }

    /// A few schedules need not take all rows; many must, and none may take what is never taken.
    #[test]
    fn rows_that_are_not_taken_are_refused() {
        let mut taken: [u64; 4] = TABLES.map(|table| (1 << table.rows.len()) - 1);
        for (row, bits) in TABLES.into_iter().zip(&mut taken) {
            for number in 0..row.rows.len() {
                if NEVER.iter().any(|(never, _)| *never == name(row, number)) {
                    *bits &= !(1 << number);
                }
            }
        }
        assert!(Rows::from_iter([taken]).check(ENOUGH).is_ok());
        let [.., rdma] = &mut taken;
        *rdma &= !1;
        let rows = Rows::from_iter([taken]);
        assert!(rows.check(ENOUGH - 1).is_ok());
        let refused = rows.check(ENOUGH).map_err(|error| error.to_string());
        let expected = "no schedule has taken: RDMA Idle Waiting, BufferPosted, Sumless";
        assert_eq!(refused, Err(expected.to_owned()));
        let all = TABLES.map(|table| (1 << table.rows.len()) - 1);
        assert!(Rows::from_iter([all]).check(1).is_err());
    }
}
