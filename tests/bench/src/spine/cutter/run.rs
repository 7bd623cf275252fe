//! One run of CPU A, followed from the way in to the way out, and cut off on the way.

use super::super::card::{Kit, SpineCard, Text};
use super::super::stores::{Allowed, pc, register, step};
use anyhow::{Result, bail, ensure};
use host_interface::spine::lease::{NOTED, WORK};
use host_interface::spine::rings::MESSAGE_BYTES;
use host_interface::spine::{EXPORTS, HANDLERS};
use std::ops::Range;
use tigon_firmware::memory::layout::{
    MESSAGES_OUT, MESSAGES_POSTED, OUT_SLOTS, POST_SLOTS, SPINE_EXPORTS, SPINE_OUT_TO,
};
use tigon_firmware::memory::shared::{SPINE_OUT, SPINE_OUT_ROOM, SPINE_POST_ROOM, SPINE_POSTED};
use tigon_firmware::sides::spine::call::ROW_BYTES;
use tigon_firmware::sides::spine::effects::{BYTES, MESSAGES};
use tigon_firmware::sides::spine::message::callers;
use tigon2_chip::Register;
use tigon2_chip::bits::CpuState;
use tigon2_sim::Machine;
use tigon2_sim::transport::SharedMachine;

/// Cycles within which a frame has reached its handler.
const PATIENCE: u32 = 2_000_000;
/// Instructions within which a run that was cut off has ended.
const ENDING: u32 = 200_000;
/// Bytes of the words in which the way in saves registers.
const SAVED: u32 = 44;
/// Registers: the list of effects, the stack, the return address.
const A3: usize = 7;
const SP: usize = 29;
const RA: usize = 31;

/// Where the extensions' text is, and what they call; the way into a run and the way out of it;
/// where the way in saves registers.
#[derive(Clone, Debug)]
pub(super) struct Places {
    text: Text,
    imports: [Range<u32>; 3],
    /// Where transfers into a lease are noted.
    noted: Range<u32>,
    enter: u32,
    abort: u32,
    saved: u32,
}

impl Places {
    pub fn of(kit: &Kit, card: &SpineCard) -> Result<Places> {
        let noted = card.loader.peer_page() + NOTED;
        Ok(Places {
            text: card.text(),
            imports: [
                kit.symbol("_imports_start")?..kit.symbol("_imports_end")?,
                kit.symbol("_cold_imports_start")?..kit.symbol("_cold_imports_end")?,
                kit.symbol("_pad_imports_start")?..kit.symbol("_scratch_a_system_end")?,
            ],
            noted: noted..noted + (WORK - NOTED),
            saved: kit.symbol("SPINE_SAVED")?,
            enter: kit.symbol("spine_enter")?,
            abort: kit.symbol("spine_abort")?,
        })
    }
}

/// How a run was cut off.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cut {
    /// Whether there was an instruction to cut it off behind.
    pub was_cut: bool,
    /// That was in the extension's own text.
    pub in_text: bool,
    /// Stores that were looked at.
    pub stores: u64,
}

/// Whose run it is.
#[derive(Clone, Debug, Default)]
pub(super) struct Run {
    /// The domain's memory region.
    pub region: Range<u32>,
    /// Bytes of stack that it needs.
    pub stack: u32,
    /// The domain that is loaded, if it is its `init`.
    pub loads: Option<u32>,
}

impl Run {
    /// Where it may store, as it comes in.
    fn allowed(&self, machine: &Machine, places: &Places) -> Allowed {
        let (sp, effects) = (register(machine, SP), register(machine, A3));
        let mut allowed = vec![
            ("region", self.region.clone()),
            ("stack", sp - self.stack..sp),
            ("effects", effects..effects + BYTES),
            ("transfers", places.noted.clone()),
            ("saved registers", places.saved..places.saved + SAVED),
        ];
        // The slots behind those of the messages that were sent are nobody's.
        let room = machine.word(SPINE_OUT_ROOM.address());
        let sent = machine.word(SPINE_OUT.address());
        for noted in 0..MESSAGES.min(room) {
            let slot = sent.wrapping_add(noted) & (OUT_SLOTS - 1);
            let (to, message) = (SPINE_OUT_TO + slot * 4, MESSAGES_OUT + slot * MESSAGE_BYTES);
            allowed.push(("message's endpoint", to..to + 4));
            allowed.push(("message", message..message + MESSAGE_BYTES));
        }
        // Likewise those of the domain's messages to itself.
        let room = machine.word(SPINE_POST_ROOM.address());
        let posted = machine.word(SPINE_POSTED.address());
        for noted in 0..room {
            let slot = posted.wrapping_add(noted) & (POST_SLOTS - 1);
            let post = MESSAGES_POSTED + slot * MESSAGE_BYTES;
            allowed.push(("message to itself", post..post + MESSAGE_BYTES));
        }
        if let Some(domain) = self.loads {
            allowed.push(("callers", callers(domain, 0)..callers(domain, HANDLERS)));
            let exports = SPINE_EXPORTS..SPINE_EXPORTS + EXPORTS * ROW_BYTES;
            allowed.push(("exports", exports));
        }
        Allowed::new(allowed)
    }
}

/// Follows the next run of a card's CPU A from the way in to the way out, and cuts it off behind so
/// many of its instructions, if it has them.
pub(super) fn follow(
    card: &SharedMachine,
    places: &Places,
    run: &Run,
    instructions: Option<u32>,
) -> Result<Cut> {
    let mut cycles = 0;
    loop {
        let at = pc(&card.lock());
        if at == places.enter {
            break;
        }
        ensure!(cycles < PATIENCE, "no run; CPU A is at {at:#x}");
        // One cycle.
        card.pass(11);
        cycles += 1;
    }
    // Other cards stand still from here on, and catch up later.
    let machine = &mut *card.lock();
    let back = register(machine, RA);
    let allowed = run.allowed(machine, places);
    let mut cut = Cut::default();
    let mut go = |machine: &mut Machine| -> Result<()> {
        cut.stores += u64::from(step(machine, &allowed)?);
        Ok(())
    };
    while !places.text.contains(pc(machine)) {
        go(machine)?;
    }
    let mut done = 0;
    let mut how = None;
    while pc(machine) != back {
        if how.is_none() && instructions == Some(done) {
            how = Some(cut_here(machine, places));
        } else if instructions.is_some_and(|last| done > last + ENDING) {
            bail!("a run that was cut off does not end");
        }
        go(machine)?;
        done += 1;
    }
    cut.was_cut = how.is_some();
    cut.in_text = how == Some(true);
    Ok(cut)
}

/// What CPU B does to a run whose time is over; whether it was in its own text, or in what it
/// calls: anywhere else it is over by itself.
fn cut_here(machine: &mut Machine, places: &Places) -> bool {
    let at = pc(machine);
    let in_import = places.imports.iter().any(|text| text.contains(&at));
    let in_text = places.text.contains(at) || in_import;
    if in_text {
        let state = machine.bar_read(Register::CpuAState.offset());
        let halt = CpuState::new().with_halt(true).into_bits();
        machine.bar_write(Register::CpuAState.offset(), state | halt);
        machine.bar_write(Register::CpuAPc.offset(), places.abort);
        machine.bar_write(Register::CpuAState.offset(), state);
    }
    in_text
}
