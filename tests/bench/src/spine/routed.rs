//! Where the cycles of a routed packet go: an account of CPU A of the card that it comes to, while
//! more of the smallest packets come than it forwards.

use super::account::{INTERVAL, Samples, Share};
use super::card::{Kit, SpineCard};
use super::guarded::ROUTES;
use super::peers::Pair;
use super::router;
use crate::functions::EXTENSION;
use crate::simulated::tables::framed;
use anyhow::{Result, bail, ensure};
use comfy_table::Table;
use host_interface::spine::BlockWord;
use host_interface::spine::HandlerCount;
use serde::Serialize;
use spine_linker::routes;
use tigon2_model::is_flow_control;
use tigon2_sim::timing::Parameters;

/// Bytes of a packet's frame without CRC.
const BYTES: usize = 60;
/// Nanoseconds between two packets: more of them than any way takes.
const PERIOD_NS: u64 = 9_000;
/// How long before it is due a packet is given to the simulator, and until the account begins.
const AHEAD_NS: u64 = 100_000;
const BEGIN_NS: u64 = 1_000_000;

/// What a packet's cycles are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Part {
    /// The router's own text.
    Handler,
    /// What it calls in the runtime.
    Calls,
    /// The search for frames, the guards, the ring's indices.
    Receive,
    /// The way to the handler, its effects, and the counts.
    HandOver,
    /// The copy into the pool.
    Copy,
    /// The descriptors to the other card.
    Peer,
    /// Everything else, and waiting.
    Rest,
}

impl Part {
    /// All of them.
    pub const ALL: [Part; 7] = [
        Part::Handler,
        Part::Calls,
        Part::Receive,
        Part::HandOver,
        Part::Copy,
        Part::Peer,
        Part::Rest,
    ];

    /// As the page says it.
    pub const fn text(self) -> &'static str {
        match self {
            Part::Handler => "the handler's own text",
            Part::Calls => "its calls of the runtime",
            Part::Receive => "the search for the frame, guards, indices",
            Part::HandOver => "the way to the handler and back, effects, counts",
            Part::Copy => "the copy into the pool",
            Part::Peer => "three descriptors to the other card",
            Part::Rest => "other events, and waiting",
        }
    }

    /// That of a function of the firmware.
    fn of(function: &str) -> Part {
        let is_of = |names: &[&str]| names.iter().any(|name| function.contains(name));
        if function == EXTENSION || is_of(&["spine::builtin::"]) {
            Part::Handler
        } else if is_of(&["start::spine::"]) {
            Part::Calls
        } else if is_of(&["supply::copy"]) {
            Part::Copy
        } else if is_of(&["spine::peer::"]) {
            Part::Peer
        } else if is_of(&["spine::run::", "spine_enter"]) {
            Part::HandOver
        } else if is_of(&["complete_", "guard"]) {
            Part::Receive
        } else {
            Part::Rest
        }
    }
}

/// The account of a way.
#[derive(Clone, Debug, Serialize)]
pub struct Account {
    /// Packets a second.
    pub rate: f64,
    /// Cycles for a packet, by [`Part`].
    pub parts: Vec<(Part, f64)>,
    /// By function.
    pub functions: Vec<Share>,
}

impl Account {
    fn new(shares: Vec<Share>, packets: u64, nanoseconds: u64) -> Account {
        let sum = |part| {
            let of_part = shares
                .iter()
                .filter(|share| Part::of(&share.function) == part);
            of_part.fold(0.0, |sum, share| sum + share.cycles)
        };
        Account {
            rate: packets as f64 * 1e9 / nanoseconds as f64,
            parts: Part::ALL.map(|part| (part, sum(part))).to_vec(),
            functions: shares,
        }
    }

    /// All cycles of a packet.
    pub fn cycles(&self) -> f64 {
        self.parts.iter().map(|(_, cycles)| cycles).sum()
    }
}

