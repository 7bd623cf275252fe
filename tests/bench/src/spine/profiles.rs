//! The main figures of extensions under each timing profile of the board.

use super::card::Kit;
use super::cost::watchdog;
use super::handled::{self, EMPTY, ROUTER};
use super::messages;
use super::peers;
use super::routed;
use crate::simulated::tables::framed;
use anyhow::{Context, Result};
use comfy_table::Table;
use serde::Serialize;
use testbed::paths::board_file;
use tigon2_sim::timing::Parameters;

/// For how long packets out of the same port are counted, in nanoseconds.
const ROUTED_NS: u64 = 4_000_000;
/// Runs that do not end.
const RUNS: u32 = 100;

/// One of them.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Its name.
    pub profile: String,
    /// Cycles of an empty run, and of the router's.
    pub runs: [u64; 2],
    /// The smallest packets a second out of the same port.
    pub same_port: f64,
    /// To the other card: the smallest packets a second, and those of 1514 bytes.
    pub to_peer: [f64; 2],
    /// Microseconds of one of the smallest.
    pub alone_us: f64,
    /// Microseconds from doorbell to handler, and there and back.
    pub message_us: [f64; 2],
    /// Small messages a second one way.
    pub messages: f64,
    /// Microseconds that a run without end lasts at most.
    pub watchdog_us: f64,
}

impl Row {
    /// All figures, in the order of the [`table`]'s columns.
    pub fn figures(&self) -> [f64; 10] {
        let [empty, router] = self.runs.map(|cycles| cycles as f64);
        let [small, large] = self.to_peer;
        let [there, back] = self.message_us;
        [
            empty,
            router,
            self.same_port,
            small,
            large,
            self.alone_us,
            there,
            back,
            self.messages,
            self.watchdog_us,
        ]
    }
}

fn row(kit: &Kit, profile: &str) -> Result<Row> {
    let parameters = Parameters::from_toml(&board_file()?, profile).context("the board file")?;
    let handled = handled::measure(kit, &parameters, &[EMPTY, ROUTER])?;
    let peers = peers::measure(kit, &parameters)?;
    // One packet at a time first; for each length the highest rate last.
    let alone = peers.first().context("no packets")?;
    let fastest = |bytes| {
        let rates = peers.iter().filter(|row| row.bytes == bytes);
        rates.map(|row| row.rate).fold(0.0, f64::max)
    };
    let same_port = routed::same_port(kit, &parameters, ROUTED_NS)?;
    let messages = messages::measure(kit, &parameters)?;
    let [_, watchdog_us] = watchdog(kit, &parameters, RUNS)?;
    Ok(Row {
        profile: profile.to_owned(),
        runs: [handled[0].run, handled[1].run],
        same_port: same_port.rate,
        to_peer: [fastest(alone.bytes), fastest(1514)],
        alone_us: alone.latency_us[0],
        message_us: [messages.to_handler, messages.there_and_back],
        messages: messages.one_way,
        watchdog_us,
    })
}

/// Measures all of them.
///
/// # Errors
/// What the driver or a wall says.
pub fn measure(kit: &Kit) -> Result<Vec<Row>> {
    let profiles = Parameters::profiles(&board_file()?)?;
    profiles.iter().map(|profile| row(kit, profile)).collect()
}

/// The table of all.
pub fn table(rows: &[Row]) -> Table {
    let mut table = framed(&[
        "profile",
        "empty run, cycles",
        "router's run",
        "same port, packets/s",
        "to the peer, packets/s",
        "of 1514 bytes",
        "one, us",
        "doorbell to handler, us",
        "there and back",
        "messages/s",
        "run without end, us",
    ]);
    for row in rows {
        let digits = [0, 0, 0, 0, 0, 1, 1, 1, 0, 1];
        let figures = row.figures().into_iter().zip(digits);
        let cells = figures.map(|(figure, digits)| format!("{figure:.digits$}"));
        table.add_row(std::iter::once(row.profile.clone()).chain(cells));
    }
    table
}
