//! Echo requests and their results.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde::Serialize;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::socket::icmp;
use smoltcp::wire::{Icmpv4Packet, Icmpv4Repr, IpAddress};

use super::{Host, StackError, Wire};

/// Identifier of the driver's echo requests.
const IDENTIFIER: u16 = 0x5447;
/// Longest distinguishable latency, in microseconds.
const LONGEST_MICROS: u64 = 60_000_000;

/// What to ping and how.
#[derive(Debug, Clone, Copy)]
pub struct Ping {
    /// The other host.
    pub target: Ipv4Addr,
    /// Requests to send.
    pub count: u16,
    /// Bytes after the ICMP header; 1472 fill a frame, 8972 a jumbo frame.
    pub payload: usize,
    /// Time from a request to the next; zero sends the next when the answer has arrived.
    pub interval: Duration,
    /// How long a missing answer delays the next request, or the end. An answer that comes later,
    /// but before the end, counts like any other.
    pub timeout: Duration,
}

/// The results. Latencies are in microseconds.
#[derive(Debug, Clone, Default, Serialize)]
pub struct PingReport {
    /// Bytes after the ICMP header.
    pub payload: usize,
    /// Requests that were sent.
    pub sent: u64,
    /// Answers that arrived, each counted once.
    pub received: u64,
    /// Answers whose content differs from the request's.
    pub corrupt: u64,
    /// Shortest latency.
    pub min_us: u64,
    /// Median.
    pub p50_us: u64,
    /// 90th percentile.
    pub p90_us: u64,
    /// 99th percentile.
    pub p99_us: u64,
    /// Longest.
    pub max_us: u64,
}

struct Conversation {
    ping: Ping,
    payload: Vec<u8>,
    /// When the unanswered requests were sent.
    sent_at: Vec<Option<Instant>>,
    report: PingReport,
    latency: Histogram<u64>,
}

/// Sends echo requests and waits for the answers.
///
/// # Errors
/// [`StackError`] if the wire failed or `stop` was set. Lost answers are no error; the report
/// counts them.
pub fn ping<W: Wire>(
    host: &mut Host<W>,
    ping: Ping,
    stop: &AtomicBool,
) -> Result<PingReport, StackError> {
    let buffer = || {
        icmp::PacketBuffer::new(
            vec![icmp::PacketMetadata::EMPTY; 16],
            vec![0; 16 * (ping.payload + 64)],
        )
    };
    let mut socket = icmp::Socket::new(buffer(), buffer());
    socket
        .bind(icmp::Endpoint::Ident(IDENTIFIER))
        .map_err(|error| StackError::Broken {
            what: "ping",
            reason: error.to_string(),
        })?;
    let latency =
        Histogram::new_with_bounds(1, LONGEST_MICROS, 3).map_err(|error| StackError::Broken {
            what: "ping",
            reason: error.to_string(),
        })?;
    let mut conversation = Conversation {
        ping,
        payload: (0..ping.payload).map(|index| (index % 253) as u8).collect(),
        sent_at: vec![None; usize::from(ping.count)],
        report: PingReport {
            payload: ping.payload,
            ..PingReport::default()
        },
        latency,
    };
    let handle = host.sockets.add(socket);
    let result = conversation.run(host, handle, stop);
    host.sockets.remove(handle);
    result?;
    Ok(conversation.finish())
}

impl Conversation {
    fn run<W: Wire>(
        &mut self,
        host: &mut Host<W>,
        handle: smoltcp::iface::SocketHandle,
        stop: &AtomicBool,
    ) -> Result<(), StackError> {
        let mut due = Instant::now();
        let mut next: u16 = 0;
        loop {
            if stop.load(Ordering::Relaxed) {
                return Err(StackError::Stopped);
            }
            let now = Instant::now();
            let socket = host.sockets.get_mut::<icmp::Socket<'_>>(handle);
            self.take_answers(socket);
            let outstanding = self.outstanding(now);
            let may_send = if self.ping.interval.is_zero() {
                outstanding == 0
            } else {
                due <= now
            };
            if next < self.ping.count && may_send && socket.can_send() {
                self.send(socket, next);
                next += 1;
                due = now + self.ping.interval;
            }
            // Frames on the wire come before the check of the clock, so that a host that was
            // suspended for a while has lost no answer.
            if host.turn()? {
                continue;
            }
            if next == self.ping.count && outstanding == 0 {
                return Ok(());
            }
            let until_due = if next < self.ping.count && !self.ping.interval.is_zero() {
                due.saturating_duration_since(Instant::now())
            } else {
                self.ping.timeout
            };
            host.wait(until_due)?;
        }
    }

    /// Requests that have not timed out.
    fn outstanding(&self, now: Instant) -> usize {
        let fresh = |at: &Instant| now.saturating_duration_since(*at) < self.ping.timeout;
        self.sent_at.iter().flatten().filter(|at| fresh(at)).count()
    }

    fn send(&mut self, socket: &mut icmp::Socket<'_>, sequence: u16) {
        let request = Icmpv4Repr::EchoRequest {
            ident: IDENTIFIER,
            seq_no: sequence,
            data: &self.payload,
        };
        let target = IpAddress::Ipv4(self.ping.target);
        if let Ok(buffer) = socket.send(request.buffer_len(), target) {
            let mut packet = Icmpv4Packet::new_unchecked(buffer);
            request.emit(&mut packet, &ChecksumCapabilities::default());
            self.report.sent += 1;
            if let Some(slot) = self.sent_at.get_mut(usize::from(sequence)) {
                *slot = Some(Instant::now());
            }
        }
    }

    fn take_answers(&mut self, socket: &mut icmp::Socket<'_>) {
        while let Ok((bytes, from)) = socket.recv() {
            let Ok(packet) = Icmpv4Packet::new_checked(bytes) else {
                continue;
            };
            let answer = Icmpv4Repr::parse(&packet, &ChecksumCapabilities::default());
            let Ok(Icmpv4Repr::EchoReply {
                ident,
                seq_no,
                data,
            }) = answer
            else {
                continue;
            };
            if ident != IDENTIFIER || from != IpAddress::Ipv4(self.ping.target) {
                continue;
            }
            let slot = self.sent_at.get_mut(usize::from(seq_no));
            let Some(sent) = slot.and_then(Option::take) else {
                continue;
            };
            self.report.received += 1;
            if data != self.payload {
                self.report.corrupt += 1;
            }
            let micros = u64::try_from(sent.elapsed().as_micros()).unwrap_or(u64::MAX);
            self.latency.saturating_record(micros.max(1));
        }
    }

    fn finish(mut self) -> PingReport {
        if self.report.received > 0 {
            self.report.min_us = self.latency.min();
            self.report.p50_us = self.latency.value_at_quantile(0.5);
            self.report.p90_us = self.latency.value_at_quantile(0.9);
            self.report.p99_us = self.latency.value_at_quantile(0.99);
            self.report.max_us = self.latency.max();
        }
        self.report
    }
}
