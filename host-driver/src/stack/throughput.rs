//! TCP and UDP throughput, both ways, measured against a peer's service.

use std::net::Ipv4Addr;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use serde::Serialize;
use smoltcp::socket::udp;
use smoltcp::wire::{IpAddress, IpEndpoint};

use super::conversation::{Conversation, REPEAT, local_port};
use super::protocol::{
    DATAGRAM_PORT, Datagram, HEADER_BYTES, Kind, SINK_PORT, SINK_REPORT_BYTES, SOURCE_PORT,
    SinkReport, differing, fill,
};
use super::service::send;
use super::{Host, StackError, Wire};

/// The result of a run over one connection.
#[derive(Debug, Clone, Default, Serialize)]
pub struct StreamReport {
    /// Bytes that arrived, as counted by the receiver.
    pub bytes: u64,
    /// Wrong bytes among them.
    pub corrupt: u64,
    /// From the first byte to the receiver's confirmation, in seconds.
    pub seconds: f64,
    /// Payload, in megabits per second.
    pub mbps: f64,
}

/// The result of a run of datagrams.
#[derive(Debug, Clone, Default, Serialize)]
pub struct DatagramReport {
    /// Bytes of each datagram's payload.
    pub payload: usize,
    /// Datagrams that were sent.
    pub sent: u64,
    /// Datagrams that arrived.
    pub received: u64,
    /// Bytes that arrived wrong.
    pub corrupt: u64,
    /// In seconds.
    pub seconds: f64,
    /// Payload that arrived, in megabits per second.
    pub mbps: f64,
}

/// A run of datagrams.
#[derive(Debug, Clone, Copy)]
pub struct DatagramRun {
    /// The other host.
    pub target: Ipv4Addr,
    /// Bytes of payload: at least the header's 24, and at most what fits the MTU.
    pub payload: usize,
    /// Datagrams to send.
    pub count: u64,
    /// Time from one to the next.
    pub interval: Duration,
}

fn megabits(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 {
        bytes as f64 * 8.0 / seconds / 1e6
    } else {
        0.0
    }
}

/// Sends a stream for a time and requests the receiver's report.
///
/// # Errors
/// [`StackError`] if the peer does not answer or breaks off, the wire failed, or
/// `stop` was set.
pub fn tcp_send<W: Wire>(
    host: &mut Host<W>,
    target: Ipv4Addr,
    duration: Duration,
    stop: &AtomicBool,
) -> Result<StreamReport, StackError> {
    let mut talk = Conversation::connect(host, "TCP send", target, SINK_PORT, stop)?;
    let start = Instant::now();
    let mut sent: u64 = 0;
    let mut acknowledged = 0;
    while start.elapsed() < duration {
        let socket = talk.tcp();
        if !socket.may_send() {
            return Err(talk.broken("the peer closed the connection"));
        }
        while socket.can_send() {
            let filled = socket.send(|buffer| {
                fill(sent, buffer);
                (buffer.len(), buffer.len())
            });
            match filled {
                Ok(count) if count > 0 => sent += count as u64,
                _ => break,
            }
        }
        // The queue alone shows nothing: it is equally full after each filling.
        let now_acknowledged = sent - talk.tcp().send_queue() as u64;
        if now_acknowledged != acknowledged {
            talk.heard = Instant::now();
        }
        acknowledged = now_acknowledged;
        talk.step(duration.saturating_sub(start.elapsed()))?;
    }
    talk.tcp().close();
    let mut left = talk.tcp().send_queue();
    while talk.tcp().recv_queue() < SINK_REPORT_BYTES {
        if !talk.tcp().may_recv() {
            return Err(talk.broken("the peer closed without a report"));
        }
        talk.step(REPEAT)?;
        let now_left = talk.tcp().send_queue();
        if now_left != left {
            talk.heard = Instant::now();
        }
        left = now_left;
    }
    let seconds = start.elapsed().as_secs_f64();
    let mut report = [0; SINK_REPORT_BYTES];
    if !matches!(talk.tcp().recv_slice(&mut report), Ok(SINK_REPORT_BYTES)) {
        return Err(talk.broken("the peer's report is cut short"));
    }
    let report = SinkReport::from_bytes(&report);
    if report.bytes != sent {
        return Err(talk.broken(&format!(
            "{sent} bytes were sent and {} arrived",
            report.bytes
        )));
    }
    talk.close()?;
    Ok(StreamReport {
        bytes: report.bytes,
        corrupt: report.corrupt,
        seconds,
        mbps: megabits(report.bytes, seconds),
    })
}

