//! Streams of pictures at a rate, or at the wire's: what arrives, and what the bus sees of it.

use super::server::Server;
use super::{Screen, Stage, Window};
use crate::simulated::tables::framed;
use crate::spine::account::{INTERVAL, Samples, Share};
use crate::spine::card::{Kit, ensure_fresh};
use anyhow::{Context, Result, ensure};
use comfy_table::Table;
use host_interface::spine::{DomainCount, HandlerCount};
use serde::Serialize;
use testbed::interrupt;
use testbed::paths::board_file;
use tigon2_sim::timing::Parameters;

/// Nanoseconds between two looks at what is due.
const LOOK: u64 = 100_000;
/// Columns and lines of windows whose lines fill a frame.
const FULL: (u32, u32) = (741, 40);
/// The paper's streams: how many, megabits of pixels a second each, columns and lines.
const PAPER: (usize, f64, (u32, u32)) = (4, 40.0, (320, 240));

/// What came of some streams.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Streams {
    /// The timing profile.
    pub profile: String,
    /// Milliseconds of the card's.
    pub milliseconds: u64,
    /// How many.
    pub streams: usize,
    /// Megabits of pixels a second in all that were offered, and that were written.
    pub rate: [f64; 2],
    /// Pieces that were sent and not written.
    pub lost: u64,
    /// The host's accesses to the card, bytes of its memory that were touched, and whether it was
    /// interrupted.
    pub host: [u64; 3],
    /// Bytes on the bus for each byte of a picture that was sent.
    pub bus_bytes: f64,
}

/// Lets some streams come for a while, `rate` megabits of pixels a second each, or as many as the
/// wire takes (0): lines of `size` pixels of 2 bytes, in windows side by side.
///
/// # Errors
/// What the driver says, or a frame buffer that shows something else.
pub fn streams(
    stage: &mut Stage,
    count: usize,
    rate: f64,
    size: (u32, u32),
    nanoseconds: u64,
) -> Result<Streams> {
    let windows: Vec<Window> = (0..count as u32)
        .map(|number| Window {
            left: (number % 2 * size.0) as i32,
            top: (number / 2 * size.1) as i32,
            width: size.0,
            height: size.1,
        })
        .collect();
    for (number, window) in (0..).zip(&windows) {
        stage.place_and_wait(number, window)?;
    }
    stage.settle();
    // An interrupt of the link's is still to be answered.
    stage.card.nic.acknowledge()?;
    stage.card.nic.service()?;
    let before = stage.asked();
    let counts = stage.card.counts(stage.domain).of(DomainCount::Consumed);
    // The window moved for the counts; the host rests from now on.
    let rests = stage.asked();
    let end = stage.now() + nanoseconds;
    let mut server = Server::new(stage, count, rate, size);
    while stage.now() < end {
        server.go_on(stage, end, LOOK);
    }
    let in_time = stage.asked()[2] - before[2];
    stage.settle();
    let after = stage.asked();
    let seconds = (nanoseconds as f64) / 1e9;
    let written = after[2] - before[2];
    // Nobody has answered it: it would still be there.
    let interrupted = stage.card.machine.lock().interrupt();
    let host = [after[0] - rests[0], after[1] - rests[1], interrupted.into()];
    let done = stage.card.counts(stage.domain).of(DomainCount::Consumed);
    let consumed = u64::from(done.wrapping_sub(counts));
    // What is shown of each window: lines of its last picture, below them the one before.
    let shown = stage.shown()?;
    let mut wanted = shown.clone();
    for (number, window) in windows.iter().enumerate() {
        let (picture, rows) = server.position(number);
        let before = picture.checked_sub(1);
        if let Some(before) = before {
            stage.paint(&mut wanted, number as u8, before, window);
        }
        let part = Window {
            height: rows,
            ..*window
        };
        stage.paint(&mut wanted, number as u8, picture, &part);
    }
    ensure!(
        consumed != server.pieces || shown == wanted,
        "the frame buffer shows something else"
    );
    ensure_fresh(&stage.card.machine)?;
    Ok(Streams {
        profile: String::new(),
        milliseconds: nanoseconds / 1_000_000,
        streams: count,
        rate: [
            server.pixels as f64 * 8.0 / seconds / 1e6,
            in_time as f64 * 8.0 / seconds / 1e6,
        ],
        lost: server.pieces - consumed.min(server.pieces),
        host,
        bus_bytes: written as f64 / server.pixels.max(1) as f64,
    })
}

/// A card of a timing profile whose screen has room for eight windows of this size.
fn stage(kit: &Kit, profile: &str, size: (u32, u32)) -> Result<Stage> {
    let parameters = Parameters::from_toml(&board_file()?, profile).context("the board file")?;
    let screen = Screen {
        width: 2 * size.0,
        height: 4 * size.1,
        pitch: 4 * size.0,
        depth: 1,
    };
    Stage::start(kit, screen, &parameters)
}

