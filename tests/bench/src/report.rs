//! The results of `qemu-run`: a table for people, JSON for programs.

use anyhow::{Context, Result};
use comfy_table::{Table, presets::UTF8_BORDERS_ONLY};
use host_driver::nic::NicStatistics;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use testbed::conditions::DmaChannels;
use testbed::net::iperf::Throughput;
use testbed::net::ping::Ping;
use testbed::paths;

/// The whole report, as it stands in `target/reports/qemu-run.json`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// What the card ran on: `qemu`.
    pub engine: String,
    /// Whose network stacks talked: `linux` or `smoltcp`.
    pub stack: String,
    /// How many DMA channels moved data at a time.
    pub dma_channels: DmaChannels,
    /// The firmware's version, as it reports it.
    pub firmware_version: String,
    /// Echo requests and replies, all runs added up.
    pub ping: PingReport,
    /// Throughput, by protocol and direction.
    pub iperf: IperfReport,
    /// What went through the card.
    #[serde(flatten)]
    pub card: CardReport,
}

/// All runs of ping.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PingReport {
    /// Requests sent.
    pub sent: u32,
    /// Replies received.
    pub received: u32,
    /// Each run, with its distribution of round-trip times.
    pub runs: Vec<Ping>,
}

/// All runs of iperf3; *out* is from the host through the card.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[allow(missing_docs)] // the names say it; the units are Mb/s and datagrams
pub struct IperfReport {
    pub tcp_mbps_out: f64,
    pub tcp_mbps_in: f64,
    pub tcp_retransmits_out: u64,
    pub tcp_retransmits_in: u64,
    pub udp_mbps_out: f64,
    pub udp_mbps_in: f64,
    pub udp_datagrams_out: u64,
    pub udp_datagrams_in: u64,
    pub udp_lost_out: u64,
    pub udp_lost_in: u64,
}

/// The card's and the driver's own counts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CardReport {
    /// Frames that the driver gave to the card and that left it.
    pub frames_tx: u64,
    /// Frames that the card gave to the driver.
    pub frames_rx: u64,
    /// Bytes in the former, without CRC.
    pub bytes_tx: u64,
    /// Bytes in the latter, without CRC.
    pub bytes_rx: u64,
    /// Interrupts that reached the driver.
    pub interrupts: u64,
    /// Frames dropped anywhere between the two stacks.
    pub drops: u64,
    /// The same by reason, where it is not zero.
    pub drop_reasons: BTreeMap<String, u64>,
    /// How often the firmware ran each handler.
    pub handlers: BTreeMap<String, u64>,
}

impl Report {
    /// Adds a run of ping.
    pub fn add_ping(&mut self, run: Ping) {
        self.ping.sent += run.sent;
        self.ping.received += run.received;
        self.ping.runs.push(run);
    }

    /// Sets the TCP results.
    pub fn set_tcp(&mut self, out: Throughput, into: Throughput) {
        self.iperf.tcp_mbps_out = out.mbps;
        self.iperf.tcp_mbps_in = into.mbps;
        self.iperf.tcp_retransmits_out = out.retransmits;
        self.iperf.tcp_retransmits_in = into.retransmits;
    }

    /// Sets the UDP results.
    pub fn set_udp(&mut self, out: Throughput, into: Throughput) {
        self.iperf.udp_mbps_out = out.mbps;
        self.iperf.udp_mbps_in = into.mbps;
        self.iperf.udp_datagrams_out = out.datagrams;
        self.iperf.udp_datagrams_in = into.datagrams;
        self.iperf.udp_lost_out = out.lost;
        self.iperf.udp_lost_in = into.lost;
    }

    /// Writes the JSON and returns where it lies.
    pub fn write(&self) -> Result<PathBuf> {
        write_json("qemu-run", self)
    }

