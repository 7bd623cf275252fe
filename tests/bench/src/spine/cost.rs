//! `cargo xtask bench --spine`: what extensions cost, in the card's own cycles.
//!
//! | table | what |
//! | --- | --- |
//! | nothing slower | the paper's experiments with `parallel`, and with `spine` without extensions |
//! | guards | datagrams at the wire's rate into the host, past guards that none of them meets |
//! | handlers | what CPU A does for a frame that goes to a handler, by what the handler asks for |
//! | exchange | messages from card to card |
//! | peers | packets through the router to the other card on the bus |
//! | videos | pixels into a frame buffer on the bus, with each timing profile |
//! | watchdog | how long a run lasts that does not end |
//! | profiles | the main figures under each timing profile; not for a quick look |

use super::account::{self, Share};
use super::card::{Kit, SpineCard};
use super::exchange::{self, Exchanged};
use super::frames::{WANTED, plain};
use super::guarded::{Guarded, ROUTES, guarded};
use super::handled::{self, Handled, SUBJECTS};
use super::lookups;
use super::messages::{self, Messages};
use super::peers::{self, Forwarded};
use super::profiles::{self, Row};
use super::routed;
use super::stores::pc;
use super::video::streams::{self, Streams, ThroughHost};
use crate::simulated::page::Page;
use crate::simulated::tables::framed;
use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use comfy_table::Table;
use serde::Serialize;
use spine_linker::load::Guard;
use testbed::conditions::Conditions;
use testbed::firmware::{self, FirmwareOptions, Variant};
use testbed::interrupt;
use testbed::paths::board_file;
use tigon_firmware::memory::shared::SPINE_RUNNING;
use tigon2_model::Board;
use tigon2_sim::Machine;
use tigon2_sim::timing::Parameters;
use tigon2_sim::workload::experiment::{self, Duration, Experiment};
use tigon2_sim::workload::testbench::Setup;

/// The timing profile.
pub(super) const PROFILE: &str = "default";
/// Bytes of datagrams: the shortest, some, the longest; the ends for a quick look.
const SIZES: [usize; 4] = [18, 400, 800, 1472];
const QUICK_SIZES: [usize; 2] = [18, 1472];
/// Cycles of a microsecond.
pub(super) const CLOCK: f64 = 88.0;
/// The watchdog's time in microseconds.
pub(super) const WATCHDOG: u32 = 10;
/// Cycles within which a frame reaches its handler, and a run is over.
const PATIENCE: u32 = 4_000_000;
/// Cycles within which all is done that a frame needs.
pub(super) const FRAME: u64 = 20_000;

/// An experiment with both variants.
#[derive(Clone, Debug, Serialize)]
pub struct Plain {
    /// Which.
    pub experiment: Experiment,
    /// Bytes of a datagram.
    pub datagram: usize,
    /// Mb/s, or a ping's microseconds.
    pub parallel: f64,
    /// The same with `spine`.
    pub spine: f64,
}

impl Plain {
    /// By how much `spine` is slower, as a share.
    pub fn loss(&self) -> f64 {
        match self.experiment {
            Experiment::Ping => self.spine / self.parallel - 1.0,
            _ => 1.0 - self.spine / self.parallel,
        }
    }
}

/// All of it.
#[derive(Clone, Debug, Serialize)]
pub struct Costs {
    /// Without extensions.
    pub plain: Vec<Plain>,
    /// Past guards.
    pub guarded: Vec<Guarded>,
    /// In handlers.
    pub handled: Vec<Handled>,
    /// Of applications.
    pub messages: Messages,
    /// From card to card.
    pub peers: Vec<Forwarded>,
    /// The same by a ring in host memory.
    pub by_ring: Vec<Forwarded>,
    /// CPU A's cycles for a packet of the router.
    pub routed: [routed::Account; 3],
    /// Messages from card to card.
    pub exchanged: Exchanged,
    /// Into a frame buffer.
    pub video: Vec<Streams>,
    /// The same through the host.
    pub through_host: ThroughHost,
    /// CPU A's cycles for a piece of a video.
    pub account: Vec<Share>,
    /// Microseconds that a run without end lasts with a watchdog of 10, least and most.
    pub watchdog: [f64; 2],
    /// Cycles of a lookup in the router's table.
    pub lookup: f64,
    /// Under each timing profile; none for a quick look.
    pub profiles: Vec<Row>,
}

