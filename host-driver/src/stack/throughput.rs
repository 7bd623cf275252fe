//! TCP and UDP throughput, both ways, measured against a peer's service.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;
use smoltcp::iface::SocketHandle;
use smoltcp::socket::{tcp, udp};
use smoltcp::wire::{IpAddress, IpEndpoint};

use super::protocol::{
    DATAGRAM_PORT, Datagram, HEADER_BYTES, Kind, SINK_PORT, SINK_REPORT_BYTES, SOURCE_PORT,
    SinkReport, differing, fill,
};
use super::service::{send, tcp_socket, udp_socket};
use super::{Host, StackError, Wire};

/// How long a peer may be silent before a conversation is given up.
const SILENCE: Duration = Duration::from_secs(5);
/// How often a lost end mark or request is repeated.
const REPEAT: Duration = Duration::from_millis(200);
/// First of the ports that connections go out from.
const FIRST_LOCAL_PORT: u16 = 49_152;

/// What a run over one connection came to.
#[derive(Debug, Clone, Default, Serialize)]
pub struct StreamReport {
    /// Bytes that arrived, as counted by the receiver.
    pub bytes: u64,
    /// Bytes of them that were wrong.
    pub corrupt: u64,
    /// From the first byte to the receiver's confirmation, in seconds.
    pub seconds: f64,
    /// Payload, in megabits per second.
    pub mbps: f64,
}

/// What a run of datagrams came to.
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
    /// Bytes of payload, at least the header's 24 and at most 1472.
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

fn local_port() -> u16 {
    use std::sync::atomic::AtomicU16;
    static NEXT: AtomicU16 = AtomicU16::new(0);
    FIRST_LOCAL_PORT + NEXT.fetch_add(1, Ordering::Relaxed) % 16_000
}

/// One conversation: a socket that is removed when it ends, and its patience.
struct Conversation<'a, W: Wire> {
    host: &'a mut Host<W>,
    socket: SocketHandle,
    what: &'static str,
    target: Ipv4Addr,
    stop: &'a AtomicBool,
    heard: Instant,
}

impl<W: Wire> Drop for Conversation<'_, W> {
    fn drop(&mut self) {
        self.host.sockets.remove(self.socket);
    }
}

impl<'a, W: Wire> Conversation<'a, W> {
    fn connect(
        host: &'a mut Host<W>,
        what: &'static str,
        target: Ipv4Addr,
        port: u16,
        stop: &'a AtomicBool,
    ) -> Result<Self, StackError> {
        let socket = host.sockets.add(tcp_socket());
        let mut conversation = Self {
            host,
            socket,
            what,
            target,
            stop,
            heard: Instant::now(),
        };
        let (interface, sockets) = conversation.host.parts();
        let remote = IpEndpoint::new(IpAddress::Ipv4(target), port);
        sockets
            .get_mut::<tcp::Socket<'_>>(socket)
            .connect(interface.context(), remote, local_port())
            .map_err(|error| StackError::Broken {
                what,
                reason: error.to_string(),
            })?;
        while !conversation.tcp().may_send() {
            if conversation.tcp().state() == tcp::State::Closed {
                return Err(conversation.broken("connection refused"));
            }
            conversation.step(REPEAT)?;
        }
        conversation.heard = Instant::now();
        Ok(conversation)
    }

    fn datagrams(
        host: &'a mut Host<W>,
        what: &'static str,
        target: Ipv4Addr,
        stop: &'a AtomicBool,
    ) -> Result<Self, StackError> {
        let socket = host.sockets.add(udp_socket());
        let mut conversation = Self {
            host,
            socket,
            what,
            target,
            stop,
            heard: Instant::now(),
        };
        conversation
            .udp()
            .bind(local_port())
            .map_err(|error| StackError::Broken {
                what,
                reason: error.to_string(),
            })?;
        Ok(conversation)
    }

    fn tcp(&mut self) -> &mut tcp::Socket<'static> {
        self.host.sockets.get_mut(self.socket)
    }

    fn udp(&mut self) -> &mut udp::Socket<'static> {
        self.host.sockets.get_mut(self.socket)
    }

    fn broken(&self, reason: &str) -> StackError {
        StackError::Broken {
            what: self.what,
            reason: reason.to_owned(),
        }
    }

    /// Lets the stack work and waits for more.
    fn step(&mut self, limit: Duration) -> Result<(), StackError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(StackError::Stopped);
        }
        if self.heard.elapsed() > SILENCE {
            return Err(StackError::NoAnswer {
                what: self.what,
                address: self.target,
                after: SILENCE,
            });
        }
        if !self.host.turn()? {
            self.host.wait(limit)?;
            self.host.turn()?;
        }
        Ok(())
    }
}

/// Sends a stream for a time and asks the receiver what arrived.
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
    let mut queued = 0;
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
        let now_queued = talk.tcp().send_queue();
        if now_queued != queued || now_queued == 0 {
            talk.heard = Instant::now();
        }
        queued = now_queued;
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
    // The stream has no end: break it off.
    talk.tcp().abort();
    talk.host.turn()?;
    Ok(StreamReport {
        bytes,
        corrupt,
        seconds,
        mbps: megabits(bytes, seconds),
    })
}

/// Sends a run of datagrams and asks the receiver how many arrived.
///
/// # Errors
/// [`StackError`] if the peer does not report, the wire failed, or `stop` was set.
/// Lost datagrams are no error, they are in the report.
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

/// Asks the peer for a run of datagrams and counts what arrives.
///
/// # Errors
/// [`StackError`] if nothing arrives, the wire failed, or `stop` was set. Lost
/// datagrams are no error, they are in the report.
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
        // The end mark may be lost too.
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

impl<W: Wire> Conversation<'_, W> {
    /// Waits until the connection is closed on both sides.
    fn close(&mut self) -> Result<(), StackError> {
        self.heard = Instant::now();
        self.tcp().close();
        while self.tcp().is_active() && self.tcp().state() != tcp::State::TimeWait {
            self.step(REPEAT)?;
        }
        // The last acknowledgement goes out now; nobody waits for the TIME-WAIT.
        self.host.turn()?;
        Ok(())
    }

    fn ask_for_report(&mut self, to: IpEndpoint, number: u64) -> Result<(u64, u64), StackError> {
        let end = Datagram {
            kind: Kind::End,
            sequence: 0,
            number,
        };
        let mut asked: Option<Instant> = None;
        self.heard = Instant::now();
        loop {
            if asked.is_none_or(|at| at.elapsed() >= REPEAT) && self.udp().can_send() {
                send(self.udp(), to, end, HEADER_BYTES);
                asked = Some(Instant::now());
            }
            self.step(REPEAT)?;
            while let Ok((bytes, _)) = self.udp().recv() {
                if let Some((datagram, _)) = Datagram::read(bytes)
                    && datagram.kind == Kind::Report
                {
                    return Ok((datagram.sequence, datagram.number));
                }
            }
        }
    }
}
