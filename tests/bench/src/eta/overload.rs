//! Reply rate against target rate, to twice saturation: Figure 4 of "Scalable networking for
//! next-generation computing platforms", which the paper could not measure for its own API.
//!
//! Lines are accept policies of the same server, through the kernel with epoll and through the
//! engine. The files are SPECweb99's static mix: 35, 50, 14 and 1 % of requests for classes of files
//! below 1 kB, 10 kB, 100 kB and 1 MB, nine of each. Every second request is for a page that costs the
//! server a millisecond: so the server is the limit and not the client, which has a processor of its
//! own. One line runs twice: what both differ by is noise.

use super::offer::{Outcome, Pace, offer};
use super::page;
use anyhow::{Context, Result, ensure};
use comfy_table::{Table, presets::UTF8_BORDERS_ONLY};
use serde::Serialize;
use std::path::Path;
use std::time::{Duration, Instant};
use testbed::eta::{ADDRESS, Site};
use userver::DynamicPage;

/// How long a client waits for a reply.
const TIMEOUT: Duration = Duration::from_secs(1);
/// How long a server may take to begin.
const PATIENCE: Duration = Duration::from_secs(10);
/// Connections under way that saturate a server.
const SATURATING: usize = 64;
/// Requests of a class in a hundred, and the bytes of its smallest file.
const CLASSES: [(usize, usize); 4] = [(35, 102), (50, 1024), (14, 10_240), (1, 102_400)];
const ARMS: [&str; 2] = ["epoll", "dusi"];
const POLICIES: [&str; 5] = [
    "every=1,limit=1",
    "every=1,limit=16",
    "every=1,limit=1000",
    "every=16,limit=4",
    "adaptive",
];
/// The line that runs twice, and the name of its second run.
const TWICE: (usize, &str) = (1, "every=1,limit=16 again");
/// The page that costs time.
const PAGE: &str = "now";
const COST: &str = "/now=1000";

/// One arm under one policy at one rate.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    arm: &'static str,
    policy: &'static str,
    round: u32,
    /// Target in replies of the saturated server with `every=1,limit=16`.
    load: f64,
    target_per_s: f64,
    /// Less than the target if the client could not keep it.
    begun_per_s: f64,
    replies_per_s: f64,
    timeouts: u64,
    errors: u64,
    /// Connections that the client began more than a millisecond late.
    late: u64,
}

/// Writes the files of the mix below a folder, and gives a hundred requests of it in mixed order.
fn mix(root: &Path) -> Result<Vec<(String, usize)>> {
    let mut files = Vec::new();
    for (class, (share, smallest)) in CLASSES.into_iter().enumerate() {
        for number in 1..=9 {
            let name = format!("class{class}_{number}");
            std::fs::write(root.join(name), vec![b'x'; smallest * number])?;
        }
        for request in 0..share {
            let number = request % 9 + 1;
            files.push((format!("class{class}_{number}"), smallest * number));
        }
    }
    // 37 and 100 have no common factor: every request once, large ones apart from each other.
    let count = files.len();
    let page = (PAGE.to_owned(), DynamicPage::BYTES);
    Ok((0..count)
        .flat_map(|place| [files[place * 37 % count].clone(), page.clone()])
        .collect())
}

/// Measures all lines.
///
/// # Errors
/// As [`super::run`].
pub fn run(quick: bool) -> Result<(Vec<Row>, page::Overload)> {
    let (rounds, millis, loads): (u32, u64, &[f64]) = if quick {
        (3, 1500, &[0.5, 1.0, 2.0])
    } else {
        (5, 3000, &[0.5, 1.0, 1.5, 2.0])
    };
    let time = Duration::from_millis(millis);
    let folder = tempfile::tempdir()?;
    let files = mix(folder.path())?;
    let mut saturations = Vec::new();
    for arm in ARMS {
        let site = start(arm, POLICIES[TWICE.0], folder.path(), &files)?;
        let mut rates = Vec::new();
        for _ in 0..3 {
            let outcome = ask(&site, &files, Pace::UnderWay(SATURATING), time)?;
            rates.push(outcome.rate(time));
        }
        let saturation = super::median(rates);
        println!("{arm}: saturated at {saturation:.0} replies/s");
        saturations.push(saturation);
    }
    let lines: Vec<_> = POLICIES
        .iter()
        .map(|policy| (*policy, *policy))
        .chain([(POLICIES[TWICE.0], TWICE.1)])
        .flat_map(|line| (0..ARMS.len()).map(move |arm| (arm, line)))
        .collect();
    let mut rows = Vec::new();
    for round in 0..rounds {
        for place in 0..lines.len() {
            // 5 has no factor in common with their number, 12.
            let (arm, (policy, name)) = lines[(place * 5 + round as usize) % lines.len()];
            let site = start(ARMS[arm], policy, folder.path(), &files)?;
            for load in loads {
                let target = saturations[arm] * load;
                let outcome = ask(&site, &files, Pace::Rate(target), time)?;
                rows.push(Row {
                    arm: ARMS[arm],
                    policy: name,
                    round,
                    load: *load,
                    target_per_s: target,
                    begun_per_s: outcome.begun as f64 / time.as_secs_f64(),
                    replies_per_s: outcome.rate(time),
                    timeouts: outcome.timeouts,
                    errors: outcome.errors,
                    late: outcome.late,
                });
            }
        }
    }
    let arms = ARMS.map(str::to_owned);
    let overload = page::Overload {
        rounds,
        loads: loads.to_vec(),
        saturations: arms.into_iter().zip(saturations).collect(),
        lines: summary(&rows, loads),
    };
    print(&overload);
    Ok((rows, overload))
}

