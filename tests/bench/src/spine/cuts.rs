//! `cargo xtask extension cut`: every handler, and every `init`, cut off everywhere.
//!
//! SPINE paper, section 3.3.2: a handler may be cut off at any instruction. Here it is: for each
//! frame a run is cut off behind its first instruction, the next one behind its second, until a
//! run ends by itself. The cut is what CPU B does: CPU A is halted where it stands, in the
//! extension's text or in an import, and its program counter set to the way out.
//!
//! | what must hold | how it is looked at |
//! | --- | --- |
//! | a run that was cut off has changed nothing but its domain's region | every store of CPU A between the way in and the way out, see [`super::stores`] |
//! | nothing that it asked for has happened | the domain's counts, the wire |
//! | its frame is the host's, in its place among the others | the frames that the host gets |
//! | nothing has gone to another card, and what came from it is counted | that card's counts, its wire, the credits of both |
//! | no frame of the host's is lost, doubled or changed | the same, in both directions |
//! | every buffer and credit is back | the rings turn round many times, and stand empty at the end; the ledger of kept frames is empty, all slots of the pool are free |

use super::card::Kit;
use super::cutter::{Bench, ENDPOINT, init};
use super::exchange::{ETHER_TYPE as ORDERS, handler};
use super::frames::{Kind, WANTED};
use super::router::IPV4;
use crate::simulated::tables::framed;
use anyhow::{Context, Result, ensure};
use comfy_table::Table;
use serde::Serialize;
use spine_linker::load::Guard;
use spine_linker::video;
use std::collections::BTreeSet;
use std::path::PathBuf;
use testbed::interrupt;

/// Instructions behind which a handler that never returns is cut off for the last time: the
/// watchdog's time is not much longer.
const ENDLESS: u32 = 400;
/// The lengths of frames that rounds begin with, and by how much the next round's are longer.
const LENGTH: usize = 60;
const LONGER: usize = 97;
const LONGEST: usize = 1514;

/// What makes a handler run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A frame of this kind.
    Frame(Kind),
    /// A piece of a video's line.
    Piece(Line),
    /// A message that places a video's window.
    Placement,
    /// A message of an application's.
    Message(Call),
    /// What has to do with another card on the bus.
    Peer(PeerCause),
}

/// What is in a message of an application's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// These arguments.
    Words(&'static [u32]),
    /// The address of a handler, which is to get a message by the wire.
    ToWire,
    /// Data.
    Bulk,
}

/// Why a handler runs that has to do with another card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerCause {
    /// A frame has the handler send a message to the other card.
    SendsMessage,
    /// A message of the other card's has the handler run.
    GetsMessage,
    /// A packet is forwarded to the other card.
    ForwardsPacket,
}

/// Which line a piece is of: the handler finds where it begins in another way for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// That of the piece before.
    Same,
    /// The one behind it.
    Next,
    /// That of the piece before, and a placement takes effect in front of it.
    Placed,
}

/// Frames that a domain may keep.
const HOARD: usize = 4;

/// A handler to cut off.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The extension's folder in the checkout.
    pub folder: PathBuf,
    /// The handler's number.
    pub handler: u8,
    /// What makes it run.
    pub cause: Cause,
    /// It never returns.
    pub endless: bool,
    /// Runs before it does the same each time.
    before: usize,
}

impl Subject {
    fn new(folder: &str, handler: u8, kind: Kind, endless: bool) -> Subject {
        Subject {
            folder: PathBuf::from(folder),
            handler,
            cause: Cause::Frame(kind),
            endless,
            before: 0,
        }
    }

    fn of_video(handler: u8, cause: Cause) -> Subject {
        Subject {
            folder: PathBuf::from(super::video::FOLDER),
            handler,
            cause,
            endless: false,
            // From the first piece on a picture is under way, so a placement waits for the next one.
            before: matches!(cause, Cause::Piece(_)).into(),
        }
    }

    /// The handler that keeps what it gets, when it has all that a domain may keep.
    fn of_full_hoard() -> Subject {
        Subject {
            before: HOARD,
            ..Subject::new("tests/extensions/keeping", 2, Kind::Typed(0), false)
        }
    }

    fn of_messages(handler: u8, call: Call, endless: bool) -> Subject {
        Subject {
            folder: PathBuf::from("tests/extensions/messages"),
            handler,
            cause: Cause::Message(call),
            endless,
            before: 0,
        }
    }

