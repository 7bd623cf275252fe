//! The two CPUs.

/// One of the chip's two CPUs (reference, section 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Cpu {
    /// The CPU that the host starts.
    A = 0,
    /// The CPU that CPU A starts.
    B = 1,
}

impl Cpu {
    /// Both CPUs, A first.
    pub const ALL: [Cpu; 2] = [Cpu::A, Cpu::B];

    /// 0 for A, 1 for B.
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The other one.
    #[inline]
    pub const fn other(self) -> Cpu {
        match self {
            Cpu::A => Cpu::B,
            Cpu::B => Cpu::A,
        }
    }
}

impl core::fmt::Display for Cpu {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Cpu::A => "A",
            Cpu::B => "B",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_and_other_agree_with_the_order_of_all() {
        for (index, cpu) in Cpu::ALL.into_iter().enumerate() {
            assert_eq!(cpu.index(), index);
            assert_ne!(cpu.other(), cpu);
            assert_eq!(cpu.other().other(), cpu);
        }
    }
}
