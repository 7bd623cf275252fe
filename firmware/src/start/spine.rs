//! The way into an extension's text and out of it, and what it imports.
//!
//! `sides::spine::enter` has the picture. The saved registers, and the effects of the run in work,
//! are in CPU A's pad: extensions run there alone, one at a time. The imports lie in three places: in
//! the pad, in the part of it that extensions have while a domain is loaded, and those of messages
//! in SRAM. They change nothing but the effects and what is nobody's until the run has returned, so
//! that a run can be cut off in them as well.

use super::{BUS, State};
use crate::memory::copy;
use crate::sides::spine::ContextWords;
use crate::sides::spine::call::{self, Caller, NotCalled};
use crate::sides::spine::effects::{Effects, Status};
use crate::sides::spine::enter::{CUT, Ended};
use crate::sides::spine::peer;
use crate::sides::spine::supply::slot;
use crate::sides::spine::{cut, message, outgoing, transfer};
use core::arch::global_asm;
use spine_image::interface::{self, Number};
use tigon2_hal::timer;

/// s0 to s8, ra, sp of the run in work, for the case that it is cut off; and where the effects are.
#[unsafe(no_mangle)]
#[unsafe(link_section = ".scratch_a.data")]
static SPINE_SAVED: State<[u32; 12]> = State::new([0; 12]);
/// Index of the latter.
const EFFECTS: usize = 11;

global_asm!(
    r#"
    .set push
    .set noreorder
    .section .scratch_a.text, "ax", @progbits
    .globl spine_enter
    .type spine_enter, @function
spine_enter:
    lui   $8, %hi({saved})
    sw    $16, %lo({saved})($8)
    sw    $17, %lo({saved} + 4)($8)
    sw    $18, %lo({saved} + 8)($8)
    sw    $19, %lo({saved} + 12)($8)
    sw    $20, %lo({saved} + 16)($8)
    sw    $21, %lo({saved} + 20)($8)
    sw    $22, %lo({saved} + 24)($8)
    sw    $23, %lo({saved} + 28)($8)
    sw    $30, %lo({saved} + 32)($8)
    sw    $31, %lo({saved} + 36)($8)
    jalr  $6
    sw    $29, %lo({saved} + 40)($8)
    # The verifier has proven that all others are as they were.
    lui   $8, %hi({saved})
    lw    $31, %lo({saved} + 36)($8)
    nop
    jr    $31
    nop
spine_leave:
    lui   $8, %hi({saved})
    lw    $31, %lo({saved} + 36)($8)
    lw    $16, %lo({saved})($8)
    lw    $17, %lo({saved} + 4)($8)
    lw    $18, %lo({saved} + 8)($8)
    lw    $19, %lo({saved} + 12)($8)
    lw    $20, %lo({saved} + 16)($8)
    lw    $21, %lo({saved} + 20)($8)
    lw    $22, %lo({saved} + 24)($8)
    lw    $23, %lo({saved} + 28)($8)
    lw    $30, %lo({saved} + 32)($8)
    jr    $31
    lw    $29, %lo({saved} + 40)($8)
    .size spine_enter, . - spine_enter

    .globl spine_abort
    .type spine_abort, @function
spine_abort:
    j     spine_leave
    lui   $2, 0x8000
    .size spine_abort, . - spine_abort

    # The same from an import, with the reason.
    .globl spine_end
    .type spine_end, @function
spine_end:
    j     spine_leave
    move  $2, $4
    .size spine_end, . - spine_end
    .set pop
"#,
    saved = sym SPINE_SAVED,
);

// SAFETY: it is written above. It takes a word, and leaves the run for the caller of `spine_enter`,
// which is under way wherever an import is called.
unsafe extern "C" {
    safe fn spine_end(reason: u32) -> !;
}

/// The imports note in these.
// SAFETY: no other symbol has this name.
#[unsafe(no_mangle)]
extern "C" fn spine_lend(effects: *mut Effects) {
    // SAFETY: a word of CPU A's, outside of a run, which is when imports read it.
    unsafe { (*SPINE_SAVED.get())[EFFECTS] = effects as u32 };
}

