//! Videos in windows of a frame buffer on the bus, by `firmware/spine/extensions/video`.
//!
//! SPINE paper, section 5.1. A server on the wire sends test cards; what the frame buffer shows is
//! held beside what should be seen of them. The bus counts what the host's CPU and memory are asked
//! for meanwhile.

use super::card::{Kit, SpineCard};
use anyhow::{Context, Result, ensure};
use host_driver::DmaMemory;
use serde::Serialize;
use spine_linker::endpoint::{Endpoint, RingSizes, doorbell};
use spine_linker::load::Guard;
use spine_linker::load::lease::Lease;
use spine_linker::video::{
    ETHER_TYPE, LINE, PIXEL_BYTES, PLACE, Piece, Screen, Window, line, placement,
};
use std::path::Path;
use std::sync::Arc;
use tigon2_model::Board;
use tigon2_sim::Machine;
use tigon2_sim::fabric::{Bus, Fabric, Target};
use tigon2_sim::timing::Parameters;

/// The extension's folder in the checkout.
pub const FOLDER: &str = "firmware/spine/extensions/video";
/// The server's address.
const SERVER: [u8; 6] = [2, 0, 0, 0, 0, 7];
/// The application that owns the screen.
const OWNER: u32 = 5;
const SIZES: RingSizes = RingSizes { slots: 8, bulk: 0 };
/// Bytes on the wire beside a frame: preamble, CRC, gap; and ns of a byte.
const BESIDE: u64 = 24;
const BYTE_NS: u64 = 8;
/// Nanoseconds in which all that came is written.
const QUIET_NS: u64 = 500_000;

/// A card with the extension, and a frame buffer on its bus.
pub struct Stage {
    /// The bus.
    pub fabric: Arc<Fabric>,
    /// The card.
    pub card: SpineCard,
    /// The extension's domain.
    pub domain: u32,
    /// The frame buffer.
    pub pixels: DmaMemory,
    /// What it shows.
    pub screen: Screen,
    owner: Endpoint<DmaMemory>,
    /// When the wire is free again, in nanoseconds.
    due: u64,
    serial: u32,
}

/// The pixels of a test card: what a window's picture has at a line and a column.
pub fn pixel(window: u8, picture: u32, row: u32, column: u32) -> u32 {
    let seed = u32::from(window) << 28 ^ picture << 20 ^ row << 10 ^ column;
    // Never what the frame buffer is cleared to.
    seed.wrapping_mul(0x9E37_79B9) | 1
}

/// A row of them, as the frame buffer has them.
fn row(
    screen: &Screen,
    window: u8,
    picture: u32,
    row: u32,
    columns: std::ops::Range<u32>,
) -> Vec<u8> {
    let bytes = 1 << screen.depth;
    let pixels = columns.flat_map(|column| {
        pixel(window, picture, row, column)
            .to_le_bytes()
            .into_iter()
            .take(bytes)
    });
    pixels.collect()
}

impl Stage {
    /// Powers up a card on a bus with a frame buffer, loads the extension and leases it that.
    ///
    /// # Errors
    /// What the driver or a wall says.
    pub fn start(kit: &Kit, screen: Screen, parameters: &Parameters) -> Result<Stage> {
        let machine = Machine::timed(Board::default(), parameters.clone(), 1);
        let fabric = Fabric::with_bus([machine], &[], Some(Bus::default()));
        let mut card = SpineCard::start_on(kit, &fabric.card(0))?;
        let bytes = screen.bytes().next_multiple_of(4096) as usize;
        let pixels = fabric.frame_buffer(0, bytes, &[0])?;
        let container = kit.container(Path::new(FOLDER))?;
        let (domain, _) = card.load(kit, &container, &kit.policy(10, 3)?)?;
        let lease = Lease {
            address: pixels.iova(),
            bytes: screen.bytes(),
        };
        card.loader.set_lease(&mut card.window, domain, lease)?;
        card.guards(&[Guard::ether_type(domain, LINE, ETHER_TYPE)])?;
        let owner = card.open_endpoint(OWNER, SIZES, domain)?;
        let due = fabric.card(0).lock().now();
        Ok(Stage {
            fabric,
            card,
            domain,
            pixels,
            screen,
            owner,
            due,
            serial: 0,
        })
    }

