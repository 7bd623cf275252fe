//! The client's side of the status socket.

use super::request::Request;
use crate::live::{Direction, FrameStream};
use serde_json::Value;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// How long a client waits for the driver.
pub(super) const ANSWER: Duration = Duration::from_secs(5);

/// Sends a request to the driver that listens at `path`.
///
/// # Errors
/// If nothing answers, or with the driver's own words.
pub fn ask(path: &Path, request: &Request) -> io::Result<Value> {
    Ok(converse_with(path, request)?.0)
}

/// Requests the card's frames, of one or both directions, from the driver that listens at `path`.
///
/// # Errors
/// As [`ask`].
pub fn capture(path: &Path, direction: Option<Direction>) -> io::Result<FrameStream> {
    let (_, source) = converse_with(path, &Request::Capture { direction })?;
    FrameStream::new(source)
}

/// The driver's answer, and the stream that may follow it.
fn converse_with(path: &Path, request: &Request) -> io::Result<(Value, BufReader<UnixStream>)> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(ANSWER))?;
    writeln!(stream, "{}", serde_json::to_string(request)?)?;
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
