//! The hardware semaphore of the two CPUs.
//!
//! Hardware reference, section 4: one semaphore with a request register for each CPU. On the chip
//! it also implements `critical-section`: there are no interrupts to disable, and the only other
//! party is the other CPU.

use crate::Bus;
use tigon2_chip::{Cpu, Register};

/// Whether `cpu` owns the semaphore.
pub fn is_owned<B: Bus>(bus: &mut B, cpu: Cpu) -> bool {
    bus.read(Register::semaphore(cpu)) != 0
}

/// Waits until `cpu` owns the semaphore. The CPU must not own it yet: a request by the owner is a
/// release.
pub fn acquire<B: Bus>(bus: &mut B, cpu: Cpu) {
    loop {
        bus.write(Register::semaphore(cpu), 1);
        if is_owned(bus, cpu) {
            return;
        }
    }
}

/// Gives the semaphore up. `cpu` must own it. What it has stored is in SRAM before the other
/// CPU can own it.
pub fn release<B: Bus>(bus: &mut B, cpu: Cpu) {
    // Register accesses are not ordered behind buffered stores; a load is.
    let _ = bus.load(tigon2_chip::memory::MAILBOXES);
    bus.write(Register::semaphore(cpu), 1);
}

/// Frees the semaphore, regardless of its owner.
pub fn free<B: Bus>(bus: &mut B) {
    let mut free_of = |cpu| {
        if is_owned(bus, cpu) {
            bus.write(Register::semaphore(cpu), 1);
        }
    };
    free_of(Cpu::A);
    free_of(Cpu::B);
}

#[cfg(target_arch = "mips")]
mod implementation {
    use super::*;
    use crate::Mmio;
    use crate::events::Dispatch;
    use critical_section::RawRestoreState;

    struct HardwareSemaphore;

    /// The compiler moves no access of memory across this: accesses of registers say nothing
    /// to it of what they protect. CPUs of this chip need no more, since loads wait for stores
    /// in front of them (reference 3.5), and may not know `sync`, which fences become.
    #[inline(always)]
    fn barrier() {
        // SAFETY: no instruction.
        unsafe { core::arch::asm!("", options(nostack, preserves_flags)) };
    }

    critical_section::set_impl!(HardwareSemaphore);

    // SAFETY: while a CPU owns the semaphore the other cannot acquire it (reference 4, C), and
    // nothing interrupts the code of a CPU (3.1). A nested acquire sees the ownership, and only the
    // outermost release releases the semaphore.
    unsafe impl critical_section::Impl for HardwareSemaphore {
        #[inline(never)]
        unsafe fn acquire() -> RawRestoreState {
            // SAFETY: only register accesses.
            let mut bus = unsafe { Mmio::new() };
            let cpu = bus.core(|core| core.cpu());
            let nested = is_owned(&mut bus, cpu);
            if !nested {
                acquire(&mut bus, cpu);
            }
            barrier();
            nested
        }

        #[inline(never)]
        unsafe fn release(nested: RawRestoreState) {
            barrier();
            if !nested {
                // SAFETY: only register accesses.
                let mut bus = unsafe { Mmio::new() };
                let cpu = bus.core(|core| core.cpu());
                release(&mut bus, cpu);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A CPU whose stores, so many of them, wait in a buffer until it loads something.
    #[derive(Default)]
    struct Buffered {
        buffered: usize,
        /// Those that were in it when the semaphore was given up.
        overtaken: usize,
    }

    impl Bus for Buffered {
        fn read(&mut self, _: Register) -> u32 {
            1
        }
        fn write(&mut self, _: Register, _: u32) {
            self.overtaken += self.buffered;
        }
        fn load(&mut self, _: u32) -> u32 {
            self.buffered = 0;
            0
        }
        fn store(&mut self, _: u32, _: u32) {
            self.buffered += 1;
        }
        fn load_half(&mut self, _: u32) -> u16 {
            unreachable!("words only")
        }
        fn store_half(&mut self, _: u32, _: u16) {
            unreachable!("words only")
        }
        fn load_byte(&mut self, _: u32) -> u8 {
            unreachable!("words only")
        }
        fn store_byte(&mut self, _: u32, _: u8) {
            unreachable!("words only")
        }
    }

    #[test]
    fn what_was_stored_is_there_before_the_other_cpu_owns_it() {
        let mut bus = Buffered::default();
        bus.store(0x100, 1);
        release(&mut bus, Cpu::A);
        assert_eq!(bus.overtaken, 0);
    }
}