/// Measures, prints the tables and writes `target/reports/bench-spine.json`. `quick`: fewer sizes
/// and shorter looks.
///
/// # Errors
/// If the firmware cannot be built or a measurement fails.
pub fn run(quick: bool) -> Result<()> {
    let costs = measure(quick)?;
    let mut page = Page::new(Conditions::default());
    page.title("SPINE: what extensions cost, in the card's time");
    for (title, table) in costs.tables() {
        page.table(title, &table);
    }
    if !quick {
        page.table("under each profile", &profiles::table(&costs.profiles));
    }
    let [least, most] = costs.watchdog;
    page.sentences(&[
        format!(
            "A run without end with a watchdog of {WATCHDOG} us is over after {least:.1} to {most:.1} us."
        ),
        format!(
            "A lookup in the router's table of {ROUTES} routes takes {:.0} cycles.",
            costs.lookup
        ),
        format!(
            "Through the host a byte of a picture is {:.2} bytes on the bus, and a piece {:.1} accesses.",
            costs.through_host.bus_bytes, costs.through_host.accesses
        ),
    ]);
    page.write("bench-spine", std::slice::from_ref(&costs))
}

/// For how long the router is sampled, in nanoseconds.
const ROUTED_NS: u64 = 10_000_000;

/// Measures all of it.
///
/// # Errors
/// As [`run`].
pub fn measure(quick: bool) -> Result<Costs> {
    let kit = Kit::build()?;
    let parallel = Variant::from_str("parallel", false).map_err(anyhow::Error::msg)?;
    let parallel = firmware::build(FirmwareOptions {
        variant: parallel,
        quiet: true,
        ..FirmwareOptions::default()
    })?;
    let parallel = parallel.image()?;
    let sizes: &[usize] = if quick { &QUICK_SIZES } else { &SIZES };
    let duration = if quick {
        Duration::QUICK
    } else {
        Duration::FULL
    };
    Ok(Costs {
        plain: plain_experiments(&kit, &parallel, sizes, duration)?,
        guarded: guarded(&kit, sizes, duration)?,
        handled: handled::measure(&kit, &parameters()?, &SUBJECTS)?,
        peers: peers::measure(&kit, &parameters()?)?,
        by_ring: peers::measure_by_ring(&kit, &parameters()?)?,
        routed: routed::measure(&kit, &parameters()?, ROUTED_NS)?,
        exchanged: exchange::measure(&kit, &parameters()?)?,
        messages: messages::measure(&kit, &parameters()?)?,
        video: streams::measure(&kit, quick)?,
        through_host: streams::through_host(&kit)?,
        account: streams::account(&kit, 20_000_000)?,
        watchdog: watchdog(&kit, &parameters()?, if quick { 40 } else { 400 })?,
        lookup: lookups::measure(&kit, &parameters()?)?,
        profiles: if quick {
            Vec::new()
        } else {
            profiles::measure(&kit)?
        },
    })
}

pub(super) fn setup(image: &[u8]) -> Result<Setup<'_>> {
    let text = board_file()?;
    let board = Board::from_toml(&text).context("the board file")?;
    let parameters = Parameters::from_toml(&text, PROFILE).context("the board file")?;
    Ok(Conditions::default().of(Setup::new(board, parameters, image)))
}