/// The effects of the run in work.
#[inline(always)]
fn effects() -> &'static mut Effects {
    // SAFETY: imports are called by an extension's text alone, so the caller of `spine_enter` has
    // lent it for the run, and it is the one of `spine_lend`. No import calls another, and a run that
    // is cut off in one begins its effects anew.
    unsafe { &mut *((*SPINE_SAVED.get())[EFFECTS] as *mut Effects) }
}

#[unsafe(link_section = ".text.imports")]
extern "C" fn add_handler(entry: u32, number: u32, argument: u32) -> Status {
    effects().install(entry, number, argument)
}

extern "C" fn panic() -> ! {
    spine_end(CUT | Ended::Panicked as u32)
}

#[unsafe(link_section = ".scratch_a.low.imports")]
extern "C" fn now() -> u32 {
    timer::now(&mut { BUS })
}

#[unsafe(link_section = ".scratch_a.low.imports")]
extern "C" fn patch(index: u32, value: u32) -> Status {
    effects().patch(index, value)
}

#[unsafe(link_section = ".scratch_a.low.imports")]
extern "C" fn patch_three(index: u32, first: u32, second: u32, third: u32) -> Status {
    effects().patch_three(index, [first, second, third])
}

#[unsafe(link_section = ".scratch_a.low.imports")]
extern "C" fn transmit() -> Status {
    effects().transmit()
}

#[unsafe(link_section = ".text.imports")]
extern "C" fn keep() -> u32 {
    effects().keep()
}

#[unsafe(link_section = ".scratch_a.low.imports")]
extern "C" fn kept() -> u32 {
    effects().kept()
}

/// Of a slot: the bytes of its frame, and behind another word these.
#[unsafe(link_section = ".scratch_a.low.imports")]
extern "C" fn words(number: u32) -> u32 {
    if effects().keeps(number) {
        slot(number)
    } else {
        0
    }
}

#[unsafe(link_section = ".scratch_a.low.imports")]
extern "C" fn send(number: u32) -> Status {
    effects().send(number)
}

#[unsafe(link_section = ".text.imports")]
extern "C" fn release(number: u32) -> Status {
    effects().release(number)
}

#[unsafe(link_section = ".scratch_a.imports")]
extern "C" fn forward() -> Status {
    effects().forward(peer::has_room(&mut { BUS }))
}

/// From the frame into the lease.
#[unsafe(link_section = ".scratch_a.imports")]
extern "C" fn transfer_bytes(from: u32, bytes: u32, to: u32) -> Status {
    transfer::note(&mut { BUS }, from, bytes, to)
}

#[unsafe(link_section = ".scratch_a.low.imports")]
extern "C" fn count(counter: u32) -> Status {
    effects().count(counter)
}

#[unsafe(link_section = ".text.imports")]
extern "C" fn accept(number: u32, callers: u32) -> Status {
    message::accept(effects(), &mut { BUS }, number, callers)
}

#[unsafe(link_section = ".text.imports")]
extern "C" fn when_cut(what: u32) -> Status {
    cut::set(effects(), &mut { BUS }, what)
}

/// To an endpoint.
#[unsafe(link_section = ".text.imports")]
extern "C" fn send_message(to: u32, arguments: *const u32, words: u32) -> Status {
    let noted = outgoing::to_endpoint(effects(), &mut { BUS }, to, words);
    written(noted.unwrap_or_default(), arguments, words)
}

/// To a domain and handler in bits 31:24 and 23:16 of `high`, of the station whose address is in
/// the rest of it and in `low`.
#[unsafe(link_section = ".text.imports")]
extern "C" fn send_wire(high: u32, low: u32, arguments: *const u32, words: u32) -> Status {
    let noted = outgoing::to_wire(effects(), &mut { BUS }, high, low, words);
    written(noted.unwrap_or_default(), arguments, words)
}