    /// Asks for a window's placement; returns its serial.
    ///
    /// # Errors
    /// If the ring is full or the card gone.
    pub fn place(&mut self, number: u8, flags: u32, window: &Window) -> Result<u32> {
        self.serial += 1;
        let serial = self.serial;
        let arguments = placement(&self.screen, number.into(), flags, serial, window);
        let to = spine_linker::endpoint::HandlerOf {
            domain: self.domain,
            handler: PLACE,
        };
        self.owner.put(to, &arguments).context("the ring")?;
        self.ring()?;
        Ok(serial)
    }

    fn ring(&mut self) -> Result<()> {
        let halfword = doorbell(self.owner.memory())?;
        let SpineCard { loader, window, .. } = &mut self.card;
        Ok(loader.ring_endpoint(window, OWNER, halfword)?)
    }

    /// The next answer: the window and the serial that took effect.
    ///
    /// # Errors
    /// If the ring is broken.
    pub fn answer(&mut self) -> Result<Option<(u32, u32)>> {
        let Some(received) = self.owner.take()? else {
            return Ok(None);
        };
        self.ring()?;
        let [window, serial] = received.arguments[..] else {
            anyhow::bail!("an answer of other words: {:?}", received.arguments);
        };
        Ok(Some((window, serial)))
    }

    /// Lets so many nanoseconds pass.
    pub fn pass(&mut self, nanoseconds: u64) {
        self.card.machine.pass(nanoseconds);
    }

    /// Sends a frame as soon as the wire is free, not before `at`; returns its bytes of pixels.
    pub fn send(&mut self, at: u64, frame: Vec<u8>) {
        let mut machine = self.card.machine.lock();
        let at = at.max(self.due).max(machine.now());
        self.due = at + (frame.len() as u64 + BESIDE) * BYTE_NS;
        machine.send_frame(at, frame);
    }

    /// The pieces of a line of a picture, each in a frame.
    pub fn pieces(&self, window: u8, picture: u32, at: u32, size: (u32, u32)) -> Vec<Vec<u8>> {
        let most = (PIXEL_BYTES >> self.screen.depth) as u32;
        let station = self.card.nic.station();
        let firsts = (0..size.0).step_by(most as usize);
        let pieces = firsts.map(|first| {
            let end = (first + most).min(size.0);
            let piece = Piece {
                window,
                picture,
                line: at as u16,
                column: first as u16,
                columns: (end - first) as u16,
                is_last: at + 1 == size.1 && end == size.0,
            };
            let pixels = row(&self.screen, window, picture, at, first..end);
            line(station, SERVER, &piece, &pixels)
        });
        pieces.collect()
    }

    /// Sends a whole picture at the wire's rate.
    pub fn picture(&mut self, window: u8, picture: u32, size: (u32, u32)) {
        for at in 0..size.1 {
            for piece in self.pieces(window, picture, at, size) {
                self.send(0, piece);
            }
        }
    }

    /// Waits until all that was sent is through.
    pub fn settle(&mut self) {
        let now = self.card.machine.lock().now();
        self.pass(self.due.saturating_sub(now) + QUIET_NS);
    }

    /// All bytes of the frame buffer.
    ///
    /// # Errors
    /// None that is expected.
    pub fn shown(&self) -> Result<Vec<u8>> {
        let mut bytes = vec![0; self.pixels.len()];
        self.pixels.read_bytes(0, &mut bytes)?;
        Ok(bytes)
    }

    /// Paints a picture into bytes as a window shows it.
    pub fn paint(&self, onto: &mut [u8], number: u8, picture: u32, window: &Window) {
        let screen = self.screen;
        let bytes = 1usize << screen.depth;
        for line in 0..window.height {
            let y = window.top + line as i32;
            for column in 0..window.width {
                let x = window.left + column as i32;
                let seen =
                    (0..screen.height as i32).contains(&y) && (0..screen.width as i32).contains(&x);
                if seen {
                    let at = (y as u32 * screen.pitch + ((x as u32) << screen.depth)) as usize;
                    let pixel = pixel(number, picture, line, column).to_le_bytes();
                    onto[at..at + bytes].copy_from_slice(&pixel[..bytes]);
                }
            }
        }
    }

