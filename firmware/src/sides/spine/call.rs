//! Calls between extensions: procedures that one exports, and others call.
//!
//! SPINE paper, section 3.3.3. The host has linked them by name; here a procedure is a number. A call
//! goes through the gate, an import:
//!
//! ```text
//!  handler ──► gate: exported, and its domain neither forbidden nor suspended? ── no ──► NotCalled
//!                │ yes: account and time are the callee's
//!                ▼
//!              procedure, in the callee's domain ── cut off: the run is over ──► the account's cut
//!                │ returned: account and time are the caller's
//!                ▼
//!  handler ◄── gate
//! ```
//!
//! A procedure asks for no effects and calls no other extension: calls do not nest. CPU B knows
//! nothing of calls. It sees each stretch of a run as a run of its own, with its own time: that of
//! the callee's watchdog, or what the caller has left if that is less. What the caller has left is
//! counted from its first call on.

use super::bump;
use super::effects::{Effects, Status};
use super::watch::FLOOR_SHIFT;
use crate::memory::layout::{SPINE_BLOCK, SPINE_CALL, SPINE_CALL_BYTES, SPINE_EXPORTS};
use crate::memory::shared::{SPINE_LOADING, SPINE_RUNNING, SPINE_WATCH};
use host_interface::spine::counts::PROCEDURES;
use host_interface::spine::{
    DomainCount, DomainWord, EXPORTS, HandlerCount, domain_count, domain_word, handler_count,
    may_call,
};
use tigon2_hal::Bus;

/// Bytes of a row of an export.
///
/// ```text
/// +0  number of the procedure
/// +4  its address in bits 27:0, and the domain above; 0 for none
/// ```
pub const ROW_BYTES: u32 = 8;
const ENTRY: u32 = 4;
const DOMAIN_SHIFT: u32 = 28;

/// A run has so many numbers: its own, and one for each further stretch, before and after a return.
pub const RUN_STEP: u32 = 32;

/// NIC address of the run that has called last, as its context has it.
const RUN: u32 = SPINE_CALL;
/// When it first has.
const SINCE: u32 = SPINE_CALL + 4;
/// Whose a cut is: the callee's number and 1, or 0 for the handler's domain.
const ACCOUNT: u32 = SPINE_CALL + 8;
/// The stretch.
const STRETCH: u32 = SPINE_CALL + 12;
const _: () = {
    assert!(SPINE_CALL == SPINE_EXPORTS + EXPORTS * ROW_BYTES);
    assert!(STRETCH + 4 == SPINE_CALL + SPINE_CALL_BYTES);
};

/// Why the gate calls nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum NotCalled {
    /// `spine::NotCalled::Absent`.
    Absent = 1,
    /// `spine::NotCalled::Full`.
    Full = 2,
    /// The caller's time is over: its run ends.
    Over = 3,
}

/// The caller, as its context has it.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    /// Its domain.
    pub domain: u32,
    /// Its run.
    pub run: u32,
}

fn rows() -> impl Iterator<Item = u32> {
    (0..EXPORTS).map(|number| SPINE_EXPORTS + number * ROW_BYTES)
}

/// Nothing is exported, and no run has called.
pub fn clear<B: Bus>(bus: &mut B) {
    for at in (SPINE_EXPORTS..SPINE_CALL + SPINE_CALL_BYTES).step_by(4) {
        bus.store(at, 0);
    }
}

/// In `init`: exports a procedure of the domain that is being loaded.
#[inline(always)]
pub fn export<B: Bus>(effects: &Effects, bus: &mut B, number: u32, entry: u32) -> Status {
    let free = rows().find(|row| bus.load(row + ENTRY) == 0);
    match free {
        Some(row) if effects.is_init() => {
            let domain = SPINE_LOADING.get(bus);
            bus.store(row, number);
            bus.store(row + ENTRY, domain << DOMAIN_SHIFT | address(entry));
            Status::Noted
        }
        _ => Status::Full,
    }
}

/// Whether what a domain exports are functions that the linker knows as entries.
pub fn are_entries<B: Bus>(bus: &mut B, domain: u32, entries: &[u32]) -> bool {
    rows().all(|row| {
        let word = bus.load(row + ENTRY);
        word >> DOMAIN_SHIFT != domain || word == 0 || entries.contains(&address(word))
    })
}