/// To a domain in bits 15:8 and a handler in bits 7:0 of the other card on the bus.
#[unsafe(link_section = ".text.imports")]
extern "C" fn send_peer(to: u32, arguments: *const u32, words: u32) -> Status {
    let noted = outgoing::to_peer(effects(), &mut { BUS }, to, words);
    written(noted.unwrap_or_default(), arguments, words)
}

/// To a handler of the own domain.
#[unsafe(link_section = ".text.imports")]
extern "C" fn post(handler: u32, arguments: *const u32, words: u32) -> Status {
    let noted = outgoing::to_itself(effects(), &mut { BUS }, handler, words);
    written(noted.unwrap_or_default(), arguments, words)
}

#[unsafe(link_section = ".text.imports")]
extern "C" fn export(number: u32, entry: u32) -> Status {
    call::export(effects(), &mut { BUS }, number, entry)
}

/// The gate: a handler calls a procedure of another extension. Returns its word, or why not above
/// it.
#[unsafe(link_section = ".text.imports")]
extern "C" fn gate(context: &ContextWords, number: u32, arguments: &[u32; 3]) -> u64 {
    let [_, domain, run] = *context;
    let [first, second, third] = *arguments;
    let caller = Caller { domain, run };
    match call::begin(&mut { BUS }, caller, number, timer::now(&mut { BUS })) {
        Ok(entry) => {
            // SAFETY: `load` has found the address among those of functions that the linker has proven
            // to keep to what a handler may do, and `init` gave it as a `spine::Procedure`, which
            // takes these words and returns one. It returns with all registers as they were, or the
            // run ends.
            let procedure: extern "C" fn(&u32, u32, u32, u32) -> u32 =
                unsafe { core::mem::transmute(entry) };
            let word = procedure(&domain, first, second, third);
            call::end(&mut { BUS }, caller, timer::now(&mut { BUS }));
            word.into()
        }
        Err(NotCalled::Over) => spine_end(CUT | Ended::Overrun as u32),
        Err(why) => u64::from(why as u32) << 32,
    }
}

/// Copies a message's arguments into its slot, if there is one.
#[unsafe(link_section = ".text.imports")]
#[inline(never)]
extern "C" fn written(slot: u32, arguments: *const u32, words: u32) -> Status {
    if slot == 0 {
        return Status::Full;
    }
    // At most 60: who has noted it has seen to that. The slice is one of the caller's.
    copy::words(&mut { BUS }, arguments as u32, slot, words << 2);
    Status::Noted
}

/// Addresses of functions.
#[repr(transparent)]
pub struct Table([*const (); interface::COUNT]);

// SAFETY: constants.
unsafe impl Sync for Table {}

/// What the host's linker finds the interfaces by, in the order of their numbers.
#[unsafe(no_mangle)]
pub static SPINE_IMPORTS: Table = {
    let mut table = [panic as *const (); interface::COUNT];
    table[Number::AddHandler as usize] = add_handler as *const ();
    table[Number::Panic as usize] = panic as *const ();
    table[Number::Now as usize] = now as *const ();
    table[Number::Patch as usize] = patch as *const ();
    table[Number::Transmit as usize] = transmit as *const ();
    table[Number::Count as usize] = count as *const ();
    table[Number::PatchThree as usize] = patch_three as *const ();
    table[Number::Keep as usize] = keep as *const ();
    table[Number::Kept as usize] = kept as *const ();
    table[Number::Words as usize] = words as *const ();
    table[Number::Send as usize] = send as *const ();
    table[Number::Release as usize] = release as *const ();
    table[Number::Accept as usize] = accept as *const ();
    table[Number::SendMessage as usize] = send_message as *const ();
    table[Number::SendWire as usize] = send_wire as *const ();
    table[Number::Post as usize] = post as *const ();
    table[Number::Forward as usize] = forward as *const ();
    table[Number::Transfer as usize] = transfer_bytes as *const ();
    table[Number::SendPeer as usize] = send_peer as *const ();
    table[Number::Export as usize] = export as *const ();
    table[Number::Call as usize] = gate as *const ();
    table[Number::WhenCut as usize] = when_cut as *const ();
    Table(table)
};