/// The paper's streams, and one to eight that share the wire, with each of the board's timing
/// profiles. `quick`: for less time.
///
/// # Errors
/// What the driver says, or a frame buffer that shows something else.
pub fn measure(kit: &Kit, quick: bool) -> Result<Vec<Streams>> {
    let (count, rate, size) = PAPER;
    let mut rows = Vec::new();
    for profile in Parameters::profiles(&board_file()?)? {
        let mut row = |size, count, rate, milliseconds: u64| -> Result<()> {
            interrupt::check()?;
            let mut stage = stage(kit, &profile, size)?;
            let row = streams(&mut stage, count, rate, size, milliseconds * 1_000_000)?;
            rows.push(Streams {
                profile: profile.clone(),
                ..row
            });
            Ok(())
        };
        row(size, count, rate, if quick { 20 } else { 1000 })?;
        for count in [1, 2, 4, 8] {
            row(FULL, count, 0.0, if quick { 5 } else { 20 })?;
        }
    }
    Ok(rows)
}

/// The paper's streams through the host, for comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ThroughHost {
    /// Pieces that came.
    pub pieces: u64,
    /// The host's accesses to the card for a piece.
    pub accesses: f64,
    /// Bytes on the bus for each byte of a picture: those of the host's memory that the card touched,
    /// and the one that the process copies to the frame buffer.
    pub bus_bytes: f64,
}

/// Milliseconds for which they come.
const THROUGH_HOST_MS: u64 = 20;

/// Has the driver receive the paper's streams, whose pixels a process would copy.
///
/// # Errors
/// What the driver says, or pieces that do not arrive.
pub fn through_host(kit: &Kit) -> Result<ThroughHost> {
    let (count, rate, size) = PAPER;
    let mut stage = stage(kit, crate::spine::cost::PROFILE, size)?;
    stage.card.guards(&[])?;
    let before = stage.asked();
    let end = stage.now() + THROUGH_HOST_MS * 1_000_000;
    let mut server = Server::new(&stage, count, rate, size);
    let mut pieces = 0;
    // The last ones are still on their way then.
    while stage.now() < end + 10 * LOOK {
        server.go_on(&mut stage, end, LOOK);
        loop {
            let frames = stage.card.nic.receive_batch(64)?;
            stage.card.nic.service()?;
            if frames.is_empty() {
                break;
            }
            pieces += frames.len() as u64;
        }
    }
    ensure!(
        pieces == server.pieces,
        "{pieces} of {} pieces",
        server.pieces
    );
    let after = stage.asked();
    let memory_bytes = (after[1] - before[1]) as f64 / server.pixels as f64;
    Ok(ThroughHost {
        pieces,
        accesses: (after[0] - before[0]) as f64 / pieces as f64,
        bus_bytes: memory_bytes + 1.0,
    })
}

/// Where CPU A's time goes while pieces come at the wire's rate.
///
/// # Errors
/// As of [`measure`].
pub fn account(kit: &Kit, nanoseconds: u64) -> Result<Vec<Share>> {
    let mut stage = stage(kit, crate::spine::cost::PROFILE, FULL)?;
    let window = Window {
        left: 0,
        top: 0,
        width: FULL.0,
        height: FULL.1,
    };
    stage.place_and_wait(0, &window)?;
    let mut server = Server::new(&stage, 1, 0.0, FULL);
    server.go_on(&mut stage, u64::MAX, LOOK * 10);
    let runs = |stage: &Stage| u64::from(stage.card.counts(stage.domain).of(HandlerCount::Runs));
    let before = runs(&stage);
    let mut samples = Samples::new(kit, &stage.card)?;
    let end = stage.now() + nanoseconds;
    while stage.now() < end {
        server.go_on(&mut stage, u64::MAX, INTERVAL);
        samples.take(&stage.card);
    }
    Ok(samples.shares(runs(&stage) - before))
}

/// The table of some rows.
pub fn table(rows: &[Streams]) -> Table {
    let mut table = framed(&[
        "profile",
        "ms",
        "streams",
        "Mb/s sent",
        "written",
        "pieces lost",
        "host: accesses, bytes, interrupts",
        "bytes on the bus for one",
    ]);
    for row in rows {
        let [sent, written] = row.rate;
        let [accesses, bytes, interrupts] = row.host;
        table.add_row([
            row.profile.clone(),
            row.milliseconds.to_string(),
            row.streams.to_string(),
            format!("{sent:.1}"),
            format!("{written:.1}"),
            row.lost.to_string(),
            format!("{accesses}, {bytes}, {interrupts}"),
            format!("{:.3}", row.bus_bytes),
        ]);
    }
    table
}
