//! The application that owns the screen on which the extension `video` puts its lines.

use super::super::card::SpineCard;
use super::super::cuts::Line;
use super::super::traffic::LOOK;
use anyhow::{Context, Result, ensure};
use host_driver::DmaMemory;
use host_driver::transport::Transport;
use spine_linker::endpoint::{Endpoint, HandlerOf, RingSizes};
use spine_linker::load::lease::Lease;
use spine_linker::video::{PIXELS, PLACE, Piece, Screen, Window, line, placement};

/// The number of its endpoint, and its rings.
const ENDPOINT: u32 = 5;
const SIZES: RingSizes = RingSizes { slots: 8, bulk: 0 };
/// The window, and the picture's columns left of the screen.
const NUMBER: u8 = 0;
const HIDDEN: u32 = 4;
const SCREEN: Screen = Screen {
    width: 1536,
    height: 16,
    pitch: 1536,
    depth: 0,
};
const WINDOW: Window = Window {
    left: -(HIDDEN as i32),
    top: 0,
    width: SCREEN.width,
    height: SCREEN.height,
};
/// The server's address.
const SERVER: [u8; 6] = [2, 0, 0, 0, 0, 7];
/// Looks within which a message has run its handler.
const LOOKS: u32 = 1000;

/// What the owner sees of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// The pixels that were written.
    pixels: Vec<u8>,
    /// How many answers have come, each to the placement that was asked for last.
    answers: u32,
}

/// The application.
pub(super) struct Owner {
    domain: u32,
    pixels: DmaMemory,
    endpoint: Endpoint<DmaMemory>,
    /// The serial of the placement that was asked for last.
    serial: u32,
    picture: u32,
    line: u32,
}

impl Owner {
    /// Opens its endpoint, leases the domain its screen and places the window.
    pub fn open(card: &mut SpineCard, domain: u32) -> Result<Owner> {
        let pixels = card.nic.transport().allocate(SCREEN.bytes() as usize)?;
        let screen = Lease {
            address: pixels.iova(),
            bytes: SCREEN.bytes(),
        };
        card.loader.set_screen(&mut card.window, domain, screen)?;
        let mut owner = Owner {
            domain,
            pixels,
            endpoint: card.open_endpoint(ENDPOINT, SIZES, domain)?,
            serial: 0,
            picture: 0,
            line: 0,
        };
        owner.place_and_wait(card)?;
        ensure!(owner.look(card)?.answers == 1, "the window is not placed");
        Ok(owner)
    }

    /// Places the window where it is, by another serial.
    pub fn place(&mut self, card: &mut SpineCard) -> Result<()> {
        self.serial += 1;
        let arguments = placement(&SCREEN, NUMBER.into(), 0, self.serial, &WINDOW);
        let to = HandlerOf {
            domain: self.domain,
            handler: PLACE,
        };
        self.endpoint.put(to, &arguments).context("the ring")?;
        self.ring(card)
    }

    fn ring(&self, card: &mut SpineCard) -> Result<()> {
        card.ring_endpoint(ENDPOINT, &self.endpoint)
    }

    /// The same; the placement's run is over when this returns.
    pub fn place_and_wait(&mut self, card: &mut SpineCard) -> Result<()> {
        let delivered = |card: &mut SpineCard| -> Result<u32> {
            let counts = card.loader.endpoint_counts(&mut card.window, ENDPOINT)?;
            Ok(counts.delivered)
        };
        let before = delivered(card)?;
        self.place(card)?;
        for _ in 0..LOOKS {
            if delivered(card)? != before {
                return Ok(());
            }
            card.machine.pass(LOOK);
        }
        anyhow::bail!("a placement does not run its handler")
    }

    /// A piece of the next picture, in a frame of so many bytes, and never its last one: so a
    /// placement waits for the next picture.
    pub fn piece(&mut self, card: &mut SpineCard, way: Line, bytes: usize) -> Result<Vec<u8>> {
        match way {
            Line::Same => {}
            Line::Next => self.line = (self.line + 1) % SCREEN.height,
            Line::Placed => self.place_and_wait(card)?,
        }
        self.picture += 1;
        let columns = bytes - PIXELS;
        let piece = Piece {
            window: NUMBER,
            picture: self.picture,
            line: self.line as u16,
            column: 0,
            columns: columns as u16,
            is_last: false,
        };
        Ok(line(card.nic.station(), SERVER, &piece, &vec![1; columns]))
    }

    /// What there is to be seen since the last look. The screen is clear again then.
    pub fn look(&mut self, card: &mut SpineCard) -> Result<Seen> {
        let mut seen = Seen::default();
        // An answer that a run has asked for is written soon behind it.
        card.machine.pass(LOOK);
        while let Some(answer) = self.endpoint.take()? {
            let wanted = [NUMBER.into(), self.serial];
            ensure!(answer.arguments == wanted, "{answer:?}, not {wanted:?}");
            seen.answers += 1;
            self.ring(card)?;
        }
        let mut shown = vec![0; self.pixels.len()];
        self.pixels.read_bytes(0, &mut shown)?;
        self.pixels.write_bytes(0, &vec![0; shown.len()])?;
        for (number, line) in (0..).zip(shown.chunks(SCREEN.pitch as usize)) {
            let end = line.iter().rposition(|pixel| *pixel != 0);
            let Some(end) = end else { continue };
            ensure!(number == self.line, "line {number} was written");
            seen.pixels = line[..=end].to_vec();
        }
        Ok(seen)
    }
}
