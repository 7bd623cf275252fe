//! The two CPUs, and those of a board beyond the chip.

/// One of the chip's two CPUs (reference, section 1), or one that only a board [beyond the
/// chip](crate::beyond) has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Cpu {
    /// The CPU that the host starts.
    A = 0,
    /// The CPU that CPU A starts.
    B = 1,
    /// Not on the chip.
    C = 2,
    /// Not on the chip.
    D = 3,
    /// Not on the chip.
    E = 4,
    /// Not on the chip.
    F = 5,
}

impl Cpu {
    /// Both CPUs of the chip, A first.
    pub const ALL: [Cpu; 2] = [Cpu::A, Cpu::B];

    /// The most CPUs of a board.
    pub const MOST: usize = 6;

    /// All CPUs of the largest board, A first.
    pub const EVERY: [Cpu; Cpu::MOST] = [Cpu::A, Cpu::B, Cpu::C, Cpu::D, Cpu::E, Cpu::F];

    /// The first `count` CPUs.
    #[inline]
    pub fn first(count: usize) -> &'static [Cpu] {
        const EVERY: &[Cpu] = &Cpu::EVERY;
        EVERY.get(..count).unwrap_or(EVERY)
    }

    /// 0 for A, 1 for B, and so on.
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The other one of the chip's two CPUs; for a further CPU its neighbour.
    #[inline]
    pub const fn other(self) -> Cpu {
        match self {
            Cpu::A => Cpu::B,
            Cpu::B => Cpu::A,
            Cpu::C => Cpu::D,
            Cpu::D => Cpu::C,
            Cpu::E => Cpu::F,
            Cpu::F => Cpu::E,
        }
    }
}

impl core::fmt::Display for Cpu {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Cpu::A => "A",
            Cpu::B => "B",
            Cpu::C => "C",
            Cpu::D => "D",
            Cpu::E => "E",
            Cpu::F => "F",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_and_other_agree_with_the_order_of_all() {
        for (index, cpu) in Cpu::EVERY.into_iter().enumerate() {
            assert_eq!(cpu.index(), index);
            assert_ne!(cpu.other(), cpu);
            assert_eq!(cpu.other().other(), cpu);
        }
    }
}
