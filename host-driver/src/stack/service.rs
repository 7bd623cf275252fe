//! The server of the measuring protocol.
//!
//! The stack ([`super::flows`]) itself answers pings; this module serves the TCP sink, the TCP
//! source and the datagram port of [`super::protocol`].

use std::collections::HashMap;
use std::time::{Duration, Instant};

use smoltcp::iface::SocketHandle;
use smoltcp::socket::tcp::State;
use smoltcp::socket::{tcp, udp};
use smoltcp::time::Instant as StackInstant;
use smoltcp::wire::IpEndpoint;

use super::flows::{Congestion, Holder, Id, Options, Owner, Stack};
use super::protocol::{
    DATAGRAM_PORT, Datagram, HEADER_BYTES, Kind, LARGEST_PAYLOAD, SINK_PORT, SOURCE_PORT,
    SinkReport, differing, fill,
};
use super::{Identity, LONGEST_TURN, StackError, Wire, seed};

/// TCP connections of each kind at the same time; as many more may wait.
const CONNECTIONS: usize = 4;
/// Bytes of a TCP socket's buffer, each way.
pub(super) const TCP_BUFFER_BYTES: usize = 192 * 1024;
/// Datagrams that a UDP socket holds, each way.
pub(super) const DATAGRAMS: usize = 256;
/// The most datagrams sent in one turn.
const DATAGRAM_BURST: u32 = 32;
/// The most frames taken in one turn.
const FRAMES: usize = 256;

/// The options of a connection: a TCP socket with the project's buffers.
const OPTIONS: Options = Options {
    no_delay: true,
    keep_alive: 0,
    user_timeout: 0,
    connect_timeout: 20_000,
    hop_limit: 64,
    send_buffer: TCP_BUFFER_BYTES as u32,
    receive_buffer: TCP_BUFFER_BYTES as u32,
    congestion: Congestion::None,
};

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
    report: SinkReport,
    reported: bool,
}

struct Source {
    wanted: Option<u64>,
    sent: u64,
}

/// What a connection is for.
enum Talk {
    Sink(Sink),
    Source(Source),
}

impl Talk {
    /// A new one, to one of the ports.
    fn new(port: u16) -> Self {
        if port == SINK_PORT {
            return Self::Sink(Sink {
                report: SinkReport {
                    bytes: 0,
                    corrupt: 0,
                },
                reported: false,
            });
        }
        Self::Source(Source {
            wanted: None,
            sent: 0,
        })
    }

    fn port(&self) -> u16 {
        match self {
            Self::Sink(_) => SINK_PORT,
            Self::Source(_) => SOURCE_PORT,
        }
    }

    fn serve(&mut self, socket: &mut tcp::Socket<'_>) {
        match self {
            Self::Sink(sink) => sink.serve(socket),
            Self::Source(source) => source.serve(socket),
        }
    }
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

/// The services of one host on a wire.
pub struct Service<W: Wire> {
    wire: W,
    stack: Stack,
    epoch: Instant,
    talks: HashMap<Id, Talk>,
    datagrams: SocketHandle,
    run: Run,
    pour: Option<Pour>,
}

impl<W: Wire> Service<W> {
    /// Opens the ports.
    pub fn new(mut wire: W, identity: Identity) -> Self {
        let mut stack = Stack::new(&mut wire, identity, seed());
        for port in [SINK_PORT, SOURCE_PORT] {
            let owner = Owner {
                application: u32::from(port),
                socket: 0,
            };
            stack.ports().bind(port, None);
            stack.ports().listen(port, owner, OPTIONS, CONNECTIONS);
        }
        let mut socket = udp_socket();
        // A fresh socket and a port other than 0: binding cannot fail.
        let _ = socket.bind(DATAGRAM_PORT);
        Self {
            datagrams: stack.add_datagrams(socket),
            wire,
            stack,
            epoch: Instant::now(),
            talks: HashMap::new(),
            run: Run::default(),
            pour: None,
        }
    }

    /// Serves everything that has arrived, without waiting. Returns the time until it has to be
    /// called again even if nothing arrives.
    ///
    /// # Errors
    /// [`StackError`] if the wire failed.
    pub fn turn(&mut self) -> Result<Duration, StackError> {
        let micros = self.epoch.elapsed().as_micros();
        let micros = i64::try_from(micros).unwrap_or(i64::MAX);
        self.stack.at(StackInstant::from_micros(micros));
        let all = self.stack.receive(&mut self.wire, FRAMES) < FRAMES;
        for _ in 0..self.stack.ready() {
            let Some(id) = self.stack.next_ready() else {
                break;
            };
            self.serve(id);
        }
        let mut delay = self.serve_datagrams();
        let more = self.stack.transmit_datagrams(&mut self.wire);
        self.wire.flush()?;
        if more || !all {
            return Ok(Duration::ZERO);
        }
        for due in [self.stack.delay(), self.stack.datagram_delay()] {
            delay = delay.min(due.unwrap_or(LONGEST_TURN));
        }
        Ok(delay.min(LONGEST_TURN))
    }

    /// Waits until there may be work, at most for `limit`.
    ///
    /// # Errors
    /// [`StackError`] if the wire failed.
    pub fn wait(&mut self, limit: Duration) -> Result<(), StackError> {
        self.wire.wait(limit)
    }

    /// Moves a connection on.
    fn serve(&mut self, id: Id) {
        if let Some(talk) = self.talks.get_mut(&id)
            && let Some(socket) = self.stack.socket(id)
        {
            talk.serve(socket);
            if matches!(socket.state(), State::Closed | State::TimeWait) {
                let port = talk.port();
                self.talks.remove(&id);
                self.stack.abandon(id);
                self.accept(port);
            }
        } else if let Some(port) = self.stack.settle(id) {
            self.accept(port);
        }
        self.stack.transmit(&mut self.wire, id);
        // A reset that has gone out now was the last of an abandoned connection.
        if self.stack.holder(id) == Some(Holder::Nobody) {
            self.stack.settle(id);
        }
    }

    /// Takes the connections that wait at a port, as many as there may be.
    fn accept(&mut self, port: u16) {
        let owner = Owner {
            application: u32::from(port),
            socket: 0,
        };
        while self
            .talks
            .values()
            .filter(|talk| talk.port() == port)
            .count()
            < CONNECTIONS
        {
            let Some(id) = self.stack.take_waiting(port, owner) else {
                return;
            };
            self.talks.insert(id, Talk::new(port));
        }
    }

    fn serve_datagrams(&mut self) -> Duration {
        let socket = self.stack.datagrams(self.datagrams);
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
        if socket.state() == State::CloseWait && !self.reported {
            self.reported = true;
            // The send buffer of a sink is empty until now and larger than this.
            let _ = socket.send_slice(&self.report.to_bytes());
            socket.close();
        }
    }
}

impl Source {
    fn serve(&mut self, socket: &mut tcp::Socket<'_>) {
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
                if socket.state() == State::CloseWait {
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
