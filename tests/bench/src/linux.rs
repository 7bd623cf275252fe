//! Measures the card under QEMU, and the upper limit of this machine.
//!
//! ```text
//!   namespace host ── TAP ── driver ── card ── TAP ── namespace peer     the card
//!   namespace host ── TAP ──── a copy loop ─── TAP ── namespace peer     the copy loop
//! ```

use crate::report::write_json;
use crate::rounds::{LINUX, Rounds, median};
use anyhow::{Context, Result};
use comfy_table::{Table, presets::UTF8_BORDERS_ONLY};
use host_driver::tap::Tap;
use serde::Serialize;
use testbed::conditions::DmaChannels;
use testbed::firmware::choice;
use testbed::hosts::{self, HOST, PEER, Testbed};
use testbed::net::iperf::{self, Direction, Protocol};
use testbed::net::namespace::{self, Namespace};
use testbed::setup::{self, Need};
use testbed::tools::Tools;

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
///
/// # Errors
/// Without the privilege, when something does not come up, and when it carries nothing.
pub fn run(dma_channels: DmaChannels, rounds: Rounds) -> Result<()> {
    namespace::privileged().context(LINUX)?;
    setup::ensure(&[Need::Firmware, Need::Qemu, Need::Traffic])?;
    namespace::permitted().context(LINUX)?;
    let tools = Tools::build()?;
    let mut card = Vec::new();
    let mut bare = Vec::new();
    for round in 1..=rounds.count {
        println!("bench: round {round} of {}: the card", rounds.count);
        card.push(through_card(&tools, dma_channels, rounds.seconds)?);
        println!("bench: round {round} of {}: the copy loop", rounds.count);
        bare.push(through_copy_loop(rounds.seconds)?);
    }
    let report = Report {
        engine: "qemu",
        firmware: choice::chosen().0.name(),
        dma_channels,
        seconds: rounds.seconds,
        rounds: rounds.count,
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
    fn the_ratio_is_that_of_the_medians() {
        let card = [(200.0, 100.0), (220.0, 90.0), (210.0, 110.0)];
        let bare = [(400.0, 400.0), (420.0, 500.0), (440.0, 600.0)];
        let out = compare(&card, &bare, |round| round.0);
        assert_eq!((out.card_mbps, out.copy_loop_mbps), (210.0, 420.0));
        assert_eq!(out.ratio, 0.5);
    }
}
