//! The engine's tests for as long as somebody wants, with other seeds in each round: applications
//! killed under load, connections that come and go, nonsense from every side.

use anyhow::{Context, Result};
use std::time::{Duration, Instant};
use testbed::process;

/// Kills, connections and seeds of a round.
const KILLS: u32 = 200;
const CONNECTIONS: u32 = 100_000;
const SEEDS: u32 = 400;

/// Runs rounds until the minutes are over; at least one.
///
/// # Errors
/// With the seed of the round in which a test failed.
pub fn run(minutes: u32) -> Result<()> {
    let start = Instant::now();
    let mut first = 1;
    loop {
        let mut cargo = process::cargo();
        cargo.args(["test", "-p", "eta", "--test", "crash", "--test", "churn"]);
        cargo.args(["--test", "fuzz"]);
        cargo.env("ETA_TEST_KILLS", KILLS.to_string());
        cargo.env("ETA_TEST_CONNECTIONS", CONNECTIONS.to_string());
        cargo.env("ETA_TEST_FUZZ", SEEDS.to_string());
        cargo.env("ETA_TEST_SEED", first.to_string());
        process::run(&mut cargo).with_context(|| format!("seeds from {first} on"))?;
        println!(
            "soak: {KILLS} kills, {CONNECTIONS} connections, {SEEDS} seeds from {first} on, after {} s",
            start.elapsed().as_secs()
        );
        first += SEEDS;
        if start.elapsed() >= Duration::from_secs(60) * minutes {
            return Ok(());
        }
    }
}
