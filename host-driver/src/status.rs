//! Looking at a card that another process drives.
//!
//! A card has one driver: its vfio-user server takes one client, and the kernel gives a
//! VFIO group to one process. When that process goes, the card is reset. So nobody can
//! look past the driver; instead the driver answers for its card. `tigonctl bridge
//! --status PATH` listens at a Unix socket, and `tigonctl --attach PATH ...` asks there.
//!
//! ```text
//!   asker ── one Question a connection, a line of JSON ──> StatusServer, in the bridge's loop
//!         <── one line of JSON: {"words": [..]}, {"statistics": {..}} or {"error": ".."} ──
//! ```
//!
//! One question has more than an answer: behind that of [`Question::Capture`] the frames
//! follow, written by a thread of their own ([`live`](crate::live)).
//!
//! None of it takes long. What changes the card is what a developer wants of one that works
//! ([`Question::changes`]); its registers and memory are the driver's alone.
//!
//! The driver takes the log's messages off the card between two questions and keeps the
//! newest ([`Backlog`](crate::log::Backlog)), so that any number of askers see them.

use std::cell::Cell;
use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use host_interface::log::Level;
use host_interface::trace::TraceEntry;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::live::{Direction, FrameStream, MOST_FRAMES};
use crate::log::LogFrame;
use crate::nic::{Identity, Link, Negotiate, Nic, NicError, every_field};
use crate::transport::Transport;

/// Longest question, in bytes.
const LONGEST: u64 = 4096;
/// Most words in an answer.
const MOST_WORDS: u32 = 512;
/// How long the driver waits for a question that was announced.
const PATIENCE: Duration = Duration::from_millis(20);
/// How long an asker waits for the driver.
const ANSWER: Duration = Duration::from_secs(5);
/// How often the log is fetched at least, while the driver has time to attend.
const LOG_PERIOD: Duration = Duration::from_millis(20);
/// Most messages in an answer.
const MOST_MESSAGES: usize = 500;
/// Questions that are answered in one go.
const BATCH: usize = 8;

/// What can be asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Question {
    /// What the card is, and who drives it.
    Card,
    /// All counts.
    Statistics,
    /// Every word of the statistics block, and what the MAC counts itself.
    StatisticsBlock,
    /// Words of BAR 0 below the memory window.
    Registers {
        /// Their offsets.
        offsets: Vec<u32>,
    },
    /// Words of NIC memory.
    Memory {
        /// NIC address of the first.
        address: u32,
        /// How many.
        words: u32,
    },
    /// Messages of the log.
    Log {
        /// The number of the first that is wanted.
        from: u64,
    },
    /// The trace ring.
    Trace,
    /// The frames of one way or both from now on: they follow the answer, as
    /// [records](crate::live::Record), until the asker shuts its side down.
    Capture {
        /// The way.
        direction: Option<Direction>,
    },
    /// What the firmware records of its modules from now on.
    LogLevels {
        /// Numbers of modules and of levels, see [`host_interface::log`].
        levels: Vec<(usize, u32)>,
    },
    /// What the firmware traces from now on.
    TraceMask {
        /// The mask.
        mask: u32,
    },
    /// Whether there is to be a link.
    Link {
        /// Whether there is.
        up: bool,
    },
}

impl Question {
    /// Whether the card is another one afterwards.
    pub fn changes(&self) -> bool {
        match self {
            Self::Card
            | Self::Statistics
            | Self::StatisticsBlock
            | Self::Registers { .. }
            | Self::Memory { .. }
            | Self::Log { .. }
            | Self::Trace
            | Self::Capture { .. } => false,
            Self::LogLevels { .. } | Self::TraceMask { .. } | Self::Link { .. } => true,
        }
    }
}

/// What a driver says of its card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CardAnswer {
    /// What it is.
    pub identity: Identity,
    /// The station address in use.
    pub station: [u8; 6],
    /// Version of its firmware.
    pub firmware_version: String,
    /// The link.
    pub link: Link,
    /// The driver's process.
    pub process: u32,
}

