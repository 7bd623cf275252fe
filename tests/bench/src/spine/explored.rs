//! Schedules with extensions: the explorer's frames, while extensions come, run, are cut off and
//! go, and [endpoints](rings) exchange messages with one of them.
//!
//! Beside the frames of a [schedule](tigon2_sim::explore) the host loads and unloads extensions,
//! installs guards and sends messages, each as the seed says. Guards are for handlers that leave
//! frames to the host or are cut off, so that every frame of the schedule still comes out exactly
//! once, in order and whole. Each schedule has at least one run that is cut off.
//!
//! A schedule may hold CPU A up for longer than `init` may take. Then the watchdog is right to cut
//! it off, and the host loads the extension again; under any other schedule that is a failure.

mod rings;

use super::card::Kit;
use super::window::Window;
use anyhow::{Context, Result, anyhow};
use host_interface::spine::Outcome as Answer;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use rings::{Rings, Talked};
use spine_linker::load::{Guard, LoadError, Loader};
use spine_linker::policy::Policy;
use std::path::Path;
use tigon2_chip::Cpu;
use tigon2_sim::explore::{Disturbance, ExploreError, Outcome, Pace, story};
use tigon2_sim::timeline::{Recorder, Timeline};
use tigon2_sim::transport::SharedMachine;

/// Core cycles that `init` may take: 200 us.
const INIT: u64 = 200 * 86;
/// Instructions of the longest one, some.
const LONGEST_INIT: u64 = 1200;
/// Turns of the host between two deeds, at most.
const PAUSE: u64 = 12;
/// What is loaded, and the handler that frames may go to.
const FOLDERS: [(&str, u8); 4] = [
    // Leaves them to the host; is cut off; the same; gets none.
    ("tests/extensions/effects", 6),
    ("tests/extensions/infinite", 7),
    ("tests/extensions/messages", 5),
    ("tests/extensions/summing", 1),
];
/// The one that answers endpoints.
const ANSWERING: usize = 2;
/// Handlers that get messages: one that ends and one that is cut off, of each.
const CALLED: [[u8; 2]; 4] = [[1, 2], [6, 7], [7, 5], [0, 1]];

/// What extensions did in schedules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deeds {
    /// Loads, and unloads.
    pub loads: u64,
    /// See [`loads`](Self::loads).
    pub unloads: u64,
    /// Messages that were answered.
    pub messages: u64,
    /// Those whose run was cut off.
    pub cut: u64,
    /// Loads whose `init` was cut off, as CPU A was held up in it.
    pub inits_cut: u64,
    /// Guards that were installed.
    pub guards: u64,
    /// By the rings of endpoints.
    pub talked: Talked,
}

/// What a schedule came to: frames and deeds, or what went wrong.
pub type Explored = Result<(Outcome, Deeds), ExploreError>;

/// A host that loads and unloads.
struct Host<'a> {
    kit: &'a Kit,
    policy: Policy,
    random: SplitMix64,
    loader: Option<Loader>,
    /// The domains, by what they are.
    loaded: [Option<u32>; 4],
    rings: Rings,
    wait: u64,
    /// Whether the schedule may hold CPU A up for longer than `init` may take.
    holds_init: bool,
    deeds: Deeds,
}

fn below(random: &mut SplitMix64, limit: u64) -> u64 {
    random.next_u64() % limit
}

