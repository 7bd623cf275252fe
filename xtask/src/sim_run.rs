//! `cargo xtask sim-run`: the card in the simulator, in this one process.
//!
//! Driver and peer are smoltcp as in `qemu-run --stack smoltcp`; nothing else
//! runs beside them, no QEMU, no thread. The card's time goes on only while the
//! driver waits or touches the card, so the figures tell how fast the
//! simulation is on this machine, not how fast the card is.

use self::replay::Way;
use crate::conversation::{self, Volume};
use crate::firmware::{self, FirmwareOptions};
use crate::qemu_run::report::write_json;
use crate::setup::{self, Need};
use crate::trace::files;
use anyhow::{Context, Result};
use host_driver::{Config, Nic};
use std::path::PathBuf;
use std::time::Duration;
use tigon2_model::Board;
use tigon2_sim::SimTransport;
use wire::Peered;

pub mod replay;
mod wire;

/// A simulated card is slower than QEMU's.
const UDP_INTERVAL: Duration = Duration::from_millis(2);

/// On the card's clock.
const LINK: Duration = Duration::from_secs(10);

/// What to run, and how much of it.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// An image in the drivers' load format to use in place of our firmware
    #[arg(long, value_name = "FILE")]
    pub firmware: Option<PathBuf>,
    /// Echo requests of each size
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u16).range(1..))]
    pub count: u16,
    /// Seconds of each throughput run
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub seconds: u32,
    /// Write the run's last events to FILE, and as a page beside it
    #[arg(long, value_name = "FILE")]
    pub timeline: Option<PathBuf>,
    /// Send the frames of this capture out of the card, instead of traffic
    #[arg(
        long,
        value_name = "IN",
        requires = "pcap_out",
        conflicts_with = "timeline"
    )]
    pub pcap: Option<PathBuf>,
    /// Where to write what comes through the card
    #[arg(long, value_name = "OUT", requires = "pcap")]
    pub pcap_out: Option<PathBuf>,
    /// The capture's frames come from the wire, at its distances
    #[arg(long, requires = "pcap")]
    pub from_wire: bool,
}

/// Runs it, prints the report and writes it.
pub fn run(arguments: &Arguments) -> Result<()> {
    let image = match &arguments.firmware {
        Some(path) => firmware::file::read(path)?,
        None => {
            setup::ensure(&[Need::Firmware])?;
            firmware::build(FirmwareOptions::default())?.image()?
        }
    };
    if let (Some(input), Some(output)) = (&arguments.pcap, &arguments.pcap_out) {
        let way = if arguments.from_wire {
            Way::In
        } else {
            Way::Out
        };
        return replay::report(&image, input, output, way);
    }
    println!("sim-run: starting the card, loading the firmware, bringing the link up");
    let mut card = SimTransport::power_on(Board::default());
    let machine = card.machine();
    let peered = Peered::new(&mut card, conversation::peer());
    let mut nic = Nic::probe(peered, Config::default())?;
    nic.load(&image).context("the firmware does not start")?;
    nic.open()?;
    nic.wait_link(LINK)?;
    let volume = Volume {
        count: arguments.count,
        seconds: arguments.seconds,
        interval: UDP_INTERVAL,
    };
    if arguments.timeline.is_some() {
        machine.lock().record(files::recorder());
    }
    let report = conversation::hold(&mut nic, volume, "sim-run", "sim")?;
    let recorded = machine.lock().recorded();
    nic.shut_down()?;
    println!("{}", report.table());
    if let (Some(file), Some(timeline)) = (&arguments.timeline, recorded) {
        files::write_beside(file, "sim-run", &timeline)?;
    }
    println!("report: {}", write_json("sim-run", &report)?.display());
    Ok(())
}
