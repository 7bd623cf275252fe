//! Runs `ping` of iputils, counts replies, and keeps each round-trip time.

use super::namespace::Namespace;
use crate::process;
use anyhow::{Context, Result};
use hdrhistogram::Histogram;
use host_driver::stack::ping::PingReport;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// One run of ping.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ping {
    /// Bytes of ICMP payload in each request.
    pub payload: u32,
    /// Echo requests sent.
    pub sent: u32,
    /// Echo replies received, each request counted once.
    pub received: u32,
    /// Replies beyond the first to the same request.
    pub duplicates: u32,
    /// Round-trip times, in microseconds.
    pub round_trip_us: Percentiles,
}

/// A distribution of times, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)] // the names say it
pub struct Percentiles {
    pub min: u64,
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
    pub max: u64,
}

impl Percentiles {
    /// Of times in microseconds; all zero for none.
    pub fn of(times_us: impl IntoIterator<Item = u64>) -> Self {
        // Three digits of precision, up to a minute.
        let mut histogram =
            Histogram::<u64>::new_with_bounds(1, 60_000_000, 3).expect("the bounds are in range");
        for time in times_us {
            histogram.saturating_record(time.max(1));
        }
        if histogram.is_empty() {
            return Percentiles::default();
        }
        Percentiles {
            min: histogram.min(),
            p50: histogram.value_at_quantile(0.5),
            p90: histogram.value_at_quantile(0.9),
            p99: histogram.value_at_quantile(0.99),
            max: histogram.max(),
        }
    }
}

/// Sends `count` requests of `payload` bytes to `address`, one every 2 ms.
///
/// # Errors
/// When ping cannot be run or says nothing that can be understood; loss is a
/// result, not an error.
pub fn run(from: &Namespace, address: &str, payload: u32, count: u32) -> Result<Ping> {
    let finished = process::collect(
        from.command("ping")
            .args(["-n", "-i", "0.002", "-W", "2", "-M", "dont"])
            .args(["-c", &count.to_string(), "-s", &payload.to_string()])
            .arg(address),
        Duration::from_secs(60) + Duration::from_millis(10) * count,
    )?;
    parse(&finished.stdout, payload)
        .with_context(|| format!("ping {address}: {}", finished.stderr.trim()))
}

/// Reads ping's lines of replies and its summary; none without them.
pub fn parse(text: &str, payload: u32) -> Option<Ping> {
    let replies = text
        .lines()
        .filter(|line| line.contains("icmp_seq=") && !line.contains("(DUP!)"));
    let times = replies.filter_map(|line| {
        let (_, rest) = line.split_once(" time=")?;
        let milliseconds: f64 = rest.split(' ').next()?.parse().ok()?;
        Some((milliseconds * 1000.0).round() as u64)
    });
    let summary = text.lines().find(|l| l.contains("packets transmitted"))?;
    let number = |word: &str| -> Option<u32> {
        let part = summary.split(", ").find(|part| part.contains(word))?;
        part.trim_start_matches('+').split(' ').next()?.parse().ok()
    };
    Some(Ping {
        payload,
        sent: number("transmitted")?,
        received: number("received")?,
        duplicates: number("duplicates").unwrap_or(0),
        round_trip_us: Percentiles::of(times),
    })
}

impl From<PingReport> for Ping {
    fn from(report: PingReport) -> Ping {
        let number = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        Ping {
            payload: number(report.payload as u64),
            sent: number(report.sent),
            // A reply with other contents is no reply.
            received: number(report.received - report.corrupt.min(report.received)),
            duplicates: 0,
            round_trip_us: Percentiles {
                min: report.min_us,
                p50: report.p50_us,
                p90: report.p90_us,
                p99: report.p99_us,
                max: report.max_us,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_with_loss_and_a_duplicate() {
        let text = "PING 10.77.0.2 (10.77.0.2) 56(84) bytes of data.\n\
            64 bytes from 10.77.0.2: icmp_seq=1 ttl=64 time=0.214 ms\n\
            64 bytes from 10.77.0.2: icmp_seq=2 ttl=64 time=1.50 ms\n\
            64 bytes from 10.77.0.2: icmp_seq=2 ttl=64 time=9.50 ms (DUP!)\n\n\
            --- 10.77.0.2 ping statistics ---\n\
            3 packets transmitted, 2 received, +1 duplicates, 33.3333% packet loss, time 4ms\n\
            rtt min/avg/max/mdev = 0.214/0.857/1.500/0.643 ms\n";
        let ping = parse(text, 56).unwrap();
        assert_eq!((ping.sent, ping.received, ping.duplicates), (3, 2, 1));
        assert_eq!(ping.round_trip_us.min, 214);
        assert_eq!(ping.round_trip_us.max, 1500);
        assert_eq!(ping.round_trip_us.p90, 1500);
    }

    #[test]
    fn nothing_came_back() {
        let text = "PING 10.77.0.2 (10.77.0.2) 56(84) bytes of data.\n\n\
            --- 10.77.0.2 ping statistics ---\n\
            5 packets transmitted, 0 received, 100% packet loss, time 8ms\n";
        let ping = parse(text, 56).unwrap();
        assert_eq!((ping.sent, ping.received), (5, 0));
        assert_eq!(ping.round_trip_us, Percentiles::default());
    }

    #[test]
    fn an_error_is_not_a_result() {
        assert_eq!(parse("ping: socket: Operation not permitted\n", 56), None);
    }
}
