//! Runs iperf3 in one Linux guest, alternately through our card and through QEMU's own e1000.
//!
//! ```text
//!   guest  eth0  the card, acenic, our firmware ---- TAP  namespace 10.77.0.2
//!          eth1  e1000 ----------------------------- TAP  namespace 10.78.0.2
//! ```
//!
//! Both use the same guest, the same QEMU and one TAP device each, so the comparison covers the
//! device and its driver.

use crate::report::write_json;
use crate::rounds::{LINUX, Rounds, median};
use anyhow::{Context, Result};
use comfy_table::{Table, presets::UTF8_BORDERS_ONLY};
use serde::Serialize;
use std::time::Duration;
use testbed::card::Card;
use testbed::conditions::DmaChannels;
use testbed::guest::peer::Peer;
use testbed::guest::{Guest, GuestOptions, GuestTools, peer};
use testbed::net::iperf::{self, Direction, Protocol, Throughput};
use testbed::net::namespace::{self, Namespace};
use testbed::qemu_build::{self, Target};
use testbed::setup::{self, Need};
use testbed::tools::Tools;

/// The e1000's side: the guest and its peer.
const E1000: (&str, &str) = ("10.78.0.1", "10.78.0.2");

/// What UDP is offered, in Mb/s: more than either carries, so that what arrives
/// is what they carry.
const OFFERED_OUT: u32 = 2000;
/// Towards the guest less: beyond what it can take it only drops.
const OFFERED_IN: u32 = 400;

/// Every run of a round.
const RUNS: [(&str, Protocol, Direction); 4] = [
    ("tcp_out", Protocol::Tcp, Direction::Out),
    ("tcp_in", Protocol::Tcp, Direction::In),
    ("udp_out", Protocol::Udp(OFFERED_OUT), Direction::Out),
    ("udp_in", Protocol::Udp(OFFERED_IN), Direction::In),
];

/// One kind of run: the medians over all rounds, in Mb/s of payload that arrived.
#[derive(Debug, Serialize)]
struct Compared {
    run: &'static str,
    card_mbps: f64,
    e1000_mbps: f64,
    /// Card by e1000.
    ratio: f64,
    card_rounds: Vec<Throughput>,
    e1000_rounds: Vec<Throughput>,
}

/// `target/reports/bench-guest.json`.
#[derive(Debug, Serialize)]
struct Report {
    engine: &'static str,
    /// Linux' driver has both work.
    dma_channels: DmaChannels,
    accelerator: String,
    kernel: String,
    seconds: u32,
    rounds: u32,
    runs: Vec<Compared>,
}

/// A device of the guest with a peer.
struct Side<'a> {
    name: &'static str,
    peer: &'a Namespace,
    address: String,
}

