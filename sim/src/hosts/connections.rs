//! The server's TCP: smoltcp, with one socket for each connection.
//!
//! All CPUs share the stack, as they share a kernel's connections. The callers account for the
//! cost of a call, lock contention and cache misses; the segments here are real: windows, ACK
//! clock, slow start (Reno), order, and every byte.

use super::headers::{Flow, Kind, look};
use super::lock::Lock;
use super::packets::{Packets, SERVER, instant};
use smoltcp::iface::{Interface, PollResult, SocketHandle, SocketSet};
use smoltcp::socket::tcp;
use smoltcp::time::Duration;
use std::collections::BTreeMap;

/// Bytes of a send buffer: as the paper's server, so that one call takes the whole file.
const SEND_BUFFER: usize = 32 * 1024;
/// Bytes of a receive buffer: requests are short.
const RECEIVE_BUFFER: usize = 4 * 1024;
/// smoltcp's first window is so many bytes, whatever a segment holds. Where that is less than
/// a segment there is no slow start here: Linux begins with two segments, which at an MTU of
/// 9000 is a file but for its last bytes.
const INITIAL_WINDOW: usize = 2048;
/// The server waits so long for something to acknowledge with; Linux' longest.
const DELAYED_ACK: Duration = Duration::from_millis(40);

/// A connection of the server.
pub struct Connection {
    sockets: SocketSet<'static>,
    handle: SocketHandle,
    flow: Flow,
    /// Its lock.
    pub lock: Lock,
    /// The CPU that touched it last.
    pub cpu: Option<usize>,
    /// The thread that has accepted it.
    pub owner: Option<usize>,
    /// A thread was notified that it can be accepted.
    established: bool,
    request: Vec<u8>,
    /// Bytes of the file, until the connection is closed behind it.
    closes: Option<usize>,
}

impl Connection {
    /// Its lock, and who has touched what that guards.
    pub fn guarded(&mut self) -> (&mut Lock, &mut Option<usize>) {
        (&mut self.lock, &mut self.cpu)
    }

    /// Closes the connection once the rest of the file fits into the congestion window. A
    /// window of smoltcp's is of bytes, and with a FIN to come it sends a part of a segment to
    /// fill it, where Linux, whose windows are of segments, sends none.
    fn close_behind_file(&mut self) {
        let socket = self.sockets.get_mut::<tcp::Socket>(self.handle);
        let left = socket.send_queue();
        let fits = |bytes: &usize| {
            let slow_start = socket.congestion_control() == tcp::CongestionControl::Reno;
            !slow_start || left <= INITIAL_WINDOW + bytes.saturating_sub(left)
        };
        if self.closes.is_some_and(|bytes| fits(&bytes)) {
            self.closes = None;
            socket.close();
        }
    }
}

/// What a segment has brought about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The connection, while there is one.
    pub connection: Option<usize>,
    /// It was a matter of the listening socket: a new connection, or one that can be
    /// accepted from now on.
    pub listening: bool,
    /// It can be accepted from now on.
    pub acceptable: bool,
    /// The connection has bytes for its reader.
    pub readable: bool,
    /// The connection is over and forgotten.
    pub over: bool,
    /// The segment belongs to no connection.
    pub stray: bool,
}

/// All connections of the server.
pub struct Connections {
    interface: Interface,
    device: Packets,
    flows: BTreeMap<Flow, usize>,
    all: Vec<Option<Connection>>,
    free: Vec<usize>,
    services: Vec<u16>,
    congestion_control: tcp::CongestionControl,
}

impl Connections {
    /// A server that listens on ports.
    pub fn new(mtu: u16, station: [u8; 6], services: Vec<u16>, seed: u64) -> Connections {
        let mut device = Packets::of_server(mtu, station);
        let interface = device.interface(SERVER, seed);
        let congestion_control = if usize::from(mtu) < INITIAL_WINDOW {
            tcp::CongestionControl::Reno
        } else {
            tcp::CongestionControl::None
        };
        Connections {
            interface,
            device,
            congestion_control,
            flows: BTreeMap::new(),
            all: Vec::new(),
            free: Vec::new(),
            services,
        }
    }

