//! `cargo xtask bench`: how fast it is, beside what it could be at most.

use crate::report::write_json;
use crate::trace::Way;
use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use comfy_table::{Table, presets::UTF8_BORDERS_ONLY};
use host_driver::tap::Tap;
use serde::Serialize;
use std::path::PathBuf;
use testbed::conditions::{Conditions, DmaChannels, HostKind};
use testbed::firmware::choice;
use testbed::hosts::{self, HOST, PEER, Testbed};
use testbed::net::iperf::{self, Direction, Protocol};
use testbed::net::namespace::{self, Namespace};
use testbed::setup::{self, Need};
use testbed::tools::Tools;

/// Why no other stack will do.
pub(crate) const LINUX: &str = "the comparison needs Linux on both sides";

/// What to measure.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// What runs the card
    #[arg(long, value_enum, default_value_t = Engine::Sim)]
    pub engine: Engine,
    /// qemu: in a Linux guest: the card beside QEMU's own e1000
    #[arg(long)]
    pub guest: bool,
    /// sim: fewer sizes and shorter looks
    #[arg(long)]
    pub quick: bool,
    /// sim: only this experiment, with a row for each firmware
    #[arg(long, value_enum, conflicts_with_all = ["golden", "sensitivity", "placements", "speed"])]
    pub experiment: Option<Way>,
    /// sim: only datagrams of so many bytes
    #[arg(long, value_name = "BYTES", value_parser = datagram,
          conflicts_with_all = ["golden", "sensitivity", "placements", "speed"])]
    pub datagram: Option<usize>,
    /// sim: a firmware image in the drivers' load format, instead of this project's
    #[arg(long, value_name = "FILE")]
    pub firmware: Option<PathBuf>,
    /// DMA channels that move data at a time; if it is not said, one with --firmware, else both
    #[arg(long, value_enum, conflicts_with_all = ["golden", "speed", "guest"])]
    pub dma_channels: Option<DmaChannels>,
    /// sim: whose host the card has
    #[arg(long, value_enum, default_value_t = HostKind::Driver,
          conflicts_with_all = ["golden", "speed", "guest"])]
    pub host: HostKind,
    /// sim: the timing profile of the board file, or "all" of them
    #[arg(long, default_value = "default")]
    pub profile: String,
    /// sim: write the golden tables anew, with the firmware of today
    #[arg(long, conflicts_with_all = ["quick", "sensitivity", "firmware"])]
    pub golden: bool,
    /// sim: what a change of each timing parameter does to the headline figures
    #[arg(long, conflicts_with = "quick")]
    pub sensitivity: bool,
    /// sim: both firmwares with code and data in scratch pads and in SRAM, as in the paper's
    /// Figures 7, 9, 11 and 13
    #[arg(long, conflicts_with_all = ["quick", "sensitivity", "firmware", "golden", "profile"])]
    pub placements: bool,
    /// sim: more CPUs than the chip has, on the boards with 10 Gb/s
    #[arg(long, conflicts_with_all = ["quick", "sensitivity", "firmware", "golden", "profile", "placements"])]
    pub beyond: bool,
    /// How fast both engines run the firmware, by this computer's clock
    #[arg(long, conflicts_with_all = ["engine", "guest", "quick", "firmware", "profile", "golden", "sensitivity", "placements", "beyond"])]
    pub speed: bool,
    /// Seconds of each run by this computer's clock: of iperf3, and of QEMU with --speed
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=600))]
    pub seconds: u32,
    /// How often the two are measured in turn; the medians are reported
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=50))]
    pub rounds: u32,
}

impl Arguments {
    /// What to measure under. Images of others are measured as in the timing model's
    /// calibration, which was made with such a one.
    pub fn conditions(&self) -> Conditions {
        let usual = match self.firmware {
            Some(_) => DmaChannels::One,
            None => DmaChannels::Both,
        };
        Conditions {
            dma_channels: self.dma_channels.unwrap_or(usual),
            host: self.host,
        }
    }
}

/// The bytes of a datagram that the experiments can number and a frame can hold.
fn datagram(text: &str) -> Result<usize, String> {
    let bytes = text
        .parse()
        .ok()
        .filter(|bytes| (18..=1472).contains(bytes));
    bytes.ok_or_else(|| format!("{text} is not from 18 to 1472"))
}

/// What runs the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Engine {
    /// The simulator: the paper's microbenchmarks in the card's own time
    Sim,
    /// The QEMU machine: functional speed on this host
    Qemu,
}

/// One direction's medians over all rounds, in Mb/s of TCP payload.
#[derive(Debug, Serialize)]
struct Compared {
    card_mbps: f64,
    copy_loop_mbps: f64,
    /// Card by copy loop.
    ratio: f64,
    card_rounds: Vec<f64>,
    copy_loop_rounds: Vec<f64>,
}

/// `target/reports/bench-qemu.json`.
#[derive(Debug, Serialize)]
struct Report {
    engine: &'static str,
    firmware: &'static str,
    dma_channels: DmaChannels,
    seconds: u32,
    rounds: u32,
    tcp_out: Compared,
    tcp_in: Compared,
}

