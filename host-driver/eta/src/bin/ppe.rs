//! `ppe`: a packet processing engine as a process.
#![forbid(unsafe_code)]

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::{Parser, ValueEnum};
use eta::status::Status;
use eta::tap_wire::TapWire;
use eta::{Engine, EngineError, IdleMode, Quotas, Settings};
use host_driver::nic::ChecksumOffload;
use host_driver::peer::DatagramWire;
use host_driver::stack::card::CardWire;
use host_driver::stack::{Identity, Wire};
use host_driver::tap::Tap;
use host_driver::transport::vfio::Vfio;
use host_driver::transport::vfio_user::VfioUser;
use host_driver::{Config, Nic, Transport};
use smoltcp::wire::Ipv4Cidr;

/// Longest sleep, and so the interval of checks of the stop flag.
const NAP: Duration = Duration::from_millis(100);
/// How often the status socket is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// How long the card may take to get a link.
const LINK: Duration = Duration::from_secs(10);
/// Resets of a card that fails again within a second.
const MAX_RECOVERIES: u32 = 3;

/// How the engine waits.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Idle {
    Spin,
    Adaptive,
    Sleep,
}

/// Runs TCP/IP on one wire for applications that attach at a Unix socket.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:\n  \
    ppe --tap ppe0 --address 10.77.0.1/24 --listen ppe.sock\n  \
    ppe --socket card.sock --firmware parallel.bin --address 10.77.0.1/24 --listen ppe.sock")]
struct Arguments {
    /// The wire: the card behind this vfio-user socket
    #[arg(long, group = "wire", requires = "firmware")]
    socket: Option<PathBuf>,
    /// The wire: the card at this PCI address, by the kernel's VFIO
    #[arg(long, group = "wire", requires = "firmware")]
    pci: Option<host_driver::transport::vfio::PciAddress>,
    /// The wire: a new TAP device of this name
    #[arg(long, group = "wire")]
    tap: Option<String>,
    /// The wire: a pair of datagram sockets, one bound here, the other's named after a comma
    #[arg(long, group = "wire", value_name = "LOCAL,REMOTE")]
    datagram: Option<String>,
    /// Firmware of the card
    #[arg(long)]
    firmware: Option<PathBuf>,
    /// Own address and network
    #[arg(long, default_value = "10.77.0.1/24")]
    address: String,
    /// Socket where applications attach
    #[arg(long)]
    listen: PathBuf,
    /// Socket that answers requests for statistics: tigonctl --attach PATH stats
    #[arg(long)]
    status: Option<PathBuf>,
    /// Limits for applications, by user: see the engine's page
    #[arg(long, value_name = "FILE")]
    quotas: Option<PathBuf>,
    /// The engine's number among several, which its handles carry
    #[arg(long, default_value_t = 0)]
    number: u8,
    /// Processor to stay on
    #[arg(long)]
    cpu: Option<usize>,
    /// How to wait
    #[arg(long, value_enum, default_value = "adaptive")]
    idle: Idle,
    /// Largest packet on a TAP device or datagram wire
    #[arg(long, default_value_t = 1500, value_parser = clap::value_parser!(u16).range(576..=9000))]
    mtu: u16,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let stop = Arc::new(AtomicBool::new(false));
    for signal in signal_hook::consts::TERM_SIGNALS {
        signal_hook::flag::register(*signal, stop.clone())?;
    }
    if let Some(cpu) = arguments.cpu {
        let mut set = rustix::thread::CpuSet::new();
        if cpu >= rustix::thread::CpuSet::MAX_CPU {
            bail!("there is no processor {cpu}");
        }
        set.set(cpu);
        rustix::thread::sched_setaffinity(None, &set)
            .with_context(|| format!("processor {cpu}"))?;
    }
    let address = network(&arguments.address)?;
    // Locally administered, and different for each address.
    let [.., b, c, d] = address.address().octets();
    let station = [2, 0x77, 0, b, c, d];
    let identity = Identity { station, address };
    if let Some(name) = &arguments.tap {
        // The kernel's end of it has a station address of its own.
        let tap = Tap::create(name, [2, 0x78, 0, b, c, d], arguments.mtu, true)?;
        return run(
            TapWire::new(tap, arguments.mtu),
            identity,
            &arguments,
            &stop,
        );
    }
    if let Some(pair) = &arguments.datagram {
        let (local, remote) = pair.split_once(',').context("--datagram LOCAL,REMOTE")?;
        let wire = DatagramWire::bind(local.as_ref(), remote.as_ref())?;
        return run(wire.with_mtu(arguments.mtu), identity, &arguments, &stop);
    }
    let transport: Box<dyn Transport> = match (&arguments.socket, &arguments.pci) {
        (Some(socket), _) => Box::new(VfioUser::connect(socket)?),
        (None, Some(place)) => Box::new(Vfio::open(*place)?),
        (None, None) => bail!("which wire? Name one of --tap, --socket, --pci, --datagram"),
    };
    let firmware = arguments.firmware.as_ref().context("--firmware FILE")?;
    let firmware =
        std::fs::read(firmware).with_context(|| format!("firmware {}", firmware.display()))?;
    // The card sums, so that it can read payload where it is.
    let config = Config {
        send_checksums: ChecksumOffload::FULL,
        receive_checksums: ChecksumOffload::FULL,
        ..Config::default()
    };
    let mut nic = Nic::probe(transport, config)?;
    nic.load(&firmware)?;
    nic.open()?;
    nic.wait_link(LINK)?;
    let station = nic.station();
    let identity = Identity { station, address };
    run(CardWire::new(&mut nic), identity, &arguments, &stop)?;
    nic.shut_down()?;
    Ok(())
}

