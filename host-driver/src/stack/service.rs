//! The server of the measuring protocol.
//!
//! The stack itself answers pings; this module serves the TCP sink, the TCP source and the
//! datagram port of [`super::protocol`].

use std::time::{Duration, Instant};

use smoltcp::iface::SocketHandle;
use smoltcp::socket::{tcp, udp};
use smoltcp::wire::IpEndpoint;

use super::protocol::{
    DATAGRAM_PORT, Datagram, HEADER_BYTES, Kind, LARGEST_PAYLOAD, SINK_PORT, SOURCE_PORT,
    SinkReport, differing, fill,
};
use super::{Host, Wire};

/// TCP connections of each kind at the same time.
const CONNECTIONS: usize = 4;
/// Bytes of a TCP socket's buffer, each way.
pub(super) const TCP_BUFFER_BYTES: usize = 192 * 1024;
/// Datagrams that a UDP socket holds, each way.
pub(super) const DATAGRAMS: usize = 256;
/// The most datagrams sent in one turn.
const DATAGRAM_BURST: u32 = 32;

/// A TCP socket with the project's buffers.
pub(super) fn tcp_socket() -> tcp::Socket<'static> {
    let buffer = || tcp::SocketBuffer::new(vec![0; TCP_BUFFER_BYTES]);
    let mut socket = tcp::Socket::new(buffer(), buffer());
    socket.set_nagle_enabled(false);
    // Regardless of the controllers that other crates of the build enable.
    socket.set_congestion_control(tcp::CongestionControl::None);
    socket
}

/// A UDP socket with the project's buffers.
pub(super) fn udp_socket() -> udp::Socket<'static> {
    let buffer = || {
        udp::PacketBuffer::new(
            vec![udp::PacketMetadata::EMPTY; DATAGRAMS],
            vec![0; DATAGRAMS * LARGEST_PAYLOAD],
        )
    };
    udp::Socket::new(buffer(), buffer())
}

struct Sink {
    socket: SocketHandle,
    report: SinkReport,
    reported: bool,
}

struct Source {
    socket: SocketHandle,
    wanted: Option<u64>,
    sent: u64,
}

/// A requested run of datagrams.
struct Pour {
    to: IpEndpoint,
    run: u64,
    bytes: usize,
    next: u64,
    count: u64,
    interval: Duration,
    due: Instant,
}

/// An arriving run of datagrams.
#[derive(Default)]
struct Run {
    from: Option<IpEndpoint>,
    number: u64,
    received: u64,
    corrupt: u64,
}

/// The services of one host.
pub struct Service {
    sinks: Vec<Sink>,
    sources: Vec<Source>,
    datagrams: SocketHandle,
    run: Run,
    pour: Option<Pour>,
}

impl Service {
    /// Opens the ports.
    pub fn new<W: Wire>(host: &mut Host<W>) -> Self {
        let sinks = (0..CONNECTIONS)
            .map(|_| Sink {
                socket: host.sockets.add(tcp_socket()),
                report: SinkReport {
                    bytes: 0,
                    corrupt: 0,
                },
                reported: false,
            })
            .collect();
        let sources = (0..CONNECTIONS)
            .map(|_| Source {
                socket: host.sockets.add(tcp_socket()),
                wanted: None,
                sent: 0,
            })
            .collect();
        let mut socket = udp_socket();
        // A fresh socket and a port other than 0: binding cannot fail.
        let _ = socket.bind(DATAGRAM_PORT);
        Self {
            sinks,
            sources,
            datagrams: host.sockets.add(socket),
            run: Run::default(),
            pour: None,
        }
    }

    /// Serves everything that has arrived; call it after each turn of the host. Returns the time
    /// until it has to be called again even if nothing arrives.
    pub fn serve<W: Wire>(&mut self, host: &mut Host<W>) -> Duration {
        for sink in &mut self.sinks {
            sink.serve(host.sockets.get_mut(sink.socket));
        }
        for source in &mut self.sources {
            source.serve(host.sockets.get_mut(source.socket));
        }
        self.serve_datagrams(host.sockets.get_mut(self.datagrams))
    }

    fn serve_datagrams(&mut self, socket: &mut udp::Socket<'_>) -> Duration {
        while let Ok((payload, metadata)) = socket.recv() {
            let Some((datagram, corrupt)) = Datagram::read(payload) else {
                continue;
            };
            let bytes = payload.len();
            let from = metadata.endpoint;
            match datagram.kind {
                Kind::Data => self.run.count(from, datagram, corrupt),
                Kind::End => {
                    let report = self.run.report(from, datagram.number);
                    send(socket, from, report, HEADER_BYTES);
                }
                Kind::Request => {
                    self.pour = Some(Pour {
                        to: from,
                        run: datagram.number,
                        bytes,
                        next: 0,
                        count: datagram.sequence,
                        interval: Duration::from_nanos(datagram.number),
                        due: Instant::now(),
                    });
                }
                Kind::Report => {}
            }
        }
        match &mut self.pour {
            None => Duration::MAX,
            Some(pour) => {
                let delay = pour.serve(socket);
                if pour.next == pour.count {
                    self.pour = None;
                }
                delay
            }
        }
    }
}

