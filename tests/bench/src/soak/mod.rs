//! Runs two Linux guests back to back, under load for minutes.
//!
//! Both directions run at once: iperf3 over TCP, numbered and checksummed payloads over TCP and
//! UDP, and ping. No payload may be damaged, and none may be lost unless a ring or queue has
//! counted it as a drop.

mod account;

use crate::report::write_json;
use account::{Checked, Drops, bad_lines};
use anyhow::{Context, Result, bail};
use serde::Serialize;
use serde_json::Value;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use testbed::guest::topology::{Station, Topology};
use testbed::guest::{GuestOptions, GuestTools, Job, Output};
use testbed::net::ping::{self, Ping};
use testbed::qemu_build::{self, Target};
use testbed::setup::{self, Need};
use testbed::tools::Tools;
use testbed::{firmware, interrupt};

/// What is left of the time limit for a busy machine.
const SLACK: Duration = Duration::from_secs(120);
/// How often the two guests are looked at.
const LOOK: Duration = Duration::from_secs(10);
/// The rate of the checked payloads, in Mb/s each way; iperf3 takes the rest.
const CHECKED_MBPS: u32 = 3;
/// Bytes of an echo request.
const PING_BYTES: u32 = 1000;

/// How long, and with what.
#[derive(Clone, Debug)]
pub struct Soak {
    /// Duration of the load.
    pub minutes: u32,
    /// A firmware image (drivers' load format) that replaces the project's.
    pub firmware: Option<PathBuf>,
    /// Try KVM, and fall back to TCG where KVM does not work.
    pub kvm: bool,
}

/// `target/reports/soak-guest.json`.
#[derive(Debug, Serialize)]
struct Report {
    minutes: u32,
    tcp_mbps_east: f64,
    tcp_mbps_west: f64,
    tcp_retransmits: u64,
    ping: Ping,
    udp: Checked,
    tcp: Checked,
    /// Datagrams and echo requests that did not arrive.
    lost: u64,
    /// What the two guests' rings and queues have counted as dropped.
    drops: u64,
    west: Drops,
    east: Drops,
    /// Lines of the kernels' logs that must not be there.
    bad_lines: Vec<String>,
    passed: bool,
}

/// Runs it, prints the report and writes it.
///
/// # Errors
/// When something was damaged, or lost without a trace.
pub fn run(soak: &Soak) -> Result<()> {
    firmware::file::judge(soak.firmware.as_ref())?;
    setup::ensure(&[Need::Firmware, Need::Qemu, Need::Guest])?;
    qemu_build::ensure(&[Target::Mips, Target::X86_64])?;
    let tools = Tools::build()?;
    let guests = GuestTools::build()?;
    let firmware = tools.firmware.clone().or_file(soak.firmware.as_ref());
    let options = GuestOptions {
        firmware: firmware.image()?,
        kvm: soak.kvm,
        own_clock: true,
        ..GuestOptions::default()
    };
    println!("soak: starting two guests with their cards back to back");
    let mut stage = Topology::two(&tools, &guests, &options)?;
    println!("soak: both are up; {} minutes of load begin", soak.minutes);
    let load = Load::start(&stage, soak.minutes)?;
    load.watch(&mut stage, soak.minutes)?;
    let report = load.finish(&stage, soak.minutes)?;
    print(&report);
    println!("report: {}", write_json("soak-guest", &report)?.display());
    if !report.passed {
        bail!("the soak failed: {}", reason(&report));
    }
    Ok(())
}

/// Everything that runs in the two guests.
struct Load {
    /// Servers, which end when the load does.
    _servers: Vec<Job>,
    listeners: Vec<Job>,
    iperf: Job,
    ping: Job,
    udp: Job,
    tcp: Job,
    limit: Duration,
}

impl Load {
    fn start(stage: &Topology, minutes: u32) -> Result<Load> {
        let seconds = minutes * 60;
        let (west, east) = (&stage.west.guest, &stage.east.guest);
        let address = stage
            .east
            .addresses
            .first()
            .context("east has no address")?;
        let shared = format!("--size 1400 --rate {CHECKED_MBPS} --seconds {seconds} --idle 30");
        let listen = |kind: &str, port: u16| {
            east.spawn(&format!(
                "paycheck both --listen --{kind} 0.0.0.0:{port} {shared}"
            ))
        };
        let listeners = vec![listen("udp", 7000)?, listen("tcp", 7001)?];
        let servers = vec![east.spawn("iperf3 --server")?];
        // They listen when their sockets are there.
        east.sh("for i in $(seq 100); do \
             [ $(ss -Hltn | grep -cE ':(5201|7001) ') -ge 2 ] && exit 0; sleep 0.1; done; exit 1")
            .context("the servers do not listen")?;
        let connect = |kind: &str, port: u16| {
            west.spawn(&format!("paycheck both --{kind} {address}:{port} {shared}"))
        };
        Ok(Load {
            _servers: servers,
            listeners,
            iperf: west.spawn(&format!(
                "iperf3 --client {address} --bidir --json --time {seconds}"
            ))?,
            ping: west.spawn(&format!(
                "ping -n -i 0.1 -W 5 -s {PING_BYTES} -w {seconds} {address}"
            ))?,
            udp: connect("udp", 7000)?,
            tcp: connect("tcp", 7001)?,
            limit: Duration::from_secs(u64::from(seconds)) + SLACK,
        })
    }