/// Measures and reports.
///
/// # Errors
/// Without the privilege, when something does not come up, and when it carries nothing.
pub fn run(rounds: Rounds) -> Result<()> {
    namespace::privileged().context(LINUX)?;
    setup::ensure(&[Need::Firmware, Need::Qemu, Need::Guest, Need::Traffic])?;
    namespace::permitted().context(LINUX)?;
    qemu_build::ensure(&[Target::Mips, Target::X86_64])?;
    let tools = Tools::build()?;
    let guests = GuestTools::build()?;
    println!("bench: starting the guest with the card and an e1000 in it");
    let peers = peer::start(&tools, Peer::Linux, 1)?;
    let e1000 = Namespace::create("e1000")?;
    let tap = format!("tge{}", std::process::id());
    let guest = start(&tools, &guests, &peers, &tap)?;
    e1000.adopt(&tap, &format!("{}/24", E1000.1))?;
    let (own, other) = peer::addresses(0);
    guest.load_driver(1)?;
    guest.bring_up("eth0", &format!("{own}/24"))?;
    guest.sh("modprobe e1000")?;
    guest.bring_up("eth1", &format!("{}/24", E1000.0))?;
    let card = Side {
        name: "the card",
        peer: peers.namespace(0).context("the card has no peer")?,
        address: other.to_string(),
    };
    let e1000 = Side {
        name: "the e1000",
        peer: &e1000,
        address: E1000.1.into(),
    };
    let mut results: [[Vec<Throughput>; 2]; RUNS.len()] = Default::default();
    for round in 1..=rounds.count {
        for ((name, protocol, direction), results) in RUNS.iter().zip(&mut results) {
            for (side, results) in [&card, &e1000].into_iter().zip(results) {
                println!(
                    "bench: round {round} of {}: {name}, {}",
                    rounds.count, side.name
                );
                results.push(side.run(&guest, *protocol, *direction, rounds.seconds)?);
            }
        }
    }
    let report = Report {
        engine: "qemu",
        dma_channels: DmaChannels::Both,
        accelerator: format!("{:?}", guest.accelerator()).to_lowercase(),
        kernel: guest.sh("uname -r")?,
        seconds: rounds.seconds,
        rounds: rounds.count,
        runs: RUNS
            .iter()
            .zip(results)
            .map(|((name, ..), [card, e1000])| compare(name, card, e1000))
            .collect(),
    };
    println!("bench: with {}\n{}", report.dma_channels, table(&report));
    println!("report: {}", write_json("bench-guest", &report)?.display());
    Ok(())
}

fn start(tools: &Tools, guests: &GuestTools, peers: &peer::Peers, tap: &str) -> Result<Guest> {
    let netdev = format!("tap,id=e1000,ifname={tap},script=no,downscript=no");
    let devices = ["-netdev", &netdev, "-device", "e1000,netdev=e1000,romfile="];
    let options = GuestOptions {
        cards: peers.cards().map(Card::socket).collect(),
        firmware: tools.firmware.image()?,
        devices: devices.map(str::to_owned).to_vec(),
        ..GuestOptions::default()
    };
    Guest::start(guests, &options)
}

impl Side<'_> {
    fn run(
        &self,
        guest: &Guest,
        protocol: Protocol,
        direction: Direction,
        seconds: u32,
    ) -> Result<Throughput> {
        let words = iperf::client_words(&self.address, protocol, direction, seconds);
        let command = format!("iperf3 {}", words.join(" "));
        let limit = Duration::from_secs(u64::from(seconds) + 60);
        iperf::against(self.peer, &self.address, protocol, || {
            let output = guest.run(&command, limit)?;
            Ok((output.stdout, output.stderr))
        })
        .with_context(|| format!("through {}", self.name))
    }
}

fn compare(run: &'static str, card: Vec<Throughput>, e1000: Vec<Throughput>) -> Compared {
    let middle =
        |rounds: &[Throughput]| median(&rounds.iter().map(|round| round.mbps).collect::<Vec<_>>());
    let (card_mbps, e1000_mbps) = (middle(&card), middle(&e1000));
    Compared {
        run,
        card_mbps,
        e1000_mbps,
        ratio: card_mbps / e1000_mbps,
        card_rounds: card,
        e1000_rounds: e1000,
    }
}

fn table(report: &Report) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_BORDERS_ONLY);
    table.set_header(["iperf3 in the guest", "card, Mb/s", "e1000, Mb/s", "ratio"]);
    for row in &report.runs {
        table.add_row([
            row.run.replace('_', " "),
            format!("{:.0}", row.card_mbps),
            format!("{:.0}", row.e1000_mbps),
            format!("{:.3}", row.ratio),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_is_that_of_the_medians() {
        let rounds = |values: &[f64]| {
            let round = |mbps: &f64| Throughput {
                mbps: *mbps,
                ..Throughput::default()
            };
            values.iter().map(round).collect::<Vec<_>>()
        };
        let compared = compare("tcp_in", rounds(&[90.0, 300.0, 110.0]), rounds(&[55.0]));
        assert_eq!((compared.card_mbps, compared.ratio), (110.0, 2.0));
    }
}
