//! Windows that move while their videos come: SPINE paper, section 5.1, where the video had to stop.
//!
//! Each window has three places of its own on the screen, and moves from one to the next. Behind the
//! answer the place that it has left is cleared; it must be clear when the window comes back.

use super::server::Server;
use super::{Stage, Window};
use crate::spine::card::ensure_fresh;
use anyhow::{Result, ensure};
use host_interface::spine::DomainCount;
use serde::Serialize;

const PLACES: u32 = 3;
/// Nanoseconds between two looks for answers.
const LOOK: u64 = 50_000;

/// What came of moves.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Moves {
    /// How many there were.
    pub moves: u64,
    /// Nanoseconds from asking to the answer: the longest.
    pub longest: u64,
    /// Pieces that were sent and not consumed.
    pub lost: u64,
}

/// A window that moves.
struct Mover {
    number: u32,
    place: u32,
    size: (u32, u32),
    /// The serial of the placement that is not answered, and when it was asked for.
    asked: Option<(u32, u64)>,
}

impl Mover {
    /// One of its places.
    fn window(&self, place: u32) -> Window {
        Window {
            left: (place % PLACES * self.size.0) as i32,
            top: (self.number * self.size.1) as i32,
            width: self.size.0,
            height: self.size.1,
        }
    }

    fn ask(&mut self, stage: &mut Stage) -> Result<()> {
        let now = stage.now();
        let next = self.window(self.place + 1);
        ensure!(
            stage.is_clear(&next)?,
            "window {} left something behind in its place {}",
            self.number,
            (self.place + 1) % PLACES
        );
        self.asked = Some((stage.place(self.number as u8, 0, &next)?, now));
        Ok(())
    }
}

/// Lets four streams come for a while, `rate` megabits of pixels a second each, and moves one of their
/// windows after the other, `often` times a second in all.
///
/// # Errors
/// A byte where no window is, or a placement that is not answered before the window's next turn.
pub fn moves(
    stage: &mut Stage,
    rate: f64,
    size: (u32, u32),
    often: u64,
    nanoseconds: u64,
) -> Result<Moves> {
    let mut movers: Vec<Mover> = (0..4)
        .map(|number| Mover {
            number,
            place: 0,
            size,
            asked: None,
        })
        .collect();
    for mover in &movers {
        let window = mover.window(0);
        stage.place_and_wait(mover.number as u8, &window)?;
    }
    let before = stage.card.counts(stage.domain).of(DomainCount::Consumed);
    let mut server = Server::new(stage, movers.len(), rate, size);
    let mut done = Moves::default();
    let start = stage.now();
    let end = start + nanoseconds;
    let mut asked = 0;
    while stage.now() < end || movers.iter().any(|mover| mover.asked.is_some()) {
        // The pictures go on until the last move is answered.
        let soon = stage.now() + 10 * LOOK;
        server.go_on(stage, end.max(soon), LOOK);
        while let Some((number, serial)) = stage.answer()? {
            let mover = movers.get_mut(number as usize);
            let mover = mover.filter(|mover| mover.asked.is_some_and(|(one, _)| one == serial));
            let Some(mover) = mover else {
                anyhow::bail!("window {number} answers {serial}, which nobody waits for");
            };
            let (_, at) = mover.asked.take().unwrap_or_default();
            done.longest = done.longest.max(stage.now() - at);
            done.moves += 1;
            let left = mover.window(mover.place);
            mover.place += 1;
            stage.clear(&left)?;
        }
        let due = (stage.now() - start) * often / 1_000_000_000;
        while asked < due && stage.now() < end {
            let turn = (asked % movers.len() as u64) as usize;
            if let Some(mover) = movers.get_mut(turn) {
                ensure!(mover.asked.is_none(), "window {turn} has no answer yet");
                mover.ask(stage)?;
            }
            asked += 1;
        }
    }
    let last = server.finish(stage);
    let mut wanted = vec![0; stage.pixels.len()];
    for (mover, picture) in movers.iter().zip(last) {
        let window = mover.window(mover.place);
        stage.paint(&mut wanted, mover.number as u8, picture, &window);
    }
    ensure!(stage.shown()? == wanted, "the screen shows something else");
    ensure_fresh(&stage.card.machine)?;
    let consumed = stage
        .card
        .counts(stage.domain)
        .of(DomainCount::Consumed)
        .wrapping_sub(before);
    done.lost = server.pieces - u64::from(consumed).min(server.pieces);
    Ok(done)
}