/// Out of the same port, to the other card, and out of the same port by the router that is compiled
/// into the firmware.
///
/// # Errors
/// What the driver or a wall says.
pub fn measure(kit: &Kit, parameters: &Parameters, nanoseconds: u64) -> Result<[Account; 3]> {
    let pair = Pair::start(kit, ROUTES, parameters)?;
    let [one, other] = &pair.cards;
    Ok([
        same_port(kit, parameters, nanoseconds)?,
        account(kit, &[one, other], nanoseconds)?,
        built_in(parameters, nanoseconds)?,
    ])
}

/// Out of the same port.
///
/// # Errors
/// As [`measure`].
pub fn same_port(kit: &Kit, parameters: &Parameters, nanoseconds: u64) -> Result<Account> {
    let mut card = SpineCard::start(kit, Some(parameters.clone()))?;
    load(kit, &mut card)?;
    account(kit, &[&card], nanoseconds)
}

fn load(kit: &Kit, card: &mut SpineCard) -> Result<u32> {
    let table = routes::table(&router::routes(ROUTES, 0)?)?;
    router::load(kit, card, &table)
}

/// Without an extension: that has the table, and the guard is its own, but it gets no frame.
fn built_in(parameters: &Parameters, nanoseconds: u64) -> Result<Account> {
    let kit = Kit::build_with_router()?;
    let mut card = SpineCard::start(&kit, Some(parameters.clone()))?;
    let domain = load(&kit, &mut card)?;
    let region = card.region(domain, &kit.container(router::FOLDER.as_ref())?)?;
    let routes = card.window.block() + BlockWord::Argument as u32;
    card.machine.lock().set_word(routes, region.start);
    let account = account(&kit, &[&card], nanoseconds)?;
    let runs = card.counts(domain).of(HandlerCount::Runs);
    ensure!(runs == 0, "the extension has run");
    Ok(account)
}

/// The account of the first of these cards; packets leave by the last one.
fn account(kit: &Kit, cards: &[&SpineCard], nanoseconds: u64) -> Result<Account> {
    let ([card, ..], [.., last]) = (cards, cards) else {
        bail!("no card");
    };
    let mut samples = Samples::new(kit, card)?;
    let station = card.nic.station();
    let start = card.machine.lock().now();
    let (begin, end) = (start + BEGIN_NS, start + BEGIN_NS + nanoseconds);
    let (mut due, mut number, mut packets) = (start, 0u16, 0);
    loop {
        let now = {
            let mut machine = card.machine.lock();
            let now = machine.now();
            while due < now + AHEAD_NS {
                machine.send_frame(due, router::packet(station, BYTES, number));
                number = number.wrapping_add(1);
                due += PERIOD_NS;
            }
            now
        };
        if now >= end {
            break;
        }
        let mut machine = last.machine.lock();
        while let Some(frame) = machine.take_frame() {
            let is_packet = !is_flow_control(&frame.bytes);
            packets += u64::from(is_packet && now >= begin);
        }
        drop(machine);
        card.machine.pass(INTERVAL);
        if now >= begin {
            samples.take(card);
        }
    }
    Ok(Account::new(samples.shares(packets), packets, nanoseconds))
}

/// The accounts side by side.
pub fn table(accounts: &[Account; 3]) -> Table {
    let mut table = framed(&[
        "cycles of CPU A for a packet",
        "same port",
        "to the peer",
        "same port, compiled in",
    ]);
    for (n, part) in Part::ALL.iter().enumerate() {
        let cycles = accounts
            .each_ref()
            .map(|account| format!("{:.0}", account.parts[n].1));
        table.add_row(std::iter::once(part.text().to_owned()).chain(cycles));
    }
    let all = accounts
        .each_ref()
        .map(|account| format!("{:.0}", account.cycles()));
    table.add_row(std::iter::once("all".to_owned()).chain(all));
    table
}