/// A domain exports nothing any more.
pub fn forget<B: Bus>(bus: &mut B, domain: u32) {
    for row in rows() {
        if bus.load(row + ENTRY) >> DOMAIN_SHIFT == domain {
            bus.store(row + ENTRY, 0);
        }
    }
}

/// The address in a row's word.
const fn address(word: u32) -> u32 {
    word & ((1 << DOMAIN_SHIFT) - 1)
}

/// A handler calls a procedure, at a time in microseconds: returns its address. CPU B looks after it
/// from now on.
#[inline(always)]
pub fn begin<B: Bus>(bus: &mut B, caller: Caller, number: u32, now: u32) -> Result<u32, NotCalled> {
    let word = find(bus, caller.domain, number).ok_or(NotCalled::Absent)?;
    let domain = word >> DOMAIN_SHIFT;
    if bus.load(SPINE_BLOCK + domain_count(domain, DomainCount::Suspended)) != 0 {
        return Err(NotCalled::Absent);
    }
    if bus.load(RUN) != caller.run {
        bus.store(ACCOUNT, 0);
        bus.store(SINCE, now);
        bus.store(STRETCH, 0);
        bus.store(RUN, caller.run);
    }
    if bus.load(STRETCH) + 2 >= RUN_STEP {
        return Err(NotCalled::Full);
    }
    let left = left(bus, caller.domain, now);
    if left == 0 {
        return Err(NotCalled::Over);
    }
    let own = watchdog(bus, domain);
    bump(
        bus,
        SPINE_BLOCK + handler_count(domain, PROCEDURES, HandlerCount::Runs),
    );
    go_on(bus, caller.run, own.min(left));
    if own <= left {
        bus.store(ACCOUNT, domain + 1);
    }
    Ok(address(word))
}

/// The procedure has returned.
#[inline(always)]
pub fn end<B: Bus>(bus: &mut B, caller: Caller, now: u32) {
    let left = left(bus, caller.domain, now).max(1);
    go_on(bus, caller.run, left);
    bus.store(ACCOUNT, 0);
}

/// The domain that a run's cut is counted for, if that is not the handler's.
pub fn account<B: Bus>(bus: &mut B, run: u32) -> Option<u32> {
    if bus.load(RUN) != run {
        return None;
    }
    bus.load(ACCOUNT).checked_sub(1)
}

/// The row's word of a procedure that a domain may call.
#[inline(always)]
fn find<B: Bus>(bus: &mut B, caller: u32, number: u32) -> Option<u32> {
    let domains = bus.load(SPINE_BLOCK + may_call(caller));
    for row in rows() {
        if bus.load(row) == number {
            let word = bus.load(row + ENTRY);
            if word != 0 && domains >> (word >> DOMAIN_SHIFT) & 1 != 0 {
                return Some(word);
            }
        }
    }
    None
}

/// Microseconds of a run of a domain's.
#[inline(always)]
fn watchdog<B: Bus>(bus: &mut B, domain: u32) -> u32 {
    bus.load(SPINE_BLOCK + domain_word(domain, DomainWord::Watchdog))
}

/// Microseconds that the caller has left.
#[inline(always)]
fn left<B: Bus>(bus: &mut B, caller: u32, now: u32) -> u32 {
    let floor = SPINE_WATCH.get(bus) >> FLOOR_SHIFT;
    let time = watchdog(bus, caller).max(floor);
    let passed = now.wrapping_sub(bus.load(SINCE));
    time.saturating_sub(passed)
}

/// Another stretch of a run begins: from now on CPU B cuts nothing off until its time is over, so
/// that the account may change behind it.
#[inline(always)]
fn go_on<B: Bus>(bus: &mut B, run: u32, time: u32) {
    let stretch = bus.load(STRETCH) + 1;
    bus.store(STRETCH, stretch);
    let word = run.wrapping_add(stretch) << 8 | time.min(0xFF);
    // The gate is CPU A's, and has no token: extensions call it.
    bus.store(SPINE_RUNNING.address(), word);
}

#[cfg(test)]
mod tests;