    /// What the host was asked for: accesses to the card, and bytes of its memory, and how many bytes
    /// the frame buffer got.
    pub fn asked(&self) -> [u64; 3] {
        let accesses = self.fabric.host_accesses(0);
        [
            accesses.reads + accesses.writes,
            self.fabric.traffic(0, Target::Memory).bytes,
            self.fabric.traffic(0, Target::FrameBuffer(0)).bytes,
        ]
    }
}

/// What came of some streams.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Streams {
    /// How many.
    pub streams: usize,
    /// Megabits of pixels a second in all that were offered, and that were written.
    pub rate: [f64; 2],
    /// Pieces that were sent and not written.
    pub lost: u64,
    /// The host's accesses to the card, bytes of its memory that were touched.
    pub host: [u64; 2],
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
    for (number, window) in windows.iter().enumerate() {
        let serial = stage.place(number as u8, 0, window)?;
        stage.pass(100_000);
        ensure!(
            stage.answer()? == Some((number as u32, serial)),
            "no answer"
        );
    }
    stage.settle();
    let machine = stage.card.machine.clone();
    let start = machine.lock().now();
    let before = stage.asked();
    let counts = stage.card.counts(stage.domain);
    // The window moved for the counts; the host rests from now on.
    let rests = stage.asked();
    let bytes = u64::from(size.0) << stage.screen.depth;
    let line_ns = if rate == 0.0 {
        0.0
    } else {
        bytes as f64 * 8e3 / rate
    };
    let (mut lines, mut sent, mut pixels) = (vec![0u64; count], 0u64, 0u64);
    let end = start + nanoseconds;
    loop {
        let now = machine.lock().now();
        if now >= end {
            break;
        }
        let mut turn = 0;
        // The stream whose next line is due first.
        let first = |lines: &[u64]| {
            let due = lines.iter().enumerate();
            let due =
                due.map(|(stream, line)| (start + (*line as f64 * line_ns) as u64, *line, stream));
            due.min()
        };
        while let Some((at, line, stream)) = first(&lines) {
            let at = at.max(stage.due);
            if at >= end || at > now + 200_000 || turn > 2000 {
                break;
            }
            let (picture, row) = (line / u64::from(size.1), line % u64::from(size.1));
            for piece in stage.pieces(stream as u8, picture as u32, row as u32, size) {
                stage.send(at, piece);
                sent += 1;
            }
            pixels += bytes;
            lines[stream] += 1;
            turn += 1;
        }
        stage.pass(100_000);
    }
    stage.settle();
    let after = stage.asked();
    let seconds = (nanoseconds as f64) / 1e9;
    let written = after[2] - before[2];
    let host = [after[0] - rests[0], after[1] - rests[1]];
    let done = stage.card.counts(stage.domain);
    let consumed = u64::from(done[4].wrapping_sub(counts[4]));
    // What is shown of each window: lines of its last picture, below them the one before.
    let mut shown = stage.shown()?;
    let mut wanted = shown.clone();
    for (number, window) in windows.iter().enumerate() {
        let (picture, rows) = (
            lines[number] / u64::from(size.1),
            lines[number] % u64::from(size.1),
        );
        let before = picture.checked_sub(1);
        if let Some(before) = before {
            stage.paint(&mut wanted, number as u8, before as u32, window);
        }
        let part = Window {
            height: rows as u32,
            ..*window
        };
        stage.paint(&mut wanted, number as u8, picture as u32, &part);
    }
    ensure!(
        consumed != sent || shown == wanted,
        "the frame buffer shows something else"
    );
    shown.clear();
    Ok(Streams {
        streams: count,
        rate: [
            pixels as f64 * 8.0 / seconds / 1e6,
            written as f64 * 8.0 / seconds / 1e6,
        ],
        lost: sent - consumed.min(sent),
        host,
        bus_bytes: written as f64 / pixels.max(1) as f64,
    })
}
