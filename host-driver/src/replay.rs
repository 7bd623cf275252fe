//! Captures through the card: replays them into it, and records from it.

use std::io::{IoSlice, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;
use thiserror::Error;

use crate::capture::{CaptureError, FrameReader, FrameWriter, now};
use crate::nic::{Nic, NicError};
use crate::transport::Transport;

/// Frames for which the card is notified once.
const BATCH: u32 = 64;
/// The longest wait for room or for frames.
const PAUSE: Duration = Duration::from_millis(5);
/// Time for the last frames to leave.
const DRAIN: Duration = Duration::from_secs(5);

/// Why a replay or a recording ended early.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// The capture cannot be read or written.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// The card failed.
    #[error(transparent)]
    Nic(#[from] NicError),
    /// A frame of the capture cannot go through the card.
    #[error("frame {number} of the capture: {error}")]
    Frame {
        /// Number of the frame, from 1.
        number: u64,
        /// Why not.
        error: NicError,
    },
}

/// Counts of a replay or a recording.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct ReplayReport {
    /// Frames.
    pub frames: u64,
    /// Their bytes, without CRC.
    pub bytes: u64,
    /// Times that the send ring was full.
    pub full: u64,
    /// The duration in seconds.
    pub seconds: f64,
}

/// Sends all frames of a capture through the card, in order and unchanged, as fast as the card
/// takes them, and waits until the last has left. Frames that arrive meanwhile are discarded.
///
/// # Errors
/// [`ReplayError`]; earlier frames stay sent.
pub fn replay<T: Transport>(
    nic: &mut Nic<T>,
    reader: &mut FrameReader,
    stop: &AtomicBool,
) -> Result<ReplayReport, ReplayError> {
    let start = Instant::now();
    let mut report = ReplayReport::default();
    let mut unsubmitted = 0;
    while let Some(frame) = reader.next_frame()? {
        let number = report.frames + 1;
        loop {
            if stop.load(Ordering::Relaxed) {
                nic.submit()?;
                return Ok(finish(report, start));
            }
            let queued = nic
                .queue(&[IoSlice::new(&frame.bytes)])
                .map_err(|error| ReplayError::Frame { number, error })?;
            if queued {
                break;
            }
            report.full += 1;
            unsubmitted = 0;
            nic.submit()?;
            nic.wait(PAUSE)?;
            nic.service()?;
            discard(nic)?;
        }
        report.frames += 1;
        report.bytes += frame.bytes.len() as u64;
        unsubmitted += 1;
        if unsubmitted == BATCH {
            unsubmitted = 0;
            nic.submit()?;
            nic.service()?;
            discard(nic)?;
        }
    }
    nic.submit()?;
    nic.drain(DRAIN)?;
    Ok(finish(report, start))
}

fn finish(mut report: ReplayReport, start: Instant) -> ReplayReport {
    report.seconds = start.elapsed().as_secs_f64();
    report
}

fn discard<T: Transport>(nic: &mut Nic<T>) -> Result<(), NicError> {
    nic.receive(BATCH, |_| Ok(()))?;
    Ok(())
}

/// When a recording ends; without limits only `stop` ends it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Limits {
    /// After this many frames.
    pub frames: Option<u64>,
    /// After this time.
    pub time: Option<Duration>,
}

/// Writes the frames that the card receives to a capture.
///
/// # Errors
/// [`ReplayError`]; earlier frames are in the capture.
pub fn record<T: Transport, W: Write>(
    nic: &mut Nic<T>,
    writer: &mut FrameWriter<W>,
    limits: Limits,
    stop: &AtomicBool,
) -> Result<ReplayReport, ReplayError> {
    let start = Instant::now();
    let mut report = ReplayReport::default();
    loop {
        let wanted = limits
            .frames
            .map_or(u64::MAX, |frames| frames - report.frames.min(frames));
        let late = limits.time.is_some_and(|time| start.elapsed() >= time);
        if wanted == 0 || late || stop.load(Ordering::Relaxed) {
            return Ok(finish(report, start));
        }
        let mut failure = None;
        let budget = BATCH.min(u32::try_from(wanted).unwrap_or(BATCH));
        let taken = nic.receive(budget, |frame| {
            let bytes = frame.to_vec()?;
            if failure.is_none() {
                match writer.write(now(), &bytes) {
                    Ok(()) => {
                        report.frames += 1;
                        report.bytes += bytes.len() as u64;
                    }
                    Err(error) => failure = Some(error),
                }
            }
            Ok(())
        })?;
        if let Some(error) = failure {
            return Err(error.into());
        }
        nic.service()?;
        if taken == 0 {
            // Another process may read the capture as it grows.
            writer.flush()?;
            nic.wait(PAUSE)?;
        }
    }
}
