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
    /// Cycles from the way in to where the run is over.
    pub run: u64,
    /// Cycles from the way in to where CPU A has done with the frame.
    pub frame: u64,
}

/// A frame for a handler: what the handler asks for, its extension, its number, the frame.
pub(super) type Subject = (&'static str, &'static str, u8, Kind, usize);

const TYPED: Kind = Kind::Typed(0);
const ECHO: &str = "firmware/spine/extensions/echo";
/// A handler that does nothing.
pub(super) const EMPTY: Subject = ("empty", "tests/extensions/empty", 0, TYPED, 60);
/// The router's.
pub(super) const ROUTER: Subject = (
    "router: forward a packet",
    router::FOLDER,
    0,
    Kind::Datagram(9),
    60,
);
/// All of the table.
pub(super) const SUBJECTS: [Subject; 11] = [
    EMPTY,
    ("nothing, among 8 handlers", EFFECTS, 0, TYPED, 60),
    ("1 count", EFFECTS, 1, TYPED, 60),
    ("8 counts", EFFECTS, 2, TYPED, 60),
    ("transmit, 60 bytes", EFFECTS, 3, TYPED, 60),
    ("transmit, 1514 bytes", EFFECTS, 3, TYPED, 1514),
    ("1 patch and transmit", EFFECTS, 4, TYPED, 60),
    ("8 patches and transmit", EFFECTS, 5, TYPED, 60),
    ("leave it to the host", EFFECTS, 6, TYPED, 60),
    ("echo: answer a ping", ECHO, 0, Kind::Ping, 60),
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
    for (name, folder, handler, kind, bytes) in subjects.iter().copied() {
        interrupt::check()?;
        let mut card = SpineCard::start(kit, Some(parameters.clone()))?;
        let container = kit.container(folder.as_ref())?;
        let policy = kit.policy(255, 0)?;
        let (domain, _) = card.load(kit, &container, &policy)?;
        if folder == router::FOLDER {
            let table = routes::table(&router::routes(ROUTES, 0)?)?;
            routes::replace(&mut card.loader, &mut card.window, domain, &table)?;
        }
        card.guards(&[Guard::any(domain, handler)])?;
        let enter = kit.symbol("spine_enter")?;
        let (mut run, mut frame) = (Vec::new(), Vec::new());
        for number in 0..9 {
            let question = kind.frame(card.nic.station(), number, bytes);
            let machine = &mut card.machine.lock();
            machine.run(FRAME);
            machine.send_frame(0, question);
            let begins = until(machine, |machine| pc(machine) == enter)?;
            let over = until(machine, |machine| {
                machine.word(SPINE_RUNNING.address()) == 0
            })?;
            let before = idle_cycles(machine);
            let mut waits = 0;
            for _ in over..begins + FRAME {
                machine.run(1);
                waits += u64::from(waiting.contains(&pc(machine)));
            }
            run.push(over - begins);
            frame.push(FRAME - (idle_cycles(machine) - before) - waits);
        }
        run.sort_unstable();
        frame.sort_unstable();
        rows.push(Handled {
            handler: name.to_owned(),
            run: run[run.len() / 2],
            frame: frame[frame.len() / 2],
        });
    }
    Ok(rows)
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
