//! Messages from card to card, on one PCI bus.
//!
//! SPINE paper, section 3.2: peer devices are endpoints of messages. A frame has a handler of the
//! first card send one; the host's CPU and memory have nothing to do with it.
//!
//! | figure | from | to |
//! | --- | --- | --- |
//! | to the handler | the first instruction of the handler that sends | that of the other card's |
//! | there and back | the same | that of the handler that gets the answer |
//! | one way | | messages a second of a handler that sends for ever |

use super::card::{Kit, SpineCard, Text, ensure_fresh};
use super::messages::one_at_a_time;
use super::peers;
use super::stores::pc;
use crate::simulated::tables::{at_most, framed};
use anyhow::{Result, bail, ensure};
use comfy_table::Table;
use host_interface::spine::DOMAIN_COUNTS;
use host_interface::spine::counts::{self, Counts};
use host_interface::spine::peer::{EXCHANGES, PeerWord};
use serde::Serialize;
use spine_linker::load::Guard;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use tigon2_sim::fabric::{Fabric, Target};
use tigon2_sim::timing::Parameters;

/// The extension of both cards.
pub(super) const PEERING: &str = "tests/extensions/peering";
/// EtherType of the frames that have it send.
pub(super) const ETHER_TYPE: u16 = 0x88B5;
/// Microseconds that a run may take.
const WATCHDOG: u32 = 20;
/// Nanoseconds between two looks at the CPUs.
const LOOK_NS: u64 = 100;
/// How many looks a message has time for.
const LOOKS: u32 = 10_000;
/// Messages one at a time, and nanoseconds by which each falls later in the watchdog's period.
const SAMPLES: u64 = 22;
const LATER_NS: u64 = 10_000 / SAMPLES;
/// How long is sent for ever, in nanoseconds.
const WINDOW_NS: u64 = 4_000_000;

/// Handlers of the extension.
pub mod handler {
    /// Keeps the arguments.
    pub const KEEPS: u8 = 1;
    /// Sends them back.
    pub const ANSWERS: u8 = 2;
    /// Sends them to the application that the first one names.
    pub const TO_APPLICATION: u8 = 3;
    /// Sends for ever to the one that counts.
    pub const FLOODS: u8 = 4;
    /// Counts.
    pub const COUNTS: u8 = 5;
    /// Never returns.
    pub const NEVER_RETURNS: u8 = 6;
    /// No handler has this number.
    pub const NOBODY: u8 = 7;
}

/// Two cards whose extensions send each other messages.
pub struct Exchange {
    fabric: Arc<Fabric>,
    /// Both.
    pub cards: [SpineCard; 2],
    /// Both have the same domain number.
    pub domain: u32,
    block: u32,
    text: Text,
    region: Range<u32>,
}

/// The figures.
#[derive(Clone, Debug, Serialize)]
pub struct Exchanged {
    /// Microseconds from handler to handler: the median.
    pub to_handler: f64,
    /// The longest of them.
    pub to_handler_at_most: f64,
    /// Microseconds until the answer's handler runs: the median.
    pub there_and_back: f64,
    /// Messages a second one way.
    pub one_way: f64,
    /// The host's accesses to both cards, and bytes of its memory that they touched.
    pub host: [u64; 2],
}

impl Exchanged {
    pub(super) fn table(&self) -> Table {
        let mut table = framed(&["messages from card to card", "measured"]);
        for (what, value) in [
            ("handler to handler", format!("{:.1} us", self.to_handler)),
            (
                "handler to handler, at most",
                format!("{} us", at_most(self.to_handler_at_most)),
            ),
            ("there and back", format!("{:.1} us", self.there_and_back)),
            ("one way", format!("{:.0} /s", self.one_way)),
            (
                "the host: accesses, bytes of memory",
                format!("{}, {}", self.host[0], self.host[1]),
            ),
        ] {
            table.add_row([what.to_owned(), value]);
        }
        table
    }
}

impl Exchange {
    /// Powers both up, loads the extension into each, and opens the way between them; `open` may do
    /// something to the second one before, as long as its host has the window.
    ///
    /// # Errors
    /// What the driver or a wall says.
    pub fn start(
        kit: &Kit,
        parameters: &Parameters,
        open: impl FnOnce(&mut SpineCard, u32) -> Result<()>,
    ) -> Result<Exchange> {
        let (fabric, mut cards) = peers::two_cards(kit, parameters)?;
        let container = kit.container(Path::new(PEERING))?;
        let mut domain = 0;
        for card in &mut cards {
            domain = card.load(kit, &container, &kit.policy(WATCHDOG, 3)?)?.0;
            card.guards(&[Guard::ether_type(domain, 0, ETHER_TYPE)])?;
        }
        let [one, other] = &mut cards;
        open(other, domain)?;
        let block = one.window.block();
        let text = one.text();
        let region = one.region(domain, &container)?;
        peers::join(&fabric, cards.each_mut(), [EXCHANGES, EXCHANGES])?;
        Ok(Exchange {
            fabric,
            cards,
            domain,
            block,
            text,
            region,
        })
    }

