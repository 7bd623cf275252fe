//! A run of a handler, with a frame or a message.
//!
//! SPINE paper, section 3.2. The code is in CPU A's pad, once for frames and messages:
//!
//! ```text
//!  frame   ──┐                        ┌── returned ──► effects carried out ──► Over::Returned
//!            ├──► there? ──► enter ───┤
//!  message ──┘      │ no   CPU B      └── cut off ───► effects forgotten ────► Over::Cut
//!                   ▼       watches
//!          NoHandler, Suspended
//! ```

use super::call::RUN_STEP;
use super::effects::{Effects, OF_MESSAGE, There};
use super::enter::{self, CUT};
use super::over::Over;
use super::{ContextWords, MessageWords, Runtime, bump, call_b, cut, supply, time};
use crate::io::IoA;
use crate::memory::layout::{POOL_SLOTS, SPINE_BLOCK};
use crate::memory::shared::SPINE_RUNNING;
use host_interface::spine::{DOMAINS, DomainCount, HANDLERS, HandlerCount, domain_count};
use tigon2_hal::Bus;
use tigon2_hal::events::Dispatch;

/// Bits of the domains and handlers that there may be.
pub const EXISTING: u32 = (DOMAINS - 1) << 8 | (HANDLERS - 1);

const _: () = assert!(DOMAINS.is_power_of_two() && HANDLERS.is_power_of_two());

/// Runs the handler in bits 7:0 of the domain in bits 15:8, with a frame, or with a message if
/// [`OF_MESSAGE`] is set, and carries out what it asks for.
#[cfg_attr(
    all(target_arch = "mips", not(feature = "builtin")),
    unsafe(link_section = ".scratch_a.system")
)]
#[inline(never)]
pub fn run<B: Dispatch>(
    runtime: &mut Runtime,
    io: &mut IoA<B>,
    to: u32,
    message: &MessageWords,
) -> Over {
    let Runtime {
        domains,
        effects,
        pool,
        outgoing,
        run,
        ..
    } = runtime;
    if to & 0xFFFF & !EXISTING != 0 {
        return Over::NoHandler;
    }
    let (number, handler) = (to >> 8 & (DOMAINS - 1), to & (HANDLERS - 1));
    let Some(domain) = domains.get_mut(number as usize) else {
        return Over::NoHandler;
    };
    let Some(installed) = domain.handlers.get(handler as usize).copied() else {
        return Over::NoHandler;
    };
    if installed.entry == 0 {
        return Over::NoHandler;
    }
    let [at, length, ..] = *message;
    pool.make_room(&mut io.bus);
    let slots = &pool.slots;
    let there = There {
        slot: slots.next(),
        room: slots.room(),
        kept: slots.kept(number),
        free_count: slots.free_count(),
    };
    effects.begin(to & OF_MESSAGE, length, there);
    *run = run.wrapping_add(RUN_STEP);
    let context: ContextWords = [installed.argument, number, *run];
    if domain.state != 0 && !time::begin(domain, &mut io.bus) {
        return Over::Suspended;
    }
    let word = watched(io, *run, domain.watchdog, || {
        enter::enter(installed.entry, message, &context, effects)
    });
    if domain.state != 0 {
        time::end(domain, &mut io.bus, to);
    }
    if word & CUT != 0 {
        return cut::end(runtime, io, to, message, word);
    }
    let asks_for_more = effects.asks_for_more();
    let mut forwarded = None;
    if effects.forwards() {
        // Before all else: the frame goes from where it lies.
        forwarded = Some(outgoing.peer.forward(io, number, at, length, effects));
    }
    Runtime::count_run(&mut io.bus, (number, handler), HandlerCount::Runs);
    domain.cut = 0;
    if asks_for_more {
        commit(io, effects, pool, number, at, length);
        if effects.sends_messages() {
            outgoing.commit(io, effects, pool, (number, handler));
        }
    }
    match forwarded {
        None => Over::Returned(word),
        Some(true) => Over::Forwarded,
        Some(false) => Over::Settled,
    }
}

/// Runs an extension while CPU B knows of it; `extension` [enters](enter::enter) it. Returns a word for
/// [`enter::left`].
#[inline(always)]
pub fn watched<B: Dispatch>(
    io: &mut IoA<B>,
    run: u32,
    watchdog: u32,
    extension: impl FnOnce() -> u32,
) -> u32 {
    // CPU B never takes one run for another: between two of them CPU A loads words of a frame or of
    // a message, and a load waits for the stores before it.
    SPINE_RUNNING.set(&io.me, &mut io.bus, run << 8 | watchdog);
    let word = extension();
    SPINE_RUNNING.set(&io.me, &mut io.bus, 0);
    word
}

/// Carries out what a run has asked for; its frame, of so many bytes, lies at `at`.
#[inline(always)]
fn commit<B: Dispatch>(
    io: &mut IoA<B>,
    effects: &Effects,
    pool: &mut supply::Pool,
    number: u32,
    at: u32,
    length: u32,
) {
    if !effects.counts().is_empty() {
        count_all(&mut io.bus, effects, number);
    }
    if effects.only_transmits() {
        let slot = pool.put(&mut io.bus, at, length, effects.patches());
        pool.transmit(io, number, slot);
        call_b(io);
    } else if effects.moves_frames() {
        move_frames(io, effects, pool, number, at, length);
    }
}

/// Counts what a run has counted.
#[inline(never)]
fn count_all<B: Bus>(bus: &mut B, effects: &Effects, number: u32) {
    let first = SPINE_BLOCK + domain_count(number, DomainCount::Counters);
    for counter in effects.counts() {
        bump(bus, first + (counter << 2));
    }
}

/// Has frames transmitted, kept and released: sent before they are released.
#[inline(never)]
fn move_frames<B: Dispatch>(
    io: &mut IoA<B>,
    effects: &Effects,
    pool: &mut supply::Pool,
    number: u32,
    at: u32,
    length: u32,
) {
    if effects.transmits() || effects.keeps_frame() {
        let slot = pool.put(&mut io.bus, at, length, effects.patches());
        if effects.transmits() {
            pool.transmit(io, number, slot);
        }
        if effects.keeps_frame() {
            pool.slots.keep(number, slot);
        }
    }
    for slot in 0..POOL_SLOTS {
        if effects.sent() >> slot & 1 != 0 {
            pool.transmit(io, number, slot);
        }
    }
    for slot in 0..POOL_SLOTS {
        if effects.released() >> slot & 1 != 0 {
            pool.slots.release(number, slot);
        }
    }
    if effects.keeps_frame() || effects.released() != 0 {
        pool.report_ledger(&mut io.bus, number);
    }
    call_b(io);
}