/// One round: Mb/s out and in.
type Round = (f64, f64);

/// Measures and reports.
pub fn run(arguments: &Arguments) -> Result<()> {
    if arguments.speed {
        return crate::speed::run(arguments);
    }
    match (arguments.engine, arguments.guest) {
        (Engine::Sim, false) => return crate::simulated::run(arguments),
        (Engine::Sim, true) => bail!("a guest needs --engine qemu"),
        (Engine::Qemu, true) => return crate::guest::run(arguments),
        (Engine::Qemu, false) => {}
    }
    let dma_channels = arguments.dma_channels.unwrap_or_default();
    if arguments.host != HostKind::Driver {
        bail!("--host needs --engine sim");
    }
    namespace::privileged().context(LINUX)?;
    setup::ensure(&[Need::Firmware, Need::Qemu, Need::Traffic])?;
    namespace::permitted().context(LINUX)?;
    let tools = Tools::build()?;
    let mut card = Vec::new();
    let mut bare = Vec::new();
    for round in 1..=arguments.rounds {
        println!("bench: round {round} of {}: the card", arguments.rounds);
        card.push(through_card(&tools, dma_channels, arguments.seconds)?);
        println!(
            "bench: round {round} of {}: the copy loop",
            arguments.rounds
        );
        bare.push(through_copy_loop(arguments.seconds)?);
    }
    let report = Report {
        engine: "qemu",
        firmware: choice::chosen().0.name(),
        dma_channels,
        seconds: arguments.seconds,
        rounds: arguments.rounds,
        tcp_out: compare(&card, &bare, |round| round.0),
        tcp_in: compare(&card, &bare, |round| round.1),
    };
    println!("bench: with {dma_channels}\n{}", table(&report));
    println!("report: {}", write_json("bench-qemu", &report)?.display());
    Ok(())
}

fn through_card(tools: &Tools, dma_channels: DmaChannels, seconds: u32) -> Result<Round> {
    let options = hosts::Options {
        dma_channels,
        ..hosts::Options::default()
    };
    let mut testbed = Testbed::start(tools, &options)?;
    let round = tcp(&testbed.host, &testbed.peer, seconds);
    testbed.check()?;
    testbed.finish()?;
    round
}

/// The same two hosts and the same two TAP devices, joined by a copy loop.
fn through_copy_loop(seconds: u32) -> Result<Round> {
    let pid = std::process::id();
    let host = Namespace::create("host")?;
    let peer = Namespace::create("peer")?;
    let tap = |side: &str, station, namespace: &Namespace, address| -> Result<Tap> {
        let name = format!("tg{side}{pid}");
        let tap = Tap::create(&name, station, 1500, false)?;
        namespace.adopt(&name, &format!("{address}/24"))?;
        Ok(tap)
    };
    let left = tap("h", [2, 0x54, 0x47, 0, 0, 1], &host, HOST)?;
    let right = tap("w", [2, 0x54, 0x47, 0, 0, 2], &peer, PEER)?;
    let mut wire = crate::copy_loop::start(left, right);
    let round = tcp(&host, &peer, seconds);
    wire.join()?;
    round
}

fn tcp(host: &Namespace, peer: &Namespace, seconds: u32) -> Result<Round> {
    let run = |direction| iperf::run(host, peer, PEER, Protocol::Tcp, direction, seconds);
    Ok((run(Direction::Out)?.mbps, run(Direction::In)?.mbps))
}

fn compare(card: &[Round], bare: &[Round], direction: fn(&Round) -> f64) -> Compared {
    let card: Vec<f64> = card.iter().map(direction).collect();
    let bare: Vec<f64> = bare.iter().map(direction).collect();
    let (card_mbps, copy_loop_mbps) = (median(&card), median(&bare));
    Compared {
        card_mbps,
        copy_loop_mbps,
        ratio: card_mbps / copy_loop_mbps,
        card_rounds: card,
        copy_loop_rounds: bare,
    }
}

/// The middle value; the mean of the middle two of an even number.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

fn table(report: &Report) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_BORDERS_ONLY);
    table.set_header(["iperf3 TCP", "card, Mb/s", "copy loop, Mb/s", "ratio"]);
    for (name, row) in [("out", &report.tcp_out), ("in", &report.tcp_in)] {
        table.add_row([
            name.to_owned(),
            format!("{:.0}", row.card_mbps),
            format!("{:.0}", row.copy_loop_mbps),
            format!("{:.3}", row.ratio),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(&[]), 0.0);
    }

    #[test]
    fn the_ratio_is_that_of_the_medians() {
        let card = [(200.0, 100.0), (220.0, 90.0), (210.0, 110.0)];
        let bare = [(400.0, 400.0), (420.0, 500.0), (440.0, 600.0)];
        let out = compare(&card, &bare, |round| round.0);
        assert_eq!((out.card_mbps, out.copy_loop_mbps), (210.0, 420.0));
        assert_eq!(out.ratio, 0.5);
    }
}
