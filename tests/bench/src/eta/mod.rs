//! A web server through the packet processing engine beside the same server through the kernel.
//!
//! ```text
//!   clients, in a namespace ── TAP ── ppe ── queues ── userver        dusi
//!   clients, in a namespace ── veth ── kernel ── epoll ── userver     epoll
//! ```
//!
//! Eight clients with a request under way each ask as fast as they are answered. All arms run in
//! each round, in changing order, and `dusi` twice: what its two rows differ by is noise. The cables
//! are not equal: the kernel's carries super-frames that no segment of 1500 bytes is cut from, and
//! each packet through a TAP device costs the engine a system call. Behind the card all have the
//! same wire and the same firmware.

mod arms;
mod arrivals;
mod clients;
mod crowd;
mod offer;
mod outside;
mod overload;
mod page;
mod soak;

pub use soak::run as soak;

use arms::{Arm, CARD, WIRE};

use crate::report::write_json;
use anyhow::{Context, Result, bail, ensure};
use comfy_table::{Table, presets::UTF8_BORDERS_ONLY};
use serde::Serialize;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use testbed::eta::{ADDRESS, Site};
use testbed::net::namespace;
use testbed::setup::{self, Need};
use testbed::tools::Tools;

/// Clients.
const CLIENTS: usize = 8;
/// How long a server may take to begin, and an answer to come.
const PATIENCE: Duration = Duration::from_secs(10);
/// What is asked for.
#[derive(Debug, Clone, Copy)]
struct Load {
    name: &'static str,
    file: usize,
    persistent: bool,
}

const LOADS: [Load; 3] = [
    Load {
        name: "1 kB, persistent",
        file: 1_000,
        persistent: true,
    },
    Load {
        name: "10 kB, persistent",
        file: 10_000,
        persistent: true,
    },
    Load {
        name: "1 kB, one connection each",
        file: 1_000,
        persistent: false,
    },
];

/// One arm under one load in one round.
#[derive(Debug, Clone, Serialize)]
struct Row {
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

/// One part of the bench.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// System calls of a request, by strace.
    Calls,
    /// Requests and processor time of each arm.
    Rates,
    /// Replies up to twice saturation, for each accept policy.
    Overload,
    /// How long replies take at fixed rates of connections.
    Arrivals,
    /// curl, wrk, httperf, h2load and nmap.
    Clients,
    /// A hundred active connections among ten thousand.
    Crowd,
}

/// Measures and reports; `store` puts the figures of all parts into the page.
///
/// # Errors
/// Without the privilege for namespaces, and if a server does not answer.
pub fn run(quick: bool, store: bool, only: Option<Part>) -> Result<()> {
    setup::ensure(&[Need::Firmware, Need::Qemu, Need::Traffic, Need::Web])?;
    namespace::permitted()?;
    let (rounds, seconds) = if quick { (1, 1) } else { (7, 2) };
    let mut summary = page::Summary {
        rounds,
        seconds,
        processors: std::thread::available_parallelism()?.get(),
        load: load_average()?,
        ..page::Summary::default()
    };
    let tools = Tools::build()?;
    let folder = tempfile::tempdir()?;
    for load in LOADS {
        std::fs::write(
            folder.path().join(load.file.to_string()),
            vec![b'x'; load.file],
        )?;
    }
    let report = |name: &str, path: Result<std::path::PathBuf>| {
        path.map(|path| println!("report of {name}: {}", path.display()))
    };
    let wanted = |part| only.is_none_or(|only| only == part);
    let time = Duration::from_secs(seconds);
    if wanted(Part::Calls) {
        let outside = outside::run(&tools, folder.path(), time)?;
        report("calls", write_json("bench-eta-calls", &outside))?;
        summary.calls = outside::summary(&outside);
    }
    if wanted(Part::Rates) {
        let rows = arms_in_turn(rounds, &tools, folder.path(), time)?;
        print(&rows);
        report("arms", write_json("bench-eta", &rows))?;
        summary.rates = rates(&rows);
    }
    if wanted(Part::Overload) {
        let (overload, lines) = overload::run(quick)?;
        report("overload", write_json("bench-eta-overload", &overload))?;
        summary.overload = lines;
    }
    if wanted(Part::Arrivals) {
        let (rows, lines) = arrivals::run(folder.path(), quick)?;
        report("arrivals", write_json("bench-eta-arrivals", &rows))?;
        summary.arrivals = lines;
    }
    if wanted(Part::Clients) {
        let said = clients::run(folder.path())?;
        report("clients", write_json("bench-eta-clients", &said))?;
        summary.clients = clients::summary(&said);
    }
    if wanted(Part::Crowd) {
        let crowd = crowd::run(folder.path(), quick)?;
        report("crowd", write_json("bench-eta-crowd", &crowd))?;
        summary.crowd = crowd::summary(&crowd);
    }
    if only.is_none() {
        report("the page", write_json("bench-eta-page", &summary))?;
    }
    if store {
        page::store(&summary)?;
        println!("stored: {}, {}", page::STORED, page::PAGE);
    }
    Ok(())
}

/// All arms under all loads, in another order in each round.
fn arms_in_turn(
    rounds: u32,
    tools: &Tools,
    root: &std::path::Path,
    time: Duration,
) -> Result<Vec<Row>> {
    let arms = [&WIRE[..], &CARD[..]].concat();
    let mut rows = Vec::new();
    for round in 0..rounds {
        for load in LOADS {
            for place in 0..arms.len() {
                let arm = arms[(place * 3 + round as usize) % arms.len()];
                let row = measure(load, arm, round, tools, root, time)?;
                println!(
                    "{}, {}: {:.0} requests/s",
                    load.name, row.arm, row.requests_per_s
                );
                rows.push(row);
            }
        }
    }
    Ok(rows)
}