/// Medians of the rounds.
fn summary(rows: &[Row], loads: &[f64]) -> Vec<page::Line> {
    let policies = || POLICIES.into_iter().chain([TWICE.1]);
    let lines = ARMS
        .into_iter()
        .flat_map(|arm| policies().map(move |policy| (arm, policy)));
    let line = |(arm, policy): (&str, &str)| {
        let of = |value: fn(&Row) -> f64| {
            let at = loads.iter().map(|load| {
                let these = rows.iter().filter(|row| {
                    row.arm == arm && row.policy == policy && row.load.total_cmp(load).is_eq()
                });
                super::median(these.map(value).collect())
            });
            at.collect()
        };
        page::Line {
            arm: arm.to_owned(),
            policy: policy.to_owned(),
            replies_per_s: of(|row| row.replies_per_s),
            begun: of(|row| row.begun_per_s / row.target_per_s),
        }
    };
    lines.map(line).collect()
}

/// Starts an arm with a policy, the server on the first processor; all files are in its cache.
fn start(arm: &str, policy: &str, root: &Path, files: &[(String, usize)]) -> Result<Site> {
    let options = ["--accept", policy, "--dynamic", COST];
    let site = match arm {
        "epoll" => Site::start_kernel_with(root, &options)?,
        _ => Site::start_with("adaptive", root, &options)?,
    };
    on_processor(Some(site.server()), 0)?;
    if let Some(engine) = site.engine() {
        // With the client: it is the interface card of the other side.
        on_processor(Some(engine), 1)?;
    }
    let start = Instant::now();
    while ask(&site, files, Pace::UnderWay(4), Duration::from_millis(200))?.replies < 100 {
        ensure!(start.elapsed() < PATIENCE, "no answers");
    }
    Ok(site)
}

/// Keeps a process, or this thread, on a processor, if there are several.
fn on_processor(process: Option<u32>, number: usize) -> Result<()> {
    let there = std::thread::available_parallelism()?.get();
    let mut set = rustix::thread::CpuSet::new();
    set.set(number % there);
    let process = process.and_then(|id| rustix::process::Pid::from_raw(id.cast_signed()));
    rustix::thread::sched_setaffinity(process, &set)?;
    Ok(())
}

fn ask(site: &Site, files: &[(String, usize)], pace: Pace, time: Duration) -> Result<Outcome> {
    std::thread::scope(|scope| {
        let client = scope.spawn(move || {
            site.namespace.enter()?;
            on_processor(None, 1)?;
            let address = ADDRESS.parse().context("an address")?;
            offer((address, 80), files, pace, time, TIMEOUT)
        });
        super::requests::joined(client)
    })
}

fn print(overload: &page::Overload) {
    let mut table = Table::new();
    table.load_style(UTF8_BORDERS_ONLY);
    let loads = overload.loads.iter();
    let heads = loads.map(|load| format!("{load} of saturation"));
    let names = ["arm", "accepts"].map(str::to_owned);
    table.set_header(names.into_iter().chain(heads));
    for line in &overload.lines {
        let rates = line.replies_per_s.iter().map(|rate| format!("{rate:.0}"));
        let names = [line.arm.clone(), line.policy.clone()];
        table.add_row(names.into_iter().chain(rates));
    }
    for (arm, shares) in overload.adaptive() {
        let shares = shares.iter().map(|share| format!("{share:.2}"));
        let names = [arm, "adaptive beside the best".to_owned()];
        table.add_row(names.into_iter().chain(shares));
    }
    println!("replies/s in time, medians\n{table}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mix_has_its_shares_and_its_files() {
        let folder = tempfile::tempdir().expect("a folder");
        let files = mix(folder.path()).expect("files");
        assert_eq!(files.len(), 200);
        let (pages, files): (Vec<_>, Vec<_>) = files.into_iter().partition(|one| one.0 == PAGE);
        assert_eq!((pages.len(), files.len()), (100, 100));
        for (class, (share, _)) in CLASSES.into_iter().enumerate() {
            let name = format!("class{class}_");
            let count = files
                .iter()
                .filter(|(file, _)| file.starts_with(&name))
                .count();
            assert_eq!(count, share);
        }
        for (name, bytes) in files {
            let found = std::fs::metadata(folder.path().join(name)).expect("a file");
            assert_eq!(found.len(), bytes as u64);
        }
    }
}