    /// Waits for the end of the load, and sees to it that all are still there.
    fn watch(&self, stage: &mut Topology, minutes: u32) -> Result<()> {
        let start = Instant::now();
        let mut said = 0;
        while start.elapsed() < Duration::from_secs(u64::from(minutes) * 60) {
            interrupt::sleep(LOOK)?;
            for station in [&mut stage.west, &mut stage.east] {
                station.cards.iter_mut().try_for_each(|card| card.check())?;
                station
                    .guest
                    .sh("true")
                    .context("a guest does not answer")?;
            }
            let minute = u32::try_from(start.elapsed().as_secs() / 60).unwrap_or(u32::MAX);
            if minute > said {
                said = minute;
                println!("soak: {minute} of {minutes} minutes");
            }
        }
        Ok(())
    }

    fn finish(self, stage: &Topology, minutes: u32) -> Result<Report> {
        let limit = self.limit;
        let ping = self.ping.wait(limit)?;
        let ping = ping::parse(&ping.stdout, PING_BYTES).context("ping said nothing")?;
        let udp = Checked::parse(&self.udp.wait(limit)?)?;
        let tcp = Checked::parse(&self.tcp.wait(limit)?)?;
        let iperf = json(&self.iperf.wait(limit)?)?;
        for listener in self.listeners {
            // Both sides report the same; this one only has to have ended.
            listener.wait(limit)?;
        }
        let (west, east) = (
            Drops::read(&stage.west.guest)?,
            Drops::read(&stage.east.guest)?,
        );
        let number = |path: &str| iperf.pointer(path).and_then(Value::as_f64).unwrap_or(0.0);
        let mut bad = Vec::new();
        for Station { guest, .. } in stage.stations() {
            bad.extend(bad_lines(&guest.kernel_log()?));
        }
        let lost = u64::from(ping.sent.saturating_sub(ping.received)) + udp.lost;
        let drops = west.sum() + east.sum();
        let damaged = udp.corrupt + tcp.corrupt;
        let talked = udp.received > 0 && tcp.received > 0 && ping.received > 0;
        Ok(Report {
            minutes,
            tcp_mbps_east: number("/end/sum_received/bits_per_second") / 1e6,
            tcp_mbps_west: number("/end/sum_received_bidir_reverse/bits_per_second") / 1e6,
            tcp_retransmits: (number("/end/sum_sent/retransmits")
                + number("/end/sum_sent_bidir_reverse/retransmits"))
                as u64,
            ping,
            passed: talked
                && damaged == 0
                && tcp.lost == 0
                && lost <= drops
                && tcp.complete
                && bad.is_empty(),
            udp,
            tcp,
            lost,
            drops,
            west,
            east,
            bad_lines: bad,
        })
    }
}

fn json(output: &Output) -> Result<Value> {
    serde_json::from_str(&output.stdout)
        .with_context(|| format!("iperf3 said: {}", output.stderr.trim()))
}

fn print(report: &Report) {
    println!(
        "soak: TCP {:.0} Mb/s east and {:.0} Mb/s west at once, {} retransmitted",
        report.tcp_mbps_east, report.tcp_mbps_west, report.tcp_retransmits
    );
    println!(
        "soak: checked payloads: UDP {} of {} arrived, TCP {} of {}; {} damaged",
        report.udp.received,
        report.udp.sent,
        report.tcp.received,
        report.tcp.sent,
        report.udp.corrupt + report.tcp.corrupt
    );
    println!(
        "soak: ping {} of {} came back; {} lost in all, {} dropped by the rings' account",
        report.ping.received, report.ping.sent, report.lost, report.drops
    );
}

/// Why it did not pass.
fn reason(report: &Report) -> String {
    if let Some(line) = report.bad_lines.first() {
        return format!("a kernel says: {line}");
    }
    if report.udp.corrupt + report.tcp.corrupt > 0 {
        return "payloads came damaged".into();
    }
    if report.lost > report.drops {
        return format!(
            "{} lost, but only {} counted as dropped",
            report.lost, report.drops
        );
    }
    "a conversation came to no end".into()
}
