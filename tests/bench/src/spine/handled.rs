//! What CPU A does for a frame that goes to a handler, by what the handler asks for.

use super::card::{Kit, SpineCard};
use super::cost::{FRAME, until};
use super::frames::Kind;
use super::guarded::ROUTES;
use super::router;
use super::stores::pc;
use crate::simulated::tables::framed;
use anyhow::Result;
use comfy_table::Table;
use serde::Serialize;
use spine_linker::load::Guard;
use spine_linker::routes;
use std::ops::Range;
use testbed::interrupt;
use tigon_firmware::memory::shared::SPINE_RUNNING;
use tigon2_sim::Machine;
use tigon2_sim::timing::Parameters;
use tigon2_sim::timing::counts::Activity;

/// The extension that has a handler for each kind of effect.
pub(super) const EFFECTS: &str = "tests/extensions/effects";

/// What a frame for a handler costs.
#[derive(Clone, Debug, Serialize)]
pub struct Handled {
    /// What the handler asks for.
    pub handler: String,
    /// Cycles from the way in to where the run is over: the longest, as a line of instructions in SRAM
    /// need not be fetched each time.
    pub run: u64,
    /// Cycles from the way in to where CPU A has done with the frame.
    pub frame: u64,
}

/// A frame for a handler.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subject {
    /// What the handler asks for.
    name: &'static str,
    /// Its extension, and its number there.
    handler: (&'static str, u8),
    /// The frame, and its bytes.
    frame: (Kind, usize),
    /// Whether its text is to lie in SRAM: then the router's is in CPU A's pad, and as many others of its
    /// own as find room.
    is_in_sram: bool,
}

const fn subject(name: &'static str, handler: (&'static str, u8), frame: (Kind, usize)) -> Subject {
    Subject {
        name,
        handler,
        frame,
        is_in_sram: false,
    }
}

const NOTHING: &str = "tests/extensions/empty";
const ECHO: &str = "firmware/spine/extensions/echo";
/// A small frame, and a large one.
const SMALL: (Kind, usize) = (Kind::Typed(0), 60);
const LARGE: (Kind, usize) = (Kind::Typed(0), 1514);
/// A handler that does nothing.
pub(super) const EMPTY: Subject = subject("empty", (NOTHING, 0), SMALL);
/// The router's.
pub(super) const ROUTER: Subject = subject(
    "router: forward a packet",
    (router::FOLDER, 0),
    (Kind::Datagram(9), 60),
);
/// All of the table.
pub(super) const SUBJECTS: [Subject; 12] = [
    EMPTY,
    Subject {
        is_in_sram: true,
        ..subject("empty, in SRAM", (NOTHING, 0), SMALL)
    },
    subject("nothing, among 8 handlers", (EFFECTS, 0), SMALL),
    subject("1 count", (EFFECTS, 1), SMALL),
    subject("8 counts", (EFFECTS, 2), SMALL),
    subject("transmit, 60 bytes", (EFFECTS, 3), SMALL),
    subject("transmit, 1514 bytes", (EFFECTS, 3), LARGE),
    subject("1 patch and transmit", (EFFECTS, 4), SMALL),
    subject("8 patches and transmit", (EFFECTS, 5), SMALL),
    subject("leave it to the host", (EFFECTS, 6), SMALL),
    subject("echo: answer a ping", (ECHO, 0), (Kind::Ping, 60)),
    ROUTER,
];

/// What frames for these handlers cost.
pub(super) fn measure(
    kit: &Kit,
    parameters: &Parameters,
    subjects: &[Subject],
) -> Result<Vec<Handled>> {
    let waiting = kit.function("wait_for_next")?;
    let mut rows = Vec::new();
    for subject in subjects {
        interrupt::check()?;
        let (folder, handler) = subject.handler;
        let (kind, bytes) = subject.frame;
        let mut card = SpineCard::start(kit, Some(parameters.clone()))?;
        let policy = kit.policy(255, 0)?;
        if subject.is_in_sram {
            card.load(kit, &kit.container(router::FOLDER.as_ref())?, &policy)?;
        }
        let container = kit.container(folder.as_ref())?;
        let (mut domain, _) = card.load(kit, &container, &policy)?;
        while subject.is_in_sram && card.loader.text_in_pad(domain) != 0 {
            domain = card.load(kit, &container, &policy)?.0;
        }
        if folder == router::FOLDER {
            let table = routes::table(&router::routes(ROUTES, 0)?)?;
            routes::replace(&mut card.loader, &mut card.window, domain, &table)?;
        }
        card.guards(&[Guard::any(domain, handler)])?;
        let enter = kit.symbol("spine_enter")?;
        let (mut longest, mut frames) = (0, Vec::new());
        for number in 0..9 {
            let question = kind.frame(card.nic.station(), number, bytes);
            let machine = &mut card.machine.lock();
            let Range {
                start: begins,
                end: over,
            } = run(machine, enter, question)?;
            let before = idle_cycles(machine);
            let mut waits = 0;
            for _ in over..begins + FRAME {
                machine.run(1);
                waits += u64::from(waiting.contains(&pc(machine)));
            }
            longest = longest.max(over - begins);
            frames.push(FRAME - (idle_cycles(machine) - before) - waits);
        }
        frames.sort_unstable();
        rows.push(Handled {
            handler: subject.name.to_owned(),
            run: longest,
            frame: frames[frames.len() / 2],
        });
    }
    Ok(rows)
}

/// Sends a frame to a handler; returns the cycles from the way in, which begins at `enter`, to where the
/// run is over.
pub(super) fn run(machine: &mut Machine, enter: u32, frame: Vec<u8>) -> Result<Range<u64>> {
    machine.run(FRAME);
    machine.send_frame(0, frame);
    let begins = until(machine, |machine| pc(machine) == enter)?;
    let over = until(machine, |machine| {
        machine.word(SPINE_RUNNING.address()) == 0
    })?;
    Ok(begins..over)
}

/// Cycles in which CPU A has idled.
fn idle_cycles(machine: &Machine) -> u64 {
    let timed = machine.timing();
    timed.map_or(0, |timed| {
        timed.pipelines[0].counts.tally(Activity::Idle).total()
    })
}

/// The table of all.
pub(super) fn table(rows: &[Handled]) -> Table {
    let mut table = framed(&["handler", "cycles of the run", "of the frame"]);
    for row in rows {
        table.add_row([
            row.handler.clone(),
            row.run.to_string(),
            row.frame.to_string(),
        ]);
    }
    table
}
