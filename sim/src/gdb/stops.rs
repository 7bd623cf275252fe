//! Breakpoints and watchpoints: addresses of instructions, and words in memory.

use crate::cpu::Place;
use crate::machine::Machine;
use crate::machine::view::Touch;
use gdbstub::target::ext::breakpoints::WatchKind;
use tigon2_chip::Cpu;

/// A piece of memory that is watched, by its address as the CPUs have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watch {
    /// The first byte.
    pub address: u32,
    /// How many.
    pub bytes: u32,
    /// What to stop for.
    pub kind: WatchKind,
}

/// All of them. No memory is changed for any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stops {
    /// Addresses of instructions.
    pub breakpoints: Vec<u32>,
    /// Pieces of memory.
    pub watches: Vec<Watch>,
}

/// What watched SRAM holds, watch by watch; `None` for what only its CPU can change.
pub type Contents = Vec<Option<Vec<u8>>>;

impl Stops {
    /// Whether there is a breakpoint at what a CPU is about to execute.
    pub fn breaks(&self, machine: &Machine, cpu: Cpu) -> bool {
        let pc = machine.cpus().core(cpu).pc();
        self.breakpoints.contains(&pc)
    }

    /// The watch that a CPU's next instruction sets off, and whether it stores.
    pub(super) fn touches(&self, machine: &mut Machine, cpu: Cpu) -> Option<(Watch, bool)> {
        if self.watches.is_empty() {
            return None;
        }
        let touch = machine.upcoming_touch(cpu)?;
        let found = self.watches.iter().find(|watch| {
            let wanted = match watch.kind {
                WatchKind::Write => touch.stores,
                WatchKind::Read => !touch.stores,
                WatchKind::ReadWrite => true,
            };
            let place = machine.place_of(cpu, watch.address);
            wanted && place.is_some_and(|place| overlap(place, watch.bytes, touch))
        });
        found.map(|watch| (*watch, touch.stores))
    }

    /// What the watched pieces of SRAM hold.
    pub(super) fn contents(&self, machine: &mut Machine) -> Contents {
        let contents = |watch: &Watch| {
            let shared = matches!(
                machine.place_of(Cpu::A, watch.address),
                Some(Place::Sram(_))
            );
            if !shared || watch.kind == WatchKind::Read {
                return None;
            }
            let mut bytes = vec![0; watch.bytes as usize];
            machine.look_at(Cpu::A, watch.address, &mut bytes);
            Some(bytes)
        };
        self.watches.iter().map(contents).collect()
    }

    /// The first watch that holds something else than it did.
    pub(super) fn changed(&self, before: &Contents, now: &Contents) -> Option<Watch> {
        let mut all = self.watches.iter().zip(before.iter().zip(now));
        all.find_map(|(watch, (before, now))| (before != now).then_some(*watch))
    }
}

fn overlap(place: Place, bytes: u32, touch: Touch) -> bool {
    let (from, to) = match (place, touch.place) {
        (Place::Sram(watched), Place::Sram(touched)) => (watched, touched),
        (Place::Scratch(watched), Place::Scratch(touched)) => (watched as u32, touched as u32),
        (Place::Register(watched), Place::Register(touched)) => (watched, touched),
        _ => return false,
    };
    from < to + touch.bytes && to < from + bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_access_overlaps_what_it_shares_a_byte_with() {
        let touch = |at, bytes| Touch {
            place: Place::Sram(at),
            bytes,
            stores: true,
        };
        for (at, bytes, hit) in [
            (0x2B4, 4, false),
            (0x2B8, 4, true),
            (0x2BB, 1, true),
            (0x2BC, 4, false),
        ] {
            assert_eq!(overlap(Place::Sram(0x2B8), 4, touch(at, bytes)), hit);
        }
        assert!(!overlap(Place::Scratch(0x2B8), 4, touch(0x2B8, 4)));
    }
}
