//! Checks how the threads of QEMU and of the hardware model can interleave.
//!
//! The sources of the glue (`qemu/src`: machine, outbox, parking, entrance; the interrupt of
//! `qemu/vfio-user`) run unchanged on the locks and threads of [`shuttle`], which chooses the next
//! thread at each of them. A small model of QEMU (`qemu.rs`) and a few stories surround them; a
//! story that panics, or in which all threads wait, shows a race.
//!
//! ```text
//!   ../src/*.rs ──┬── as they are ───► every story holds, in every schedule tried
//!                 └── with a seed ───► its story fails, in one of them
//! ```
//!
//! A *seed* is a deliberate fault ([`seeds::SEEDS`]). Each race found in the past is one, so the
//! checker is known to find it if it returns. `build.rs` edits the seeds into this crate's copy of
//! the sources; the library built for QEMU does not contain them.
//!
//! Two things are not modelled: weak memory (shuttle's atomics are sequentially consistent; the
//! sources use atomics as hints beside locks), and time: no sleep times out.

#![forbid(unsafe_code)]

mod qemu;
pub mod seeds;
mod server;
pub mod stories;

/// The copy of the sources.
#[allow(
    unused_qualifications,
    dead_code,
    reason = "parts of sources that are judged where they stand"
)]
mod glue {
    include!(concat!(env!("OUT_DIR"), "/glue.rs"));
}

use shuttle::scheduler::RandomScheduler;
use shuttle::{Config, FailurePersistence, MaxSteps, Runner};
use stories::STORIES;

/// Steps of a run that never ends.
const STEPS: usize = 200_000;

/// Runs a story in `schedules` schedules, which `start` chooses, with a seeded fault or none.
///
/// # Panics
/// If a schedule breaks the story, or if there is none of this name.
pub fn check(fault: Option<&'static str>, story: &str, start: u64, schedules: usize) {
    let found = STORIES.iter().find(|(name, _)| *name == story);
    let (_, run) = found.expect("a story of this name");
    let mut config = Config::new();
    config.stack_size = 0x4_0000;
    config.max_steps = MaxSteps::FailAfter(STEPS);
    config.failure_persistence = FailurePersistence::None;
    config.silence_warnings = true;
    let runner = Runner::new(RandomScheduler::new_from_seed(start, schedules), config);
    seeds::with(fault, || runner.run(run));
}
