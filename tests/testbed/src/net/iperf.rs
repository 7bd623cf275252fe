//! Runs `iperf3`: a server in one namespace, a client in the other, JSON from both.

use super::namespace::Namespace;
use crate::card::outliving_nobody;
use crate::interrupt;
use crate::process::{self, Process};
use anyhow::{Context, Result, bail};
use host_driver::stack::throughput::{DatagramReport, StreamReport};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::net::Ipv4Addr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Which way the data goes, seen from the host with the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Host to peer: the card sends.
    Out,
    /// Peer to host: the card receives.
    In,
}

/// What carries the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// TCP, as fast as it goes.
    Tcp,
    /// UDP at this rate, in Mb/s.
    Udp(u32),
}

/// The result of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Throughput {
    /// Payload that arrived, in Mb/s (10^6).
    pub mbps: f64,
    /// Payload bytes that arrived.
    pub bytes: u64,
    /// TCP segments sent again.
    pub retransmits: u64,
    /// UDP datagrams sent.
    pub datagrams: u64,
    /// UDP datagrams that did not arrive.
    pub lost: u64,
}

/// The port at which a server listens.
const PORT: u16 = 5201;
/// How long a server may take until it does.
const START: Duration = Duration::from_secs(5);

/// A server that answers one client after the other; dropping it ends it.
#[derive(Debug)]
pub struct Server {
    _process: Process,
}

impl Server {
    /// Starts a server in `peer` and waits until it listens at `address`.
    ///
    /// # Errors
    /// If there is no iperf3, or it does not listen.
    pub fn start(peer: &Namespace, address: Ipv4Addr) -> Result<Server> {
        if !process::exists("iperf3") {
            bail!("iperf3 is not installed");
        }
        let mut command = outliving_nobody(Path::new("ip"));
        command
            .args(["netns", "exec", peer.name(), "iperf3", "--server"])
            .args(["--bind", &address.to_string()])
            // Ctrl-C is for what runs in the shell.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut process = Process::spawn(&mut command)?;
        let sockets = format!("/proc/{}/net/tcp", process.id());
        let end = Instant::now() + START;
        // It sees the peer's sockets as soon as it is there.
        while !listens(
            &std::fs::read_to_string(&sockets).unwrap_or_default(),
            address,
        ) {
            if let Some(status) = process.finished()? {
                bail!("iperf3 ended ({status})");
            }
            if Instant::now() > end {
                bail!("iperf3 does not listen");
            }
            interrupt::sleep(Duration::from_millis(5))?;
        }
        Ok(Server { _process: process })
    }
}

/// Whether a process listens at an address and the server's port, by the kernel's list.
fn listens(sockets: &str, address: Ipv4Addr) -> bool {
    const LISTEN: &str = "0A";
    // The word as it stands in memory.
    let word = u32::from_ne_bytes(address.octets());
    let local = format!("{word:08X}:{PORT:04X}");
    sockets.lines().any(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        fields.get(1) == Some(&local.as_str()) && fields.get(3) == Some(&LISTEN)
    })
}

/// Runs iperf3 for `seconds` between `host` and a server of its own in `peer`,
/// which listens on `address`.
pub fn run(
    host: &Namespace,
    peer: &Namespace,
    address: &str,
    protocol: Protocol,
    direction: Direction,
    seconds: u32,
) -> Result<Throughput> {
    let words = client_words(address, protocol, direction, seconds);
    let limit = Duration::from_secs(u64::from(seconds) + 20);
    against(peer, address, protocol, || {
        let mut client = host.command("iperf3");
        let finished = process::collect(client.args(&words), limit)?;
        Ok((finished.stdout, finished.stderr))
    })
}

/// Runs `client`, which gives what iperf3 with [`client_words`] said on its
/// standard output and error, against a server in `peer`.
///
/// # Errors
/// Those of either iperf3, or of `client`.
pub fn against(
    peer: &Namespace,
    address: &str,
    protocol: Protocol,
    mut client: impl FnMut() -> Result<(String, String)>,
) -> Result<Throughput> {
    let mut server = Process::spawn(
        peer.command("iperf3")
            .args(["--server", "--one-off", "--bind", address])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null()),
    )?;
    // The server needs a moment until it listens; a refused connection is
    // tried again rather than slept for.
    for attempt in 0..50 {
        let (said, complaint) = client()?;
        let report: Value = serde_json::from_str(&said)
            .with_context(|| format!("iperf3 said: {}", complaint.trim()))?;
        match report.get("error").and_then(Value::as_str) {
            Some(error) if error.contains("Connection refused") && attempt < 49 => {
                interrupt::sleep(Duration::from_millis(50))?;
            }
            Some(error) => bail!("iperf3: {error}"),
            None => {
                server.wait(Duration::from_secs(10))?;
                return parse(&report, protocol).context("iperf3's report lacks its sums");
            }
        }
    }
    bail!("iperf3: the server never listened");
}

