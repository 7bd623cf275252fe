//! `cargo xtask extension churn`: loads and unloads of changing extensions at full wire load.
//!
//! Datagrams of one size go both ways as fast as wire and card carry them, each with its number.
//! Meanwhile extensions come and go: some with guards that no datagram meets, some whose handler
//! sees each datagram and leaves it to the host, one that never returns. A datagram may be lost
//! only where the card has counted a drop, and none may come twice, changed or out of turn.

use super::card::{Kit, ensure_fresh};
use super::frames::WANTED;
use super::loaded::{Loaded, LoadedError};
use anyhow::{Context, Result, ensure};
use host_interface::spine::{DOMAINS, HandlerCount};
use serde::Serialize;
use spine_linker::guard::Guard;
use spine_linker::load::{LoadError, Loader};
use spine_linker::policy::Policy;
use std::collections::VecDeque;
use testbed::paths::board_file;
use testbed::{conditions::Conditions, interrupt};
use tigon2_model::Board;
use tigon2_sim::timing::Parameters;
use tigon2_sim::workload::arrivals::{Arrivals, Pattern};
use tigon2_sim::workload::experiment::wire_limit;
use tigon2_sim::workload::testbench::{Load, Reading, Setup, Source, Testbench};

/// The timing profile.
const PROFILE: &str = "default";
/// Nanoseconds before the first load, and of a look without loads.
const WARM_UP: u64 = 3_000_000;
const LOOK: u64 = 30_000_000;
/// Nanoseconds between two loads.
const REST: u64 = 50_000;
/// Nanoseconds within which what the card has taken has arrived, and how often they pass at most
/// until the wire is empty.
const DRAIN: u64 = 20_000_000;
const DRAINS: u32 = 100;
/// Microseconds that a run may take, and runs in a row that may be cut off.
const WATCHDOG: u32 = 10;
const PATIENCE: u32 = 3;
/// Extensions that are loaded at a time.
const LOADED: usize = DOMAINS as usize - 1;

/// What came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Churned {
    /// Extensions that were loaded and unloaded.
    pub loads: u32,
    /// Bytes of a datagram.
    pub datagram: usize,
    /// The card's milliseconds.
    pub milliseconds: f64,
    /// Datagrams a second without loads: out of the host, into it.
    pub before: [f64; 2],
    /// The same meanwhile.
    pub during: [f64; 2],
    /// Datagrams that arrived, both ways.
    pub arrived: u64,
    /// Datagrams that the card dropped, and counted.
    pub dropped: u64,
    /// Runs of handlers.
    pub runs: u64,
    /// Runs that were cut off.
    pub overruns: u64,
    /// Kilobytes by which this process has grown in the second half of the loads.
    pub host_grown: i64,
}

/// The guard of a domain.
type OfDomain = fn(u32) -> Guard;

/// An extension that comes and goes, and the frames that it wants.
struct Guest {
    container: Vec<u8>,
    guard: OfDomain,
    policy: Policy,
}

fn guests(kit: &Kit) -> Result<Vec<Guest>> {
    let echo = "firmware/spine/extensions/echo";
    let all: [(&str, OfDomain); 5] = [
        (echo, |domain| Guard::ip_protocol(domain, 0, 1)),
        // Sees each datagram, none of which is for it, and leaves it to the host.
        (echo, |domain| Guard::any(domain, 0)),
        ("tests/extensions/empty", |domain| {
            Guard::ether_type(domain, 0, WANTED)
        }),
        // Cut off three times, then suspended: its datagrams are the host's.
        ("tests/extensions/infinite", |domain| Guard::any(domain, 7)),
        ("tests/extensions/panicking", |domain| {
            Guard::udp_port(domain, 0, 1)
        }),
    ];
    all.into_iter()
        .map(|(folder, guard)| {
            Ok(Guest {
                container: kit.container(folder.as_ref())?,
                guard,
                policy: kit.policy(WATCHDOG, PATIENCE)?,
            })
        })
        .collect()
}

