//! Closed-loop clients: each connection requests one file, and a new connection replaces it when
//! the file has arrived (paper, 5.1.3).
//!
//! A client machine answers a segment [`ANSWER_NS`] later, with a little more that varies by
//! the seed, and takes [`FRAME_NS`] of one CPU for each. They acknowledge every segment, as
//! Linux does at the beginning of a connection. The program hears of what has come
//! [`PROGRAM_NS`] after the stack, which has answered by then: so the handshake's ACK and the
//! request are two segments, as the ACK of the server's FIN and the client's own are. All
//! machines share the wire to the server.

use super::file;
use super::packets::{Packets, SERVER, client_address, instant};
use crate::hosts::headers;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use smoltcp::iface::{Interface, PollResult, SocketHandle, SocketSet};
use smoltcp::socket::tcp;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// From a frame's end on the wire to the client's answer.
const ANSWER_NS: u64 = 150_000;
/// How much longer that may take.
const VARIES_NS: u64 = 50_000;
/// A client machine's time for a frame: it deals with one at a time.
const FRAME_NS: u64 = 25_000;
/// From what the stack has got to the program's next call.
const PROGRAM_NS: u64 = 100_000;
/// From the end of a connection to the next: the client's program has to run.
const REOPEN_NS: u64 = 1_000_000;
/// First connections are opened so far apart.
const STAGGER_NS: u64 = 50_000;
/// How often timers are looked at.
const TICK_NS: u64 = 1_000_000;
/// Bytes of a receive buffer.
const RECEIVE_BUFFER: usize = 64 * 1024;
/// Bytes of a send buffer.
const SEND_BUFFER: usize = 1024;
/// First port of a client.
const FIRST_PORT: u16 = 1024;

/// What clients do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    /// Client machines.
    pub machines: usize,
    /// Connections at a time, dealt out to the machines in turn.
    pub connections: usize,
    /// Bytes of a file.
    pub file_bytes: usize,
    /// The server's ports, dealt out to the machines in turn: with as many ports as
    /// machines each machine has its own.
    pub services: Vec<u16>,
    /// Largest packet.
    pub mtu: u16,
}

struct Machine {
    interface: Interface,
    device: Packets,
    /// When its last frame went out: it answers in order.
    last: u64,
    next_port: u16,
}

struct Connection {
    machine: usize,
    service: u16,
    port: u16,
    sockets: SocketSet<'static>,
    handle: SocketHandle,
    asked: bool,
    /// Its program is about to run.
    awake: bool,
    opened: u64,
    received: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Open(usize),
    Frame(Vec<u8>),
    Program(usize),
    Tick,
}

/// What clients have seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Files that came whole.
    pub files: u64,
    /// Bytes of files.
    pub bytes: u64,
    /// Connections that ended without their file.
    pub failed: u64,
    /// Bytes that were not the file's.
    pub wrong: u64,
    /// Timers that made a client send something again or late.
    pub expired: u64,
    /// Nanoseconds from opening a connection to its end, all together.
    pub latency_ns: u64,
}

/// All clients.
pub struct Clients {
    load: Load,
    machines: Vec<Machine>,
    connections: Vec<Option<Connection>>,
    ports: BTreeMap<([u8; 4], u16), usize>,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    order: u64,
    random: Xoshiro256PlusPlus,
    seen: Seen,
}

impl Clients {
    /// Clients of a server, from `now` on.
    pub fn new(load: Load, server: [u8; 6], seed: u64, now: u64) -> Clients {
        let machine = |machine: usize| {
            let address = client_address(machine);
            let mut device = Packets::of_client(load.mtu, address, server);
            Machine {
                interface: device.interface(address, seed ^ (machine as u64 + 1)),
                device,
                last: 0,
                next_port: FIRST_PORT,
            }
        };
        let mut clients = Clients {
            machines: (0..load.machines).map(machine).collect(),
            connections: (0..load.connections).map(|_| None).collect(),
            load,
            ports: BTreeMap::new(),
            events: BinaryHeap::new(),
            order: 0,
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            seen: Seen::default(),
        };
        for connection in 0..clients.connections.len() {
            clients.at(
                now + connection as u64 * STAGGER_NS,
                Event::Open(connection),
            );
        }
        clients.at(now + TICK_NS, Event::Tick);
        clients
    }