    fn of_peers(handler: u8, cause: PeerCause, endless: bool) -> Subject {
        Subject {
            folder: PathBuf::from(match cause {
                PeerCause::ForwardsPacket => super::router::FOLDER,
                _ => super::exchange::PEERING,
            }),
            handler,
            cause: Cause::Peer(cause),
            endless,
            before: 0,
        }
    }

    pub(super) fn guard(&self, domain: u32) -> Option<Guard> {
        let handler = self.handler;
        match self.cause {
            Cause::Frame(Kind::Ping) => Some(Guard::ip_protocol(domain, handler, 1)),
            Cause::Frame(Kind::Datagram(port)) => Some(Guard::udp_port(domain, handler, port)),
            Cause::Frame(Kind::Typed(_)) => Some(Guard::ether_type(domain, handler, WANTED)),
            Cause::Piece(_) => Some(Guard::ether_type(domain, handler, video::ETHER_TYPE)),
            Cause::Peer(PeerCause::SendsMessage) => {
                Some(Guard::ether_type(domain, handler, ORDERS))
            }
            Cause::Peer(PeerCause::ForwardsPacket) => {
                Some(Guard::ether_type(domain, handler, IPV4))
            }
            Cause::Placement | Cause::Message(_) | Cause::Peer(PeerCause::GetsMessage) => None,
        }
    }

    /// Whether another card or an application beside this one hears of its runs.
    fn is_seen_beside(&self) -> bool {
        use handler::{ANSWERS, FLOODS, TO_APPLICATION};
        match self.cause {
            Cause::Peer(PeerCause::SendsMessage | PeerCause::ForwardsPacket) => true,
            Cause::Peer(PeerCause::GetsMessage) => {
                [ANSWERS, FLOODS, TO_APPLICATION].contains(&self.handler)
            }
            _ => false,
        }
    }

    /// Its name in tables.
    fn name(&self) -> String {
        let folder = self.folder.file_name().unwrap_or_default();
        format!("{} {}", folder.to_string_lossy(), self.handler)
    }
}

/// All handlers of all extensions.
pub fn subjects() -> Vec<Subject> {
    let echo = "firmware/spine/extensions/echo";
    vec![
        Subject::new(echo, 0, Kind::Ping, false),
        Subject::new(echo, 0, Kind::Datagram(7), false),
        Subject::new(echo, 0, Kind::Typed(0), false),
        // Without a table; with one its packets go further.
        Subject::new(super::router::FOLDER, 0, Kind::Datagram(9), false),
        Subject::new("tests/extensions/empty", 0, Kind::Typed(0), false),
        Subject::new("tests/extensions/infinite", 6, Kind::Typed(0), false),
        Subject::new("tests/extensions/infinite", 7, Kind::Typed(0), true),
        Subject::new("tests/extensions/panicking", 0, Kind::Typed(0), false),
        Subject::new("tests/extensions/panicking", 0, Kind::Typed(20), false),
        Subject::new("tests/extensions/importing", 0, Kind::Typed(0), true),
        Subject::new("tests/extensions/lasting", 0, Kind::Typed(0), true),
        Subject::new("tests/extensions/effects", 0, Kind::Typed(0), false),
        Subject::new("tests/extensions/effects", 1, Kind::Typed(0), false),
        Subject::new("tests/extensions/effects", 2, Kind::Typed(0), false),
        Subject::new("tests/extensions/effects", 3, Kind::Typed(0), false),
        Subject::new("tests/extensions/effects", 4, Kind::Typed(0), false),
        Subject::new("tests/extensions/effects", 5, Kind::Typed(0), false),
        Subject::new("tests/extensions/effects", 6, Kind::Typed(0), false),
        Subject::new("tests/extensions/effects", 7, Kind::Typed(0), false),
        Subject::new("tests/extensions/numbers", 0, Kind::Typed(0), false),
        Subject::new("tests/extensions/keeping", 0, Kind::Typed(0), false),
        Subject::new("tests/extensions/keeping", 1, Kind::Typed(0), false),
        Subject::of_full_hoard(),
        Subject::new("tests/extensions/keeping", 3, Kind::Typed(0), false),
        Subject::new("tests/extensions/keeping", 4, Kind::Typed(0), false),
        Subject::new("tests/extensions/keeping", 7, Kind::Typed(0), true),
        Subject::of_messages(0, Call::Words(&[1, 2, 3]), false),
        Subject::of_messages(1, Call::Words(&[1, ENDPOINT]), false),
        Subject::of_messages(2, Call::ToWire, false),
        Subject::of_messages(4, Call::Bulk, false),
        Subject::of_messages(5, Call::Words(&[]), true),
        Subject::of_messages(7, Call::Words(&[]), false),
        Subject::of_video(video::LINE, Cause::Piece(Line::Same)),
        Subject::of_video(video::LINE, Cause::Piece(Line::Next)),
        Subject::of_video(video::LINE, Cause::Piece(Line::Placed)),
        Subject::of_video(video::PLACE, Cause::Placement),
        Subject::of_peers(0, PeerCause::ForwardsPacket, false),
        Subject::of_peers(0, PeerCause::SendsMessage, false),
        Subject::of_peers(handler::KEEPS, PeerCause::GetsMessage, false),
        Subject::of_peers(handler::ANSWERS, PeerCause::GetsMessage, false),
        Subject::of_peers(handler::TO_APPLICATION, PeerCause::GetsMessage, false),
        Subject::of_peers(handler::FLOODS, PeerCause::GetsMessage, false),
        Subject::of_peers(handler::COUNTS, PeerCause::GetsMessage, false),
        Subject::of_peers(handler::NEVER_RETURNS, PeerCause::GetsMessage, true),
    ]
}