/// Messages of a driver's card.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogAnswer {
    /// The number of the first message here.
    pub first: u64,
    /// CPU and bytes of each, in hexadecimal digits.
    pub frames: Vec<(u8, String)>,
    /// Messages of CPU A and B that found no room on the card.
    pub lost: [u64; 2],
    /// The build of the firmware, if it is one with a log.
    pub build: Option<String>,
}

impl LogAnswer {
    /// The messages.
    ///
    /// # Errors
    /// When they are no hexadecimal digits.
    pub fn frames(&self) -> io::Result<Vec<LogFrame>> {
        let wrong = || io::Error::new(io::ErrorKind::InvalidData, "messages that are no digits");
        let frame = |(cpu, digits): &(u8, String)| {
            let places = (0..digits.len()).step_by(2);
            let byte = |at| {
                let pair = digits.get(at..at + 2).ok_or_else(wrong)?;
                u8::from_str_radix(pair, 16).map_err(|_| wrong())
            };
            Ok(LogFrame {
                cpu: *cpu,
                bytes: places.map(byte).collect::<io::Result<_>>()?,
            })
        };
        self.frames.iter().map(frame).collect()
    }
}

/// The driver's side.
pub struct StatusServer {
    listener: UnixListener,
    path: PathBuf,
    /// When the log was fetched last.
    polled: Cell<Option<Instant>>,
}

impl StatusServer {
    /// Listens at `path`, for the user that this process runs as.
    ///
    /// # Errors
    /// When there is something else, or somebody listens there already.
    pub fn bind(path: &Path) -> io::Result<Self> {
        // A socket that nobody listens at was left by a process that was killed.
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
            polled: Cell::new(None),
        })
    }

    /// Where it listens.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Answers what was asked meanwhile, and keeps the log. An asker that misbehaves is
    /// dropped.
    pub fn serve<T: Transport>(&self, nic: &mut Nic<T>) {
        let due = |at: Instant| at.elapsed() >= LOG_PERIOD;
        if self.polled.get().is_none_or(due) {
            self.polled.set(Some(Instant::now()));
            // A card that is gone is noticed by who drives it.
            let _ = nic.poll_log();
            nic.readers().remove_ended();
        }
        for _ in 0..BATCH {
            let Ok((stream, _)) = self.listener.accept() else {
                return;
            };
            let _ = converse(&stream, nic);
        }
    }
}

impl Drop for StatusServer {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn converse<T: Transport>(mut stream: &UnixStream, nic: &mut Nic<T>) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new(stream.take(LONGEST)).read_line(&mut line)?;
    let question: Result<Question, String> =
        serde_json::from_str(&line).map_err(|error| error.to_string());
    let capture = match &question {
        Ok(Question::Capture { direction }) => Some(*direction),
        _ => None,
    };
    let answer = question.and_then(|question| answer(&question, nic));
    let good = answer.is_ok();
    let answer = answer.unwrap_or_else(|error| json!({ "error": error }));
    // In one piece: each takes a buffer of its own, and the socket has room for some hundred of
    // them. An asker who comes late to its answer would find it cut.
    stream.write_all(format!("{answer}\n").as_bytes())?;
    match capture {
        Some(direction) if good => nic.readers().add(stream.try_clone()?, direction),
        _ => Ok(()),
    }
}