/// Sends one datagram if there is room; otherwise the datagram is lost.
pub(super) fn send(
    socket: &mut udp::Socket<'_>,
    to: IpEndpoint,
    datagram: Datagram,
    bytes: usize,
) -> bool {
    match socket.send(bytes, to) {
        Ok(buffer) => datagram.write(buffer),
        Err(_) => false,
    }
}

impl Sink {
    fn serve(&mut self, socket: &mut tcp::Socket<'_>) {
        if !socket.is_open() {
            self.report = SinkReport {
                bytes: 0,
                corrupt: 0,
            };
            self.reported = false;
            // Closed, and the port is not 0: listening cannot fail.
            let _ = socket.listen(SINK_PORT);
            return;
        }
        while socket.can_recv() {
            let report = &mut self.report;
            let taken = socket.recv(|bytes| {
                report.corrupt += differing(report.bytes, bytes);
                report.bytes += bytes.len() as u64;
                (bytes.len(), bytes.len())
            });
            if !matches!(taken, Ok(count) if count > 0) {
                break;
            }
        }
        if socket.state() == tcp::State::CloseWait && !self.reported {
            self.reported = true;
            // The send buffer of a sink is empty until now and larger than this.
            let _ = socket.send_slice(&self.report.to_bytes());
            socket.close();
        }
    }
}

impl Source {
    fn serve(&mut self, socket: &mut tcp::Socket<'_>) {
        if !socket.is_open() {
            self.wanted = None;
            self.sent = 0;
            // Closed, and the port is not 0: listening cannot fail.
            let _ = socket.listen(SOURCE_PORT);
            return;
        }
        let wanted = match self.wanted {
            Some(wanted) => wanted,
            None if socket.recv_queue() >= 8 => {
                let mut request = [0; 8];
                if !matches!(socket.recv_slice(&mut request), Ok(8)) {
                    return;
                }
                *self.wanted.insert(u64::from_be_bytes(request))
            }
            None => {
                if socket.state() == tcp::State::CloseWait {
                    socket.close();
                }
                return;
            }
        };
        while self.sent < wanted && socket.can_send() {
            let sent = self.sent;
            let filled = socket.send(|buffer| {
                let room = u64::try_from(buffer.len()).unwrap_or(u64::MAX);
                let count = room.min(wanted - sent) as usize;
                fill(sent, &mut buffer[..count]);
                (count, count)
            });
            match filled {
                Ok(count) if count > 0 => self.sent += count as u64,
                _ => break,
            }
        }
        if self.sent == wanted && socket.may_send() {
            socket.close();
        }
    }
}

impl Run {
    fn count(&mut self, from: IpEndpoint, datagram: Datagram, corrupt: u64) {
        if self.from != Some(from) || self.number != datagram.number {
            *self = Run {
                from: Some(from),
                number: datagram.number,
                received: 0,
                corrupt: 0,
            };
        }
        self.received += 1;
        self.corrupt += corrupt;
    }

    fn report(&self, from: IpEndpoint, number: u64) -> Datagram {
        let same = self.from == Some(from) && self.number == number;
        Datagram {
            kind: Kind::Report,
            sequence: if same { self.received } else { 0 },
            number: if same { self.corrupt } else { 0 },
        }
    }
}

impl Pour {
    /// Sends what is due, and the end mark after the last; returns the time until more is due.
    fn serve(&mut self, socket: &mut udp::Socket<'_>) -> Duration {
        let now = Instant::now();
        let mut burst = 0;
        while self.next < self.count && self.due <= now && burst < DATAGRAM_BURST {
            if !socket.can_send() {
                return Duration::ZERO;
            }
            let datagram = Datagram {
                kind: Kind::Data,
                sequence: self.next,
                number: self.run,
            };
            send(socket, self.to, datagram, self.bytes);
            self.next += 1;
            self.due += self.interval;
            burst += 1;
        }
        if self.next == self.count {
            let end = Datagram {
                kind: Kind::End,
                sequence: 0,
                number: self.run,
            };
            send(socket, self.to, end, HEADER_BYTES);
        }
        self.due.saturating_duration_since(now)
    }
}
