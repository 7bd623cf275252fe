//! Status of a card that another process drives.
//!
//! A card has one driver: its vfio-user server accepts one client, and the kernel gives a VFIO
//! group to one process. When that process ends, the card is reset. Other processes therefore
//! cannot access the card; they ask its driver instead. `tigonctl bridge --status PATH` listens at
//! a Unix socket, and `tigonctl --attach PATH ...` sends requests there.
//!
//! ```text
//!   client ── one Request per connection, a line of JSON ──> StatusServer, in the bridge's loop
//!         <── one line of JSON: {"words": [..]}, {"statistics": {..}} or {"error": ".."} ──
//! ```
//!
//! [`Request::Capture`] has more than an answer: the frames follow it, written by a thread of
//! their own ([`live`](crate::live)).
//!
//! [`Request::OpenEndpoint`] has a file in its answer, and keeps its connection: [`Application`].
//!
//! No request takes long. Requests that change the card ([`Request::changes`]) are those that a
//! developer needs on a running card; its registers and memory stay the driver's.
//!
//! Between two requests the driver takes log messages off the card and keeps the newest
//! ([`Backlog`](crate::log::Backlog)), so that any number of clients see them. It does the same
//! with what handlers of extensions send to it.

use std::cell::{Cell, RefCell};
use std::fmt::Write as _;
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use host_interface::log::Level;
use host_interface::trace::TraceEntry;
use serde_json::{Map, Value, json};
use spine_linker::extensions::Extensions;
use spine_linker::policy::Policy;

use crate::live::MOST_FRAMES;
use crate::log::LogFrame;
use crate::nic::{Control, Negotiate, NicError, every_field};
use crate::transport::Transport;
use extensions::Served;
use visitors::Visitors;

mod applications;
mod client;
mod endpoint;
mod extensions;
mod inbox;
mod queues;
mod request;
mod visitors;

pub use client::{ask, capture, words};
pub use endpoint::Application;
pub use request::{CardAnswer, HandlerMessage, HandlerMessages, LogAnswer, Request, RouteRequest};

/// Longest request, in bytes: one with an extension, in hexadecimal digits.
const LONGEST: usize = 0x4_0000;
/// Most words in an answer.
const MOST_WORDS: u32 = 512;
/// How long the driver waits for a client that does not take its answer.
const PATIENCE: Duration = Duration::from_millis(20);
/// The longest interval between two reads of the log, while the driver has time.
const LOG_PERIOD: Duration = Duration::from_millis(20);
/// Most messages in an answer.
const MOST_MESSAGES: usize = 500;
/// Clients that are let in, and requests that are answered, at once.
const BATCH: usize = 8;

/// The driver's side of the status socket.
pub struct StatusServer {
    listener: UnixListener,
    path: PathBuf,
    /// Clients whose requests are on their way.
    visitors: RefCell<Visitors>,
    /// When the log was fetched last.
    polled: Cell<Option<Instant>>,
    /// Extensions, and who exchanges messages with them.
    served: RefCell<Served>,
}

impl StatusServer {
    /// Listens at `path`, for the user that this process runs as.
    ///
    /// # Errors
    /// If the path is not a socket, or another process listens there.
    pub fn bind(path: &Path) -> io::Result<Self> {
        // A socket without a listener was left by a process that was killed.
        let is_socket = path
            .metadata()
            .is_ok_and(|file| file.file_type().is_socket());
        let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
        if is_socket && UnixStream::connect(path).is_err_and(refused) {
            std::fs::remove_file(path)?;
        }
        let listener = UnixListener::bind(path)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        Ok(Self {
            listener,
            path: path.to_owned(),
            visitors: RefCell::new(Visitors::new(LONGEST)),
            polled: Cell::new(None),
            served: RefCell::default(),
        })
    }

    /// Loads extensions, too: those that the policy lets in.
    #[must_use]
    pub fn with_extensions(self, policy: Policy) -> Self {
        self.served.borrow_mut().extensions = Some(Extensions::new(policy));
        self
    }

    /// The path of its socket.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Answers pending requests, and collects the log. Drops clients that misbehave.
    pub fn serve<T: Transport>(&self, nic: &mut Control<T>) {
        let due = |at: Instant| at.elapsed() >= LOG_PERIOD;
        if self.polled.get().is_none_or(due) {
            self.polled.set(Some(Instant::now()));
            // The driver's own loop notices a card that has gone.
            let _ = nic.poll_log();
            nic.readers().remove_ended();
        }
        let mut served = self.served.borrow_mut();
        served.serve(nic);
        let requests = self.visitors.borrow_mut().requests(&self.listener, BATCH);
        for (stream, line) in requests {
            let _ = converse(&stream, &line, nic, &mut served);
        }
    }

    /// Listens no more, and closes all endpoints: the driver is about to end.
    pub fn close<T: Transport>(self, nic: &mut Control<T>) {
        self.served.borrow_mut().close(nic);
    }
}

