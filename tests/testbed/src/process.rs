//! Child processes that end with their owner.

use crate::interrupt;
use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// How long a child may take to leave after SIGTERM before it is killed.
const GRACE: Duration = Duration::from_secs(3);

/// A running child; dropping it ends it.
#[derive(Debug)]
pub struct Process {
    child: Child,
    name: String,
}

/// What a finished command said.
#[derive(Debug)]
pub struct Finished {
    /// How it ended.
    pub status: ExitStatus,
    /// Everything it wrote to its standard output.
    pub stdout: String,
    /// Everything it wrote to its standard error.
    pub stderr: String,
}

impl Process {
    /// Starts `command`. Its streams are those that the caller has set.
    pub fn spawn(command: &mut Command) -> Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        let child = command
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        Ok(Process { child, name })
    }

    /// The child's process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The exit status, if the child has ended.
    pub fn finished(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Waits for the child's own end; fails on Ctrl-C and at the time limit.
    pub fn wait(&mut self, limit: Duration) -> Result<ExitStatus> {
        let end = Instant::now() + limit;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            if Instant::now() >= end {
                bail!("{} did not end within {} s", self.name, limit.as_secs());
            }
            interrupt::sleep(Duration::from_millis(5))?;
        }
    }

    /// Asks the child to end (SIGTERM), and kills it if it does not.
    pub fn stop(&mut self) {
        if let (Ok(None), Some(pid)) = (self.child.try_wait(), Pid::from_raw(self.id() as i32)) {
            // It may have ended in between; there is nothing to do then.
            let _ = kill_process(pid, Signal::TERM);
            let end = Instant::now() + GRACE;
            while Instant::now() < end {
                if !matches!(self.child.try_wait(), Ok(None)) {
                    return;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Runs a command to its end and collects its output; fails on Ctrl-C (the
/// child is ended) and at the time limit, but not on a non-zero exit status.
pub fn collect(command: &mut Command, limit: Duration) -> Result<Finished> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut process = Process::spawn(command)?;
    let stdout = reader(process.child.stdout.take());
    let stderr = reader(process.child.stderr.take());
    let status = process.wait(limit)?;
    let text = |thread: std::thread::JoinHandle<String>| thread.join().unwrap_or_default();
    Ok(Finished {
        status,
        stdout: text(stdout),
        stderr: text(stderr),
    })
}

/// Runs a command that must succeed and returns its standard output; the error
/// is the command's own last words.
pub fn output(command: &mut Command, limit: Duration) -> Result<String> {
    let finished = collect(command, limit)?;
    if finished.status.success() {
        return Ok(finished.stdout);
    }
    let said = [&finished.stderr, &finished.stdout]
        .into_iter()
        .find_map(|text| text.trim().lines().last().map(str::to_owned))
        .unwrap_or_else(|| finished.status.to_string());
    bail!("{}: {said}", shown(command))
}

/// Cargo: the one that runs this program, else that of the search path. Never a path from
/// when this program was built: a rustup toolchain's own binary, called without rustup,
/// would leave the choice of each crate's compiler to files in the registry.
pub fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // A test program has it, for its order; crates look at it and would be built anew.
    cargo.env_remove("RUSTC_BOOTSTRAP");
    cargo
}

/// Runs a command that must succeed, its output going to the terminal.
pub fn run(command: &mut Command) -> Result<()> {
    let status = Process::spawn(command)?.wait(Duration::from_secs(3 * 3600))?;
    if !status.success() {
        bail!("{} failed ({status})", shown(command));
    }
    Ok(())
}

/// Runs a command whose standard output is a pipe, and hands out each line of that as it
/// comes; what a grandchild says after the child's end is not waited for. A command that says
/// nothing for `silence` is killed: [`Silent`] is in the error then.
pub fn watch(
    command: &mut Command,
    silence: Duration,
    mut line: impl FnMut(&str),
) -> Result<ExitStatus> {
    let mut process = Process::spawn(command)?;
    let pipe = process.child.stdout.take().context("no pipe to read")?;
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for bytes in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
            if sender.send(bytes).is_err() {
                return;
            }
        }
    });
    let mut end = Instant::now() + silence;
    let mut ended = None;
    loop {
        match lines.recv_timeout(Duration::from_millis(20)) {
            Ok(bytes) => {
                line(&String::from_utf8_lossy(&bytes));
                if ended.is_none() {
                    end = Instant::now() + silence;
                }
            }
            Err(RecvTimeoutError::Disconnected) => return process.wait(GRACE),
            Err(RecvTimeoutError::Timeout) => {}
        }
        interrupt::check()?;
        if ended.is_none() {
            ended = process.finished()?;
            if ended.is_some() {
                end = Instant::now() + GRACE;
            }
        }
        match ended {
            Some(status) if Instant::now() >= end => return Ok(status),
            None if Instant::now() >= end => {
                let name = process.name.clone();
                return Err(Silent { name, silence }.into());
            }
            _ => {}
        }
    }
}

/// A command said nothing for too long and was killed.
#[derive(Debug)]
pub struct Silent {
    name: String,
    silence: Duration,
}

impl fmt::Display for Silent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.silence.as_secs();
        write!(f, "{} said nothing for {seconds} s", self.name)
    }
}

impl std::error::Error for Silent {}

/// Whether a program of this name can be found.
pub fn exists(program: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|path| {
        std::env::split_paths(&path)
            .chain(["/usr/sbin".into(), "/sbin".into()])
            .any(|folder| folder.join(program).is_file())
    })
}

fn shown(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Reads a pipe to its end beside the waiting, so that a talkative child never
/// blocks on a full pipe.
fn reader<R: Read + Send + 'static>(pipe: Option<R>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(20);

    #[test]
    fn a_talkative_child_does_not_block() {
        let mut command = Command::new("sh");
        command.args(["-c", "head -c 300000 /dev/zero | tr '\\0' x"]);
        assert_eq!(output(&mut command, LIMIT).unwrap().len(), 300_000);
    }

    #[test]
    fn a_failure_says_the_last_words() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo first >&2; echo no such card >&2; exit 3"]);
        let error = output(&mut command, LIMIT).unwrap_err().to_string();
        assert!(error.ends_with("no such card"), "{error}");
    }

    #[test]
    fn lines_come_as_they_are_written_and_a_grandchild_keeps_nobody_waiting() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo one; echo two; sleep 1000 & echo $!; exit 5"]);
        command.stdout(Stdio::piped());
        let mut lines = Vec::new();
        let start = Instant::now();
        let status = watch(&mut command, LIMIT, |line| lines.push(line.to_owned()));
        assert_eq!(status.unwrap().code(), Some(5));
        assert_eq!(lines[..2], ["one", "two"]);
        assert!(start.elapsed() < LIMIT);
        let grandchild = Pid::from_raw(lines[2].parse().unwrap()).unwrap();
        kill_process(grandchild, Signal::TERM).unwrap();
    }

    #[test]
    fn a_dropped_child_is_gone() {
        let process = Process::spawn(Command::new("sleep").arg("1000")).unwrap();
        let folder = format!("/proc/{}", process.id());
        drop(process);
        assert!(!std::path::Path::new(&folder).exists());
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let error = Process::spawn(&mut Command::new("tigon-no-such-program")).unwrap_err();
        assert_eq!(error.to_string(), "cannot start tigon-no-such-program");
        assert!(!exists("tigon-no-such-program"));
        assert!(exists("sh"));
    }
}
