//! Messages: how long one takes, and how many pass.
//!
//! | figure | from | to |
//! | --- | --- | --- |
//! | to the handler | the doorbell's write has reached the card | CPU A is at the handler's first instruction |
//! | there and back | the same | the answer is in the ring of the application |
//! | one way | | messages a second to a handler that consumes them |
//! | both ways | | messages a second that are answered |
//!
//! [`way`] lists which functions one goes through.

pub mod way;

use super::card::{Kit, SpineCard};
use super::cost::{CLOCK, until};
use super::stores::pc;
use crate::simulated::tables::{at_most, framed};
use anyhow::{Context, Result, ensure};
use comfy_table::Table;
use host_driver::dma::DmaMemory;
use host_interface::spine::HandlerCount;
use host_interface::spine::rings::{ENDPOINTS, HeaderWord, from_card};
use serde::Serialize;
use spine_linker::endpoint::{Endpoint, HandlerOf, RingSizes};
use std::path::Path;
use tigon2_sim::timing::Parameters;

/// The extension that answers messages.
pub(super) const MESSAGES: &str = "tests/extensions/messages";
/// Its handlers.
const ANSWERS: u8 = 0;
const CONSUMES: u8 = 7;
/// Rings of the endpoints.
const SIZES: RingSizes = RingSizes { slots: 32, bulk: 0 };
/// Microseconds that rates are measured over.
const WINDOW: f64 = 4000.0;
/// Messages one at a time, and the cycles from one look of the watchdog to the next, over which
/// they are spread.
const PHASES: u64 = 22;
const PERIOD: u64 = 880;
/// Cycles after which the applications look at their rings.
const LOOK: u64 = 440;

/// The figures.
#[derive(Clone, Debug, Serialize)]
pub struct Messages {
    /// Microseconds from the doorbell to the handler: the median.
    pub to_handler: f64,
    /// The longest of them, with a look of the watchdog where it is worst.
    pub to_handler_at_most: f64,
    /// The medians of four and of eight applications that take turns.
    pub to_handler_in_turn: [f64; 2],
    /// Microseconds from the doorbell to the answer in the application's memory: the median.
    pub there_and_back: f64,
    /// Small messages a second of one application to a handler.
    pub one_way: f64,
    /// The same of 64 endpoints together.
    pub one_way_of_all: f64,
    /// Small messages a second that are answered.
    pub answered: f64,
}

impl Messages {
    /// Of figures and rates.
    pub(super) fn table(&self) -> Table {
        let mut table = framed(&["small messages", "measured"]);
        for (what, value) in [
            ("doorbell to handler", format!("{:.1} us", self.to_handler)),
            (
                "doorbell to handler, at most",
                format!("{} us", at_most(self.to_handler_at_most)),
            ),
            (
                "of four that take turns",
                format!("{:.1} us", self.to_handler_in_turn[0]),
            ),
            (
                "of eight that take turns",
                format!("{:.1} us", self.to_handler_in_turn[1]),
            ),
            ("there and back", format!("{:.1} us", self.there_and_back)),
            ("one way", format!("{:.0} /s", self.one_way)),
            (
                "one way, 64 endpoints",
                format!("{:.0} /s", self.one_way_of_all),
            ),
            ("answered", format!("{:.0} /s", self.answered)),
        ] {
            table.add_row([what.to_owned(), value]);
        }
        table
    }
}

/// An answer that an application waits for.
struct Answer {
    memory: DmaMemory,
    /// Where its serial is, and which it is.
    at: usize,
    serial: u32,
}

impl Answer {
    fn is_there(&self) -> bool {
        self.memory.read_word(self.at) == Ok(self.serial)
    }
}

struct Ends {
    card: SpineCard,
    domain: u32,
    open: Vec<Endpoint<DmaMemory>>,
}

impl Ends {
    fn open(kit: &Kit, parameters: &Parameters, count: u32) -> Result<Ends> {
        let mut card = SpineCard::start(kit, Some(parameters.clone()))?;
        let (domain, _) = card.load(
            kit,
            &kit.container(Path::new(MESSAGES))?,
            &kit.policy(10, 3)?,
        )?;
        let mut open = Vec::new();
        for number in 0..count {
            open.push(card.open_endpoint(number, SIZES, domain)?);
        }
        Ok(Ends { card, domain, open })
    }

    fn put(&mut self, number: usize, handler: u8) -> Result<bool> {
        let to = HandlerOf {
            domain: self.domain,
            handler,
        };
        let endpoint = self.open.get_mut(number).context("no such endpoint")?;
        Ok(endpoint.put(to, &[1, 2, 3, 4]).is_ok())
    }