/// Loads and unloads so often.
///
/// # Errors
/// If a datagram is lost that was not counted, or memory is, or if a CPU executes text that was
/// overwritten.
pub fn run(kit: &Kit, loads: u32, datagram: usize, mut told: impl FnMut(u32)) -> Result<Churned> {
    let guests = guests(kit)?;
    let text = board_file()?;
    let board = Board::from_toml(&text).context("the board file")?;
    let parameters = Parameters::from_toml(&text, PROFILE).context("the board file")?;
    let setup = Conditions::default().of(Setup::new(board, parameters, &kit.image));
    let mut testbench = Testbench::start(&setup)?;
    let rate = wire_limit(datagram);
    let arrivals = Arrivals::new(Pattern::Constant, rate, testbench.now(), setup.seed);
    let mut load = Load {
        send: Some(testbench.outbound(datagram)?),
        receive: Some(Source::new(testbench.inbound(datagram)?, arrivals)),
    };
    testbench.run(&mut load, WARM_UP)?;
    let first = testbench.reading();
    testbench.run(&mut load, LOOK)?;
    let begun = testbench.reading();
    let (mut runs, mut overruns, mut resident) = (0, 0, 0);
    let mut card = Loaded::new(&mut testbench, &mut load);
    let mut loader = Loader::find(&mut card)?;
    let free = loader.free();
    let mut there: VecDeque<(u32, &Guest)> = VecDeque::new();
    for number in 0..loads {
        interrupt::check()?;
        if there.len() == LOADED {
            let (oldest, _) = there.pop_front().context("one is there")?;
            let counts = loader.counts(&mut card, oldest)?;
            runs += u64::from(counts.of(HandlerCount::Runs));
            overruns += u64::from(counts.of(HandlerCount::Overruns));
            loader.unload(&mut card, oldest)?;
        }
        let guest = guests.get(number as usize % guests.len());
        let guest = guest.context("there are some")?;
        let domain = load_one(&mut loader, &mut card, guest, kit)?;
        there.push_back((domain, guest));
        let guards = there.iter().map(|(domain, guest)| (guest.guard)(*domain));
        let guards: Vec<Guard> = guards.collect();
        loader.set_guards(&mut card, &guards)?;
        card.pass(REST)?;
        if number == loads / 2 {
            resident = resident_kilobytes();
        }
        told(number + 1);
    }
    let ended = card.testbench.reading();
    for (domain, _) in there {
        loader.unload(&mut card, domain)?;
    }
    ensure!(loader.free() == free, "memory of the card is lost");
    let grown = resident_kilobytes() - resident;
    drain(&mut testbench)?;
    let (arrived, dropped) = account(&mut testbench, 0)?;
    Ok(Churned {
        loads,
        datagram,
        milliseconds: milliseconds(&testbench, &begun, &ended),
        before: rates(&testbench, &first, &begun),
        during: rates(&testbench, &begun, &ended),
        arrived,
        dropped,
        runs,
        overruns,
        host_grown: grown,
    })
}

fn load_one(
    loader: &mut Loader,
    card: &mut Loaded<'_>,
    guest: &Guest,
    kit: &Kit,
) -> Result<u32, LoadError<LoadedError>> {
    let loaded = loader.load(card, &guest.container, &guest.policy, &kit.build)?;
    Ok(loaded.0)
}

/// Lets the last frames arrive.
pub(super) fn drain(testbench: &mut Testbench) -> Result<()> {
    for _ in 0..DRAINS {
        let waits = testbench.machine().lock().pending_frames();
        testbench.run(&mut Load::default(), DRAIN)?;
        if waits == 0 {
            break;
        }
    }
    Ok(())
}

/// How many datagrams have arrived, and how many frames the card has dropped and counted; handlers
/// have kept so many.
pub(super) fn account(testbench: &mut Testbench, kept: u64) -> Result<(u64, u64)> {
    ensure_fresh(testbench.machine())?;
    let reading = testbench.reading();
    let of_wire = testbench.machine().lock().received();
    let by_firmware: u64 = testbench.nic().firmware_drops()?.total();
    let dropped = of_wire.dropped + by_firmware;
    let of_host = testbench.nic().statistics()?.driver.frames_received;
    ensure!(
        of_wire.accepted == of_host + by_firmware + kept,
        "the card took {} frames; the host got {of_host}, handlers {kept}, and {by_firmware} drops \
         were counted",
        of_wire.accepted,
    );
    ensure!(
        reading.dropped <= dropped,
        "{} datagrams are missing, {dropped} drops were counted",
        reading.dropped
    );
    Ok((reading.received + reading.sent, dropped))
}

fn milliseconds(testbench: &Testbench, from: &Reading, to: &Reading) -> f64 {
    let clock = testbench.machine().lock().clock();
    clock.nanoseconds(to.cycle - from.cycle) as f64 / 1e6
}

/// Datagrams a second out of the host, and into it.
fn rates(testbench: &Testbench, from: &Reading, to: &Reading) -> [f64; 2] {
    let seconds = milliseconds(testbench, from, to) / 1e3;
    let rate = |count: u64| (count as f64 / seconds).round();
    [rate(to.sent - from.sent), rate(to.received - from.received)]
}

/// Kilobytes of this process in memory.
fn resident_kilobytes() -> i64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let digits = line.and_then(|line| line.trim().split(' ').next());
    digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
}
