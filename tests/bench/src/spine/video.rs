//! Videos in windows of a frame buffer on the bus, by `firmware/spine/extensions/video`.
//!
//! SPINE paper, section 5.1. A server on the wire sends test cards; what the frame buffer shows is
//! held beside what should be seen of them. The bus counts what the host's CPU and memory are asked
//! for meanwhile.

pub mod moves;
pub mod server;
pub mod streams;

use super::card::{Kit, SpineCard};
use anyhow::{Context, Result, ensure};
use host_driver::nic::Coalescing;
use host_driver::{Config, DmaMemory};
use host_interface::spine::{HandlerCount, handler_count};
use spine_linker::endpoint::{Endpoint, RingSizes};
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
/// Nanoseconds in which a piece that has come is written, unless others are in front of it.
const QUIET_NS: u64 = 500_000;
/// Nanoseconds within which a placement is answered while no picture comes.
const ANSWER_NS: u64 = 1_000_000;

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
    /// NIC address of the count of the domain's runs.
    runs: u32,
    /// When the wire is free again, in nanoseconds.
    due: u64,
    serial: u32,
}

/// The pixels of a test card: what a window's picture has at a line and a column.
pub fn pixel(window: u8, picture: u32, row: u32, column: u32) -> u32 {
    let seed = u32::from(window) << 28 ^ picture << 20 ^ row << 10 ^ column;
    let mixed = seed.wrapping_mul(0x9E37_79B9);
    // Its lowest byte, which may be all of a pixel, depends on the picture and the window, too; and
    // it is never what the frame buffer is cleared to.
    (mixed ^ mixed >> 16 ^ mixed >> 24) | 1
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
        // Statistics would be a DMA and an interrupt each second.
        let coalescing = Coalescing {
            statistics_ticks: 0,
            ..Coalescing::default()
        };
        let config = Config {
            coalescing,
            ..Config::default()
        };
        let mut card = SpineCard::start_with(kit, &fabric.card(0), config)?;
        let bytes = screen.bytes().next_multiple_of(4096) as usize;
        let pixels = fabric.frame_buffer(0, bytes, &[0])?;
        let container = kit.container(Path::new(FOLDER))?;
        let (domain, _) = card.load(kit, &container, &kit.policy(10, 3)?)?;
        card.guards(&[Guard::ether_type(domain, LINE, ETHER_TYPE)])?;
        let owner = card.open_endpoint(OWNER, SIZES, domain)?;
        let due = fabric.card(0).lock().now();
        let runs = card.window.block() + handler_count(domain, LINE.into(), HandlerCount::Runs);
        let mut stage = Stage {
            runs,
            fabric,
            card,
            domain,
            pixels,
            screen,
            owner,
            due,
            serial: 0,
        };
        let whole = stage.whole();
        stage.lease(whole)?;
        Ok(stage)
    }

    /// The whole frame buffer.
    pub fn whole(&self) -> Lease {
        Lease {
            address: self.pixels.iova(),
            bytes: self.screen.bytes(),
        }
    }

    /// Leases the extension this in place of what it had.
    ///
    /// # Errors
    /// What the policy or the firmware says.
    pub fn lease(&mut self, lease: Lease) -> Result<()> {
        let SpineCard { loader, window, .. } = &mut self.card;
        Ok(loader.set_lease(window, self.domain, lease)?)
    }

    /// The card's time in nanoseconds.
    pub fn now(&self) -> u64 {
        self.card.machine.lock().now()
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

    /// The same while no picture comes: it takes effect and is answered.
    ///
    /// # Errors
    /// If it is not.
    pub fn place_and_wait(&mut self, number: u8, window: &Window) -> Result<()> {
        let serial = self.place(number, 0, window)?;
        let end = self.now() + ANSWER_NS;
        let answer = loop {
            self.pass(ANSWER_NS / 100);
            let answer = self.answer()?;
            if answer.is_some() || self.now() > end {
                break answer;
            }
        };
        let counts = self.card.counts(self.domain);
        let wanted = Some((u32::from(number), serial));
        ensure!(answer == wanted, "{answer:?}, not {wanted:?}: {counts:?}");
        Ok(())
    }

    fn ring(&mut self) -> Result<()> {
        self.card.ring_endpoint(OWNER, &self.owner)
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

    /// Waits until all that was sent is through: what comes faster than it is written waits in the
    /// card's receive buffer and on the wire. The host does not access the card for that.
    pub fn settle(&mut self) {
        let now = self.now();
        self.pass(self.due.saturating_sub(now));
        let done = |stage: &Stage| {
            let machine = stage.card.machine.lock();
            (machine.word(stage.runs), machine.pending_frames())
        };
        let mut before = done(self);
        loop {
            self.pass(QUIET_NS);
            let after = done(self);
            if after == before {
                break;
            }
            before = after;
        }
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

    /// What of a window's lines lies on the screen: bytes of the frame buffer.
    fn lines(&self, window: &Window) -> impl Iterator<Item = std::ops::Range<usize>> + use<> {
        let (screen, window) = (self.screen, *window);
        (0..window.height as i32).filter_map(move |line| {
            let at = |x: i32| (x.clamp(0, screen.width as i32) as usize) << screen.depth;
            let y = window.top + line;
            let start = usize::try_from(y).ok()? * screen.pitch as usize;
            let columns = at(window.left)..at(window.left + window.width as i32);
            (y < screen.height as i32).then(|| start + columns.start..start + columns.end)
        })
    }

    /// Whether a part of the screen is as it was at first.
    ///
    /// # Errors
    /// None that is expected.
    pub fn is_clear(&self, part: &Window) -> Result<bool> {
        for line in self.lines(part) {
            let mut bytes = vec![0; line.len()];
            self.pixels.read_bytes(line.start, &mut bytes)?;
            if bytes.iter().any(|byte| *byte != 0) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Clears a part of the screen.
    ///
    /// # Errors
    /// None that is expected.
    pub fn clear(&self, part: &Window) -> Result<()> {
        for line in self.lines(part) {
            self.pixels.write_bytes(line.start, &vec![0; line.len()])?;
        }
        Ok(())
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