    fn ring(&mut self, number: usize) -> Result<()> {
        let endpoint = self.open.get(number).context("no such endpoint")?;
        self.card.ring_endpoint(number as u32, endpoint)
    }

    /// Puts a message that is answered into an endpoint's ring.
    fn ask(&mut self, number: usize) -> Result<Answer> {
        ensure!(self.put(number, ANSWERS)?, "the ring is full");
        let endpoint = self.open.get(number).context("no such endpoint")?;
        let taken = endpoint.taken();
        let slot = from_card(SIZES.slots) + (taken & (SIZES.slots - 1)) * 256;
        Ok(Answer {
            memory: endpoint.memory().clone(),
            at: (slot + HeaderWord::Serial as u32) as usize,
            serial: taken.wrapping_add(1),
        })
    }

    /// Microseconds of an endpoint's message to the handler, and until the answer is there.
    fn once(&mut self, number: usize) -> Result<(f64, f64)> {
        let text = self.card.text();
        let answer = self.ask(number)?;
        let from = self.card.machine.lock().cycle();
        self.ring(number)?;
        let mut machine = self.card.machine.lock();
        let there = until(&mut machine, |machine| text.contains(pc(machine)))?;
        let back = until(&mut machine, |_| answer.is_there())?;
        drop(machine);
        let endpoint = self.open.get_mut(number).context("no such endpoint")?;
        ensure!(endpoint.take()?.is_some(), "no answer");
        self.ring(number)?;
        self.card.machine.lock().run(20_000);
        Ok(((there - from) as f64 / CLOCK, (back - from) as f64 / CLOCK))
    }

    /// Messages a second that run a handler.
    fn rate(&mut self, handler: u8) -> Result<f64> {
        let mut begin = (0, 0);
        let mut now = (0, 0);
        let mut time = 0.0;
        while time < WINDOW {
            for number in 0..self.open.len() {
                let mut any = false;
                while self.put(number, handler)? {
                    any = true;
                }
                let endpoint = self.open.get_mut(number).context("an endpoint")?;
                while endpoint.take()?.is_some() {
                    any = true;
                }
                if any {
                    self.ring(number)?;
                }
            }
            self.card.machine.lock().run(LOOK);
            let runs = self.card.counts(self.domain).of(HandlerCount::Runs);
            now = (runs, self.card.machine.lock().cycle());
            if begin.1 == 0 {
                begin = now;
            }
            time = (now.1 - begin.1) as f64 / CLOCK;
        }
        let runs = now.0.wrapping_sub(begin.0);
        Ok(f64::from(runs) / time * 1e6)
    }
}

/// Has `once` send so many messages, which returns the times to the handler and until the answer is
/// there. Returns the median of the former, the longest, and the median of the latter.
///
/// # Errors
/// If a message does not come through.
pub(super) fn one_at_a_time(
    count: u64,
    mut once: impl FnMut(u64) -> Result<(f64, f64)>,
) -> Result<[f64; 3]> {
    let times: Result<Vec<_>> = (0..count).map(&mut once).collect();
    let (mut there, mut back): (Vec<_>, Vec<_>) = times?.into_iter().unzip();
    there.sort_by(f64::total_cmp);
    back.sort_by(f64::total_cmp);
    let median = |sorted: &[f64]| sorted.get(sorted.len() / 2).copied();
    let medians = median(&there).zip(median(&back)).zip(there.last());
    let ((there, back), longest) = medians.context("no message")?;
    Ok([there, *longest, back])
}

/// Measures all of them.
///
/// # Errors
/// If a message does not come through.
pub fn measure(kit: &Kit, parameters: &Parameters) -> Result<Messages> {
    let turns = |ends: &mut Ends| {
        one_at_a_time(PHASES, |turn| {
            // Where the watchdog's looks fall is not the same each time.
            ends.card.machine.lock().run(turn * PERIOD / PHASES);
            let number = turn as usize % ends.open.len();
            ends.once(number)
        })
    };
    let mut ends = Ends::open(kit, parameters, 1)?;
    let [to_handler, to_handler_at_most, there_and_back] = turns(&mut ends)?;
    let [of_four, ..] = turns(&mut Ends::open(kit, parameters, 4)?)?;
    let [of_eight, ..] = turns(&mut Ends::open(kit, parameters, 8)?)?;
    let one_way = ends.rate(CONSUMES)?;
    let answered = Ends::open(kit, parameters, 1)?.rate(ANSWERS)?;
    let one_way_of_all = Ends::open(kit, parameters, ENDPOINTS)?.rate(CONSUMES)?;
    Ok(Messages {
        to_handler,
        to_handler_at_most,
        to_handler_in_turn: [of_four, of_eight],
        there_and_back,
        one_way,
        one_way_of_all,
        answered,
    })
}
