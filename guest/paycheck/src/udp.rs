//! Sends and receives over UDP datagrams.
//!
//! Each side has a sender thread and a receiver thread. Messages that must not be lost are
//! repeated until they are answered: `Hello` by `Hello`, `End` by `Report`.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::Plan;
use crate::account::{Account, Flow};
use crate::message::{self, HEADER, Kind, LARGEST_DATAGRAM};
use crate::pace::Pace;
use crate::report::Report;

/// Time after which an unanswered message is repeated.
const REPEAT: Duration = Duration::from_millis(100);
/// Attempts to get a report.
const ATTEMPTS: u32 = 50;
/// Messages may be overtaken by the end for so long.
const GRACE: Duration = Duration::from_millis(300);
/// How long a repeated request is still answered after the end.
const LINGER: Duration = Duration::from_millis(500);
/// Longest sleep in a receive.
const NAP: Duration = Duration::from_millis(20);

/// What both threads know.
#[derive(Default)]
struct Shared {
    account: Mutex<Account>,
    theirs: Mutex<Option<Flow>>,
    /// The sender has said its last word.
    sent_all: AtomicBool,
    /// The other side is gone.
    gone: AtomicBool,
}

/// Listens or connects, sends and receives, and gives the figures.
///
/// # Errors
/// Nobody came or nobody answers; the socket failed.
pub fn run(plan: &Plan) -> Result<Report> {
    if plan.listen {
        let socket =
            UdpSocket::bind(plan.address).with_context(|| format!("listen at {}", plan.address))?;
        serve(plan, &socket)
    } else {
        let any: SocketAddr = match plan.address {
            SocketAddr::V4(_) => ([0, 0, 0, 0], 0).into(),
            SocketAddr::V6(_) => ([0u16; 8], 0).into(),
        };
        let socket = UdpSocket::bind(any)?;
        call(plan, &socket)
    }
}

/// Connects a socket that is bound to a port of the caller's choice, sends and receives.
///
/// # Errors
/// As [`run`].
pub fn call(plan: &Plan, socket: &UdpSocket) -> Result<Report> {
    socket.connect(plan.address)?;
    greet(plan, socket)?;
    talk(plan, socket)
}

/// Waits on a bound socket for the other side, and then communicates with it only.
///
/// # Errors
/// As [`run`].
pub fn serve(plan: &Plan, socket: &UdpSocket) -> Result<Report> {
    let mut buffer = vec![0; LARGEST_DATAGRAM];
    let start = Instant::now();
    socket.set_read_timeout(Some(NAP))?;
    loop {
        match socket.recv_from(&mut buffer) {
            Ok((bytes, from)) => {
                let hello = buffer.get(..bytes).and_then(message::parse);
                if hello.is_some_and(|(header, _)| header.kind == Kind::Hello) {
                    socket.connect(from)?;
                    socket.send(&message::build(Kind::Hello, 0, &[]))?;
                    return talk(plan, socket);
                }
            }
            Err(error) if is_nothing(&error) => {}
            Err(error) => return Err(error.into()),
        }
        if start.elapsed() > plan.patience {
            bail!("nobody came within {} s", plan.patience.as_secs_f64());
        }
    }
}

/// Nothing came, or the other side is not there yet.
fn is_nothing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock
            | ErrorKind::TimedOut
            | ErrorKind::Interrupted
            | ErrorKind::ConnectionRefused
    )
}

/// The queue below is full, or the other side is not there.
fn send(socket: &UdpSocket, message: &[u8]) -> io::Result<bool> {
    match socket.send(message) {
        Ok(_) => Ok(true),
        Err(error) if is_nothing(&error) => Ok(false),
        // ENOBUFS: a lost datagram, as on any way.
        Err(error) if error.raw_os_error() == Some(105) => Ok(false),
        Err(error) => Err(error),
    }
}

fn greet(plan: &Plan, socket: &UdpSocket) -> Result<()> {
    let start = Instant::now();
    let mut buffer = vec![0; LARGEST_DATAGRAM];
    socket.set_read_timeout(Some(REPEAT))?;
    while start.elapsed() < plan.patience {
        send(socket, &message::build(Kind::Hello, 0, &[]))?;
        let asked = Instant::now();
        match socket.recv(&mut buffer) {
            Ok(bytes) => {
                if buffer.get(..bytes).and_then(message::parse).is_some() {
                    return Ok(());
                }
            }
            Err(error) if is_nothing(&error) => {
                std::thread::sleep(REPEAT.saturating_sub(asked.elapsed()));
            }
            Err(error) => return Err(error.into()),
        }
    }
    bail!("no answer from {}", plan.address)
}

