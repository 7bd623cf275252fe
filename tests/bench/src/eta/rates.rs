//! Requests and processor time of each arm, as fast as eight clients ask.

use super::arms::{Arm, CARD, WIRE};
use super::processor::{busy, cpu, load_average};
use super::requests::{CLIENTS, LOADS, Load, answered, clients};
use super::{median, page};
use anyhow::{Context, Result, ensure};
use serde::Serialize;
use std::path::Path;
use std::time::Duration;
use testbed::tools::Tools;

/// One arm under one load in one round.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    load: &'static str,
    arm: &'static str,
    round: u32,
    requests: usize,
    requests_per_s: f64,
    p50_us: u32,
    p99_us: u32,
    /// Processor time of server and engine for a request; the kernel's own work for a cable is in
    /// no process and not in it.
    cpu_us_per_request: f64,
    /// That of the whole computer without the clients and the card: others' work is in it.
    machine_us_per_request: f64,
    /// System calls of the server, by its own count.
    server_calls_per_request: f64,
}

/// Measures all arms, which serve the files of a folder, in another order in each round.
///
/// # Errors
/// As [`super::run`].
pub(super) fn run(tools: &Tools, root: &Path, quick: bool) -> Result<(Vec<Row>, page::Rates)> {
    let (rounds, seconds) = if quick { (1, 1) } else { (7, 2) };
    let average = load_average()?;
    let arms = [&WIRE[..], &CARD[..]].concat();
    let mut rows = Vec::new();
    for round in 0..rounds {
        for load in LOADS {
            for place in 0..arms.len() {
                // 3 and the number of arms have no common factor.
                let arm = arms[(place * 3 + round as usize) % arms.len()];
                let row = measure(load, arm, round, tools, root, Duration::from_secs(seconds))?;
                println!(
                    "{}, {}: {:.0} requests/s",
                    load.name, row.arm, row.requests_per_s
                );
                rows.push(row);
            }
        }
    }
    let rates = page::Rates {
        rounds,
        seconds,
        processors: std::thread::available_parallelism()?.get(),
        load: average,
        lines: summary(&rows, &arms),
    };
    println!("{}", page::rates(&rates));
    Ok((rows, rates))
}

/// Medians of the rounds.
fn summary(rows: &[Row], arms: &[Arm]) -> Vec<page::Rate> {
    let pairs = LOADS
        .into_iter()
        .flat_map(|load| arms.iter().map(move |arm| (load, *arm)));
    let rate = |(load, arm): (Load, Arm)| {
        let these = || {
            let of = move |row: &&Row| row.load == load.name && row.arm == arm.name();
            rows.iter().filter(of)
        };
        let of = |value: fn(&Row) -> f64| median(these().map(value).collect());
        let rates = || these().map(|row| row.requests_per_s);
        page::Rate {
            load: load.name.to_owned(),
            arm: arm.name().to_owned(),
            requests_per_s: of(|row| row.requests_per_s),
            least: rates().fold(f64::INFINITY, f64::min),
            most: rates().fold(0.0, f64::max),
            p50_us: of(|row| f64::from(row.p50_us)),
            p99_us: of(|row| f64::from(row.p99_us)),
            cpu_us: of(|row| row.cpu_us_per_request),
            machine_us: of(|row| row.machine_us_per_request),
        }
    };
    pairs.map(rate).collect()
}

fn measure(
    load: Load,
    arm: Arm,
    round: u32,
    tools: &Tools,
    root: &Path,
    time: Duration,
) -> Result<Row> {
    let mut site = arm.start(tools, root, &[])?;
    let card: Vec<u32> = site.card().into_iter().collect();
    answered(&site, load)?;
    let (before, machine) = (cpu(&site.processes())?, busy(&card)?);
    let mut latencies = clients(&site, CLIENTS, load, time)?;
    let used = cpu(&site.processes())? - before;
    let machine = busy(&card)?.saturating_sub(machine);
    latencies.sort_unstable();
    let requests = latencies.len();
    ensure!(requests > 20, "{requests} requests");
    let said = site.end_server()?;
    let each = |time: Duration| time.as_secs_f64() * 1e6 / requests as f64;
    Ok(Row {
        load: load.name,
        arm: arm.name(),
        round,
        requests,
        requests_per_s: requests as f64 / time.as_secs_f64(),
        p50_us: latencies[requests / 2],
        p99_us: latencies[requests * 99 / 100],
        cpu_us_per_request: each(used),
        machine_us_per_request: each(machine),
        server_calls_per_request: calls(&said)?,
    })
}

/// System calls for each request, by a server's last words.
pub(super) fn calls(said: &str) -> Result<f64> {
    let count = |what: &str| {
        let mut words = said.split([' ', ',', '\n']).filter(|word| !word.is_empty());
        let mut last = None;
        let found = words.find_map(|word| {
            let number = last.replace(word);
            (word == what).then_some(number).flatten()
        });
        found.and_then(|number| number.parse::<f64>().ok())
    };
    let requests = count("requests").with_context(|| format!("no count: {said}"))?;
    let calls = count("system");
    Ok(calls.with_context(|| format!("no calls: {said}"))? / requests)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_servers_last_words_give_its_calls() {
        let kernel = "userver: listening\nuserver: 3 connections, 10 requests, 45 system calls\n";
        assert_eq!(calls(kernel).expect("counts"), 4.5);
        assert!(calls("userver: listening\n").is_err());
    }
}
