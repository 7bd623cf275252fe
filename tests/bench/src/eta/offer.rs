//! A client that asks at a rate of its own, whatever the server does: each connection is begun at
//! its time, asks for one file, and is given up after a time-out.

use anyhow::Result;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use std::collections::{HashMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// When connections begin.
#[derive(Debug, Clone, Copy)]
pub enum Pace {
    /// So many in a second, evenly.
    Rate(f64),
    /// Another one when one has ended, so that so many are under way.
    UnderWay(usize),
}

/// What came of it.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Connections begun.
    pub begun: u64,
    /// Whole replies in time.
    pub replies: u64,
    /// Those of them that came after the first third of the time and before its end: neither while
    /// queues fill nor while they empty.
    pub steady: u64,
    /// Given up.
    pub timeouts: u64,
    /// Refused, reset or cut.
    pub errors: u64,
    /// Connections that began more than a millisecond late: the client could not keep its rate.
    pub late: u64,
    /// Of each steady reply, microseconds from the time at which its connection was to begin.
    pub waits: Vec<u32>,
}

impl Outcome {
    /// Replies in a second of a steady time.
    pub fn rate(&self, time: Duration) -> f64 {
        self.steady as f64 / (time - time / 3).as_secs_f64()
    }
}

struct Connection {
    socket: OwnedFd,
    /// When it was to begin, however late it did.
    planned: Instant,
    asked: bool,
    got: usize,
    expected: usize,
}

/// Asks for files, each a name and the bytes of the whole reply's body, in turn.
///
/// # Errors
/// The system's, for example without descriptors.
pub fn offer(
    at: (Ipv4Addr, u16),
    files: &[(String, usize)],
    pace: Pace,
    time: Duration,
    timeout: Duration,
) -> Result<Outcome> {
    let at = SocketAddrV4::new(at.0, at.1);
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    let mut outcome = Outcome::default();
    let mut open: HashMap<u64, Connection> = HashMap::new();
    // The time-out is one, so they end in the order in which they began.
    let mut deadlines: VecDeque<(Instant, u64)> = VecDeque::new();
    let start = Instant::now();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let now = Instant::now();
        let passed = now - start;
        let asking = passed < time;
        while let Some((deadline, token)) = deadlines.front().copied() {
            if open.contains_key(&token) {
                if deadline > now {
                    break;
                }
                open.remove(&token);
                outcome.timeouts += 1;
            }
            deadlines.pop_front();
        }
        if !asking && open.is_empty() {
            return Ok(outcome);
        }
        let due = match pace {
            Pace::Rate(rate) => (passed.as_secs_f64() * rate) as u64,
            Pace::UnderWay(count) => outcome.begun + (count.saturating_sub(open.len())) as u64,
        };
        while asking && outcome.begun < due {
            let token = outcome.begun;
            let begins = Instant::now();
            let planned = match pace {
                Pace::Rate(rate) => start + Duration::from_secs_f64(token as f64 / rate),
                Pace::UnderWay(_) => begins,
            };
            outcome.late += u64::from(begins > planned + Duration::from_millis(1));
            outcome.begun += 1;
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            let socket =
                rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
            match rustix::net::connect(&socket, &at) {
                Ok(()) | Err(Errno::INPROGRESS) => {}
                Err(_) => {
                    outcome.errors += 1;
                    continue;
                }
            }
            epoll::add(&epoll, &socket, EventData::new_u64(token), EventFlags::OUT)?;
            let connection = Connection {
                socket,
                planned,
                asked: false,
                got: 0,
                expected: 0,
            };
            open.insert(token, connection);
            deadlines.push_back((Instant::now() + timeout, token));
        }
        const ROOM: epoll::Event = epoll::Event {
            flags: EventFlags::empty(),
            data: EventData::new_u64(0),
        };
        let mut events = [ROOM; 128];
        let nap = Timespec {
            tv_sec: 0,
            tv_nsec: 200_000,
        };
        let count = match epoll::wait(&epoll, &mut events[..], Some(&nap)) {
            Ok(count) => count,
            Err(Errno::INTR) => 0,
            Err(error) => return Err(error.into()),
        };
        for event in &events[..count] {
            let token = event.data.u64();
            let Some(connection) = open.get_mut(&token) else {
                continue;
            };
            let (name, bytes) = &files[token as usize % files.len()];
            match proceed(&epoll, connection, token, (name, *bytes), &mut buffer) {
                Ok(false) => {}
                Ok(true) => {
                    outcome.replies += 1;
                    if (time / 3..time).contains(&start.elapsed()) {
                        outcome.steady += 1;
                        let wait = connection.planned.elapsed().as_micros();
                        outcome.waits.push(u32::try_from(wait).unwrap_or(u32::MAX));
                    }
                    open.remove(&token);
                }
                Err(_) => {
                    outcome.errors += 1;
                    open.remove(&token);
                }
            }
        }
    }
}

/// Asks, and takes what has come; true if the reply is whole.
fn proceed(
    epoll: &OwnedFd,
    connection: &mut Connection,
    token: u64,
    (name, bytes): (&str, usize),
    buffer: &mut [u8],
) -> Result<bool, Errno> {
    if !connection.asked {
        sockopt::socket_error(&connection.socket)??;
        let request = format!("GET /{name} HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n");
        // A fresh socket has room for it.
        rustix::io::write(&connection.socket, request.as_bytes())?;
        connection.asked = true;
        let data = EventData::new_u64(token);
        epoll::modify(epoll, &connection.socket, data, EventFlags::IN)?;
        return Ok(false);
    }
    loop {
        let count = match rustix::io::read(&connection.socket, &mut buffer[..]) {
            Ok(0) => return Err(Errno::CONNRESET),
            Ok(count) => count,
            Err(Errno::AGAIN) => return Ok(false),
            Err(error) => return Err(error),
        };
        if connection.got == 0 {
            // The server sends its header in one piece.
            let header = buffer[..count]
                .windows(4)
                .position(|end| end == b"\r\n\r\n");
            let header = header.ok_or(Errno::PROTO)? + 4;
            if !buffer.starts_with(b"HTTP/1.1 200") {
                return Err(Errno::PROTO);
            }
            connection.expected = header + bytes;
        }
        connection.got += count;
        if connection.got >= connection.expected {
            return Ok(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    /// A server that answers every second connection, and leaves the others without a word.
    #[test]
    fn what_is_answered_counts_and_what_is_not_is_given_up() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        std::thread::spawn(move || {
            let mut silent = Vec::new();
            for (number, stream) in listener.incoming().enumerate() {
                let mut stream = stream.expect("a client");
                if number % 2 == 1 {
                    silent.push(stream);
                    continue;
                }
                let _ = stream.read(&mut [0; 1024]);
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nbody!");
            }
        });
        let files = [("page".to_owned(), 5)];
        let time = Duration::from_millis(200);
        let at = (Ipv4Addr::LOCALHOST, port);
        let outcome = offer(at, &files, Pace::Rate(100.0), time, Duration::from_secs(1));
        let outcome = outcome.expect("descriptors");
        assert_eq!(outcome.errors, 0);
        assert_eq!(outcome.replies + outcome.timeouts, outcome.begun);
        assert!(outcome.steady > 0 && outcome.steady < outcome.replies);
        assert_eq!(outcome.waits.len() as u64, outcome.steady);
        assert!(outcome.waits.iter().all(|wait| *wait < 1_000_000));
        assert!(outcome.begun >= 15 && outcome.replies.abs_diff(outcome.timeouts) <= 1);
    }
}
