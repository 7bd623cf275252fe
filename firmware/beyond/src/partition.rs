//! The partition: which CPU has which events.

use tigon_firmware::events::handled;
use tigon2_chip::Cpu;
use tigon2_chip::events::EventBit;

/// How frames are divided between the CPUs of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partition {
    /// One worker runs the handler of frames, and CPU A or CPU B all others.
    ByHandler,
    /// Every CPU of the group runs the handler of frames, each for some of them.
    ByPacket,
}

/// The fewest CPUs that the firmware needs.
pub const LEAST: u32 = 4;

impl Partition {
    /// How many of a board's CPUs participate.
    pub const fn cpus(self, there: u32) -> u32 {
        match self {
            Partition::ByHandler if there > LEAST => LEAST,
            _ => there,
        }
    }

    /// The events of a CPU among the enabled events of its group, including its doorbell.
    pub const fn events(self, cpu: Cpu) -> u32 {
        let side = side(cpu);
        let (frames, bell) = match side {
            Cpu::A => (EventBit::ReceiveComplete, EventBit::DoorbellA),
            _ => (EventBit::SendDataReady, EventBit::DoorbellB),
        };
        if is_worker(cpu) {
            return frames.mask() | bell.mask();
        }
        match self {
            Partition::ByHandler => handled(side) & !frames.mask(),
            Partition::ByPacket => handled(side),
        }
    }
}

/// CPU A or CPU B: the side that a CPU works on.
pub const fn side(cpu: Cpu) -> Cpu {
    if cpu as u32 & 1 == 0 { Cpu::A } else { Cpu::B }
}

/// Whether it handles only frames.
pub const fn is_worker(cpu: Cpu) -> bool {
    cpu as u32 > Cpu::B as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All events of a side have a CPU, and those of no frames have one alone.
    #[test]
    fn each_event_has_a_cpu() {
        for partition in [Partition::ByHandler, Partition::ByPacket] {
            for of in [Cpu::A, Cpu::B] {
                let group = Cpu::EVERY.into_iter().filter(|cpu| side(*cpu) == of);
                let all = group.fold(0, |all, cpu| all | partition.events(cpu));
                assert_eq!(all, handled(of), "{partition:?} {of:?}");
            }
        }
        let frames = EventBit::ReceiveComplete.mask();
        assert_eq!(Partition::ByHandler.events(Cpu::A) & frames, 0);
        assert_eq!(Partition::ByPacket.events(Cpu::A) & frames, frames);
        assert_eq!(
            (Partition::ByHandler.cpus(6), Partition::ByPacket.cpus(6)),
            (4, 6)
        );
    }
}
