//! Reply rate against target rate, to twice saturation: Figure 4 of "Scalable networking for
//! next-generation computing platforms", which the paper could not measure for its own API.
//!
//! Lines are accept policies of the same server, through the kernel with epoll and through the
//! engine. The files are SPECweb99's static mix: 35, 50, 14 and 1 % of requests for classes of files
//! below 1 kB, 10 kB, 100 kB and 1 MB, nine of each.

use super::offer::{Outcome, Pace, offer};
use anyhow::{Context, Result, ensure};
use comfy_table::{Table, presets::UTF8_BORDERS_ONLY};
use serde::Serialize;
use std::path::Path;
use std::time::{Duration, Instant};
use testbed::eta::{ADDRESS, Site};

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

/// One arm under one policy at one rate.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    arm: &'static str,
    policy: &'static str,
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
    Ok((0..count)
        .map(|place| files[place * 37 % count].clone())
        .collect())
}

/// Measures all lines.
///
/// # Errors
/// As [`super::run`].
pub fn run(quick: bool) -> Result<Vec<Row>> {
    let (seconds, loads): (u64, &[f64]) = if quick {
        (1, &[0.5, 1.0, 2.0])
    } else {
        (5, &[0.25, 0.5, 0.75, 0.9, 1.0, 1.25, 1.5, 2.0])
    };
    let time = Duration::from_secs(seconds);
    let folder = tempfile::tempdir()?;
    let files = mix(folder.path())?;
    let mut rows = Vec::new();
    for arm in ARMS {
        let full = |policy| -> Result<(Site, f64)> {
            let options = ["--accept", policy];
            let site = match arm {
                "epoll" => Site::start_kernel_with(folder.path(), &options)?,
                _ => Site::start_with("adaptive", folder.path(), &options)?,
            };
            // Addresses are known, and all files in the cache.
            let start = Instant::now();
            while ask(&site, &files, Pace::UnderWay(4), Duration::from_millis(200))?.replies < 100 {
                ensure!(start.elapsed() < PATIENCE, "no answers");
            }
            let outcome = ask(&site, &files, Pace::UnderWay(SATURATING), time)?;
            Ok((site, outcome.replies as f64 / time.as_secs_f64()))
        };
        let (site, saturation) = full(POLICIES[1])?;
        drop(site);
        println!("{arm}: saturated at {saturation:.0} replies/s");
        for policy in POLICIES {
            let (site, _) = full(policy)?;
            for load in loads {
                let target = saturation * load;
                let outcome = ask(&site, &files, Pace::Rate(target), time)?;
                let row = Row {
                    arm,
                    policy,
                    load: *load,
                    target_per_s: target,
                    begun_per_s: outcome.begun as f64 / time.as_secs_f64(),
                    replies_per_s: outcome.replies as f64 / time.as_secs_f64(),
                    timeouts: outcome.timeouts,
                    errors: outcome.errors,
                    late: outcome.late,
                };
                rows.push(row);
            }
        }
    }
    print(&rows, loads);
    Ok(rows)
}

fn ask(site: &Site, files: &[(String, usize)], pace: Pace, time: Duration) -> Result<Outcome> {
    std::thread::scope(|scope| {
        let client = scope.spawn(move || {
            site.namespace.enter()?;
            let address = ADDRESS.parse().context("an address")?;
            offer((address, 80), files, pace, time, TIMEOUT)
        });
        super::joined(client)
    })
}

fn print(rows: &[Row], loads: &[f64]) {
    let mut table = Table::new();
    table.load_style(UTF8_BORDERS_ONLY);
    let heads = loads.iter().map(|load| format!("{load} of saturation"));
    table.set_header(
        ["arm", "accepts"]
            .map(str::to_owned)
            .into_iter()
            .chain(heads),
    );
    for line in rows.chunks(loads.len()) {
        let Some(first) = line.first() else {
            continue;
        };
        let names = [first.arm.to_owned(), first.policy.to_owned()];
        let rates = line.iter().map(|row| format!("{:.0}", row.replies_per_s));
        table.add_row(names.into_iter().chain(rates));
    }
    println!("replies/s in time\n{table}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mix_has_its_shares_and_its_files() {
        let folder = tempfile::tempdir().expect("a folder");
        let files = mix(folder.path()).expect("files");
        assert_eq!(files.len(), 100);
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
