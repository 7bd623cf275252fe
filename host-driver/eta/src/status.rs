//! What an engine says of itself: `tigonctl --attach PATH stats` asks at a Unix socket.
//!
//! The protocol is that of a driver's status socket ([`host_driver::status`]): a line of JSON each
//! way, one request per connection. An engine knows [`Request::Statistics`] only.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use host_driver::stack::Wire;
use host_driver::status::Request;
use serde_json::{Value, json};

use crate::Engine;

/// How long the engine waits for a request on an accepted connection.
const PATIENCE: Duration = Duration::from_millis(5);
/// Longest request.
const LONGEST: u64 = 4096;
/// Applications that are shown.
const MOST: usize = 64;

/// The socket.
pub struct Status {
    listener: UnixListener,
    path: PathBuf,
}

impl Status {
    /// Listens at a path, for this user only; a socket that an earlier run left behind is
    /// replaced.
    ///
    /// # Errors
    /// The system's.
    pub fn bind(path: &Path) -> io::Result<Self> {
        if let Ok(found) = std::fs::symlink_metadata(path)
            && found.file_type().is_socket()
        {
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

    /// Answers who asks now.
    pub fn serve<W: Wire>(&self, engine: &Engine<W>) {
        if let Ok((stream, _)) = self.listener.accept() {
            // Whoever asks badly, or goes, gets no answer.
            let _ = answer(stream, engine);
        }
    }
}

impl Drop for Status {
    fn drop(&mut self) {
        // If it is gone already that is as well.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn answer<W: Wire>(stream: UnixStream, engine: &Engine<W>) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new((&stream).take(LONGEST)).read_line(&mut line)?;
    let answer = match serde_json::from_str(&line) {
        Ok(Request::Statistics) => json!({ "statistics": statistics(engine) }),
        Ok(_) => json!({ "error": "a packet processing engine knows its statistics only" }),
        Err(error) => json!({ "error": error.to_string() }),
    };
    writeln!(&stream, "{answer}")
}

/// Counts of an engine and of its applications, in groups.
pub fn statistics<W: Wire>(engine: &Engine<W>) -> Value {
    let counts = engine.statistics();
    let mut groups = serde_json::Map::new();
    groups.insert("engine".to_owned(), json!(counts));
    groups.insert("stack".to_owned(), json!(counts.stack));
    for (number, one) in engine.applications().take(MOST) {
        groups.insert(format!("application {number}"), json!(one));
    }
    Value::Object(groups)
}
