//! The host's side of the agent's channel: many requests at once.

use crate::interrupt;
use anyhow::{Context, Result, bail};
use guest_agent::wire::{self, Answer, PIECE, Request, VERSION};
use std::collections::HashMap;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How often a wait looks whether the user has asked to end.
const LOOK: Duration = Duration::from_millis(50);

/// How long the guest may take no bytes before it counts as gone.
const DEAF: Duration = Duration::from_secs(60);

/// How long a file may take.
const FILE: Duration = Duration::from_secs(60);

/// How long a killed command may take to be gone.
const GRACE: Duration = Duration::from_secs(5);

/// What is kept of an output; a command that says more goes on, unheard.
const MOST: usize = 64 << 20;

/// How many of the console's last lines an error shows.
const LAST_LINES: usize = 12;

/// What a command said, and how it ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// Its exit status; 128 and the signal's number if a signal ended it.
    pub status: i32,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

/// A channel with an agent at its other end.
#[derive(Debug)]
pub struct Connection {
    channel: Mutex<UnixStream>,
    state: Mutex<State>,
    changed: Condvar,
    /// Where the guest's console is written down.
    console: PathBuf,
}

#[derive(Debug, Default)]
struct State {
    greeted: bool,
    next: u32,
    tasks: HashMap<u32, Task>,
    /// Why nothing comes any more.
    ended: Option<String>,
}

#[derive(Debug, Default)]
struct Task {
    output: Vec<u8>,
    complaints: Vec<u8>,
    end: Option<Result<i32, String>>,
}

impl Connection {
    /// Takes over the channel. `console` is the file with what the guest's
    /// console says; an error about the guest shows its last lines.
    pub fn new(channel: UnixStream, console: &Path) -> Result<Arc<Connection>> {
        channel.set_write_timeout(Some(DEAF))?;
        let answers = channel.try_clone()?;
        let connection = Arc::new(Connection {
            channel: Mutex::new(channel),
            state: Mutex::default(),
            changed: Condvar::new(),
            console: console.to_owned(),
        });
        let reader = Arc::downgrade(&connection);
        thread::spawn(move || {
            let mut answers = answers;
            loop {
                let answer = wire::read::<Answer>(&mut answers);
                let Some(connection) = reader.upgrade() else {
                    return;
                };
                match answer {
                    Ok(answer) => connection.hear(answer),
                    Err(error) => return connection.end(&error.to_string()),
                }
            }
        });
        Ok(connection)
    }

    /// Waits for the agent's first word.
    pub fn greet(&self, limit: Duration) -> Result<()> {
        self.wait(limit, |state| state.greeted.then_some(()))?
            .with_context(|| {
                format!(
                    "the guest's agent did not answer within {} s{}",
                    limit.as_secs(),
                    self.last_words()
                )
            })
    }

    /// Starts a command and returns its number.
    pub fn start(&self, command: &str) -> Result<u32> {
        self.ask(|id| Request::Run {
            id,
            command: command.to_owned(),
        })
    }

