//! How long handlers run: the time of some runs.
//!
//! To read the clock around each run would cost messages and packets 3 %. So CPU A's housekeeping has
//! the next [`RUNS`] runs of each domain timed, and the host has the mean of these: see
//! [`counts`](host_interface::spine::counts). It asks in the word that says whether the domain is
//! suspended, at which each run looks anyhow:
//!
//! ```text
//! housekeeping ──► Domain::state, else 0 ──► begin: the clock ──► run ──► end: the clock
//! ```
//!
//! The time is that from before the run until behind it, with the calls of the runtime and of
//! procedures that it makes.

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
/// Runs that are timed at a time: several, as some handlers always run right behind others.
pub const RUNS: u32 = 16;
/// Housekeeping: the next runs of each domain are timed.
pub fn ask(spine: &mut Spine) {
    if let Some(runtime) = spine.runtime() {
        for domain in &mut runtime.domains {
            domain.state = domain.state & SUSPENDED | RUNS * ONE;
        }
    }
}

/// A run is about to begin of a domain whose state is not 0. Returns whether it may.
#[inline(never)]
pub(super) fn begin<B: Bus>(domain: &mut Domain, bus: &mut B) -> bool {
    if domain.state & SUSPENDED != 0 {
        return false;
    }
    let now = timer::now(bus);
    bus.store(SPINE_TIMED, now);
    true
}

/// A run of the handler in bits 7:0 of the domain in bits 15:8 is over, which [has begun](begin) so.
#[inline(never)]
pub(super) fn end<B: Bus>(domain: &mut Domain, bus: &mut B, whose: u32) {
    let took = timer::now(bus).wrapping_sub(bus.load(SPINE_TIMED));
    domain.state -= ONE;
    let at = handler_time(whose >> 8 & (DOMAINS - 1), whose & (HANDLERS - 1));
    let time = HandlerTime(bus.load(SPINE_BLOCK + at)).with(took);
    bus.store(SPINE_BLOCK + at, time.0);
}
