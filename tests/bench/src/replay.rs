//! `sim-run --pcap IN --pcap-out OUT`: a capture through the simulated card.
//!
//! ```text
//!   out of the card   IN ─► driver ─► card ─► wire ─► OUT
//!   into the host     IN ─► wire ─► card ─► driver ─► OUT    --from-wire
//! ```
//!
//! The card has the board's timing, and timestamps in OUT are the card's time: the same capture
//! and the same firmware give the same file, byte for byte.

use crate::report::write_json;
use anyhow::{Context, Result, bail};
use host_driver::Nic;
use host_driver::capture::{FrameReader, FrameWriter};
use host_driver::replay;
use serde::Serialize;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::time::Duration;
use testbed::conditions::DmaChannels;
use testbed::interrupt;
use tigon2_model::{Board, is_flow_control};
use tigon2_sim::timing::Parameters;
use tigon2_sim::transport::{HostTiming, SharedMachine};
use tigon2_sim::{Machine, SimTransport};

/// On the card's clock.
const LINK: Duration = Duration::from_secs(10);
/// Frames on the wire at once.
const BACKLOG: usize = 64;
/// How long the host waits for an interrupt at a time.
const PAUSE: Duration = Duration::from_micros(200);
/// So many pauses without a frame behind the last one end the run.
const QUIET: u32 = 50;
/// What varies on the bus, varies by this.
const SEED: u64 = 1;

/// Which way the frames go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the host to the wire, as fast as the card takes them.
    Out,
    /// From the wire to the host, at the distances of the capture.
    In,
}

/// What `target/reports/sim-run.json` says of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ReplaySummary {
    engine: &'static str,
    /// How many DMA channels moved data at a time.
    pub dma_channels: DmaChannels,
    /// Frames of the capture.
    pub frames_in: u64,
    /// Frames that came through the card.
    pub frames_out: u64,
    /// Nanoseconds on the card's clock.
    pub nanoseconds: u64,
}

/// A card whose link is up.
struct Up {
    nic: Nic<SimTransport>,
    machine: SharedMachine,
}

/// Replays `input` through a card with `image` and writes what came through to `output`.
///
/// # Errors
/// When either file is unusable, a frame cannot be sent, or fewer frames came through than
/// went in.
pub fn run(
    image: &[u8],
    input: &Path,
    output: &Path,
    way: Way,
    dma_channels: DmaChannels,
) -> Result<ReplaySummary> {
    let mut reader = FrameReader::open(input)?;
    let mut writer = FrameWriter::create(output)?;
    let mut up = start(image, dma_channels)?;
    let begun = up.machine.lock().now();
    let frames_in = match way {
        Way::Out => send(&mut up, &mut reader, &mut writer)?,
        Way::In => receive(&mut up, &mut reader, &mut writer)?,
    };
    let summary = ReplaySummary {
        engine: "sim",
        dma_channels,
        frames_in,
        frames_out: writer.frames(),
        nanoseconds: up.machine.lock().now() - begun,
    };
    writer.finish()?;
    up.nic.shut_down()?;
    Ok(summary)
}

/// Replays as [`run`] does, prints the summary and writes it.
///
/// # Errors
/// As of [`run`].
pub fn report(
    image: &[u8],
    input: &Path,
    output: &Path,
    way: Way,
    dma_channels: DmaChannels,
) -> Result<()> {
    let summary = run(image, input, output, way, dma_channels)?;
    println!(
        "sim-run: with {dma_channels}, {} frames went in, {} came through the card to {}, in {:.3} ms of its time",
        summary.frames_in,
        summary.frames_out,
        output.display(),
        summary.nanoseconds as f64 / 1e6
    );
    write_json("sim-run", &summary)?;
    if summary.frames_out != summary.frames_in {
        bail!("not every frame came through");
    }
    Ok(())
}

fn start(image: &[u8], dma_channels: DmaChannels) -> Result<Up> {
    let parameters = Parameters::default();
    let timing = HostTiming::of(&parameters);
    let mut transport = SimTransport::new(Machine::timed(Board::default(), parameters, SEED));
    transport.set_timing(timing);
    let machine = transport.machine();
    let mut nic = Nic::probe(transport, dma_channels.config())?;
    nic.load(image).context("the firmware does not start")?;
    nic.open()?;
    nic.wait_link(LINK)?;
    Ok(Up { nic, machine })
}

type Writer = FrameWriter<BufWriter<File>>;

fn send(up: &mut Up, reader: &mut FrameReader, writer: &mut Writer) -> Result<u64> {
    let sent = replay::replay(&mut up.nic, reader, interrupt::flag())?;
    interrupt::check()?;
    let mut machine = up.machine.lock();
    while let Some(frame) = machine.take_frame() {
        if !is_flow_control(&frame.bytes) {
            writer.write(Duration::from_nanos(frame.at), &frame.bytes)?;
        }
    }
    Ok(sent.frames)
}

fn receive(up: &mut Up, reader: &mut FrameReader, writer: &mut Writer) -> Result<u64> {
    // The capture's frames are for others.
    up.nic.set_promiscuous(true)?;
    let begun = up.machine.lock().now();
    let mut first = None;
    let mut next = reader.next_frame()?;
    let (mut frames, mut quiet) = (0, 0);
    while next.is_some() || quiet < QUIET {
        interrupt::check()?;
        quiet += 1;
        while let Some(frame) = next.take() {
            let mut machine = up.machine.lock();
            if machine.pending_frames() >= BACKLOG {
                next = Some(frame);
                break;
            }
            let first = *first.get_or_insert(frame.time);
            let after = frame.time.saturating_sub(first).as_nanos();
            let at = begun + u64::try_from(after).unwrap_or(u64::MAX / 2);
            machine.send_frame(at, frame.bytes);
            frames += 1;
            quiet = 0;
            drop(machine);
            next = reader.next_frame()?;
        }
        if up.machine.lock().pending_frames() != 0 {
            quiet = 0;
        }
        up.nic.wait(PAUSE)?;
        let now = Duration::from_nanos(up.machine.lock().now());
        let mut failure = Ok(());
        up.nic.receive(u32::MAX, |frame| {
            let written = writer.write(now, &frame.to_vec()?);
            if failure.is_ok() {
                failure = written;
            }
            Ok(())
        })?;
        failure?;
        up.nic.service()?;
    }
    Ok(frames)
}
