//! `userver`: serves the files of a folder through a packet processing engine, or the kernel.
#![forbid(unsafe_code)]

use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Parser;
use dusi::{Sizes, Status, Ual};
use userver::cache::Cache;
use userver::epoll::KernelServer;
use userver::{AcceptPolicy, DynamicPage, Limits, Server, Settings, Statistics};

/// Longest sleep, and so the interval of checks of the stop flag.
const NAP: Duration = Duration::from_millis(100);

/// Serves the files of a folder over HTTP/1.0 and HTTP/1.1.
#[derive(Debug, Parser)]
#[command(after_help = "Example: userver --ppe ppe.sock --root /var/www --port 80")]
struct Arguments {
    /// Socket where the packet processing engine listens
    #[arg(long, required_unless_present = "kernel")]
    ppe: Option<PathBuf>,
    /// Serve through the kernel at this address instead, with epoll
    #[arg(long, value_name = "ADDRESS", conflicts_with = "ppe")]
    kernel: Option<IpAddr>,
    /// The folder
    #[arg(long)]
    root: PathBuf,
    /// The port
    #[arg(long, default_value_t = 80)]
    port: u16,
    /// Most connections at the same time
    #[arg(long, default_value_t = 4096)]
    connections: u32,
    /// With --kernel: let the kernel send files from its page cache
    #[arg(long, requires = "kernel")]
    sendfile: bool,
    /// Servers on the port, each a process; through an engine they share one cache of files
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    copies: u32,
    /// The cache of another copy
    #[arg(long, hide = true)]
    cache: Option<PathBuf>,
    /// Seconds that a connection may be idle
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    idle: u64,
    /// Seconds that a request's header may take, and a reply beyond the time for its bytes
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    patience: u64,
    /// A page that is computed for each request, and how long that takes: /PATH=MICROSECONDS
    #[arg(long, value_name = "PAGE")]
    dynamic: Option<DynamicPage>,
    /// Send replies from where they are, without a copy
    #[arg(long, conflicts_with = "kernel")]
    in_place: bool,
    /// How connections are accepted: every=N (steps), limit=N (at a time), or adaptive
    #[arg(long, default_value = "every=1,limit=16")]
    accept: AcceptPolicy,
    /// Megabytes for files, and as many for connections
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1024))]
    memory: u32,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let stop = Arc::new(AtomicBool::new(false));
    for signal in signal_hook::consts::TERM_SIGNALS {
        signal_hook::flag::register(*signal, stop.clone())?;
    }
    let cache = match &arguments.cache {
        Some(path) => {
            stop_at_end_of_input(&stop);
            Cache::open(path).context("the other copy's cache")?
        }
        None => Cache::create(u64::from(arguments.memory) << 20)?,
    };
    if arguments.copies > 1 && arguments.cache.is_none() {
        return start_copies(&arguments, &cache, &stop);
    }
    match &arguments.ppe {
        Some(ppe) => through_an_engine(&arguments, ppe, cache, &stop),
        None => through_the_kernel(&arguments, &stop),
    }
}

fn settings(arguments: &Arguments) -> Settings {
    Settings {
        accepts: arguments.accept,
        limits: Limits {
            idle: Duration::from_secs(arguments.idle),
            patience: Duration::from_secs(arguments.patience),
        },
        in_place: arguments.in_place,
        shared: arguments.copies > 1,
        dynamic: arguments.dynamic.clone(),
    }
}

/// Starts the copies, and ends them when told to or when one of them has ended.
///
/// A copy ends when its standard input does. A signal could come before the copy handles it, and
/// would kill it; and a copy does not outlive this process, however that ends.
fn start_copies(arguments: &Arguments, cache: &Cache, stop: &AtomicBool) -> Result<()> {
    use std::os::fd::AsRawFd;
    let shared = format!(
        "/proc/{}/fd/{}",
        std::process::id(),
        cache.file().as_raw_fd()
    );
    let own = std::env::args_os().skip(1);
    let own: Vec<_> = own.collect();
    let mut copies = Vec::new();
    for _ in 0..arguments.copies {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(&own).arg("--cache").arg(&shared);
        copies.push(command.stdin(Stdio::piped()).spawn()?);
    }
    let mut first = None;
    while !stop.load(Ordering::Relaxed) && first.is_none() {
        std::thread::sleep(NAP);
        for copy in &mut copies {
            first = first.or(copy.try_wait()?);
        }
    }
    for copy in &mut copies {
        drop(copy.stdin.take());
    }
    let mut failed = None;
    for copy in &mut copies {
        let status = copy.wait()?;
        failed = failed.or((!status.success()).then_some(status));
    }
    match failed.or(first.filter(|_| !stop.load(Ordering::Relaxed))) {
        Some(status) => bail!("a copy has ended: {status}"),
        None => Ok(()),
    }
}

/// Stops a copy when the process that started it says so, or has ended.
fn stop_at_end_of_input(stop: &Arc<AtomicBool>) {
    let stop = stop.clone();
    std::thread::spawn(move || {
        // An error is an end, too.
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        stop.store(true, Ordering::Relaxed);
    });
}

fn through_an_engine(
    arguments: &Arguments,
    ppe: &std::path::Path,
    cache: Cache,
    stop: &AtomicBool,
) -> Result<()> {
    let sizes = Sizes {
        work: 1024,
        events: (arguments.connections * 4).next_power_of_two(),
        pool: arguments.memory << 20,
        sockets: arguments.connections,
        // Accepts posted at a time.
        depth: 64,
        // 64 KB for each connection.
        anonymous: arguments.connections * 32,
        ..Sizes::default()
    };
    let ual =
        Ual::connect(ppe, sizes).with_context(|| format!("the engine at {}", ppe.display()))?;
    let mut server = Server::new(
        ual,
        &arguments.root,
        arguments.port,
        cache,
        settings(arguments),
    )?;
    let mut told = false;
    while !stop.load(Ordering::Relaxed) {
        if server.step()? {
            continue;
        }
        match server.listening() {
            Some(Status::Ok) if !told => {
                told = true;
                say(&format!("listening on port {}", arguments.port));
            }
            Some(Status::Ok) | None => {}
            Some(status) => bail!("port {}: {status:?}", arguments.port),
        }
        server.wait(NAP)?;
    }
    say_done(server.statistics(), server.calls());
    Ok(())
}

fn through_the_kernel(arguments: &Arguments, stop: &AtomicBool) -> Result<()> {
    let address = arguments.kernel.context("--ppe or --kernel")?;
    let at = SocketAddr::new(address, arguments.port);
    let server = KernelServer::new(&arguments.root, at, settings(arguments), arguments.sendfile);
    let mut server = server.with_context(|| format!("listening at {at}"))?;
    say(&format!("listening at {}", server.address()?));
    while !stop.load(Ordering::Relaxed) {
        server.step(NAP)?;
    }
    say_done(server.statistics(), server.calls);
    Ok(())
}

/// Says what a server has done.
fn say_done(done: Statistics, calls: u64) {
    say(&format!(
        "{} connections, {} requests, {} given up, {} timed out, {calls} system calls",
        done.accepted, done.requests, done.given_up, done.timed_out
    ));
}

/// Says a line, with one write: lines of copies do not mix.
fn say(line: &str) {
    // Nobody may listen any more.
    let _ = std::io::stderr().write_all(format!("userver: {line}\n").as_bytes());
}
