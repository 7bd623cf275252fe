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
//! Nothing that can be asked changes the card, and none of it takes long.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::nic::{Nic, NicError};
use crate::transport::Transport;

/// Longest question, in bytes.
const LONGEST: u64 = 4096;
/// Most words in an answer.
const MOST_WORDS: u32 = 512;
/// How long the driver waits for a question that was announced.
const PATIENCE: Duration = Duration::from_millis(20);
/// How long an asker waits for the driver.
const ANSWER: Duration = Duration::from_secs(5);
/// Questions that are answered in one go.
const BATCH: usize = 8;

/// What can be asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Question {
    /// All counts.
    Statistics,
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
}

/// The driver's side.
pub struct StatusServer {
    listener: UnixListener,
    path: PathBuf,
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
        })
    }

    /// Where it listens.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Answers what was asked meanwhile. An asker that misbehaves is dropped.
    pub fn serve<T: Transport>(&self, nic: &mut Nic<T>) {
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

fn converse<T: Transport>(stream: &UnixStream, nic: &mut Nic<T>) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new(stream.take(LONGEST)).read_line(&mut line)?;
    let answer = match serde_json::from_str(&line) {
        Ok(question) => answer(&question, nic),
        Err(error) => Err(error.to_string()),
    };
    let answer = answer.unwrap_or_else(|error| json!({ "error": error }));
    let mut stream = stream;
    writeln!(stream, "{answer}")
}

fn answer<T: Transport>(question: &Question, nic: &mut Nic<T>) -> Result<Value, String> {
    let text = |error: NicError| error.to_string();
    match question {
        Question::Statistics => {
            let statistics = nic.glance().map_err(text)?;
            Ok(json!({ "statistics": statistics }))
        }
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
    }
}

/// Asks the driver that listens at `path`.
///
/// # Errors
/// When nobody answers, or with the driver's own words.
pub fn ask(path: &Path, question: &Question) -> io::Result<Value> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(ANSWER))?;
    writeln!(stream, "{}", serde_json::to_string(question)?)?;
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line)?;
    let answer: Value = serde_json::from_str(&line)?;
    match answer.get("error").and_then(Value::as_str) {
        Some(error) => Err(io::Error::other(error.to_owned())),
        None => Ok(answer),
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