/// Programs that want a processor, over the last minute.
fn load_average() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/loadavg")?;
    let first = text.split_whitespace().next().context("no load average")?;
    Ok(first.parse()?)
}

/// Medians of the rounds.
fn rates(rows: &[Row]) -> Vec<page::Rate> {
    let arms = [&WIRE[..], &CARD[..]].concat();
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
    root: &std::path::Path,
    time: Duration,
) -> Result<Row> {
    let mut site = arm.start(tools, root, &[])?;
    let card: Vec<u32> = site.card().into_iter().collect();
    let (before, machine, latencies) = std::thread::scope(|scope| {
        let site = &site;
        answered(site, load)?;
        let (before, machine) = (cpu(&site.processes())?, arms::busy(&card)?);
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                scope.spawn(move || {
                    site.namespace.enter()?;
                    client(load, time)
                })
            })
            .collect();
        let mut latencies = Vec::new();
        for client in clients {
            latencies.extend(joined(client)?);
        }
        anyhow::Ok((before, machine, latencies))
    })?;
    let used = cpu(&site.processes())? - before;
    let machine = arms::busy(&card)?.saturating_sub(machine);
    let mut latencies = latencies;
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

/// Waits for a first answer: then addresses are known, and the file is in the cache.
fn answered(site: &Site, load: Load) -> Result<()> {
    std::thread::scope(|scope| {
        let first = scope.spawn(move || {
            site.namespace.enter()?;
            let start = Instant::now();
            while let Err(error) = client(load, Duration::from_millis(50)) {
                ensure!(start.elapsed() < PATIENCE, "no answer: {error:#}");
                std::thread::sleep(Duration::from_millis(20));
            }
            Ok(())
        });
        joined(first)
    })
}

/// As [`answered`], with the first load.
fn first_answer(site: &Site) -> Result<()> {
    answered(site, LOADS[0])
}

fn joined<T>(thread: std::thread::ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    match thread.join() {
        Ok(result) => result,
        Err(_) => bail!("a client panicked"),
    }
}

/// Asks for a time; how long each answer took, in microseconds.
fn client(load: Load, time: Duration) -> Result<Vec<u32>> {
    let at: SocketAddr = format!("{ADDRESS}:80").parse()?;
    let connection = if load.persistent {
        "keep-alive"
    } else {
        "close"
    };
    let request = format!(
        "GET /{} HTTP/1.1\r\nHost: bench\r\nConnection: {connection}\r\n\r\n",
        load.file
    );
    let start = Instant::now();
    let mut latencies = Vec::new();
    let mut kept: Option<TcpStream> = None;
    let mut buffer = vec![0; 64 * 1024];
    while start.elapsed() < time {
        let asked = Instant::now();
        let mut stream = match kept.take() {
            Some(stream) => stream,
            None => {
                let stream = TcpStream::connect_timeout(&at, PATIENCE)?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                stream
            }
        };
        stream.write_all(request.as_bytes())?;
        let (mut got, mut expected) = (0, None);
        while expected.is_none_or(|expected| got < expected) {
            let count = stream.read(&mut buffer[got..])?;
            ensure!(count > 0, "a reply was cut after {got} bytes");
            got += count;
            if expected.is_none() {
                let end = buffer[..got]
                    .windows(4)
                    .position(|four| four == b"\r\n\r\n");
                expected = end.map(|end| end + 4 + load.file);
            }
        }
        ensure!(buffer.starts_with(b"HTTP/1.1 200"), "another reply");
        latencies.push(asked.elapsed().as_micros() as u32);
        if load.persistent {
            kept = Some(stream);
        }
    }
    Ok(latencies)
}

/// Processor time of processes so far.
fn cpu(processes: &[u32]) -> Result<Duration> {
    let mut ticks = 0;
    for process in processes {
        let text = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
        // The program's name may have spaces in its parentheses.
        let (_, rest) = text.rsplit_once(')').context("no process")?;
        let mut fields = rest.split_whitespace().skip(11);
        for _ in 0..2 {
            let field = fields.next().context("no processor time")?;
            ticks += field.parse::<u64>()?;
        }
    }
    Ok(Duration::from_millis(ticks * 10))
}

/// System calls for each request, by a server's last words.
fn calls(said: &str) -> Result<f64> {
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

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn print(rows: &[Row]) {
    let mut table = Table::new();
    table.load_style(UTF8_BORDERS_ONLY);
    table.set_header([
        "load",
        "arm",
        "requests/s",
        "from, to",
        "p50 us",
        "p99 us",
        "CPU us",
        "machine us",
        "calls",
    ]);
    for load in LOADS {
        for arm in [&WIRE[..], &CARD[..]].concat() {
            let these = || {
                let name = arm.name();
                rows.iter()
                    .filter(move |row| row.load == load.name && row.arm == name)
            };
            let of = |value: fn(&Row) -> f64| median(these().map(value).collect());
            let rates = || these().map(|row| row.requests_per_s);
            let (least, most) = (
                rates().fold(f64::INFINITY, f64::min),
                rates().fold(0.0, f64::max),
            );
            table.add_row([
                load.name.to_owned(),
                arm.name().to_owned(),
                format!("{:.0}", of(|row| row.requests_per_s)),
                format!("{least:.0}, {most:.0}"),
                format!("{:.0}", of(|row| f64::from(row.p50_us))),
                format!("{:.0}", of(|row| f64::from(row.p99_us))),
                format!("{:.1}", of(|row| row.cpu_us_per_request)),
                format!("{:.1}", of(|row| row.machine_us_per_request)),
                format!("{:.3}", of(|row| row.server_calls_per_request)),
            ]);
        }
    }
    println!("{table}");
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
