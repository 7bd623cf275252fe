//! Sends and receives over one TCP connection.
//!
//! Each side has a writer thread and a reader thread. The writer sends its messages, then `End`,
//! and the report once the reader has received `End` from the other side.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::Plan;
use crate::account::{Account, Flow};
use crate::message::{self, HEADER, Header, Kind};
use crate::pace::Pace;
use crate::report::Report;

/// Time between two attempts to connect.
const RETRY: Duration = Duration::from_millis(100);

/// Listens or connects, sends and receives, and gives the figures.
///
/// # Errors
/// Nobody came, nobody listens, or the connection broke.
pub fn run(plan: &Plan) -> Result<Report> {
    if plan.listen {
        let listener = TcpListener::bind(plan.address)
            .with_context(|| format!("listen at {}", plan.address))?;
        serve(plan, &listener)
    } else {
        talk(plan, connect(plan)?)
    }
}

/// Takes one connection from a listener.
///
/// # Errors
/// As [`run`].
pub fn serve(plan: &Plan, listener: &TcpListener) -> Result<Report> {
    listener.set_nonblocking(true)?;
    let start = Instant::now();
    let stream = loop {
        match listener.accept() {
            Ok((stream, _)) => break stream,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error).context("accept"),
        }
        if start.elapsed() > plan.patience {
            bail!("nobody came within {} s", plan.patience.as_secs_f64());
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    stream.set_nonblocking(false)?;
    talk(plan, stream)
}

fn connect(plan: &Plan) -> Result<TcpStream> {
    let start = Instant::now();
    loop {
        let left = plan.patience.saturating_sub(start.elapsed());
        match TcpStream::connect_timeout(&plan.address, left.max(RETRY)) {
            Ok(stream) => return Ok(stream),
            Err(error) if start.elapsed() >= plan.patience => {
                return Err(error).with_context(|| format!("connect to {}", plan.address));
            }
            Err(_) => std::thread::sleep(RETRY),
        }
    }
}

/// Sends and receives over a connection that is there.
///
/// # Errors
/// The connection broke before anything came over it.
pub fn talk(plan: &Plan, stream: TcpStream) -> Result<Report> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(plan.idle))?;
    stream.set_write_timeout(Some(plan.idle))?;
    let reader = stream.try_clone()?;
    let start = Instant::now();
    let (flow_sent, flow_known) = channel();
    let (sent, read) = std::thread::scope(|scope| {
        let (stream, reader) = (&stream, &reader);
        let writer = scope.spawn(move || write(plan, stream, &flow_known));
        let read = read(reader, &flow_sent);
        // Lets a writer that waits for it know that there will be no more.
        drop(flow_sent);
        let sent = writer
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the writer panicked")));
        (sent, read)
    });
    let seconds = start.elapsed().as_secs_f64();
    let (into, theirs, complete) = read;
    let out = match (&sent, theirs) {
        (_, Some(theirs)) => theirs,
        (Ok(sent), None) => Flow {
            sent: *sent,
            ..Flow::default()
        },
        (Err(_), None) => Flow::default(),
    };
    if into.received + out.sent == 0 {
        sent.context("the connection broke")?;
    }
    Ok(Report::new("tcp", out, into, complete, seconds))
}

fn write(plan: &Plan, mut stream: &TcpStream, flow_known: &Receiver<Flow>) -> io::Result<u64> {
    let mut pace = Pace::new(plan);
    let mut message = vec![0; plan.size.clamp(HEADER, message::LARGEST)];
    while let Some(number) = pace.next_number() {
        message::fill(&mut message, number);
        stream.write_all(&message)?;
    }
    stream.write_all(&message::build(Kind::End, pace.sent(), &[]))?;
    // The reader knows when it has seen the other side's end, or that it never will.
    if let Ok(flow) = flow_known.recv() {
        let body = serde_json::to_vec(&flow)?;
        stream.write_all(&message::build(Kind::Report, 0, &body))?;
    }
    stream.shutdown(Shutdown::Write)?;
    Ok(pace.sent())
}

/// Reads to the end; returns what was received, the other side's report, and whether both are
/// complete.
fn read(mut stream: &TcpStream, flow_sent: &Sender<Flow>) -> (Flow, Option<Flow>, bool) {
    let mut account = Account::default();
    let mut theirs = None;
    let mut header = [0; HEADER];
    let mut body = Vec::new();
    while theirs.is_none() {
        if stream.read_exact(&mut header).is_err() {
            break;
        }
        let Some(parsed) = Header::parse(&header) else {
            // Where the next message begins is unknown now.
            account.damaged();
            break;
        };
        body.resize(parsed.bytes - HEADER, 0);
        if stream.read_exact(&mut body).is_err() {
            break;
        }
        match parsed.kind {
            _ if !parsed.fits(&body) => account.damaged(),
            Kind::Hello => {}
            Kind::Data => account.data(parsed.number, parsed.bytes),
            Kind::End => {
                account.end(parsed.number);
                let _ = flow_sent.send(account.flow());
            }
            Kind::Report => theirs = serde_json::from_slice(&body).ok(),
        }
    }
    let complete = account.is_complete() && theirs.is_some();
    (account.flow(), theirs, complete)
}
