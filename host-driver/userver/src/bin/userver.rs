//! `userver`: serves the files of a folder through a packet processing engine, or the kernel.
#![forbid(unsafe_code)]

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Parser;
use dusi::{Sizes, Status, Ual};
use userver::epoll::KernelServer;
use userver::{AcceptPolicy, Server};

/// Longest sleep, and so the interval of checks of the stop flag.
const NAP: Duration = Duration::from_millis(100);

/// Serves the files of a folder over HTTP/1.0 and HTTP/1.1.
#[derive(Debug, Parser)]
#[command(after_help = "Example: userver --ppe ppe.sock --root /var/www --port 80")]
struct Arguments {
    /// Where the packet processing engine listens
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
    /// Connections at the same time
    #[arg(long, default_value_t = 4096)]
    connections: u32,
    /// Send replies from where they are, without a copy
    #[arg(long, conflicts_with = "kernel")]
    in_place: bool,
    /// How connections are accepted: every=N (steps), limit=N (at a time), or adaptive
    #[arg(long, default_value = "every=1,limit=16")]
    accept: AcceptPolicy,
    /// Megabytes for files and connections
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1024))]
    memory: u32,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let stop = Arc::new(AtomicBool::new(false));
    for signal in signal_hook::consts::TERM_SIGNALS {
        signal_hook::flag::register(*signal, stop.clone())?;
    }
    let Some(ppe) = &arguments.ppe else {
        return through_the_kernel(&arguments, &stop);
    };
    let sizes = Sizes {
        work: 1024,
        events: (arguments.connections * 4).next_power_of_two(),
        pool: arguments.memory << 20,
        sockets: arguments.connections,
        // 64 KB for each connection.
        anonymous: arguments.connections * 32,
        ..Sizes::default()
    };
    let ual =
        Ual::connect(ppe, sizes).with_context(|| format!("the engine at {}", ppe.display()))?;
    let mut server = Server::new(ual, &arguments.root, arguments.port)?;
    if arguments.in_place {
        server.send_in_place();
    }
    server.accept_by(arguments.accept);
    let mut told = false;
    while !stop.load(Ordering::Relaxed) {
        if server.step()? {
            continue;
        }
        match server.listening() {
            Some(Status::Ok) if !told => {
                told = true;
                eprintln!("userver: listening on port {}", arguments.port);
            }
            Some(Status::Ok) | None => {}
            Some(status) => bail!("port {}: {status:?}", arguments.port),
        }
        server.wait(NAP)?;
    }
    let (done, calls) = (server.statistics(), server.calls());
    eprintln!(
        "userver: {} connections, {} requests, {} given up, {} sleeps, {} doorbells",
        done.accepted, done.requests, done.given_up, calls.sleeps, calls.rings
    );
    Ok(())
}

fn through_the_kernel(arguments: &Arguments, stop: &AtomicBool) -> Result<()> {
    let address = arguments.kernel.context("--ppe or --kernel")?;
    let at = SocketAddr::new(address, arguments.port);
    let server = KernelServer::new(&arguments.root, at);
    let mut server = server.with_context(|| format!("listening at {at}"))?;
    server.accept_by(arguments.accept);
    eprintln!("userver: listening at {}", server.address()?);
    while !stop.load(Ordering::Relaxed) {
        server.step(NAP)?;
    }
    let done = server.statistics();
    eprintln!(
        "userver: {} connections, {} requests, {} given up, {} system calls",
        done.accepted, done.requests, done.given_up, server.calls
    );
    Ok(())
}