    /// What they have seen so far.
    pub fn seen(&self) -> &Seen {
        &self.seen
    }

    /// When they next have something to do.
    pub fn due(&self) -> Option<u64> {
        self.events.peek().map(|Reverse((at, ..))| *at)
    }

    fn at(&mut self, time: u64, event: Event) {
        self.order += 1;
        self.events.push(Reverse((time, self.order, event)));
    }

    fn answer_time(&mut self) -> u64 {
        ANSWER_NS + self.random.next_u64() % VARIES_NS
    }

    /// A frame has come off the wire at a time.
    pub fn arrive(&mut self, at: u64, frame: Vec<u8>) {
        let Some(machine) = machine_of(&frame).filter(|at| *at < self.machines.len()) else {
            return;
        };
        let due = (at + self.answer_time()).max(self.machines[machine].last + FRAME_NS);
        self.machines[machine].last = due;
        self.at(due, Event::Frame(frame));
    }

    /// Does what is due at `now`; gives the frames for the wire.
    pub fn act(&mut self, now: u64) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        while self.due().is_some_and(|due| due <= now) {
            let Some(Reverse((_, _, event))) = self.events.pop() else {
                break;
            };
            match event {
                Event::Open(connection) => self.open(now, connection, &mut frames),
                Event::Frame(frame) => self.frame(now, frame, &mut frames),
                Event::Program(connection) => self.program(now, connection, &mut frames),
                Event::Tick => self.tick(now, &mut frames),
            }
        }
        frames
    }

    fn open(&mut self, now: u64, at: usize, frames: &mut Vec<Vec<u8>>) {
        let index = at % self.load.machines;
        let services = &self.load.services;
        let service = services[index % services.len()];
        let machine = &mut self.machines[index];
        let address = client_address(index);
        let mut port = machine.next_port;
        while self.ports.contains_key(&(address.octets(), port)) {
            port = port.checked_add(1).unwrap_or(FIRST_PORT);
        }
        machine.next_port = port.checked_add(1).unwrap_or(FIRST_PORT);
        let buffer = |bytes| tcp::SocketBuffer::new(vec![0; bytes]);
        let mut socket = tcp::Socket::new(buffer(RECEIVE_BUFFER), buffer(SEND_BUFFER));
        socket.set_ack_delay(None);
        socket.set_congestion_control(tcp::CongestionControl::Reno);
        let remote = (SERVER, service);
        if socket
            .connect(machine.interface.context(), remote, port)
            .is_err()
        {
            self.seen.failed += 1;
            return;
        }
        let mut sockets = SocketSet::new(Vec::new());
        let handle = sockets.add(socket);
        self.ports.insert((address.octets(), port), at);
        self.connections[at] = Some(Connection {
            machine: index,
            service,
            port,
            sockets,
            handle,
            asked: false,
            awake: false,
            opened: now,
            received: 0,
        });
        self.transmit(now, at, frames);
    }

    fn frame(&mut self, now: u64, frame: Vec<u8>, frames: &mut Vec<Vec<u8>>) {
        // From the server's view the client is the sender: here it is the receiver.
        let Some((address, port)) = receiver(&frame) else {
            return;
        };
        let Some(at) = self.ports.get(&(address, port)).copied() else {
            return;
        };
        let Some(connection) = &mut self.connections[at] else {
            return;
        };
        let machine = &mut self.machines[connection.machine];
        machine.device.receive_frame(frame);
        machine.interface.poll_ingress_single(
            instant(now),
            &mut machine.device,
            &mut connection.sockets,
        );
        let socket = connection.sockets.get::<tcp::Socket>(connection.handle);
        let news = socket.can_recv() || !socket.may_recv() || !connection.asked;
        if news && socket.may_send() && !std::mem::replace(&mut connection.awake, true) {
            self.at(now + PROGRAM_NS, Event::Program(at));
        }
        self.transmit(now, at, frames);
    }

    /// What the client's program does with a connection, and what its stack sends then.
    fn program(&mut self, now: u64, at: usize, frames: &mut Vec<Vec<u8>>) {
        let Some(connection) = &mut self.connections[at] else {
            return;
        };
        connection.awake = false;
        let socket = connection.sockets.get_mut::<tcp::Socket>(connection.handle);
        if !connection.asked && socket.may_send() {
            connection.asked = socket.send_slice(file::REQUEST).is_ok();
        }
        let place = connection.received;
        let fresh = socket.recv(|bytes| (bytes.len(), (bytes.len(), file::matches(place, bytes))));
        if let Ok((bytes, right)) = fresh {
            connection.received += bytes;
            self.seen.bytes += bytes as u64;
            self.seen.wrong += u64::from(!right);
        }
        if connection.asked && !socket.may_recv() && socket.is_open() {
            socket.close();
        }
        self.transmit(now, at, frames);
    }

    /// Lets a connection's stack send what it may; if it is over, another will follow.
    fn transmit(&mut self, now: u64, at: usize, frames: &mut Vec<Vec<u8>>) {
        let Some(connection) = &mut self.connections[at] else {
            return;
        };
        let machine = &mut self.machines[connection.machine];
        while machine.interface.poll_egress(
            instant(now),
            &mut machine.device,
            &mut connection.sockets,
        ) != PollResult::None
        {}
        frames.extend(machine.device.take_sent());
        let socket = connection.sockets.get::<tcp::Socket>(connection.handle);
        if matches!(socket.state(), tcp::State::Closed | tcp::State::TimeWait) {
            if connection.received == self.load.file_bytes {
                self.seen.files += 1;
                self.seen.latency_ns += now - connection.opened;
            } else {
                self.seen.failed += 1;
            }
            let address = client_address(connection.machine).octets();
            self.ports.remove(&(address, connection.port));
            self.connections[at] = None;
            let pause = REOPEN_NS + self.answer_time();
            self.at(now + pause, Event::Open(at));
        }
    }

    fn tick(&mut self, now: u64, frames: &mut Vec<Vec<u8>>) {
        for at in 0..self.connections.len() {
            let Some(connection) = &mut self.connections[at] else {
                continue;
            };
            let machine = &mut self.machines[connection.machine];
            let time = instant(now);
            let due = machine.interface.poll_at(time, &connection.sockets);
            if due.is_some_and(|due| due <= time) {
                self.seen.expired += 1;
                self.transmit(now, at, frames);
            }
        }
        self.at(now + TICK_NS, Event::Tick);
    }

    /// Connections by the port that they go to, for a look.
    pub fn open_on(&self, service: u16) -> usize {
        let open = self.connections.iter().flatten();
        open.filter(|connection| connection.service == service)
            .count()
    }
}

fn receiver(frame: &[u8]) -> Option<([u8; 4], u16)> {
    use smoltcp::wire::{EthernetFrame, Ipv4Packet, TcpPacket};
    let frame = EthernetFrame::new_checked(frame).ok()?;
    let packet = Ipv4Packet::new_checked(frame.payload()).ok()?;
    let segment = TcpPacket::new_checked(packet.payload()).ok()?;
    Some((packet.dst_addr().octets(), segment.dst_port()))
}

/// The machine that a frame is for.
fn machine_of(frame: &[u8]) -> Option<usize> {
    headers::destination(frame).map(|address| address[3].into())
}
