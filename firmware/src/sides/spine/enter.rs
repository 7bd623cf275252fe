//! Into an extension's text, and out of it.
//!
//! [`enter`] saves what the dispatch loop and its callers rely on and calls the handler. There are
//! three ways out. A handler that returns has left all registers of its caller as they were: the
//! host's verifier has proven it. One that does not has left them anyhow, so they are taken back from
//! where they were saved:
//!
//! ```text
//! handler returns ──────────────────────────────────────────────────────────► back
//! CPU B sets CPU A's program counter ── abort ───┬──► registers as they were ──┘
//! it panics ── end ──────────────────────────────┘
//! ```

use super::effects::Effects;
use super::{ContextWords, MessageWords};
use crate::memory::shared::SPINE_ENDED;
use tigon2_hal::Bus;

/// Why a run was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Ended {
    /// It took longer than it may.
    Overrun = 1,
    /// It met a fault of the CPU.
    Fault = 2,
    /// It panicked.
    Panicked = 3,
}

impl Ended {
    /// From the word that CPU B wrote.
    pub const fn of_word(word: u32) -> Ended {
        if word == Ended::Fault as u32 {
            Ended::Fault
        } else {
            Ended::Overrun
        }
    }
}

/// How a run was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// By returning this.
    Returned(u32),
    /// Before it returned.
    Ended(Ended),
}

/// What leaves [`enter`] instead of a verdict: bit 31, and why; nothing where CPU B has noted that.
pub const CUT: u32 = 1 << 31;

#[cfg(all(target_arch = "mips", feature = "spine"))]
mod text {
    use super::{ContextWords, Effects, MessageWords};
    use core::ops::Range;

    // SAFETY: `start::spine` and the linker script have these. The effects go to `start::spine` and
    // nowhere else; of the symbols only addresses are taken.
    #[expect(improper_ctypes, reason = "see above")]
    unsafe extern "C" {
        fn spine_enter(
            message: &MessageWords,
            context: &ContextWords,
            entry: u32,
            effects: &mut Effects,
        ) -> u32;
        fn spine_abort();
        safe fn spine_lend(effects: *mut Effects);
        static SPINE_IMPORTS: u32;
        static _imports_start: u32;
        static _imports_end: u32;
        static _cold_imports_start: u32;
        static _cold_imports_end: u32;
        static _pad_imports_start: u32;
        static _scratch_a_system_end: u32;
        static _pad_arena_end: u32;
    }

    /// See `start::spine`.
    #[inline(always)]
    pub fn enter(
        entry: u32,
        message: &MessageWords,
        context: &ContextWords,
        effects: &mut Effects,
    ) -> u32 {
        // SAFETY: `entry` is one of those that the linker has proven to keep to what a handler
        // may do, and `load` has found in the arena. It has proven that a handler which returns
        // has left its caller's registers as they were; otherwise they are taken back from where
        // they were saved.
        unsafe { spine_enter(message, context, entry, effects) }
    }

    /// Says where imports note effects. See `start::spine`.
    pub fn lend(effects: *mut Effects) {
        spine_lend(effects);
    }

    /// Where a run may be cut off besides the arena: in imports, and in extensions' text in the
    /// scratch pad, which follows some of them.
    pub fn text_outside_arena() -> [Range<u32>; 3] {
        [
            &raw const _imports_start as u32..&raw const _imports_end as u32,
            &raw const _cold_imports_start as u32..&raw const _cold_imports_end as u32,
            &raw const _pad_imports_start as u32..&raw const _pad_arena_end as u32,
        ]
    }

    /// The part of the scratch pad that has room for extensions' text.
    pub fn pad_arena() -> Range<u32> {
        &raw const _scratch_a_system_end as u32..&raw const _pad_arena_end as u32
    }

    /// Where CPU A goes on when its run is cut off.
    pub fn abort_entry() -> u32 {
        spine_abort as *const () as u32
    }

    /// NIC address of the table of interfaces.
    pub fn imports() -> u32 {
        &raw const SPINE_IMPORTS as u32
    }
}

/// Where there are no extensions, none is entered.
#[cfg(not(all(target_arch = "mips", feature = "spine")))]
mod text {
    use super::{CUT, ContextWords, Effects, Ended, MessageWords};
    use core::ops::Range;

    pub fn enter(_: u32, _: &MessageWords, _: &ContextWords, _: &mut Effects) -> u32 {
        CUT | Ended::Fault as u32
    }

    /// To nobody.
    pub fn lend(_: *mut Effects) {}

    /// Nowhere.
    pub fn text_outside_arena() -> [Range<u32>; 3] {
        [0..0, 0..0, 0..0]
    }

    /// Nothing.
    pub fn pad_arena() -> Range<u32> {
        0..0
    }

    /// Nowhere.
    pub fn abort_entry() -> u32 {
        0
    }

    /// There are none.
    pub fn imports() -> u32 {
        0
    }
}

pub use text::{abort_entry, imports, lend, pad_arena, text_outside_arena};

/// Runs a handler, or `init`, to its end. Returns a word for [`left`].
#[inline(always)]
pub fn enter(
    entry: u32,
    message: &MessageWords,
    context: &ContextWords,
    effects: &mut Effects,
) -> u32 {
    text::enter(entry, message, context, effects)
}

/// How the run was left that [`enter`] returned this word of.
#[inline(always)]
pub fn left<B: Bus>(bus: &mut B, word: u32) -> Left {
    if word & CUT == 0 {
        Left::Returned(word)
    } else {
        left_early(bus, word)
    }
}

/// A handler that returns one of these words counts as one that was cut off so.
#[cold]
#[inline(never)]
fn left_early<B: Bus>(bus: &mut B, word: u32) -> Left {
    const OVERRUN: u32 = CUT | Ended::Overrun as u32;
    const FAULT: u32 = CUT | Ended::Fault as u32;
    const PANICKED: u32 = CUT | Ended::Panicked as u32;
    match word {
        // By CPU B.
        CUT => Left::Ended(Ended::of_word(SPINE_ENDED.get(bus))),
        OVERRUN => Left::Ended(Ended::Overrun),
        FAULT => Left::Ended(Ended::Fault),
        PANICKED => Left::Ended(Ended::Panicked),
        other => Left::Returned(other),
    }
}
