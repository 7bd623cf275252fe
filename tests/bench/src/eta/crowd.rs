//! A hundred active connections by themselves, and among ten thousand.

use super::median;
use super::requests::{LOADS, clients, first_answer, joined};
use anyhow::Result;
use serde::Serialize;
use std::net::TcpStream;
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Duration;
use testbed::eta::{ADDRESS, Site};

/// Active connections, and those on which nothing happens.
const ACTIVE: usize = 100;
const IDLE: usize = 9_900;
/// Room for all of them at the server: handles, and memory in megabytes.
const ROOM: [&str; 4] = ["--connections", "12000", "--memory", "128"];

/// One look.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    idle: usize,
    requests_per_s: f64,
}

/// Measures both in turn.
///
/// # Errors
/// As [`super::run`].
pub fn run(root: &Path, quick: bool) -> Result<Vec<Row>> {
    let (rounds, seconds) = if quick { (3, 2) } else { (7, 5) };
    let mut rows = Vec::new();
    for round in 0..rounds {
        let mut both = [0, IDLE];
        both.rotate_left(round % 2);
        for idle in both {
            let requests_per_s = measure(root, idle, Duration::from_secs(seconds))?;
            rows.push(Row {
                idle,
                requests_per_s,
            });
        }
    }
    let [alone, among] = summary(&rows);
    println!(
        "{ACTIVE} active connections: {alone:.0} requests/s alone, {among:.0} among {}: {:.2} of it",
        ACTIVE + IDLE,
        among / alone
    );
    Ok(rows)
}

/// Requests in a second, medians: alone, and among the others.
pub fn summary(rows: &[Row]) -> [f64; 2] {
    [0, IDLE].map(|idle| {
        let these = rows.iter().filter(|row| row.idle == idle);
        median(these.map(|row| row.requests_per_s).collect())
    })
}

fn measure(root: &Path, idle: usize, time: Duration) -> Result<f64> {
    let site = Site::start_with("adaptive", root, &ROOM)?;
    first_answer(&site)?;
    let site = &site;
    std::thread::scope(|scope| {
        let (over, hold) = channel::<()>();
        let (opened, begin) = channel();
        let crowd = scope.spawn(move || {
            site.namespace.enter()?;
            let streams: std::io::Result<Vec<_>> = (0..idle)
                .map(|_| TcpStream::connect((ADDRESS, 80)))
                .collect();
            let streams = streams?;
            // They stay until the end; if the other side is gone that is it.
            let _ = opened.send(());
            let _ = hold.recv();
            anyhow::Ok(streams.len())
        });
        // An error of the crowd is told below.
        let _ = begin.recv();
        let requests = clients(site, ACTIVE, LOADS[0], time)?.len();
        drop(over);
        joined(crowd)?;
        Ok(requests as f64 / time.as_secs_f64())
    })
}
