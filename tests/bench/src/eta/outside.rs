//! System calls, counted from outside by `strace`, beside the server's own count.
//!
//! What is traced is slow. So server and engine each have a look of their own: an engine that is
//! slowed leaves the server without work, and a server without work sleeps.

use super::arms::Arm;
use super::page;
use super::rates::calls;
use super::requests::{self, CLIENTS, LOADS, answered};
use anyhow::{Context, Result, ensure};
use serde::Serialize;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use testbed::eta::Site;
use testbed::tools::Tools;

/// Clients that saturate a server.
const MANY: usize = 128;

/// One arm under the first load.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    arm: &'static str,
    clients: usize,
    /// While the server was traced.
    requests: usize,
    /// By the server's own count, over its whole life.
    own_per_request: f64,
    /// By strace.
    server_per_request: f64,
    /// Of the engine, or of the bridge in its place.
    engine_per_request: Option<f64>,
}

/// Counts the calls of a process until it is ended.
struct Tracer {
    strace: Child,
    file: std::path::PathBuf,
}

impl Tracer {
    fn attach(process: u32, folder: &Path) -> Result<Self> {
        let file = folder.join(format!("calls-{process}"));
        let mut strace = Command::new("strace");
        strace.args(["-f", "-c", "-p", &process.to_string(), "-o"]);
        strace.arg(&file).stderr(Stdio::null());
        let strace = strace.spawn().context("strace")?;
        // It says nothing of when it has attached.
        std::thread::sleep(Duration::from_millis(300));
        Ok(Self { strace, file })
    }

    /// All calls that it has seen.
    fn end(mut self) -> Result<f64> {
        let process = rustix::process::Pid::from_raw(self.strace.id().cast_signed());
        let process = process.context("strace")?;
        rustix::process::kill_process(process, rustix::process::Signal::INT)?;
        self.strace.wait()?;
        total(&std::fs::read_to_string(&self.file)?)
    }
}

/// The calls in strace's summary.
fn total(summary: &str) -> Result<f64> {
    let Some(last) = summary.lines().rev().find(|line| line.ends_with("total")) else {
        // A process without a call has no summary.
        return Ok(0.0);
    };
    // Share, seconds, microseconds a call, calls.
    let calls = last.split_whitespace().nth(3).context("no calls")?;
    Ok(calls.parse()?)
}

/// Counts the calls of the arms under small requests on persistent connections.
///
/// # Errors
/// As [`super::run`], and if processes cannot be traced.
pub fn run(tools: &Tools, root: &Path, time: Duration) -> Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let mut rows = Vec::new();
    for arm in [Arm::Dusi, Arm::Epoll, Arm::CardDusi, Arm::CardEpoll] {
        for clients in [CLIENTS, MANY] {
            let row = measure(arm, clients, tools, root, folder.path(), time)?;
            let engine = row.engine_per_request.unwrap_or(0.0);
            println!(
                "{}, {clients} clients: calls of a request by strace: server {:.3} (its own count \
                 {:.3}), engine or bridge {engine:.2}",
                row.arm, row.server_per_request, row.own_per_request
            );
            rows.push(row);
        }
    }
    Ok(rows)
}

/// The rows as the page shows them.
pub fn summary(rows: &[Row]) -> Vec<page::Calls> {
    let row = |row: &Row| page::Calls {
        arm: row.arm.to_owned(),
        clients: row.clients,
        server: row.server_per_request,
        own: row.own_per_request,
        engine: row.engine_per_request,
    };
    rows.iter().map(row).collect()
}

fn measure(
    arm: Arm,
    clients: usize,
    tools: &Tools,
    root: &Path,
    folder: &Path,
    time: Duration,
) -> Result<Row> {
    let mut site = arm.start(tools, root, &[])?;
    answered(&site, LOADS[0])?;
    let (requests, server) = look(&site, site.server(), clients, folder, time)?;
    let engine = site.engine();
    let engine = engine.map(|engine| look(&site, engine, clients, folder, time));
    let engine = engine.transpose()?;
    Ok(Row {
        arm: arm.name(),
        clients,
        requests,
        own_per_request: calls(&site.end_server()?)?,
        server_per_request: server,
        engine_per_request: engine.map(|(_, calls)| calls),
    })
}

/// Requests in a time, and the calls of one process for each.
fn look(
    site: &Site,
    process: u32,
    clients: usize,
    folder: &Path,
    time: Duration,
) -> Result<(usize, f64)> {
    let tracer = Tracer::attach(process, folder)?;
    let requests = requests::clients(site, clients, LOADS[0], time)?.len();
    ensure!(requests > 10, "{requests} requests");
    Ok((requests, tracer.end()? / requests as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_of_strace_has_its_total() {
        let text = "% time     seconds  usecs/call     calls    errors syscall\n\
                    ------ ----------- ----------- --------- --------- ----------------\n\
                    100.00    0.000042           2        17         3 poll\n\
                    ------ ----------- ----------- --------- --------- ----------------\n\
                    100.00    0.000042           2        17         3 total\n";
        assert_eq!(total(text).expect("a number"), 17.0);
        assert_eq!(total("").expect("none"), 0.0);
    }
}