/// Receives a stream for a time.
///
/// # Errors
/// [`StackError`] if the peer does not answer or breaks off, the wire failed, or
/// `stop` was set.
pub fn tcp_receive<W: Wire>(
    host: &mut Host<W>,
    target: Ipv4Addr,
    duration: Duration,
    stop: &AtomicBool,
) -> Result<StreamReport, StackError> {
    let mut talk = Conversation::connect(host, "TCP receive", target, SOURCE_PORT, stop)?;
    if !matches!(talk.tcp().send_slice(&u64::MAX.to_be_bytes()), Ok(8)) {
        return Err(talk.broken("the request does not fit"));
    }
    let start = Instant::now();
    let mut bytes: u64 = 0;
    let mut corrupt = 0;
    while start.elapsed() < duration {
        let before = bytes;
        while talk.tcp().can_recv() {
            let taken = talk.tcp().recv(|buffer| {
                corrupt += differing(bytes, buffer);
                (buffer.len(), buffer.len())
            });
            match taken {
                Ok(count) if count > 0 => bytes += count as u64,
                _ => break,
            }
        }
        if bytes != before {
            talk.heard = Instant::now();
        } else if !talk.tcp().may_recv() {
            return Err(talk.broken("the peer closed the connection"));
        }
        talk.step(duration.saturating_sub(start.elapsed()))?;
    }
    let seconds = start.elapsed().as_secs_f64();
    // The stream has no end: abort it.
    talk.tcp().abort();
    talk.host.turn()?;
    Ok(StreamReport {
        bytes,
        corrupt,
        seconds,
        mbps: megabits(bytes, seconds),
    })
}

/// Sends a run of datagrams and requests the receiver's count.
///
/// # Errors
/// [`StackError`] if the peer does not report, the wire failed, or `stop` was set. Lost datagrams
/// are no error; the report counts them.
pub fn udp_send<W: Wire>(
    host: &mut Host<W>,
    run: DatagramRun,
    stop: &AtomicBool,
) -> Result<DatagramReport, StackError> {
    let mut talk = Conversation::datagrams(host, "UDP send", run.target, stop)?;
    let to = IpEndpoint::new(IpAddress::Ipv4(run.target), DATAGRAM_PORT);
    let payload = run.payload.max(HEADER_BYTES);
    let number = u64::from(local_port());
    let start = Instant::now();
    let mut due = start;
    let mut sent = 0;
    while sent < run.count {
        while sent < run.count && due <= Instant::now() && talk.udp().can_send() {
            let datagram = Datagram {
                kind: Kind::Data,
                sequence: sent,
                number,
            };
            if !send(talk.udp(), to, datagram, payload) {
                break;
            }
            sent += 1;
            due += run.interval;
        }
        talk.heard = Instant::now();
        talk.step(due.saturating_duration_since(Instant::now()))?;
    }
    let seconds = start.elapsed().as_secs_f64();
    let (received, corrupt) = talk.ask_for_report(to, number)?;
    Ok(DatagramReport {
        payload,
        sent,
        received,
        corrupt,
        seconds,
        mbps: megabits(received * payload as u64, seconds),
    })
}

/// Requests a run of datagrams from the peer and counts what arrives.
///
/// # Errors
/// [`StackError`] if nothing arrives, the wire failed, or `stop` was set. Lost datagrams are no
/// error; the report counts them.
pub fn udp_receive<W: Wire>(
    host: &mut Host<W>,
    run: DatagramRun,
    stop: &AtomicBool,
) -> Result<DatagramReport, StackError> {
    let mut talk = Conversation::datagrams(host, "UDP receive", run.target, stop)?;
    let to = IpEndpoint::new(IpAddress::Ipv4(run.target), DATAGRAM_PORT);
    let payload = run.payload.max(HEADER_BYTES);
    // The interval is also the run's number: see the protocol.
    let number = u64::try_from(run.interval.as_nanos()).unwrap_or(u64::MAX);
    let request = Datagram {
        kind: Kind::Request,
        sequence: run.count,
        number,
    };
    let mut report = DatagramReport {
        payload,
        sent: run.count,
        ..DatagramReport::default()
    };
    let mut start = Instant::now();
    let mut last = start;
    let mut asked: Option<Instant> = None;
    let mut ended = false;
    while !ended {
        let unheard = report.received == 0 && asked.is_none_or(|at| at.elapsed() > REPEAT);
        if unheard && talk.udp().can_send() {
            send(talk.udp(), to, request, payload);
            start = Instant::now();
            asked = Some(start);
        }
        talk.step(REPEAT)?;
        while let Ok((bytes, _)) = talk
            .host
            .sockets
            .get_mut::<udp::Socket<'_>>(talk.socket)
            .recv()
        {
            match Datagram::read(bytes) {
                Some((
                    Datagram {
                        kind: Kind::Data, ..
                    },
                    corrupt,
                )) => {
                    report.received += 1;
                    report.corrupt += corrupt;
                    last = Instant::now();
                    talk.heard = last;
                }
                Some((
                    Datagram {
                        kind: Kind::End, ..
                    },
                    _,
                )) => ended = true,
                _ => {}
            }
        }
        // The end mark may be lost as well.
        let overdue = run
            .interval
            .saturating_mul(run.count.min(u64::from(u32::MAX)) as u32);
        ended |=
            report.received > 0 && start.elapsed() > overdue + REPEAT && last.elapsed() > REPEAT;
    }
    report.seconds = last.saturating_duration_since(start).as_secs_f64();
    report.mbps = megabits(report.received * payload as u64, report.seconds);
    Ok(report)
}
