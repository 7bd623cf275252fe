//! A handler that sends messages to the other card for ever: the hosts of both keep their datagrams.
//!
//! ```text
//!   datagrams ──► card 0 ══ messages, as many as there is room for ══► card 1 ◄── datagrams
//!                   │                                                    │
//!                   ▼ host                                               ▼ host
//! ```

use super::card::{Kit, SpineCard};
use super::exchange::{Exchange, handler};
use super::frames::Kind;
use anyhow::{Context, Result};
use host_interface::spine::{DomainCount, HandlerCount};
use testbed::paths::board_file;
use tigon2_sim::timing::Parameters;

/// Bytes of a frame in front of its data.
const HEADERS: usize = 42;
/// Frames that a driver is asked for at once.
const BATCH: u32 = 64;
/// Nanoseconds between two looks of the drivers.
const STEP: u64 = 20_000;
/// Nanoseconds in which the flood begins.
const BEGIN: u64 = 1_000_000;
/// A UDP port that nobody has a guard for.
const DISCARD: u16 = 9;

/// Datagrams that come to each card.
#[derive(Clone, Copy, Debug)]
pub(super) struct Datagrams {
    /// Their bytes of data.
    pub bytes: usize,
    /// How many a second.
    pub rate: f64,
    /// For so many nanoseconds.
    pub nanoseconds: u64,
}

/// What became of a card.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flooded {
    /// Runs of its extension.
    pub runs: u32,
    /// Whether that was suspended.
    pub suspended: bool,
    /// Datagrams a second that its host got, before and then.
    pub rates: [f64; 2],
}

/// Lets datagrams come to both cards, without the flood and with it. Returns what became of the card
/// that sends the messages, and of the one that gets them.
///
/// # Errors
/// If a card or a wall fails.
pub(super) fn run(kit: &Kit, datagrams: Datagrams) -> Result<[Flooded; 2]> {
    let text = board_file()?;
    let parameters = Parameters::from_toml(&text, "default").context("the board file")?;
    let mut exchange = Exchange::start(kit, &parameters, |_, _| Ok(()))?;
    carry(&mut exchange, datagrams)?;
    let quiet = carry(&mut exchange, datagrams)?;
    // Card 1 has the handler of card 0 begin.
    exchange.send(1, handler::FLOODS, &[]);
    exchange.pass(BEGIN);
    let flooded = carry(&mut exchange, datagrams)?;
    Ok([0, 1].map(|card| Flooded {
        runs: exchange.counts(card).of(HandlerCount::Runs),
        suspended: exchange.counts(card).of(DomainCount::Suspended) != 0,
        rates: [quiet[card], flooded[card]],
    }))
}

/// Lets datagrams come to both; how many a second each host gets.
fn carry(exchange: &mut Exchange, datagrams: Datagrams) -> Result<[f64; 2]> {
    let Datagrams {
        bytes,
        rate,
        nanoseconds,
    } = datagrams;
    let period = (1e9 / rate) as u64;
    let datagram = Kind::Datagram(DISCARD);
    let frame = |card: &SpineCard| datagram.frame(card.nic.station(), 0, HEADERS + bytes);
    let frames = exchange.cards.each_ref().map(frame);
    let now = exchange.cards[0].machine.lock().now();
    let (mut due, end) = (now, now + nanoseconds);
    // What came before does not count.
    taken(exchange)?;
    let mut got = [0; 2];
    while exchange.cards[0].machine.lock().now() < end {
        while due < end && due < exchange.cards[0].machine.lock().now() + STEP {
            for (card, frame) in exchange.cards.iter().zip(&frames) {
                card.machine.lock().send_frame(due, frame.clone());
            }
            due += period;
        }
        exchange.pass(STEP);
        let taken = taken(exchange)?;
        got = [got[0] + taken[0], got[1] + taken[1]];
    }
    Ok(got.map(|frames| (frames as f64 * 1e9 / nanoseconds as f64).round()))
}

/// Frames that both hosts get now.
fn taken(exchange: &mut Exchange) -> Result<[usize; 2]> {
    let mut got = [0; 2];
    for (card, got) in exchange.cards.iter_mut().zip(&mut got) {
        card.nic.service()?;
        loop {
            let frames = card.nic.receive_batch(BATCH)?.len();
            *got += frames;
            if frames == 0 {
                break;
            }
        }
    }
    Ok(got)
}
