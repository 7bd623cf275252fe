//! The counts of a soak: payloads that arrived, drops that a counter shows, and forbidden lines in
//! the kernels' logs.

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use testbed::guest::{Guest, Output};

/// What the payload checksum tool reports, both directions together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Checked {
    /// Payloads sent.
    pub sent: u64,
    /// Payloads that arrived whole.
    pub received: u64,
    /// Payloads that did not arrive.
    pub lost: u64,
    /// Payloads that arrived behind a later one.
    pub reordered: u64,
    /// Payloads that arrived damaged.
    pub corrupt: u64,
    /// Both sides came to their end.
    pub complete: bool,
}

impl Checked {
    /// Reads the tool's line of JSON; its exit status says no more than that.
    ///
    /// # Errors
    /// When there is no such line, with what it complained about.
    pub fn parse(output: &Output) -> Result<Checked> {
        let line = output.stdout.lines().last().unwrap_or_default();
        serde_json::from_str(line)
            .with_context(|| format!("paycheck said: {}", output.stderr.trim()))
    }
}

/// Frames that a guest's rings and queues have counted as dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Drops {
    /// The card had no room, or the driver no buffer.
    pub receive: u64,
    /// The driver could not send.
    pub transmit: u64,
    /// The queue in front of the driver was full.
    pub queue: u64,
    /// A socket's buffer was full.
    pub socket: u64,
    /// The kernel's backlog was full.
    pub backlog: u64,
}

impl Drops {
    /// Those of a guest's `eth0`, since its start.
    ///
    /// # Errors
    /// When the guest does not tell.
    pub fn read(guest: &Guest) -> Result<Drops> {
        let link = guest.sh("ip -j -s -s link show dev eth0")?;
        let queue = guest.sh("tc -j -s qdisc show dev eth0")?;
        let snmp = guest.sh("cat /proc/net/snmp")?;
        let softnet = guest.sh("cat /proc/net/softnet_stat")?;
        Drops::parse(&link, &queue, &snmp, &softnet).context("the guest's counters are not clear")
    }

    /// All of them.
    pub fn sum(&self) -> u64 {
        self.receive + self.transmit + self.queue + self.socket + self.backlog
    }

    fn parse(link: &str, queue: &str, snmp: &str, softnet: &str) -> Option<Drops> {
        let link: Value = serde_json::from_str(link).ok()?;
        let stats = link.get(0)?.get("stats64")?;
        let count = |side: &str, names: &[&str]| -> u64 {
            let number = |name: &&str| stats.get(side)?.get(*name)?.as_u64();
            names.iter().filter_map(number).sum()
        };
        let queue: Value = serde_json::from_str(queue).ok()?;
        let queues = queue.as_array()?.iter();
        let dropped = queues.filter_map(|queue| queue.get("drops")?.as_u64());
        Some(Drops {
            receive: count("rx", &["dropped", "errors", "over_errors", "missed_errors"]),
            transmit: count("tx", &["dropped", "errors"]),
            queue: dropped.sum(),
            socket: udp(snmp, "RcvbufErrors")? + udp(snmp, "SndbufErrors")?,
            backlog: softnet
                .lines()
                .filter_map(|line| {
                    let second = line.split_whitespace().nth(1)?;
                    u64::from_str_radix(second, 16).ok()
                })
                .sum(),
        })
    }
}

/// A counter of `/proc/net/snmp`: a line of names, then one of numbers.
fn udp(snmp: &str, name: &str) -> Option<u64> {
    let mut lines = snmp.lines().filter(|line| line.starts_with("Udp:"));
    let (names, numbers) = (lines.next()?, lines.next()?);
    let at = names.split(' ').position(|word| word == name)?;
    numbers.split(' ').nth(at)?.parse().ok()
}

/// What no kernel may say of the card or of its driver.
const BAD: &[&str] = &[
    "hw csum failure",
    "NETDEV WATCHDOG",
    "stuck",
    "BUG:",
    "Oops",
    "Call Trace",
    "Firmware NOT running",
];

/// Bad only in a line about the card, as other parts of a kernel use the word.
const BAD_OF_THE_CARD: &str = "timeout";

/// The lines of a kernel's log that must not be there.
pub fn bad_lines(log: &str) -> Vec<String> {
    let is_bad = |line: &&str| {
        let of_the_card = line.contains("acenic") || line.contains("eth");
        BAD.iter().any(|bad| line.contains(bad)) || of_the_card && line.contains(BAD_OF_THE_CARD)
    };
    log.lines().filter(is_bad).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SNMP: &str = "Ip: Forwarding\nIp: 1\n\
        Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors\n\
        Udp: 100 0 7 100 7 1\n";

    #[test]
    fn every_counter_is_found() {
        let link = r#"[{"ifname":"eth0","stats64":{
            "rx":{"packets":9,"errors":1,"dropped":2,"over_errors":3,"missed_errors":4},
            "tx":{"packets":9,"errors":5,"dropped":6}}}]"#;
        let queue = r#"[{"kind":"pfifo_fast","drops":10},{"kind":"x"}]"#;
        let softnet = "00000010 0000000b 00000000\n00000010 00000001 0\n";
        let drops = Drops::parse(link, queue, SNMP, softnet).expect("all are there");
        assert_eq!((drops.receive, drops.transmit, drops.queue), (10, 11, 10));
        assert_eq!((drops.socket, drops.backlog, drops.sum()), (8, 12, 51));
        assert_eq!(Drops::parse("[]", queue, SNMP, softnet), None);
        assert_eq!(Drops::parse(link, queue, "", softnet), None);
    }

    #[test]
    fn a_payload_report_is_read_whatever_else_it_has() {
        let output = Output {
            stdout: "{\"protocol\":\"udp\",\"sent\":5,\"received\":4,\"lost\":1,\"corrupt\":0,\
                \"reordered\":0,\"complete\":true,\"mbps\":2.5}\n"
                .into(),
            ..Output::default()
        };
        let checked = Checked::parse(&output).expect("a report");
        assert_eq!((checked.sent, checked.lost, checked.complete), (5, 1, true));
        assert!(Checked::parse(&Output::default()).is_err());
    }

    #[test]
    fn bad_lines_are_told_from_good_ones() {
        let log = "[ 1.0] acenic 0000:00:10.0 eth0: Firmware up and running\n\
            [ 1.1] clocksource: timeout of the timer\n\
            [ 2.0] acenic 0000:00:10.0 eth0: hw csum failure\n\
            [ 3.0] NETDEV WATCHDOG: eth0 (acenic): transmit queue 0 timed out\n\
            [ 4.0] eth0: Transmit timeout\n";
        assert_eq!(bad_lines(log).len(), 3);
    }
}
