//! A run that Spin has found, as a schedule of the simulated card.
//!
//! Spin refutes tables by a run of its model: which row was taken, when a part arrived, when the MAC
//! sent it. Here the same tables drive the registers of the card's model in the same order: a part
//! is fetched by the read channel when the run says so, and the MAC begins a frame, comes to its
//! next part, and ends it when the run says so. What is wrong with the tables shows on the wire, in
//! the process's memory, or in what is left undone.
//!
//! ```text
//!   run of Spin ──► Step, Step, ... ──► tables, walked ──► read channel, TxPrd, R[200] of the card
//!                                              │
//!        Finding ◄── frames on the wire, completions
//! ```
//!
//! The wire cannot wait within a frame, so the card's bus is fast here: all parts of a frame arrive
//! while the MAC sends one of them.

mod world;

use frame_pipeline::Table;
use thiserror::Error;
use world::World;

/// A step of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A machine takes a row: 0 for SDMA, 1 for SEND.
    Row {
        /// Which machine.
        machine: usize,
        /// The row of its table.
        row: usize,
    },
    /// The host posts a descriptor.
    Posted {
        /// Whether its frame has several parts.
        long: bool,
        /// Whether it wants a sum.
        summed: bool,
        /// Whose it is.
        endpoint: usize,
    },
    /// CPU B clears an endpoint's doorbell.
    Cleared(usize),
    /// CPU B looks at what the endpoint's mailbox says.
    Looked(usize),
    /// The next descriptor is skipped: its endpoint is closed.
    Skipped,
    /// The host wants endpoint 1 closed.
    Closing,
    /// The read channel has brought the next transfer, or failed with it.
    Arrived,
    /// See [`Arrived`](Self::Arrived).
    Failed,
    /// The MAC begins its next frame.
    Begun,
    /// It comes to the next part.
    Advanced,
    /// The frame ends.
    Ended,
    /// A frame of the plain path begins, and ends.
    Plain,
    /// See [`Plain`](Self::Plain).
    PlainEnded,
}

impl Step {
    /// As the model prints it: `row SEND 3`, `post 1 0 1`, `arrive`.
    pub fn of_line(line: &str) -> Option<Step> {
        let mut words = line.split_whitespace();
        let flag = |word: Option<&str>| Some(word? == "1");
        Some(match words.next()? {
            "row" => {
                let name = words.next()?;
                let tables = &frame_pipeline::TABLES[..2];
                let machine = tables.iter().position(|table| table.name == name)?;
                let row = words.next()?.parse().ok()?;
                Step::Row { machine, row }
            }
            "post" => Step::Posted {
                long: flag(words.next())?,
                summed: flag(words.next())?,
                endpoint: usize::from(flag(words.next())?),
            },
            "clear" => Step::Cleared(usize::from(flag(words.next())?)),
            "look" => Step::Looked(usize::from(flag(words.next())?)),
            "skip" => Step::Skipped,
            "close" => Step::Closing,
            "arrive" => Step::Arrived,
            "fail" => Step::Failed,
            "begin" => Step::Begun,
            "advance" => Step::Advanced,
            "end" => Step::Ended,
            "plain" => Step::Plain,
            "plain-end" => Step::PlainEnded,
            _ => return None,
        })
    }
}

/// What is wrong with tables.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Finding {
    /// A frame with a good CRC is none that was posted, or is one for the second time.
    WrongFrame,
    /// A frame is not sent, though nothing speaks against it.
    Lost(usize),
    /// A frame is sent whose descriptor was completed with an error.
    SentAfterError(usize),
    /// A descriptor was completed so often.
    Completed(usize, u32),
    /// A descriptor was completed when its endpoint was closed.
    AfterClose(usize),
    /// A frame was given early to a MAC that was at work: its deadlines count from the wrong moment,
    /// and a reset cuts another frame.
    EarlyBehind(usize),
    /// A transfer was queued while another one was.
    TwoMasters,
    /// An event that the table calls impossible has come.
    Impossible(&'static str, &'static str),
    /// A machine has not come to rest.
    Restless(&'static str),
}

/// A run that the card does not follow.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("step {number}, {step:?}: {why}")]
pub struct Diverged {
    /// The step's number.
    pub number: usize,
    /// It.
    pub step: Step,
    /// What the card says.
    pub why: &'static str,
}

/// Follows a run of SDMA and SEND by their tables, with frames of up to `parts` parts; then lets the
/// card come to rest.
///
/// # Errors
/// [`Diverged`] where the card cannot do what the run does.
pub fn replay(tables: [Table; 2], steps: &[Step], parts: u32) -> Result<Vec<Finding>, Diverged> {
    let mut world = World::new(tables, parts);
    let is_bell = |step: &Step| matches!(step, Step::Cleared(_) | Step::Looked(_));
    if steps.iter().any(is_bell) {
        world.listen();
    }
    for (number, step) in steps.iter().copied().enumerate() {
        let followed = world.follow(step);
        followed.map_err(|why| Diverged { number, step, why })?;
    }
    world.rest();
    Ok(world.findings())
}

#[cfg(test)]
mod tests {
    use super::*;
    use frame_pipeline::{sdma, send};

    const TABLES: [Table; 2] = [sdma::TABLE, send::TABLE];

    fn steps(text: &str) -> Vec<Step> {
        text.lines()
            .map(|line| Step::of_line(line).unwrap_or_else(|| panic!("{line}")))
            .collect()
    }

    fn row(machine: usize, from: &str, event: &str, action: &str) -> String {
        let table = TABLES[machine];
        let named =
            |names: &[frame_pipeline::table::Named], number: u8| names[usize::from(number)].name;
        let number = table.rows.iter().position(|row| {
            named(table.states, row.from) == from
                && named(table.events, row.event) == event
                && named(table.actions, row.action) == action
        });
        format!("row {} {}", table.name, number.expect("a row"))
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
}
