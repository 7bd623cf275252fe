//! How long replies take when connections come at a fixed rate, whatever the server does.
//!
//! All arms have the same rates, shares of what saturates the slowest one, and a connection's time
//! counts from the moment at which it was to begin: one that waits behind others is not forgiven.
//! `epoll, copy loop` is the kernel over two TAP devices and the bare loop of
//! [`copy_loop`](crate::copy_loop): without it, the kernel's cable has no system call for a packet
//! and the engine's has.

use super::offer::{Outcome, Pace, offer};
use super::{PATIENCE, joined, load_average, median, page};
use crate::copy_loop;
use anyhow::{Context, Result, ensure};
use host_driver::tap::Tap;
use serde::Serialize;
use std::path::Path;
use std::time::{Duration, Instant};
use testbed::eta::{ADDRESS, Site};
use testbed::worker::Worker;

/// How long a client waits for a reply.
const TIMEOUT: Duration = Duration::from_secs(1);
/// Connections under way that saturate a server.
const SATURATING: usize = 32;
/// Shares of what saturates the slowest arm.
const LOADS: [f64; 2] = [0.3, 0.7];
/// What is asked for: its name and its bytes.
const FILE: (&str, usize) = ("1000", 1000);
const ARMS: [&str; 4] = ["dusi", "epoll", "epoll, copy loop", "dusi again"];

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
    timeouts: u64,
    errors: u64,
    /// Connections that the client began more than a millisecond late.
    late: u64,
}

/// A running arm. The site ends before what joins its devices.
struct Running {
    site: Site,
    _wire: Option<Worker<()>>,
}

fn start(arm: &str, root: &Path) -> Result<Running> {
    let (site, wire) = match arm {
        "epoll" => (Site::start_kernel(root)?, None),
        "epoll, copy loop" => {
            let names = ["n", "f"].map(|side| format!("tga{side}{}", std::process::id()));
            let tap =
                |at: usize, last| Tap::create(&names[at], [2, 0x54, 0x47, 0, 2, last], 1500, false);
            let wire = copy_loop::start(tap(0, 1)?, tap(1, 2)?);
            let site = Site::start_kernel_between([&names[0], &names[1]], root)?;
            (site, Some(wire))
        }
        _ => (Site::start("adaptive", root)?, None),
    };
    let begun = Instant::now();
    while ask(&site, Pace::UnderWay(4), Duration::from_millis(200))?.replies < 20 {
        ensure!(begun.elapsed() < PATIENCE, "{arm}: no answers");
    }
    Ok(Running { site, _wire: wire })
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
pub fn run(root: &Path, quick: bool) -> Result<(Vec<Row>, page::Arrivals)> {
    let (rounds, time) = if quick { (3, 2) } else { (7, 3) };
    let time = Duration::from_secs(time);
    let busy = load_average()?;
    let mut saturation = f64::INFINITY;
    for arm in ARMS {
        let running = start(arm, root)?;
        let rate = ask(&running.site, Pace::UnderWay(SATURATING), time)?.rate(time);
        println!("{arm}: saturated at {rate:.0} replies/s");
        saturation = saturation.min(rate);
    }
    let mut rows = Vec::new();
    for round in 0..rounds {
        for place in 0..ARMS.len() {
            let arm = ARMS[(place + round as usize) % ARMS.len()];
            let running = start(arm, root)?;
            for load in LOADS {
                let target = saturation * load;
                let mut outcome = ask(&running.site, Pace::Rate(target), time)?;
                outcome.waits.sort_unstable();
                let wait = |share| quantile(&outcome.waits, share);
                rows.push(Row {
                    arm,
                    round,
                    load,
                    target_per_s: target,
                    begun_per_s: outcome.begun as f64 / time.as_secs_f64(),
                    p50_us: wait(0.5),
                    p99_us: wait(0.99),
                    p999_us: wait(0.999),
                    timeouts: outcome.timeouts,
                    errors: outcome.errors,
                    late: outcome.late,
                });
            }
        }
    }
    let arrivals = page::Arrivals {
        rounds,
        load: busy,
        saturation,
        lines: summary(&rows),
    };
    println!("{}", page::arrivals(&arrivals));
    Ok((rows, arrivals))
}

/// Medians of the rounds.
fn summary(rows: &[Row]) -> Vec<page::Arrival> {
    let pairs = LOADS
        .into_iter()
        .flat_map(|load| ARMS.into_iter().map(move |arm| (load, arm)));
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
            late: these().map(|row| row.late).sum(),
            lost: these().map(|row| row.timeouts + row.errors).sum(),
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