/// What became of a handler's cuts.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Row {
    /// The extension and the handler's number, or `init`.
    pub handler: String,
    /// Cuts in all.
    pub cuts: u64,
    /// Of them in the extension's own text; the others in the runtime.
    pub in_text: u64,
    /// Runs that a cut in the runtime was too late for.
    pub too_late: u64,
    /// Stores of CPU A that were looked at.
    pub stores: u64,
    /// Frames of the host's that went past, in both directions.
    pub plain: u64,
}

/// The table of some rows.
pub fn table(rows: &[Row]) -> Table {
    let mut table = framed(&[
        "handler",
        "cuts",
        "in its text",
        "too late",
        "stores looked at",
        "frames beside",
    ]);
    for row in rows {
        let numbers = [row.cuts, row.in_text, row.too_late, row.stores, row.plain];
        let cells = numbers.map(|number| number.to_string());
        table.add_row(std::iter::once(row.handler.clone()).chain(cells));
    }
    table
}

/// Cuts all handlers off until there were `wanted` cuts, each handler at every instruction of its
/// run at least once, and then each `init`.
///
/// # Errors
/// What does not hold, and at which cut.
pub fn run(kit: &Kit, wanted: u64, mut told: impl FnMut(u64)) -> Result<Vec<Row>> {
    let subjects = subjects();
    let mut rows: Vec<Row> = Vec::new();
    for subject in &subjects {
        rows.push(Row {
            handler: subject.name(),
            ..Row::default()
        });
    }
    let mut total = 0;
    let mut round = 0;
    while total < wanted {
        for (subject, row) in subjects.iter().zip(&mut rows) {
            interrupt::check()?;
            let before = row.cuts;
            everywhere(kit, subject, round, row)
                .with_context(|| format!("{}, round {round}", row.handler))?;
            total += row.cuts - before;
            told(total);
        }
        round += 1;
    }
    let folders: BTreeSet<_> = subjects.iter().map(|one| &one.folder).collect();
    for folder in folders {
        interrupt::check()?;
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let row = init(kit, folder).with_context(|| format!("init of {name}"))?;
        rows.push(Row {
            handler: format!("{name} init"),
            ..row
        });
    }
    Ok(rows)
}

/// Cuts a handler's runs off at every instruction of a run; each round has other frames.
fn everywhere(kit: &Kit, subject: &Subject, round: usize, row: &mut Row) -> Result<()> {
    let bytes = LENGTH + round * LONGER % (LONGEST - LENGTH);
    let mut bench = Bench::start(kit, Some(subject), round as u32 + 1)?;
    bench.load(kit, subject)?;
    let mut once =
        |instructions, row: &mut Row| bench.once(subject, (round as u16, bytes), instructions, row);
    for _ in 0..subject.before {
        once(None, row)?;
    }
    // A run that is left alone.
    let whole = once(None, row)?;
    ensure!(
        whole.is_seen_beside() == subject.is_seen_beside(),
        "a run that is left alone: {whole:?}"
    );
    let mut instructions = 0;
    loop {
        let what = || format!("{bytes} bytes, cut behind instruction {instructions}");
        let done = once(Some(instructions), row).with_context(what)?;
        done.judge(&whole, row).with_context(what)?;
        instructions += 1;
        if !done.was_cut || (subject.endless && instructions == ENDLESS) {
            break;
        }
    }
    bench.end()
}
