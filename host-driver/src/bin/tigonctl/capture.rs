//! `tigonctl capture`: writes frames to a file or a pipe, of a card that this process or another
//! process drives.

use std::fs::File;
use std::io::{BufWriter, IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use host_driver::capture::{CaptureError, FrameWriter};
use host_driver::live::Record;
use host_driver::replay::{self, Limits, ReplayError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::json;

use super::cli::{Arguments, CaptureOptions};
use super::connect::seconds;
use super::look::Source;
use super::output::Output;
use super::session::{bring_up, finish};

/// The longest wait for frames.
const PAUSE: Duration = Duration::from_millis(50);
/// The driver's time for its end record.
const LAST_WORD: Duration = Duration::from_secs(5);

type Writer = FrameWriter<Box<dyn Write>>;

/// `tigonctl capture`
pub fn capture(
    arguments: &Arguments,
    options: &CaptureOptions,
    output: &Output,
    stop: &AtomicBool,
) -> Result<()> {
    let limits = Limits {
        frames: options.count,
        time: options.seconds.map(seconds).transpose()?,
    };
    let path = options.target.path().context("which file?")?;
    let piped = path == Path::new("-");
    ensure!(
        !piped || !std::io::stdout().is_terminal(),
        "a capture is nothing for a terminal: name a file with -w FILE, or pipe it, as in \
         tigonctl capture - | tcpdump -n -r -"
    );
    // Frames have standard output to themselves.
    let errors = Output::to_standard_error(output);
    let output = if piped { &errors } else { output };
    if arguments.attach.is_some() {
        return attached(arguments, options, limits, path, output, stop);
    }
    ensure!(
        options.direction.is_none(),
        "only frames that the card receives can be captured here: nobody sends any"
    );
    let mut nic = bring_up(arguments, &options.run)?;
    // Not earlier: an existing capture is not truncated if there is no card.
    let mut writer = open(path)?;
    let result = replay::record(&mut nic, &mut writer, limits, stop);
    // What was recorded before a failure is kept.
    let finished = writer.finish();
    let report = match result {
        Err(ReplayError::Capture(error)) if error.is_closed_pipe() => None,
        other => Some(other?),
    };
    match finished {
        Err(error) if error.is_closed_pipe() => {}
        other => drop(other?),
    }
    if let Some(report) = report {
        let text = format!(
            "{} frames, {} bytes in {:.3} s",
            report.frames, report.bytes, report.seconds
        );
        output.result("capture", serde_json::to_value(report)?, &text);
    }
    finish(nic, &options.run, output)
}

fn open(path: &Path) -> Result<Writer> {
    let (sink, name): (Box<dyn Write>, _) = if path == Path::new("-") {
        (Box::new(std::io::stdout()), "standard output".to_owned())
    } else {
        let file = File::create(path).with_context(|| path.display().to_string())?;
        (Box::new(file), path.display().to_string())
    };
    Ok(FrameWriter::new(
        Box::new(BufWriter::with_capacity(1 << 16, sink)) as Box<dyn Write>,
        name,
    )?)
}

/// Whether nothing reads standard output any more.
fn is_closed() -> bool {
    let stdout = std::io::stdout();
    let mut fds = [PollFd::new(&stdout, PollFlags::empty())];
    poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
        && fds[0].revents().contains(PollFlags::ERR)
}

/// Counts so far.
#[derive(Default)]
struct Tally {
    frames: u64,
    bytes: u64,
    /// Frames that were dropped because this reader was too slow.
    dropped: u64,
    /// Whether the reader of the capture has gone.
    closed: bool,
}

/// The frames of a card that another process drives, in both directions unless one is given.
fn attached(
    arguments: &Arguments,
    options: &CaptureOptions,
    limits: Limits,
    path: &Path,
    output: &Output,
    stop: &AtomicBool,
) -> Result<()> {
    let source = Source::open(arguments)?;
    let mut frames = source.capture(options.direction.map(Into::into))?;
    let piped = path == Path::new("-");
    let mut writer = open(path)?;
    // A reader of the pipe immediately sees the file's header.
    let mut tally = Tally::default();
    tally.keep(writer.flush())?;
    let start = Instant::now();
    let mut flushed = start;
    let mut stopped: Option<Instant> = None;
    loop {
        let enough = limits.frames.is_some_and(|most| tally.frames >= most);
        let late = limits.time.is_some_and(|time| start.elapsed() >= time);
        let signalled = stop.load(Ordering::Relaxed);
        if stopped.is_none() && (enough || late || signalled || tally.closed) {
            frames.finish()?;
            stopped = Some(Instant::now());
        }
        match frames.next(PAUSE).context("the driver's frames")? {
            Some(Record::Frame { time, bytes, .. }) => {
                if !enough && !tally.closed && tally.keep(writer.write(time, &bytes))? {
                    tally.frames += 1;
                    tally.bytes += bytes.len() as u64;
                }
            }
            Some(Record::End { dropped, .. }) => {
                tally.dropped = dropped;
                break;
            }
            None if stopped.is_some_and(|at| at.elapsed() > LAST_WORD) => {
                bail!("the driver does not say what it dropped");
            }
            None => tally.closed |= piped && is_closed(),
        }
        if !tally.closed && flushed.elapsed() >= PAUSE {
            tally.keep(writer.flush())?;
            flushed = Instant::now();
        }
    }
    if !tally.closed {
        let finished = writer.finish().map(drop);
        tally.keep(finished)?;
    }
    let seconds = start.elapsed().as_secs_f64();
    let Tally {
        frames,
        bytes,
        dropped,
        ..
    } = tally;
    let value = json!({
        "frames": frames,
        "bytes": bytes,
        "dropped": dropped,
        "seconds": seconds,
    });
    let text = format!(
        "{frames} frames, {bytes} bytes in {seconds:.3} s; {dropped} dropped that came faster \
         than they were taken"
    );
    output.result("capture", value, &text);
    Ok(())
}

impl Tally {
    /// Whether something was written. A pipe that its reader has closed ends the capture; it is no
    /// failure.
    fn keep(&mut self, result: Result<(), CaptureError>) -> Result<bool> {
        match result {
            Ok(()) => Ok(true),
            Err(error) if error.is_closed_pipe() => {
                self.closed = true;
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }
}