fn plain_experiments(
    kit: &Kit,
    parallel: &[u8],
    sizes: &[usize],
    duration: Duration,
) -> Result<Vec<Plain>> {
    // The host takes frames by dozens: in a shorter window that is more than one per cent.
    let duration = Duration {
        window: duration.window.max(60_000_000),
        ..duration
    };
    let mut rows = Vec::new();
    for experiment in Experiment::ALL {
        for datagram in sizes {
            interrupt::check()?;
            let [parallel, spine] = [parallel, &kit.image].map(|image| -> Result<f64> {
                let measured = experiment::run(&setup(image)?, experiment, *datagram, duration)?;
                Ok(measured.latency_us.unwrap_or_else(|| measured.mbps()))
            });
            rows.push(Plain {
                experiment,
                datagram: *datagram,
                parallel: parallel?,
                spine: spine?,
            });
        }
    }
    Ok(rows)
}

/// Lets the card go on to where `there` holds; the cycle.
pub(super) fn until(machine: &mut Machine, there: impl Fn(&Machine) -> bool) -> Result<u64> {
    for _ in 0..PATIENCE {
        if there(machine) {
            return Ok(machine.cycle());
        }
        machine.run(1);
    }
    anyhow::bail!("CPU A does not come there; it is at {:#x}", pc(machine));
}

pub(super) fn parameters() -> Result<Parameters> {
    Parameters::from_toml(&board_file()?, PROFILE).context("the board file")
}

/// Microseconds that runs without end last, least and most.
pub(super) fn watchdog(kit: &Kit, parameters: &Parameters, runs: u32) -> Result<[f64; 2]> {
    let mut card = SpineCard::start(kit, Some(parameters.clone()))?;
    let container = kit.container("tests/extensions/infinite".as_ref())?;
    let policy = kit.policy(WATCHDOG, 0)?;
    let (domain, _) = card.load(kit, &container, &policy)?;
    card.guards(&[Guard::any(domain, 7)])?;
    let enter = kit.symbol("spine_enter")?;
    let [mut least, mut most] = [f64::MAX, 0.0f64];
    for number in 0..runs {
        let station = card.nic.station();
        let frame = plain(station, super::frames::PEER, WANTED, number, 60);
        let lasted = {
            let machine = &mut card.machine.lock();
            machine.run(u64::from(number * 977 % 5000));
            machine.send_frame(0, frame.clone());
            let begins = until(machine, |machine| pc(machine) == enter)?;
            let over = until(machine, |machine| {
                machine.word(SPINE_RUNNING.address()) == 0
            })?;
            (over - begins) as f64 / CLOCK
        };
        (least, most) = (least.min(lasted), most.max(lasted));
        card.machine.lock().run(FRAME);
        card.nic.service()?;
        ensure!(
            card.nic.receive_batch(8)? == [frame],
            "a frame of a run that was cut off is lost"
        );
    }
    Ok([least, most])
}

impl Costs {
    fn tables(&self) -> [(&'static str, Table); 10] {
        let mut plain = framed(&["experiment", "bytes", "parallel", "spine", "slower by"]);
        for row in &self.plain {
            let unit = match row.experiment {
                Experiment::Ping => "us",
                _ => "Mb/s",
            };
            plain.add_row([
                row.experiment.name().to_owned(),
                row.datagram.to_string(),
                format!("{:.2} {unit}", row.parallel),
                format!("{:.2} {unit}", row.spine),
                format!("{:+.2} %", 100.0 * row.loss()),
            ]);
        }
        let mut guarded = framed(&["guards", "bytes", "datagrams/s", "cycles A"]);
        for row in &self.guarded {
            guarded.add_row([
                row.guards.clone(),
                row.datagram.to_string(),
                format!("{:.0}", row.rate),
                format!("{:.1}", row.cycles),
            ]);
        }
        [
            ("without extensions", plain),
            ("received datagrams past guards", guarded),
            ("a frame to a handler", handled::table(&self.handled)),
            ("messages of applications", self.messages.table()),
            ("from card to card", peers::table(&self.peers)),
            (
                "from card to card by a ring in host memory",
                peers::table(&self.by_ring),
            ),
            ("a packet of the router", routed::table(&self.routed)),
            ("messages from card to card", self.exchanged.table()),
            ("videos", streams::table(&self.video)),
            ("a piece of a video", account::table(&self.account)),
        ]
    }
}
