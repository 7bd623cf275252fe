//! `--pcap IN --pcap-out OUT`: a capture through the card.
//!
//! The driver sends the capture's frames to the card, and every frame from the wire is written to
//! the output: the same bytes in the same order, except that the MAC pads frames of less than 60
//! bytes (hardware reference, 10.2).

use anyhow::{Context, Result, bail};
use host_driver::capture::{FrameReader, FrameWriter, now};
use host_driver::peer::DatagramWire;
use host_driver::replay;
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use testbed::card::{Card, CardOptions};
use testbed::conditions::DmaChannels;
use testbed::hosts::load_and_open;
use testbed::interrupt;
use testbed::tools::Tools;
use testbed::worker::Worker;
use tigon_bench::report::write_json;

/// How long the last frames may take from the card to the capture.
const SETTLE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(20);

/// What `target/reports/qemu-run.json` says of a replay.
#[derive(Debug, Serialize)]
struct ReplaySummary {
    engine: &'static str,
    dma_channels: DmaChannels,
    frames_in: u64,
    bytes_in: u64,
    frames_out: u64,
    /// Times that the driver had to wait for room in the send ring.
    ring_full: u64,
    seconds: f64,
}

/// Replays `input` and writes what left the wire to `output`.
///
/// # Errors
/// When either file is unusable, a frame cannot be sent, or fewer frames came
/// out than went in.
pub fn run(tools: &Tools, input: &Path, output: &Path, dma_channels: DmaChannels) -> Result<()> {
    let mut reader = FrameReader::open(input)?;
    let card = Card::start(tools, &CardOptions::default())?;
    let recorder = Recorder::start(&card, output)?;
    let mut nic = load_and_open(tools, &card, dma_channels)?;
    let sent = replay::replay(&mut nic, &mut reader, interrupt::flag())?;
    interrupt::check()?;
    recorder.await_frames(sent.frames)?;
    nic.shut_down()?;
    let received = recorder.finish()?;
    let summary = ReplaySummary {
        engine: "qemu",
        dma_channels,
        frames_in: sent.frames,
        bytes_in: sent.bytes,
        frames_out: received,
        ring_full: sent.full,
        seconds: sent.seconds,
    };
    println!(
        "qemu-run: with {dma_channels}, {} frames, {} bytes went in; {} frames came out of the \
         wire to {}",
        summary.frames_in,
        summary.bytes_in,
        summary.frames_out,
        output.display()
    );
    write_json("qemu-run", &summary)?;
    if summary.frames_out != summary.frames_in {
        bail!("not every frame came out");
    }
    Ok(())
}

/// The thread that writes down what leaves the wire.
struct Recorder {
    frames: Arc<AtomicU64>,
    worker: Worker<()>,
}

impl Recorder {
    fn start(card: &Card, output: &Path) -> Result<Recorder> {
        let mut wire = DatagramWire::bind(&card.wire_peer(), &card.wire_card())
            .context("cannot open the card's wire")?;
        let mut writer = FrameWriter::create(output)?;
        let frames = Arc::new(AtomicU64::new(0));
        let count = frames.clone();
        let worker = Worker::start(move |stop| {
            while !stop.load(Ordering::Relaxed) {
                wire.wait_frame(LOOK)?;
                while let Some(frame) = wire.receive_frame()? {
                    writer.write(now(), &frame)?;
                    count.fetch_add(1, Ordering::Relaxed);
                }
            }
            writer.finish()?;
            Ok(())
        });
        Ok(Recorder { frames, worker })
    }

    /// Waits until so many frames are written, but not for ever.
    fn await_frames(&self, frames: u64) -> Result<()> {
        let end = Instant::now() + SETTLE;
        while self.frames.load(Ordering::Relaxed) < frames && Instant::now() < end {
            interrupt::sleep(LOOK)?;
        }
        Ok(())
    }

    /// Completes the capture and says how many frames are in it.
    fn finish(mut self) -> Result<u64> {
        self.worker.join()?;
        Ok(self.frames.load(Ordering::Relaxed))
    }
}