impl Drop for StatusServer {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn converse<T: Transport>(
    mut stream: &UnixStream,
    line: &str,
    nic: &mut Control<T>,
    served: &mut Served,
) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let request: Result<Request, String> =
        serde_json::from_str(line).map_err(|error| error.to_string());
    let capture = match &request {
        Ok(Request::Capture { direction }) => Some(*direction),
        _ => None,
    };
    let opens = matches!(request, Ok(Request::OpenEndpoint { .. }));
    let answer = request.and_then(|request| answer(&request, nic, served));
    let good = answer.is_ok();
    let answer = answer.unwrap_or_else(|error| json!({ "error": error }));
    // In one write: each write takes a buffer of its own, and the socket has room for some hundred.
    // A client that reads late would find its answer truncated.
    if good && opens {
        return served.applications.answer(stream, &format!("{answer}\n"));
    }
    stream.write_all(format!("{answer}\n").as_bytes())?;
    match capture {
        Some(direction) if good => nic.readers().add(stream.try_clone()?, direction),
        _ => Ok(()),
    }
}

fn answer<T: Transport>(
    request: &Request,
    nic: &mut Control<T>,
    served: &mut Served,
) -> Result<Value, String> {
    let text = |error: NicError| error.to_string();
    match request {
        Request::Card => {
            let card = CardAnswer {
                identity: *nic.identity(),
                station: nic.station(),
                firmware_version: nic.firmware_version(),
                link: nic.link(),
                process: std::process::id(),
            };
            Ok(json!({ "card": card }))
        }
        Request::Statistics => {
            let statistics = nic.glance().map_err(text)?;
            Ok(json!({ "statistics": statistics }))
        }
        Request::StatisticsBlock => statistics_block(nic).map_err(text),
        Request::Registers { offsets } => {
            if offsets.len() > MOST_WORDS as usize {
                return Err(format!("at most {MOST_WORDS} words"));
            }
            let mut words = Vec::new();
            for offset in offsets {
                words.push(nic.peek_register(*offset).map_err(text)?);
            }
            Ok(json!({ "words": words }))
        }
        Request::Memory { address, words } => {
            if *words > MOST_WORDS {
                return Err(format!("at most {MOST_WORDS} words"));
            }
            let mut out = vec![0; *words as usize];
            nic.peek_memory(*address, &mut out).map_err(text)?;
            Ok(json!({ "words": out }))
        }
        Request::Log { from } => {
            let answer = log_answer(nic, *from).map_err(text)?;
            Ok(json!({ "log": answer }))
        }
        Request::Trace => {
            let entries = nic.trace().map_err(text)?;
            let words = |entry: &TraceEntry| -> Vec<u32> {
                let [a, b, c, d] = entry.arguments;
                let [first, second] = entry.label;
                vec![first, second, entry.code, entry.time, a, b, c, d]
            };
            let words: Vec<u32> = entries.iter().flat_map(words).collect();
            Ok(json!({ "words": words }))
        }
        Request::Capture { .. } => {
            let readers = nic.readers();
            readers.has_room().map_err(|error| error.to_string())?;
            Ok(json!({ "capture": { "most_queued": MOST_FRAMES } }))
        }
        Request::LogLevels { levels } => {
            let level = |(module, level): &(usize, u32)| (*module, Level::from_word(*level));
            let levels: Vec<(usize, Level)> = levels.iter().map(level).collect();
            nic.set_log_levels(&levels).map_err(text)?;
            Ok(json!({}))
        }
        Request::TraceMask { mask } => {
            nic.set_trace_mask(*mask).map_err(text)?;
            Ok(json!({}))
        }
        Request::Queues => queues::reports(nic),
        Request::Rss => queues::rss(nic),
        Request::SetRss { rss } => queues::set_rss(nic, rss),
        Request::Extensions
        | Request::LoadExtension { .. }
        | Request::UnloadExtension { .. }
        | Request::OpenEndpoint { .. }
        | Request::SendMessage { .. }
        | Request::HandlerMessages { .. }
        | Request::Lease { .. }
        | Request::Routes { .. }
        | Request::ResumeExtension { .. } => extensions::answer(served, request, nic),
        Request::Link { up } => {
            let link = nic.config().link.with_enabled(*up);
            nic.set_link(link, Negotiate::Both).map_err(text)?;
            Ok(json!({}))
        }
    }
}

/// Every word of the statistics block as the card last wrote it, and the MAC's own counters:
/// `{"block": {..}, "mac": {..}}`.
///
/// # Errors
/// What the transport says.
pub fn statistics_block<T: Transport>(nic: &mut Control<T>) -> Result<Value, NicError> {
    let block: Map<String, Value> = every_field(&nic.card_statistics()?)
        .into_iter()
        .map(|(name, value)| (name, value.into()))
        .collect();
    let mac = nic.mac_statistics()?.into_iter();
    let mac: Map<String, Value> = mac.map(|(name, value)| (name, value.into())).collect();
    Ok(json!({ "block": block, "mac": mac }))
}

fn log_answer<T: Transport>(nic: &mut Control<T>, from: u64) -> Result<LogAnswer, NicError> {
    nic.poll_log()?;
    let build = nic.log_block()?.map(|block| block.build.to_string());
    let (first, frames) = nic.log_backlog().from(from);
    let digits = |frame: &LogFrame| {
        let mut digits = String::new();
        for byte in &frame.bytes {
            // A string has room.
            let _ = write!(digits, "{byte:02x}");
        }
        (frame.cpu, digits)
    };
    Ok(LogAnswer {
        first,
        frames: frames.take(MOST_MESSAGES).map(digits).collect(),
        lost: nic.log_lost(),
        build,
    })
}
