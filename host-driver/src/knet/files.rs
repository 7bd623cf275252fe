//! A static file server, and clients in a closed loop, after the paper's experiments.
//!
//! "Packet classification in the NIC for improved SMP-based Internet servers" (KNET), section
//! 4: files of 20 and 5 KB, and clients that ask for the next one over a new connection when
//! they have the last one. A request is a name and a line's end, the answer the file, and then
//! the server closes. The byte at a place of a file is known, so clients check all of them.

use smoltcp::iface::{Interface, SocketHandle, SocketSet};
use smoltcp::socket::tcp::{Socket, SocketBuffer, State};
use smoltcp::time::Duration as StackDuration;
use smoltcp::wire::IpEndpoint;

use super::stack::Application;

/// The files: names and lengths.
pub const FILES: [(&str, usize); 2] = [("20k", 20 * 1024), ("5k", 5 * 1024)];

/// Bytes of a send buffer: one call starts a whole answer, as in the paper.
const BUFFER: usize = 32 * 1024;
/// Longest name.
const LONGEST: usize = 64;
/// A connection on which nothing happens for so long is given up.
const PATIENCE: StackDuration = StackDuration::from_secs(10);

/// The byte at a place of a file.
#[must_use]
pub fn byte_at(length: usize, place: usize) -> u8 {
    (place.wrapping_mul(31) ^ length ^ (place >> 8)) as u8
}

fn socket(receive: usize, send: usize) -> Socket<'static> {
    let buffer = |bytes| SocketBuffer::new(vec![0; bytes]);
    let mut socket = Socket::new(buffer(receive), buffer(send));
    socket.set_timeout(Some(PATIENCE));
    socket
}

/// A server of [`FILES`] on one stack.
pub struct FileServer {
    port: u16,
    seats: Vec<Seat>,
    served: u64,
}

/// A socket that listens or answers.
struct Seat {
    handle: SocketHandle,
    request: Vec<u8>,
    /// What is left of the answer: the file's length and the next place.
    answer: Option<(usize, usize)>,
}

impl FileServer {
    /// Listens at a port, for so many connections at a time.
    pub fn new(sockets: &mut SocketSet<'static>, port: u16, connections: usize) -> Self {
        let seat = |_| Seat {
            handle: sockets.add(socket(4096, BUFFER)),
            request: Vec::new(),
            answer: None,
        };
        Self {
            port,
            seats: (0..connections).map(seat).collect(),
            served: 0,
        }
    }

    /// Files that were handed to the stack whole.
    pub fn served(&self) -> u64 {
        self.served
    }
}

impl Application for FileServer {
    fn turn(&mut self, sockets: &mut SocketSet<'static>) -> bool {
        let mut worked = false;
        for seat in &mut self.seats {
            let socket = sockets.get_mut::<Socket<'_>>(seat.handle);
            if matches!(socket.state(), State::Closed | State::TimeWait) {
                socket.abort();
                (seat.answer, seat.request) = (None, Vec::new());
                worked |= socket.listen(self.port).is_ok();
            }
            if seat.answer.is_none() && socket.can_recv() {
                worked |= seat.hear(socket);
            }
            let Some((length, place)) = &mut seat.answer else {
                continue;
            };
            if *place < *length && socket.can_send() {
                let (length, from) = (*length, *place);
                let sent = socket.send(|room| {
                    let bytes = room.len().min(length - from);
                    for (at, byte) in room.iter_mut().take(bytes).enumerate() {
                        *byte = byte_at(length, from + at);
                    }
                    (bytes, bytes)
                });
                *place += sent.unwrap_or(0);
                worked = true;
                if *place == length {
                    self.served += 1;
                    socket.close();
                }
            }
        }
        worked
    }
}

impl Seat {
    /// Takes what came of the request. A name that is none ends the connection.
    fn hear(&mut self, socket: &mut Socket<'static>) -> bool {
        let request = &mut self.request;
        let heard = socket.recv(|bytes| {
            request.extend_from_slice(bytes);
            (bytes.len(), bytes.len())
        });
        if let Some(end) = request.iter().position(|byte| *byte == b'\n') {
            let name = request.get(..end).unwrap_or_default();
            let file = FILES.iter().find(|(known, _)| known.as_bytes() == name);
            match file {
                Some((_, length)) => self.answer = Some((*length, 0)),
                None => socket.close(),
            }
        } else if request.len() > LONGEST {
            socket.abort();
        }
        heard.is_ok_and(|bytes| bytes > 0)
    }
}

/// Clients in a closed loop: each asks for the next file when it has the last one.
pub struct Clients {
    server: IpEndpoint,
    file: usize,
    seats: Vec<Client>,
    next_port: u16,
    /// Files that came whole.
    pub fetched: u64,
    /// Connections that ended before that.
    pub broken: u64,
    /// Bytes that were others than they should be.
    pub corrupt: u64,
}

struct Client {
    handle: SocketHandle,
    asked: bool,
    got: usize,
}

/// The first port that clients connect from.
const FIRST_PORT: u16 = 20_000;

impl Clients {
    /// So many connections at a time to a server, for the file of this place in [`FILES`].
    pub fn new(
        sockets: &mut SocketSet<'static>,
        server: IpEndpoint,
        file: usize,
        connections: usize,
    ) -> Self {
        let client = |_| Client {
            handle: sockets.add(socket(BUFFER, 256)),
            asked: false,
            got: 0,
        };
        Self {
            server,
            file,
            seats: (0..connections).map(client).collect(),
            next_port: FIRST_PORT,
            fetched: 0,
            broken: 0,
            corrupt: 0,
        }
    }

    /// Looks after the connections; begins new ones if there are to be `more`.
    pub fn turn(
        &mut self,
        interface: &mut Interface,
        sockets: &mut SocketSet<'static>,
        more: bool,
    ) {
        let Some((name, length)) = FILES.get(self.file).copied() else {
            return;
        };
        for client in &mut self.seats {
            let socket = sockets.get_mut::<Socket<'_>>(client.handle);
            if socket.may_send() && !client.asked {
                client.asked = socket.send_slice(format!("{name}\n").as_bytes()).is_ok();
            }
            if socket.can_recv() {
                let (corrupt, got) = (&mut self.corrupt, &mut client.got);
                let _ = socket.recv(|bytes| {
                    for byte in bytes.iter() {
                        *corrupt += u64::from(*byte != byte_at(length, *got));
                        *got += 1;
                    }
                    (bytes.len(), ())
                });
            }
            let ended = match socket.state() {
                State::Closed => true,
                State::CloseWait => !socket.can_recv(),
                State::TimeWait => true,
                _ => false,
            };
            if !ended {
                continue;
            }
            if client.asked {
                let whole = client.got == length;
                self.fetched += u64::from(whole);
                self.broken += u64::from(!whole);
                client.asked = false;
                client.got = 0;
                socket.close();
            }
            if matches!(socket.state(), State::Closed | State::TimeWait) && more {
                socket.abort();
                let port = self.next_port;
                self.next_port = port.checked_add(1).unwrap_or(FIRST_PORT);
                let _ = socket.connect(interface.context(), self.server, port);
            }
        }
    }
}
