//! The one hardware semaphore, behind two request registers.
//!
//! Hardware reference, section 4: `R[48]` requests or releases for CPU A, `R[4C]` for CPU B.
//! Either CPU can access both.

use tigon2_chip::Cpu;

/// Who owns the semaphore.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Semaphore {
    owner: Option<Cpu>,
}

impl Semaphore {
    /// A write of any value to the CPU's request register: releases the semaphore if the CPU owns
    /// it, takes it if it is free, otherwise does nothing (4, C).
    pub fn write(&mut self, cpu: Cpu) {
        match self.owner {
            Some(owner) if owner == cpu => self.owner = None,
            Some(_) => {}
            None => self.owner = Some(cpu),
        }
    }

    /// A read of the CPU's request register: non-zero iff the CPU owns the semaphore (4, C).
    pub fn read(&self, cpu: Cpu) -> u32 {
        u32::from(self.owner == Some(cpu))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference 4: acquire = loop { write; read; until non-zero }, release = write (C).
    #[test]
    fn one_owner_at_a_time() {
        let mut semaphore = Semaphore::default();
        assert_eq!(semaphore.read(Cpu::A), 0);
        semaphore.write(Cpu::A);
        assert_ne!(semaphore.read(Cpu::A), 0);
        semaphore.write(Cpu::B);
        assert_eq!(
            semaphore.read(Cpu::B),
            0,
            "A owns it: B's request has no effect"
        );
        semaphore.write(Cpu::A);
        assert_eq!(semaphore.read(Cpu::A), 0);
        assert_eq!(
            semaphore.read(Cpu::B),
            0,
            "a lost request is not remembered"
        );
        semaphore.write(Cpu::B);
        assert_ne!(semaphore.read(Cpu::B), 0);
    }

    /// Reference 4: start-up leaves it free whoever owned it: write A, read; if set write
    /// again, else once more, then write B (C).
    #[test]
    fn the_start_up_sequence_frees_it_from_any_state() {
        for owner in [None, Some(Cpu::A), Some(Cpu::B)] {
            let mut semaphore = Semaphore { owner };
            let mut freed = false;
            for _ in 0..2 {
                semaphore.write(Cpu::A);
                if semaphore.read(Cpu::A) != 0 {
                    semaphore.write(Cpu::A);
                    freed = true;
                    break;
                }
            }
            if !freed {
                semaphore.write(Cpu::B);
            }
            assert_eq!(semaphore, Semaphore::default(), "was {owner:?}");
        }
    }
}
