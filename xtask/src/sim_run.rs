//! `cargo xtask sim-run`: runs the card in the simulator, in one process.
//!
//! Driver and peer are smoltcp as in `qemu-run --stack smoltcp`; there is no QEMU and no other
//! thread. The card's time advances only while the driver waits or accesses the card, so the
//! figures show the speed of the simulation on this machine, not the speed of the card.

use anyhow::{Context, Result};
use host_driver::Nic;
use host_driver::log::{LogBlock, LogReader, LogTexts, by_time};
use std::path::{Path, PathBuf};
use std::time::Duration;
use testbed::conditions::DmaChannels;
use testbed::judge;
use testbed::tools::{Given, given_or_built};
use tigon_bench::conversation::{self, Volume};
use tigon_bench::peered::Peered;
use tigon_bench::replay::{self, Way};
use tigon_bench::report::write_json;
use tigon_bench::trace::files;
use tigon2_model::Board;
use tigon2_sim::SimTransport;
use tigon2_sim::log::BesideTheCard;
use tigon2_sim::transport::SharedMachine;

/// A simulated card is slower than QEMU's.
const UDP_INTERVAL: Duration = Duration::from_millis(2);

/// On the card's clock.
const LINK: Duration = Duration::from_secs(10);

/// The firmware, the traffic and its amount.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Use this firmware image (drivers' load format) instead of the project's
    #[arg(long, value_name = "FILE")]
    pub firmware: Option<PathBuf>,
    /// DMA channels that move data at a time
    #[arg(long, value_enum, default_value_t = DmaChannels::Both)]
    pub dma_channels: DmaChannels,
    /// Echo requests of each size
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u16).range(1..))]
    pub count: u16,
    /// Seconds of each throughput run
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub seconds: u32,
    /// Write the run's last events to FILE, and to a page beside it
    #[arg(long, value_name = "FILE")]
    pub timeline: Option<PathBuf>,
    /// Print the firmware's log, read from the card's memory without the driver
    #[arg(long, conflicts_with_all = ["firmware", "pcap"])]
    pub log: bool,
    /// Send the frames of this capture out of the card, instead of traffic
    #[arg(
        long,
        value_name = "IN",
        requires = "pcap_out",
        conflicts_with = "timeline"
    )]
    pub pcap: Option<PathBuf>,
    /// Write the frames that come through the card to this file
    #[arg(long, value_name = "OUT", requires = "pcap")]
    pub pcap_out: Option<PathBuf>,
    /// Send the capture's frames from the wire, at their recorded intervals
    #[arg(long, requires = "pcap")]
    pub from_wire: bool,
}

/// Runs it, prints the report and writes it.
pub fn run(arguments: &Arguments) -> Result<()> {
    judge::can_be_made_if_given(arguments.timeline.as_ref())?;
    if let (Some(input), Some(output)) = (&arguments.pcap, &arguments.pcap_out) {
        judge::captures(input, output)?;
    }
    let Given { image, elf, .. } = given_or_built(arguments.firmware.as_ref(), false)?;
    if let (Some(input), Some(output)) = (&arguments.pcap, &arguments.pcap_out) {
        let way = if arguments.from_wire {
            Way::In
        } else {
            Way::Out
        };
        return replay::report(&image, input, output, way, arguments.dma_channels);
    }
    println!("sim-run: starting the card, loading the firmware, bringing the link up");
    let mut card = SimTransport::power_on(Board::default());
    let machine = card.machine();
    let peered = Peered::new(&mut card, conversation::peer());
    let mut nic = Nic::probe(peered, arguments.dma_channels.config())?;
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
    if let Some(elf) = elf.filter(|_| arguments.log) {
        print_log(&machine, &elf)?;
    }
    nic.shut_down()?;
    println!("{}", report.table());
    if let (Some(file), Some(timeline)) = (&arguments.timeline, recorded) {
        files::write_beside(file, "sim-run", &timeline)?;
    }
    println!("report: {}", write_json("sim-run", &report)?.display());
    Ok(())
}

/// What is in the rings of both CPUs, in the order of its times.
fn print_log(machine: &SharedMachine, elf: &Path) -> Result<()> {
    let named = || format!("ELF file {}", elf.display());
    let texts = LogTexts::parse(&std::fs::read(elf).with_context(named)?).with_context(named)?;
    let mut memory = BesideTheCard(machine);
    let block = LogBlock::find(&mut memory)?.context("the firmware has no log")?;
    texts.check(block.build).with_context(named)?;
    let frames = LogReader::new().read(&mut memory, &block)?;
    let mut lines = texts.decoder().decode(&frames);
    by_time(&mut lines);
    for line in lines {
        println!("{line}");
    }
    for (cpu, counts) in ["A", "B"].into_iter().zip(block.counts) {
        if counts.lost > 0 {
            println!("CPU {cpu}: {} messages found no room", counts.lost);
        }
    }
    Ok(())
}
