//! How long replies take when connections come at a fixed rate, whatever the server does.
//!
//! A connection's time counts from the moment at which it was to begin: one that waits behind others
//! is not forgiven. Rates are shares of what saturates the slowest arm of a group: the arms without
//! a card are one group, those behind it the other.

use super::arms::Arm;
use super::offer::{Outcome, Pace, offer};
use super::processor::{busy, cpu, load_average};
use super::requests::{PATIENCE, joined};
use super::{median, page};
use anyhow::{Context, Result, ensure};
use serde::Serialize;
use std::path::Path;
use std::time::{Duration, Instant};
use testbed::eta::{ADDRESS, Site};
use testbed::tools::Tools;

/// How long a client waits for a reply.
const TIMEOUT: Duration = Duration::from_secs(1);
/// Connections under way that saturate a server.
const SATURATING: usize = 32;
/// Shares of what saturates the slowest arm.
const LOADS: [f64; 2] = [0.3, 0.7];
/// What is asked for: its name and its bytes.
const FILE: (&str, usize) = ("1000", 1000);
const GROUPS: [&[Arm]; 2] = [
    &[Arm::Dusi, Arm::Epoll, Arm::CopyLoop, Arm::DusiAgain],
    &[Arm::CardDusi, Arm::CardEpoll],
];

/// One arm at one rate in one round.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    arm: &'static str,
    round: u32,
    load: f64,
    target_per_s: f64,
    begun_per_s: f64,
    /// Of the steady replies.
    p50_us: u32,
    p99_us: u32,
    p999_us: u32,
    /// Processor time of a reply: of server and engine, and of the whole computer without the clients
    /// and the card.
    cpu_us: f64,
    machine_us: f64,
    timeouts: u64,
    errors: u64,
    /// SYNs that the engine dropped because the server's backlog was full; none through the kernel.
    refused: Option<u64>,
    /// Connections that the client began more than a millisecond late.
    late: u64,
}

/// Starts an arm; it has answered already.
fn start(arm: Arm, tools: &Tools, root: &Path) -> Result<Site> {
    let site = arm.start(tools, root, &[])?;
    let begun = Instant::now();
    while ask(&site, Pace::UnderWay(4), Duration::from_millis(200))?.replies < 20 {
        ensure!(begun.elapsed() < PATIENCE, "{}: no answers", arm.name());
    }
    Ok(site)
}

fn ask(site: &Site, pace: Pace, time: Duration) -> Result<Outcome> {
    std::thread::scope(|scope| {
        joined(scope.spawn(move || {
            site.namespace.enter()?;
            let address = ADDRESS.parse().context("an address")?;
            let files = [(FILE.0.to_owned(), FILE.1)];
            offer((address, 80), &files, pace, time, TIMEOUT)
        }))
    })
}

/// The wait that a share of all waits does not exceed.
fn quantile(sorted: &[u32], share: f64) -> u32 {
    let at = (sorted.len() as f64 * share) as usize;
    let last = sorted.len().saturating_sub(1);
    sorted.get(at.min(last)).copied().unwrap_or(u32::MAX)
}

/// Measures all arms, which serve the files of a folder.
///
/// # Errors
/// As [`super::run`].
pub fn run(tools: &Tools, root: &Path, quick: bool) -> Result<(Vec<Row>, page::Arrivals)> {
    let (rounds, time) = if quick { (3, 2) } else { (7, 3) };
    let time = Duration::from_secs(time);
    let average = load_average()?;
    let mut saturations = [f64::INFINITY; 2];
    for (group, saturation) in GROUPS.iter().zip(&mut saturations) {
        for arm in *group {
            let site = start(*arm, tools, root)?;
            let rate = ask(&site, Pace::UnderWay(SATURATING), time)?.rate(time);
            println!("{}: saturated at {rate:.0} replies/s", arm.name());
            *saturation = saturation.min(rate);
        }
    }
    let arms: Vec<(Arm, f64)> = GROUPS
        .iter()
        .zip(saturations)
        .flat_map(|(group, saturation)| group.iter().map(move |arm| (*arm, saturation)))
        .collect();
    let mut rows = Vec::new();
    for round in 0..rounds {
        for place in 0..arms.len() {
            let (arm, saturation) = arms[(place + round as usize) % arms.len()];
            let site = start(arm, tools, root)?;
            for load in LOADS {
                rows.push(measure(arm, &site, (load, saturation * load), round, time)?);
            }
        }
    }
    let arrivals = page::Arrivals {
        rounds,
        load: average,
        saturations,
        lines: summary(&rows),
    };
    println!("{}", page::arrivals(&arrivals));
    Ok((rows, arrivals))
}

/// One arm at a rate, which is a share of what saturates its group.
fn measure(
    arm: Arm,
    site: &Site,
    (load, target): (f64, f64),
    round: u32,
    time: Duration,
) -> Result<Row> {
    let card: Vec<u32> = site.card().into_iter().collect();
    let used = || anyhow::Ok((cpu(&site.processes())?, busy(&card)?));
    let refused = site.refused_syns()?;
    let before = used()?;
    let mut outcome = ask(site, Pace::Rate(target), time)?;
    let after = used()?;
    let refused = site.refused_syns()?.zip(refused);
    outcome.waits.sort_unstable();
    let wait = |share| quantile(&outcome.waits, share);
    let each = |time: Duration| time.as_secs_f64() * 1e6 / outcome.replies as f64;
    Ok(Row {
        arm: arm.name(),
        round,
        load,
        target_per_s: target,
        begun_per_s: outcome.begun as f64 / time.as_secs_f64(),
        p50_us: wait(0.5),
        p99_us: wait(0.99),
        p999_us: wait(0.999),
        cpu_us: each(after.0.saturating_sub(before.0)),
        machine_us: each(after.1.saturating_sub(before.1)),
        timeouts: outcome.timeouts,
        errors: outcome.errors,
        refused: refused.map(|(after, before)| after - before),
        late: outcome.late,
    })
}

/// Medians of the rounds.
fn summary(rows: &[Row]) -> Vec<page::Arrival> {
    let arms = || GROUPS.into_iter().flatten().map(|arm| arm.name());
    let pairs = LOADS
        .into_iter()
        .flat_map(|load| arms().map(move |arm| (load, arm)));
    let line = |(load, arm): (f64, &str)| {
        let these = || {
            rows.iter()
                .filter(move |row| row.arm == arm && row.load.total_cmp(&load).is_eq())
        };
        let of = |value: fn(&Row) -> f64| median(these().map(value).collect());
        page::Arrival {
            load,
            arm: arm.to_owned(),
            target_per_s: of(|row| row.target_per_s),
            p50_us: of(|row| f64::from(row.p50_us)),
            p99_us: of(|row| f64::from(row.p99_us)),
            p999_us: of(|row| f64::from(row.p999_us)),
            cpu_us: of(|row| row.cpu_us),
            machine_us: of(|row| row.machine_us),
            late: these().map(|row| row.late).sum(),
            lost: these().map(|row| row.timeouts + row.errors).sum(),
            refused: these().map(|row| row.refused).sum(),
        }
    };
    pairs.map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_one_of_the_waits() {
        let waits: Vec<u32> = (1..=1000).collect();
        assert_eq!(
            [0.5, 0.99, 0.999].map(|share| quantile(&waits, share)),
            [501, 991, 1000]
        );
        assert_eq!(quantile(&[7], 0.999), 7);
        assert_eq!(quantile(&[], 0.5), u32::MAX);
    }
}