    /// Waits for a command's end; `None` at the limit.
    pub fn finish(&self, id: u32, limit: Duration) -> Result<Option<Output>> {
        let Some(task) = self.done(id, limit)? else {
            return Ok(None);
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match task.end {
            Some(Ok(status)) => Ok(Some(Output {
                status,
                stdout: text(&task.output),
                stderr: text(&task.complaints),
            })),
            Some(Err(reason)) => bail!("the guest's agent: {reason}"),
            None => bail!("a command ended without a status"),
        }
    }

    /// What a command has said so far.
    pub fn so_far(&self, id: u32) -> Output {
        let state = self.lock();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        state
            .tasks
            .get(&id)
            .map_or_else(Output::default, |task| Output {
                status: 0,
                stdout: text(&task.output),
                stderr: text(&task.complaints),
            })
    }

    /// Takes what a command has said since the last time.
    pub fn take(&self, id: u32) -> (Vec<u8>, Vec<u8>) {
        let mut state = self.lock();
        state
            .tasks
            .get_mut(&id)
            .map_or_else(Default::default, |task| {
                (
                    std::mem::take(&mut task.output),
                    std::mem::take(&mut task.complaints),
                )
            })
    }

    /// Ends a command and waits a little until it has ended.
    pub fn kill(&self, id: u32) -> Result<Option<Output>> {
        self.say(&Request::Kill { id })?;
        self.finish(id, GRACE)
    }

    /// Ends a command that is no longer waited for, and forgets it.
    pub fn abandon(&self, id: u32) {
        // Without a guest there is no command either.
        let _ = self.say(&Request::Kill { id });
        self.lock().tasks.remove(&id);
    }

    /// Writes a file in the guest.
    pub fn put(&self, path: &str, bytes: &[u8], mode: u32) -> Result<()> {
        let id = self.ask(|id| Request::Put {
            id,
            path: path.to_owned(),
            mode,
        })?;
        for piece in bytes.chunks(PIECE) {
            interrupt::check()?;
            self.say(&Request::Piece {
                id,
                bytes: piece.to_vec(),
            })?;
        }
        self.say(&Request::End { id })?;
        self.file(id, path).map(drop)
    }

    /// Reads a file of the guest.
    pub fn get(&self, path: &str) -> Result<Vec<u8>> {
        let id = self.ask(|id| Request::Get {
            id,
            path: path.to_owned(),
        })?;
        self.file(id, path)
    }

    fn file(&self, id: u32, path: &str) -> Result<Vec<u8>> {
        let task = self.done(id, FILE)?;
        let task = task.with_context(|| format!("{path}: the guest did not answer"))?;
        match task.end {
            Some(Err(reason)) => bail!("in the guest: {reason}"),
            _ => Ok(task.output),
        }
    }

    /// Sends a request with a number of its own.
    fn ask(&self, request: impl FnOnce(u32) -> Request) -> Result<u32> {
        let id = {
            let mut state = self.lock();
            state.next += 1;
            let id = state.next;
            state.tasks.insert(id, Task::default());
            id
        };
        self.say(&request(id))?;
        Ok(id)
    }

    fn say(&self, request: &Request) -> Result<()> {
        let mut channel = self.channel.lock().unwrap_or_else(PoisonError::into_inner);
        wire::write(&mut *channel, request)
            .with_context(|| format!("the guest takes no more{}", self.last_words()))
    }

    /// The finished task; `None` at the limit, with the task still under way.
    fn done(&self, id: u32, limit: Duration) -> Result<Option<Task>> {
        self.wait(limit, |state| {
            state.tasks.get(&id)?.end.as_ref()?;
            state.tasks.remove(&id)
        })
    }

    /// Waits until `ready` gives something, the guest has gone, or the limit.
    fn wait<T>(
        &self,
        limit: Duration,
        mut ready: impl FnMut(&mut State) -> Option<T>,
    ) -> Result<Option<T>> {
        let end = Instant::now() + limit;
        let mut state = self.lock();
        loop {
            if let Some(found) = ready(&mut state) {
                return Ok(Some(found));
            }
            if let Some(reason) = &state.ended {
                bail!("the guest has ended: {reason}{}", self.last_words());
            }
            interrupt::check()?;
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            let woken = self.changed.wait_timeout(state, left.min(LOOK));
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn hear(&self, answer: Answer) {
        let mut state = self.lock();
        if let Answer::Hello { version } = answer {
            if version == VERSION {
                state.greeted = true;
            } else {
                state.ended = Some(format!("its agent speaks version {version}"));
            }
        } else if let Some(task) = answer.id().and_then(|id| state.tasks.get_mut(&id)) {
            match answer {
                Answer::Hello { .. } => {}
                Answer::Output { bytes, .. } => keep(&mut task.output, &bytes),
                Answer::Complaint { bytes, .. } => keep(&mut task.complaints, &bytes),
                Answer::Done { status, .. } => task.end = Some(Ok(status)),
                Answer::Failed { reason, .. } => task.end = Some(Err(reason)),
            }
        }
        drop(state);
        self.changed.notify_all();
    }

    fn end(&self, reason: &str) {
        self.lock().ended.get_or_insert_with(|| reason.to_owned());
        self.changed.notify_all();
    }

    /// The console's last lines, for an error: a panic is told there.
    fn last_words(&self) -> String {
        last_lines(&read_console(&self.console))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let channel = self.channel.lock().unwrap_or_else(PoisonError::into_inner);
        // Wakes the thread that reads; it may be gone already.
        let _ = channel.shutdown(std::net::Shutdown::Both);
    }
}

/// What the console has said so far.
pub fn read_console(path: &Path) -> String {
    let bytes = std::fs::read(path).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\r', "")
}

fn last_lines(console: &str) -> String {
    let lines: Vec<&str> = console.lines().filter(|line| !line.is_empty()).collect();
    // A panic's own line is worth more than the registers behind it.
    let panic = lines.iter().rposition(|line| line.contains("Kernel panic"));
    let from = match panic {
        Some(at) => at.saturating_sub(LAST_LINES / 2),
        None => lines.len().saturating_sub(LAST_LINES),
    };
    let shown = &lines[from..lines.len().min(from + LAST_LINES)];
    if shown.is_empty() {
        return "; its console said nothing".into();
    }
    format!("; its console's last lines:\n{}", shown.join("\n"))
}

fn keep(kept: &mut Vec<u8>, bytes: &[u8]) {
    let room = MOST.saturating_sub(kept.len());
    kept.extend(&bytes[..bytes.len().min(room)]);
}

#[cfg(test)]
mod tests;