/// The words of a client's command line, behind `iperf3`.
pub fn client_words(
    address: &str,
    protocol: Protocol,
    direction: Direction,
    seconds: u32,
) -> Vec<String> {
    let time = seconds.to_string();
    let mut words = vec!["--client", address, "--json", "--time", &time];
    words.extend(["--connect-timeout", "3000"]);
    if direction == Direction::In {
        words.push("--reverse");
    }
    let mut words: Vec<String> = words.into_iter().map(str::to_owned).collect();
    if let Protocol::Udp(mbps) = protocol {
        // 1472 bytes of payload fill a frame.
        let rate = format!("{mbps}M");
        words.extend(["--udp", "--length", "1472", "--bitrate", &rate].map(str::to_owned));
    }
    words
}

/// Reads the report of a client, which `--json` asks for; none without its sums.
pub fn parse(report: &Value, protocol: Protocol) -> Option<Throughput> {
    let end = report.get("end")?;
    let number = |part: &Value, name: &str| part.get(name).and_then(Value::as_f64);
    match protocol {
        Protocol::Tcp => {
            let received = end.get("sum_received")?;
            let sent = end.get("sum_sent")?;
            Some(Throughput {
                mbps: number(received, "bits_per_second")? / 1e6,
                bytes: number(received, "bytes")? as u64,
                retransmits: number(sent, "retransmits").unwrap_or(0.0) as u64,
                ..Throughput::default()
            })
        }
        Protocol::Udp(_) => {
            // Newer releases split the sum by side; the older sum is the receiver's.
            let sum = end.get("sum_received").or_else(|| end.get("sum"))?;
            let datagrams = number(sum, "packets")? as u64;
            let lost = number(sum, "lost_packets")? as u64;
            let share = (datagrams.saturating_sub(lost)) as f64 / datagrams.max(1) as f64;
            let split = end.get("sum_received").is_some();
            let scale = if split { 1.0 } else { share };
            Some(Throughput {
                mbps: number(sum, "bits_per_second")? * scale / 1e6,
                bytes: (number(sum, "bytes")? * scale) as u64,
                datagrams,
                lost,
                ..Throughput::default()
            })
        }
    }
}

impl From<StreamReport> for Throughput {
    fn from(report: StreamReport) -> Throughput {
        Throughput {
            mbps: report.mbps,
            bytes: report.bytes,
            ..Throughput::default()
        }
    }
}

impl From<DatagramReport> for Throughput {
    fn from(report: DatagramReport) -> Throughput {
        Throughput {
            mbps: report.mbps,
            bytes: report.received * report.payload as u64,
            datagrams: report.sent,
            lost: report.sent.saturating_sub(report.received),
            ..Throughput::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tcp_counts_what_arrived() {
        let report = json!({"end": {
            "sum_sent": {"bits_per_second": 9e8, "bytes": 900, "retransmits": 3},
            "sum_received": {"bits_per_second": 8e8, "bytes": 800}}});
        let result = parse(&report, Protocol::Tcp).unwrap();
        assert_eq!(
            (result.mbps, result.bytes, result.retransmits),
            (800.0, 800, 3)
        );
    }

    #[test]
    fn udp_counts_loss() {
        let report = json!({"end": {"sum_received":
            {"bits_per_second": 2e7, "bytes": 2_944_000, "packets": 2010, "lost_packets": 10}}});
        let result = parse(&report, Protocol::Udp(20)).unwrap();
        assert_eq!((result.datagrams, result.lost), (2010, 10));
        assert_eq!(result.bytes, 2_944_000);
    }

    #[test]
    fn a_server_listens_at_its_own_address_only() {
        let sockets = "  sl  local_address rem_address   st tx_queue rx_queue\n   \
            0: 02004D0A:1451 00000000:0000 0A 00000000:00000000 00:00000000\n   \
            1: 0100007F:1451 00000000:0000 01 00000000:00000000 00:00000000\n";
        assert!(listens(sockets, Ipv4Addr::new(10, 77, 0, 2)));
        assert!(!listens(sockets, Ipv4Addr::new(10, 77, 0, 1)));
        assert!(
            !listens(sockets, Ipv4Addr::LOCALHOST),
            "connected, not listening"
        );
        assert!(!listens("", Ipv4Addr::new(10, 77, 0, 2)));
    }

    #[test]
    fn a_report_without_sums_is_refused() {
        assert_eq!(parse(&json!({"end": {}}), Protocol::Tcp), None);
    }
}