fn network(text: &str) -> Result<Ipv4Cidr> {
    let (address, bits) = text.split_once('/').context("an address is 10.77.0.1/24")?;
    let address: Ipv4Addr = address.parse().context("no IPv4 address")?;
    let bits: u8 = bits.parse().context("no length of a network")?;
    if !(1..=30).contains(&bits) {
        bail!("a network has 1 to 30 bits");
    }
    Ok(Ipv4Cidr::new(address, bits))
}

fn run<W: Wire>(
    wire: W,
    identity: Identity,
    arguments: &Arguments,
    stop: &AtomicBool,
) -> Result<()> {
    let settings = Settings {
        idle: match arguments.idle {
            Idle::Spin => IdleMode::Spin,
            Idle::Adaptive => IdleMode::Adaptive,
            Idle::Sleep => IdleMode::Sleep,
        },
        number: arguments.number,
        ..Settings::default()
    };
    let quotas = arguments
        .quotas
        .as_ref()
        .map(|path| Quotas::read(path).with_context(|| format!("quotas {}", path.display())));
    let quotas = quotas.transpose()?;
    let mut engine = Engine::with_settings(wire, identity, settings)?;
    if let Some(quotas) = quotas {
        engine.set_quotas(quotas);
    }
    engine
        .listen(&arguments.listen)
        .with_context(|| format!("listening at {}", arguments.listen.display()))?;
    let status = arguments.status.as_deref().map(Status::bind).transpose()?;
    let (mut looked, mut failed, mut failures) = (Instant::now(), None, 0);
    while !stop.load(Ordering::Relaxed) {
        match engine.turn(NAP) {
            Ok(()) => {}
            Err(EngineError::Wire(error)) => {
                let again = failed.replace(Instant::now());
                let soon = again.is_some_and(|last: Instant| last.elapsed().as_secs() < 1);
                failures = if soon { failures + 1 } else { 1 };
                // Connections live on: what was on the wire is sent again.
                if failures > MAX_RECOVERIES || !engine.wire().recover(&error)? {
                    return Err(error.into());
                }
            }
            Err(error) => return Err(error.into()),
        }
        if let Some(status) = &status
            && looked.elapsed() >= LOOK
        {
            looked = Instant::now();
            status.serve(&engine);
        }
    }
    Ok(())
}