impl Host<'_> {
    fn turn(&mut self, machine: &SharedMachine) -> Result<(), String> {
        let mut card = Window::new(machine.clone());
        self.talk(&mut card).map_err(|error| format!("{error:#}"))?;
        self.wait = self.wait.saturating_sub(1);
        if self.wait != 0 {
            return Ok(());
        }
        self.wait = 1 + below(&mut self.random, PAUSE);
        self.deed(&mut card).map_err(|error| error.to_string())
    }

    /// A turn of the endpoints.
    fn talk(&mut self, card: &mut Window) -> Result<()> {
        let Some(loader) = self.loader.as_mut() else {
            return Ok(());
        };
        let domain = self.loaded.get(ANSWERING).copied().flatten();
        self.rings.turn(card, loader, domain)?;
        self.deeds.talked = self.rings.talked;
        Ok(())
    }

    fn deed(&mut self, card: &mut Window) -> Result<()> {
        if self.loader.is_none() {
            self.loader = Some(Loader::find(card)?);
        }
        let which = below(&mut self.random, 4) as usize;
        match self.loaded.get(which).copied().flatten() {
            None => self.load(card, which),
            Some(domain) => match below(&mut self.random, 8) {
                0 | 1 => self.unload(card, which, domain),
                2 | 3 => self.guard(card, which, domain),
                // As long as there is none that was cut off, one that is.
                _ if self.deeds.cut == 0 => self.call(card, which, domain, 1),
                cut => self.call(card, which, domain, (cut & 1) as usize),
            },
        }
    }

    fn loader(&mut self) -> Result<&mut Loader> {
        self.loader.as_mut().ok_or_else(|| anyhow!("no loader"))
    }

    fn load(&mut self, card: &mut Window, which: usize) -> Result<()> {
        let (folder, _) = FOLDERS[which];
        let container = self.kit.container(Path::new(folder))?;
        let (policy, build) = (self.policy.clone(), self.kit.build);
        match self.loader()?.load(card, &container, &policy, &build) {
            Ok(loaded) => {
                self.loaded[which] = Some(loaded.0);
                self.deeds.loads += 1;
            }
            Err(LoadError::Refused(Answer::InitCut)) if self.holds_init => {
                self.deeds.inits_cut += 1;
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn unload(&mut self, card: &mut Window, which: usize, domain: u32) -> Result<()> {
        if which == ANSWERING {
            let loader = self.loader.as_mut().context("no loader")?;
            self.rings.withdraw(card, loader)?;
        }
        self.loader()?.unload(card, domain)?;
        self.loaded[which] = None;
        self.deeds.unloads += 1;
        Ok(())
    }

    fn guard(&mut self, card: &mut Window, which: usize, domain: u32) -> Result<()> {
        let (_, handler) = FOLDERS[which];
        let guards = match below(&mut self.random, 3) {
            0 => Vec::new(),
            _ => vec![Guard::any(domain, handler)],
        };
        self.loader()?.set_guards(card, &guards)?;
        self.deeds.guards += 1;
        Ok(())
    }

    fn call(&mut self, card: &mut Window, which: usize, domain: u32, cut: usize) -> Result<()> {
        let handler = CALLED[which][cut];
        let arguments = [3, 1, 4];
        match self.loader()?.send(card, domain, handler, &arguments) {
            Ok(()) => self.deeds.messages += 1,
            Err(LoadError::Refused(Answer::Cut)) => self.deeds.cut += 1,
            Err(error) => return Err(anyhow!("message: {error}")),
        }
        Ok(())
    }
}

/// Whether a schedule may hold CPU A up in an `init` for longer than that may take.
pub fn holds_init(seed: u64) -> bool {
    match Disturbance::new(seed).pace(Cpu::A) {
        Pace::Stalls { most, .. } | Pace::AtShared { most, .. } => most > INIT,
        Pace::Jitter { most } => most * LONGEST_INIT / 2 > INIT,
        Pace::Steady | Pace::Turns { .. } => false,
    }
}

/// Runs the schedule of a seed with extensions.
///
/// # Errors
/// If a policy cannot be; what went wrong in the schedule is the first part.
pub fn run(
    kit: &Kit,
    seed: u64,
    recorder: Option<Recorder>,
) -> Result<(Explored, Option<Timeline>)> {
    let mut host = Host {
        kit,
        // Some are suspended, some never.
        policy: kit.policy(10, (seed % 2 * 3) as u32)?,
        random: SplitMix64::seed_from_u64(seed ^ 0x5350_494E),
        loader: None,
        loaded: [None; 4],
        rings: Rings::new(seed),
        wait: 0,
        holds_init: holds_init(seed),
        deeds: Deeds::default(),
    };
    let mut aside = |machine: &SharedMachine| host.turn(machine);
    let (result, timeline) = story::run_beside(&kit.image, seed, recorder, &mut aside);
    Ok((result.map(|outcome| (outcome, host.deeds)), timeline))
}
