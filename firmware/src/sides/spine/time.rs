//! How long handlers run: the time of some runs.
//!
//! To read the clock around each run would cost messages and packets 3 %. So CPU A's housekeeping has
//! the next [`RUNS`] runs of each domain timed, if there were enough others, and the host has the mean of these: see
//! [`counts`](host_interface::spine::counts). It asks in the word that says whether the domain is
//! suspended, at which each run looks anyhow:
//!
//! ```text
//! housekeeping ──► Domain::state, else 0 ──► begin: the clock ──► run ──► end: the clock
//! ```
//!
//! The time is that from before the run until behind it, with the calls of the runtime and of
//! procedures that it makes.

use super::call::RUN_STEP;
use super::{Domain, Spine};
use crate::memory::layout::{SPINE_BLOCK, SPINE_TIMED};
use host_interface::spine::counts::HandlerTime;
use host_interface::spine::{DOMAINS, HANDLERS, handler_time};
use tigon2_hal::Bus;
use tigon2_hal::timer;

/// In [`Domain::state`]: it is suspended.
pub const SUSPENDED: u32 = 1;
/// In it: one run more is timed.
const ONE: u32 = 1 << 8;
/// Runs that are timed at a time: several, as some handlers always run right behind others; few, as
/// a run that is timed takes 1 us more.
pub const RUNS: u32 = 4;
/// Runs between those that are timed: at least so many, so that a packet now and then has its time.
const BETWEEN: u32 = 64;
/// NIC address of the moment at which the run began that is timed.
const BEGUN: u32 = SPINE_TIMED;
/// NIC address of the number of the run at which times were asked for.
const ASKED: u32 = SPINE_TIMED + 4;

/// Housekeeping: the next runs of each domain are timed.
pub fn ask<B: Bus>(spine: &mut Spine, bus: &mut B) {
    let Some(runtime) = spine.runtime() else {
        return;
    };
    if runtime.run.wrapping_sub(bus.load(ASKED)) < BETWEEN * RUN_STEP {
        return;
    }
    bus.store(ASKED, runtime.run);
    for domain in &mut runtime.domains {
        domain.state = domain.state & SUSPENDED | (RUNS * ONE);
    }
}

/// A run is about to begin of a domain whose state is not 0. Returns whether it may.
#[inline(never)]
pub(super) fn begin<B: Bus>(domain: &mut Domain, bus: &mut B) -> bool {
    if domain.state & SUSPENDED != 0 {
        return false;
    }
    let now = timer::now(bus);
    bus.store(BEGUN, now);
    true
}

/// A run of the handler in bits 7:0 of the domain in bits 15:8 is over, which [has begun](begin) so.
#[inline(never)]
pub(super) fn end<B: Bus>(domain: &mut Domain, bus: &mut B, whose: u32) {
    let took = timer::now(bus).wrapping_sub(bus.load(BEGUN));
    domain.state -= ONE;
    let at = handler_time(whose >> 8 & (DOMAINS - 1), whose & (HANDLERS - 1));
    let time = HandlerTime(bus.load(SPINE_BLOCK + at)).with(took);
    bus.store(SPINE_BLOCK + at, time.0);
}