    /// A connection that is there.
    pub fn get(&mut self, connection: usize) -> Option<&mut Connection> {
        self.all.get_mut(connection)?.as_mut()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.flows.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// Which of the listening sockets a connection came by.
    pub fn listener(&self, connection: usize) -> usize {
        let flow = self.all.get(connection).and_then(|slot| slot.as_ref());
        let service = flow.map(|connection| connection.flow.service);
        let at = self.services.iter().position(|port| Some(*port) == service);
        at.unwrap_or_default()
    }

    /// The connection of a frame and whether it opens one, before the stack sees it.
    pub fn find(&self, frame: &[u8]) -> (Option<usize>, bool) {
        match look(frame) {
            Kind::Tcp { flow, opens } => (self.flows.get(&flow).copied(), opens),
            Kind::Udp { .. } | Kind::Other => (None, false),
        }
    }

    /// Whether the next segment of a connection is the listening socket's matter: it has not
    /// been offered to anybody yet.
    pub fn is_embryonic(&self, connection: usize) -> bool {
        let slot = self.all.get(connection).and_then(|slot| slot.as_ref());
        slot.is_some_and(|connection| !connection.established)
    }

    fn open(&mut self, flow: Flow) -> Option<usize> {
        if !self.services.contains(&flow.service) {
            return None;
        }
        let buffer = |bytes| tcp::SocketBuffer::new(vec![0; bytes]);
        let mut socket = tcp::Socket::new(buffer(RECEIVE_BUFFER), buffer(SEND_BUFFER));
        socket.set_congestion_control(self.congestion_control);
        socket.set_ack_delay(Some(DELAYED_ACK));
        socket.listen(flow.service).ok()?;
        let mut sockets = SocketSet::new(Vec::new());
        let handle = sockets.add(socket);
        let connection = Connection {
            sockets,
            handle,
            flow,
            lock: Lock::default(),
            cpu: None,
            owner: None,
            established: false,
            request: Vec::new(),
            closes: None,
        };
        let slot = self.free.pop().unwrap_or_else(|| {
            self.all.push(None);
            self.all.len() - 1
        });
        self.all[slot] = Some(connection);
        self.flows.insert(flow, slot);
        Some(slot)
    }

    /// The stack gets a frame at `now`. Gives what it brought about and the frames that it
    /// made the stack send.
    pub fn receive(&mut self, now: u64, frame: Vec<u8>) -> (Outcome, Vec<Vec<u8>>) {
        let stray = Outcome {
            stray: true,
            ..Outcome::default()
        };
        let Kind::Tcp { flow, opens } = look(&frame) else {
            return (stray, Vec::new());
        };
        let known = self.flows.get(&flow).copied();
        let Some(slot) = known.or_else(|| opens.then(|| self.open(flow)).flatten()) else {
            return (stray, Vec::new());
        };
        let Some(Some(connection)) = self.all.get_mut(slot) else {
            return (stray, Vec::new());
        };
        self.device.receive_frame(frame);
        self.interface
            .poll_ingress_single(instant(now), &mut self.device, &mut connection.sockets);
        let mut outcome = Outcome {
            connection: Some(slot),
            listening: !connection.established,
            ..Outcome::default()
        };
        let socket = connection.sockets.get::<tcp::Socket>(connection.handle);
        if !connection.established && socket.may_send() {
            connection.established = true;
            outcome.acceptable = true;
        }
        outcome.readable = socket.can_recv();
        let frames = self.transmit(now, slot);
        outcome.over = self.get(slot).is_none();
        (outcome, frames)
    }

    /// Lets a connection send what it may, and forgets it if it is over.
    fn transmit(&mut self, now: u64, slot: usize) -> Vec<Vec<u8>> {
        let Some(Some(connection)) = self.all.get_mut(slot) else {
            return Vec::new();
        };
        connection.close_behind_file();
        let now = instant(now);
        while self
            .interface
            .poll_egress(now, &mut self.device, &mut connection.sockets)
            != PollResult::None
        {}
        let state = connection
            .sockets
            .get::<tcp::Socket>(connection.handle)
            .state();
        if matches!(state, tcp::State::Closed | tcp::State::TimeWait) {
            // The client's last ACK may get lost: it asks again, and is a stray then.
            self.flows.remove(&connection.flow);
            self.all[slot] = None;
            self.free.push(slot);
        }
        self.device.take_sent()
    }

    /// Whether a connection has bytes for its reader.
    pub fn is_readable(&mut self, slot: usize) -> bool {
        self.get(slot).is_some_and(|connection| {
            let socket = connection.sockets.get::<tcp::Socket>(connection.handle);
            socket.can_recv()
        })
    }

    /// Reads what has come. True if it is a whole request now.
    pub fn read(&mut self, slot: usize) -> bool {
        let Some(connection) = self.get(slot) else {
            return false;
        };
        let socket = connection.sockets.get_mut::<tcp::Socket>(connection.handle);
        let request = &mut connection.request;
        // What it may not read is nothing.
        let _ = socket.recv(|bytes| {
            request.extend_from_slice(bytes);
            (bytes.len(), ())
        });
        request.ends_with(b"\r\n\r\n")
    }

    /// Sends a file's bytes, behind which the connection will be closed. Gives the frames that
    /// the window allows now.
    pub fn respond(&mut self, now: u64, slot: usize, file: &[u8]) -> Vec<Vec<u8>> {
        let Some(connection) = self.get(slot) else {
            return Vec::new();
        };
        let socket = connection.sockets.get_mut::<tcp::Socket>(connection.handle);
        // It fits: the send buffer is larger than any file. A connection that the client has
        // reset takes nothing.
        let _ = socket.send_slice(file);
        connection.closes = Some(file.len());
        self.transmit(now, slot)
    }

    /// Lets all timers that are due expire; the frames that they send. Timers cost nothing,
    /// as in the paper's model.
    pub fn expire(&mut self, now: u64) -> Vec<Vec<u8>> {
        let time = instant(now);
        let mut frames = Vec::new();
        for slot in 0..self.all.len() {
            let Some(Some(connection)) = self.all.get_mut(slot) else {
                continue;
            };
            let due = self.interface.poll_at(time, &connection.sockets);
            if due.is_some_and(|due| due <= time) {
                frames.extend(self.transmit(now, slot));
            }
        }
        frames
    }
}