fn answer<T: Transport>(question: &Question, nic: &mut Nic<T>) -> Result<Value, String> {
    let text = |error: NicError| error.to_string();
    match question {
        Question::Card => {
            let card = CardAnswer {
                identity: *nic.identity(),
                station: nic.station(),
                firmware_version: nic.firmware_version(),
                link: nic.link(),
                process: std::process::id(),
            };
            Ok(json!({ "card": card }))
        }
        Question::Statistics => {
            let statistics = nic.glance().map_err(text)?;
            Ok(json!({ "statistics": statistics }))
        }
        Question::StatisticsBlock => statistics_block(nic).map_err(text),
        Question::Registers { offsets } => {
            if offsets.len() > MOST_WORDS as usize {
                return Err(format!("at most {MOST_WORDS} words"));
            }
            let mut words = Vec::new();
            for offset in offsets {
                words.push(nic.peek_register(*offset).map_err(text)?);
            }
            Ok(json!({ "words": words }))
        }
        Question::Memory { address, words } => {
            if *words > MOST_WORDS {
                return Err(format!("at most {MOST_WORDS} words"));
            }
            let mut out = vec![0; *words as usize];
            nic.peek_memory(*address, &mut out).map_err(text)?;
            Ok(json!({ "words": out }))
        }
        Question::Log { from } => {
            let answer = log_answer(nic, *from).map_err(text)?;
            Ok(json!({ "log": answer }))
        }
        Question::Trace => {
            let entries = nic.trace().map_err(text)?;
            let words = |entry: &TraceEntry| -> Vec<u32> {
                let [a, b, c, d] = entry.arguments;
                let [first, second] = entry.label;
                vec![first, second, entry.code, entry.time, a, b, c, d]
            };
            let words: Vec<u32> = entries.iter().flat_map(words).collect();
            Ok(json!({ "words": words }))
        }
        Question::Capture { .. } => {
            let readers = nic.readers();
            readers.has_room().map_err(|error| error.to_string())?;
            Ok(json!({ "capture": { "most_queued": MOST_FRAMES } }))
        }
        Question::LogLevels { levels } => {
            let level = |(module, level): &(usize, u32)| (*module, Level::from_word(*level));
            let levels: Vec<(usize, Level)> = levels.iter().map(level).collect();
            nic.set_log_levels(&levels).map_err(text)?;
            Ok(json!({}))
        }
        Question::TraceMask { mask } => {
            nic.set_trace_mask(*mask).map_err(text)?;
            Ok(json!({}))
        }
        Question::Link { up } => {
            let wish = nic.config().link.with_enabled(*up);
            nic.set_link(wish, Negotiate::Both).map_err(text)?;
            Ok(json!({}))
        }
    }
}

/// Every word of the statistics block as the card last wrote it, and what the MAC counts
/// itself: `{"block": {..}, "mac": {..}}`.
///
/// # Errors
/// What the transport says.
pub fn statistics_block<T: Transport>(nic: &mut Nic<T>) -> Result<Value, NicError> {
    let block: Map<String, Value> = every_field(&nic.card_statistics()?)
        .into_iter()
        .map(|(name, value)| (name, value.into()))
        .collect();
    let mac = nic.mac_statistics()?.into_iter();
    let mac: Map<String, Value> = mac.map(|(name, value)| (name, value.into())).collect();
    Ok(json!({ "block": block, "mac": mac }))
}

fn log_answer<T: Transport>(nic: &mut Nic<T>, from: u64) -> Result<LogAnswer, NicError> {
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

/// Asks the driver that listens at `path`.
///
/// # Errors
/// When nobody answers, or with the driver's own words.
pub fn ask(path: &Path, question: &Question) -> io::Result<Value> {
    Ok(converse_with(path, question)?.0)
}

/// Asks the driver that listens at `path` for its card's frames, of one way or both.
///
/// # Errors
/// As [`ask`].
pub fn capture(path: &Path, direction: Option<Direction>) -> io::Result<FrameStream> {
    let (_, source) = converse_with(path, &Question::Capture { direction })?;
    FrameStream::new(source)
}

/// The driver's answer, and what may follow it.
fn converse_with(path: &Path, question: &Question) -> io::Result<(Value, BufReader<UnixStream>)> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(ANSWER))?;
    writeln!(stream, "{}", serde_json::to_string(question)?)?;
    let mut source = BufReader::new(stream);
    let mut line = String::new();
    source.read_line(&mut line)?;
    let answer: Value = serde_json::from_str(&line)?;
    match answer.get("error").and_then(Value::as_str) {
        Some(error) => Err(io::Error::other(error.to_owned())),
        None => Ok((answer, source)),
    }
}

/// The words in an answer.
///
/// # Errors
/// When it holds none.
pub fn words(answer: &Value) -> io::Result<Vec<u32>> {
    let words = answer.get("words").cloned().unwrap_or_default();
    Ok(serde_json::from_value(words)?)
}