fn talk(plan: &Plan, socket: &UdpSocket) -> Result<Report> {
    let shared = Shared::default();
    let start = Instant::now();
    let (sent, received) = std::thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let result = transmit(plan, socket, &shared);
            shared.sent_all.store(true, Ordering::Release);
            result
        });
        let received = receive(plan, socket, &shared);
        shared.gone.store(true, Ordering::Release);
        let sent = sender
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the sender panicked")));
        (sent, received)
    });
    let sent = sent.context("sending")?;
    let last = received.context("receiving")?;
    let (into, heard_end) = {
        let account = lock(&shared.account);
        (account.flow(), account.is_complete())
    };
    let theirs = *lock(&shared.theirs);
    let out = theirs.unwrap_or(Flow {
        sent,
        ..Flow::default()
    });
    let seconds = last.duration_since(start).as_secs_f64();
    let complete = heard_end && theirs.is_some();
    Ok(Report::new("udp", out, into, complete, seconds))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // What a panicking thread left is still a count.
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn transmit(plan: &Plan, socket: &UdpSocket, shared: &Shared) -> io::Result<u64> {
    let mut pace = Pace::new(plan);
    let mut message = vec![0; plan.size.clamp(HEADER, LARGEST_DATAGRAM)];
    while let Some(number) = pace.next_number() {
        if shared.gone.load(Ordering::Acquire) {
            return Ok(number);
        }
        message::fill(&mut message, number);
        send(socket, &message)?;
    }
    let end = message::build(Kind::End, pace.sent(), &[]);
    for _ in 0..ATTEMPTS {
        if lock(&shared.theirs).is_some() || shared.gone.load(Ordering::Acquire) {
            break;
        }
        send(socket, &end)?;
        std::thread::sleep(REPEAT);
    }
    Ok(pace.sent())
}

/// Receives until everything is said, or nothing comes any more; gives the time of the
/// last message that mattered.
fn receive(plan: &Plan, socket: &UdpSocket, shared: &Shared) -> Result<Instant> {
    socket.set_read_timeout(Some(NAP))?;
    let mut buffer = vec![0; LARGEST_DATAGRAM];
    let mut heard = Instant::now();
    let mut counted = heard;
    let mut ended: Option<Instant> = None;
    let mut said: Option<Instant> = None;
    loop {
        match socket.recv(&mut buffer) {
            Ok(bytes) => {
                heard = Instant::now();
                match buffer.get(..bytes).and_then(message::parse) {
                    None => lock(&shared.account).damaged(),
                    Some((header, body)) => match header.kind {
                        // Our answer was lost.
                        Kind::Hello if plan.listen => {
                            send(socket, &message::build(Kind::Hello, 0, &[]))?;
                        }
                        Kind::Hello => {}
                        Kind::Data => {
                            lock(&shared.account).data(header.number, header.bytes);
                            counted = heard;
                        }
                        Kind::End => {
                            lock(&shared.account).end(header.number);
                            let first = *ended.get_or_insert(heard);
                            if heard.duration_since(first) >= GRACE {
                                let flow = lock(&shared.account).flow();
                                let body = serde_json::to_vec(&flow)?;
                                send(socket, &message::build(Kind::Report, 0, &body))?;
                                said = Some(heard);
                            }
                        }
                        Kind::Report => {
                            if let Ok(flow) = serde_json::from_slice(body) {
                                *lock(&shared.theirs) = Some(flow);
                            }
                        }
                    },
                }
            }
            Err(error) if is_nothing(&error) => {}
            Err(error) => return Err(error.into()),
        }
        let sending = !shared.sent_all.load(Ordering::Acquire);
        // A side that only sends receives nothing until its end.
        if !sending && heard.elapsed() > plan.idle {
            return Ok(counted);
        }
        let answered = said.is_some_and(|said| said.elapsed() > LINGER);
        if !sending && answered {
            return Ok(counted);
        }
    }
}
