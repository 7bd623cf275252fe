//! What CPU A stores while a run is in work, and where it may.
//!
//! From the way in to the way out CPU A is followed instruction by instruction. Each store is
//! decoded before it is executed. A run may store into its own region, its stack, the list of
//! what it asks for, slots for messages and transfers that are nobody's until it returns, and the
//! words in which the runtime keeps the registers of the dispatch loop; an `init` also into the
//! words that say who may call its handlers. So what a run does not return from has changed
//! nothing else.

use anyhow::{Result, bail};
use std::ops::Range;
use tigon2_chip::Cpu;
use tigon2_sim::Machine;

/// Cycles that an instruction may wait.
const PATIENCE: u32 = 1000;

/// Where a run may store.
#[derive(Clone, Debug)]
pub struct Allowed(Vec<(&'static str, Range<u32>)>);

impl Allowed {
    /// These places, each with a name.
    pub fn new(places: Vec<(&'static str, Range<u32>)>) -> Allowed {
        Allowed(places)
    }

    fn holds(&self, at: u32, bytes: u32) -> bool {
        let inside = |place: &Range<u32>| place.start <= at && at + bytes <= place.end;
        self.0.iter().any(|(_, place)| inside(place))
    }
}

/// Program counter of CPU A.
pub fn pc(machine: &Machine) -> u32 {
    machine.cpus().core(Cpu::A).pc()
}

/// A register of CPU A.
pub fn register(machine: &Machine, number: usize) -> u32 {
    machine.cpus().core(Cpu::A).gpr(number)
}

/// Address and bytes of what the next instruction of CPU A stores, if it is a store.
pub fn store(machine: &mut Machine) -> Option<(u32, u32)> {
    let mut word = [0; 4];
    let at = pc(machine);
    machine.look_at(Cpu::A, at, &mut word);
    let word = u32::from_be_bytes(word);
    let bytes = match word >> 26 {
        0x28 => 1,
        0x29 => 2,
        0x2B => 4,
        _ => return None,
    };
    let base = register(machine, (word >> 21 & 31) as usize);
    Some((base.wrapping_add_signed(i32::from(word as i16)), bytes))
}

/// Lets CPU A execute one instruction; returns whether it was a store.
///
/// # Errors
/// If it stores where it must not, or stands still.
pub fn step(machine: &mut Machine, allowed: &Allowed) -> Result<bool> {
    let stores = store(machine);
    if let Some((at, bytes)) = stores
        && !allowed.holds(at, bytes)
    {
        bail!(
            "the instruction at {:#x} stores {bytes} bytes at {at:#x}, which is none of {:x?}",
            pc(machine),
            allowed.0
        );
    }
    let retired = machine.cpus().core(Cpu::A).retired();
    for _ in 0..PATIENCE {
        machine.run(1);
        if machine.cpus().core(Cpu::A).retired() != retired {
            return Ok(stores.is_some());
        }
    }
    bail!("CPU A stands at {:#x}", pc(machine));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_lies_in_one_place_with_all_its_bytes() {
        let allowed = Allowed::new(vec![("region", 0x100..0x108), ("stack", 0x108..0x110)]);
        assert!(allowed.holds(0x100, 4) && allowed.holds(0x10C, 4) && allowed.holds(0x107, 1));
        for (at, bytes) in [(0xFC, 4), (0x110, 1), (0x10E, 4), (0x106, 4)] {
            assert!(!allowed.holds(at, bytes), "{at:#x}");
        }
    }
}