    /// The table for people.
    pub fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_style(UTF8_BORDERS_ONLY);
        let mut row = |name: &str, value: String| {
            table.add_row([name, &value]);
        };
        row("engine, stacks", format!("{}, {}", self.engine, self.stack));
        row("card", format!("{}", self.dma_channels));
        row("firmware", self.firmware_version.clone());
        for run in &self.ping.runs {
            let time = run.round_trip_us;
            row(
                &format!("ping {} B", run.payload),
                format!(
                    "{} of {} came back; us: p50 {}  p90 {}  p99 {}  max {}",
                    run.received, run.sent, time.p50, time.p90, time.p99, time.max
                ),
            );
        }
        let iperf = &self.iperf;
        let tcp = |mbps, again| format!("{mbps:.0} Mb/s, {again} retransmitted");
        row(
            "TCP out",
            tcp(iperf.tcp_mbps_out, iperf.tcp_retransmits_out),
        );
        row("TCP in", tcp(iperf.tcp_mbps_in, iperf.tcp_retransmits_in));
        let udp = |mbps, lost, all| format!("{mbps:.0} Mb/s, {lost} of {all} lost");
        row(
            "UDP out",
            udp(
                iperf.udp_mbps_out,
                iperf.udp_lost_out,
                iperf.udp_datagrams_out,
            ),
        );
        row(
            "UDP in",
            udp(iperf.udp_mbps_in, iperf.udp_lost_in, iperf.udp_datagrams_in),
        );
        let card = &self.card;
        let volume = |frames, bytes| format!("{frames} frames, {bytes} bytes");
        row("sent", volume(card.frames_tx, card.bytes_tx));
        row("received", volume(card.frames_rx, card.bytes_rx));
        row("interrupts", card.interrupts.to_string());
        row("drops", counts(card.drops, &card.drop_reasons));
        let runs = card.handlers.values().sum();
        row("handlers", counts(runs, &card.handlers));
        table
    }
}

impl From<&NicStatistics> for CardReport {
    fn from(statistics: &NicStatistics) -> Self {
        let nonzero = |counts: &[(&'static str, u64)]| -> BTreeMap<String, u64> {
            counts
                .iter()
                .filter(|(_, count)| *count > 0)
                .map(|(name, count)| ((*name).to_owned(), *count))
                .collect()
        };
        let mut reasons = nonzero(&statistics.driver_drops.0);
        for (reason, count) in nonzero(&statistics.firmware_drops.0) {
            *reasons.entry(format!("firmware: {reason}")).or_default() += count;
        }
        let driver = &statistics.driver;
        CardReport {
            frames_tx: driver.frames_sent,
            frames_rx: driver.frames_received,
            bytes_tx: driver.bytes_sent,
            bytes_rx: driver.bytes_received,
            interrupts: driver.interrupts,
            drops: reasons.values().sum(),
            drop_reasons: reasons,
            handlers: nonzero(&statistics.handlers.0),
        }
    }
}

/// Writes `target/reports/<name>.json`.
pub fn write_json(name: &str, report: &impl Serialize) -> Result<PathBuf> {
    let folder = paths::reports();
    let path = folder.join(format!("{name}.json"));
    std::fs::create_dir_all(&folder)
        .and_then(|()| std::fs::write(&path, serde_json::to_string_pretty(report)? + "\n"))
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

fn counts(sum: u64, parts: &BTreeMap<String, u64>) -> String {
    let parts: Vec<String> = parts
        .iter()
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    if parts.is_empty() {
        return sum.to_string();
    }
    format!("{sum}: {}", parts.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names that programs rely on.
    #[test]
    fn the_promised_names_are_there() {
        let mut report = Report::default();
        report.add_ping(Ping {
            payload: 56,
            sent: 1000,
            received: 999,
            ..Ping::default()
        });
        report.card.drops = 1;
        let json = serde_json::to_value(&report).unwrap();
        for path in [
            "/engine",
            "/dma_channels",
            "/firmware_version",
            "/ping/sent",
            "/ping/received",
            "/iperf/tcp_mbps_out",
            "/iperf/tcp_mbps_in",
            "/frames_tx",
            "/frames_rx",
            "/drops",
        ] {
            assert!(json.pointer(path).is_some(), "{path}");
        }
        assert_eq!(json.pointer("/ping/received").unwrap(), 999);
        assert_eq!(json.pointer("/drops").unwrap(), 1);
    }
}