    /// Has a card's handler send `arguments` to a handler of the other one.
    pub fn send(&self, card: usize, handler: u8, arguments: &[u32]) {
        self.send_to(card, self.domain << 8 | u32::from(handler), arguments);
    }

    /// The same to domain and handler as one word.
    pub fn send_to(&self, card: usize, to: u32, arguments: &[u32]) {
        send_order(&self.cards[card], to, arguments);
    }

    /// Lets time pass.
    pub fn pass(&self, nanoseconds: u64) {
        self.fabric.card(0).pass(nanoseconds);
    }

    /// A word of a card's peer page.
    pub fn word(&self, card: usize, word: PeerWord) -> u32 {
        self.cards[card].peer_word(word)
    }

    /// What a card's domain and its handlers did.
    pub fn counts(&self, card: usize) -> Counts {
        let at = self.block + DOMAIN_COUNTS + self.domain * counts::BYTES;
        let machine = self.cards[card].machine.lock();
        Counts(std::array::from_fn(|index| {
            machine.word(at + 4 * index as u32)
        }))
    }

    /// Words of the region of a card's domain.
    pub fn kept(&self, card: usize, count: u32) -> Vec<u32> {
        let machine = self.cards[card].machine.lock();
        (0..count)
            .map(|index| machine.word(self.region.start + 4 * index))
            .collect()
    }

    /// The host's accesses to both cards, and bytes of its memory that they have touched.
    pub fn asked(&self) -> [u64; 2] {
        peers::asked(&self.fabric)
    }

    /// Bytes that a card has written to the other one.
    pub fn written(&self, card: usize) -> u64 {
        self.fabric.traffic(card, Target::Card(1 - card)).bytes
    }

    /// Messages a second that the second card's handler gets while the first one's sends for ever.
    ///
    /// # Errors
    /// If it gets none.
    pub fn flood(&self, nanoseconds: u64) -> Result<f64> {
        self.send(1, handler::FLOODS, &[]);
        self.until(0)?;
        self.pass(200_000);
        let now = || self.counts(1).counters()[COUNTED];
        let before = now();
        self.pass(nanoseconds);
        let got = now().wrapping_sub(before);
        ensure!(got > 0, "no message came");
        Ok(f64::from(got) * 1e9 / nanoseconds as f64)
    }

    fn runs_extension(&self, card: usize) -> bool {
        self.text.contains(pc(&self.cards[card].machine.lock()))
    }

    /// The time at which a card's handler runs.
    fn until(&self, card: usize) -> Result<u64> {
        for _ in 0..LOOKS {
            if self.runs_extension(card) {
                return Ok(self.cards[card].machine.lock().now());
            }
            self.pass(LOOK_NS);
        }
        let at = pc(&self.cards[card].machine.lock());
        bail!("no handler of card {card} runs; its CPU A is at {at:#x}")
    }

    /// Microseconds from handler to handler, and until the answer's runs.
    fn once(&self) -> Result<(f64, f64)> {
        self.send(0, handler::ANSWERS, &[1, 2, 3, 4]);
        let sent = self.until(0)?;
        let there = self.until(1)?;
        while self.runs_extension(0) {
            self.pass(LOOK_NS);
        }
        let back = self.until(0)?;
        self.pass(100_000);
        let microseconds = |time: u64| (time - sent) as f64 / 1e3;
        Ok((microseconds(there), microseconds(back)))
    }
}

/// Sends a card such a frame as [`order`] makes.
pub(super) fn send_order(card: &SpineCard, to: u32, arguments: &[u32]) {
    let frame = order(card.nic.station(), to, arguments);
    let mut machine = card.machine.lock();
    let now = machine.now();
    machine.send_frame(now, frame);
}

/// A frame that has a card's handler send `arguments` to domain and handler, as one word, of the
/// other card.
pub(super) fn order(station: [u8; 6], to: u32, arguments: &[u32]) -> Vec<u8> {
    let mut frame = station.to_vec();
    frame.extend([2, 0, 0, 0, 0, 9]);
    frame.extend(ETHER_TYPE.to_be_bytes());
    frame.extend([0; 2]);
    for word in [to, arguments.len() as u32].iter().chain(arguments) {
        frame.extend(word.to_be_bytes());
    }
    frame.resize(frame.len().max(60), 0);
    frame
}

/// Counter of the messages that [`handler::COUNTS`] got.
const COUNTED: usize = 2;

/// Measures all of them.
///
/// # Errors
/// If a message does not come through.
pub fn measure(kit: &Kit, parameters: &Parameters) -> Result<Exchanged> {
    let exchange = Exchange::start(kit, parameters, |_, _| Ok(()))?;
    let before = exchange.asked();
    let [to_handler, to_handler_at_most, there_and_back] = one_at_a_time(SAMPLES, |_| {
        // Where the watchdog's looks fall is not the same each time.
        exchange.pass(LATER_NS);
        exchange.once()
    })?;
    let one_way = exchange.flood(WINDOW_NS)?;
    for card in &exchange.cards {
        ensure_fresh(&card.machine)?;
    }
    let after = exchange.asked();
    Ok(Exchanged {
        to_handler,
        to_handler_at_most,
        there_and_back,
        one_way,
        host: [after[0] - before[0], after[1] - before[1]],
    })
}
