//! The hardware semaphore of the two CPUs.
//!
//! Hardware reference, section 4: one semaphore with a request register for each CPU.
//! On the chip it is also the implementation of `critical-section`: there are no
//! interrupts to disable, and the only other party is the other CPU.

use crate::Bus;
use crate::events::Dispatch;
use tigon2_chip::{Cpu, Register};

/// Whether `cpu` owns the semaphore.
pub fn is_owned<B: Bus>(bus: &mut B, cpu: Cpu) -> bool {
    bus.read(Register::semaphore(cpu)) != 0
}

/// Waits until `cpu` owns the semaphore. It must not own it yet: a request by the owner
/// is a release.
pub fn acquire<B: Bus>(bus: &mut B, cpu: Cpu) {
    loop {
        bus.write(Register::semaphore(cpu), 1);
        if is_owned(bus, cpu) {
            return;
        }
    }
}

/// Gives the semaphore up. `cpu` must own it.
pub fn release<B: Bus>(bus: &mut B, cpu: Cpu) {
    bus.write(Register::semaphore(cpu), 1);
}

/// Leaves the semaphore free, whoever owned it in an earlier life.
pub fn free<B: Bus>(bus: &mut B) {
    for cpu in Cpu::ALL {
        if is_owned(bus, cpu) {
            release(bus, cpu);
        }
    }
}

/// Runs something while the CPU that runs owns the semaphore; it may own it already.
pub fn with<B: Dispatch, R>(bus: &mut B, run: impl FnOnce(&mut B) -> R) -> R {
    let cpu = bus.core(|core| core.cpu());
    let nested = is_owned(bus, cpu);
    if !nested {
        acquire(bus, cpu);
    }
    let result = run(bus);
    if !nested {
        release(bus, cpu);
    }
    result
}

#[cfg(target_arch = "mips")]
mod implementation {
    use super::*;
    use crate::Mmio;
    use critical_section::RawRestoreState;

    struct HardwareSemaphore;
    critical_section::set_impl!(HardwareSemaphore);

    // SAFETY: while a CPU owns the semaphore the other cannot acquire it (reference 4, C),
    // and code of one CPU is never interrupted (3.1). A nested acquire is recognised by
    // the ownership, and only the outermost release gives the semaphore up.
    unsafe impl critical_section::Impl for HardwareSemaphore {
        unsafe fn acquire() -> RawRestoreState {
            // SAFETY: only register accesses.
            let mut bus = unsafe { Mmio::new() };
            let cpu = bus.core(|core| core.cpu());
            let nested = is_owned(&mut bus, cpu);
            if !nested {
                acquire(&mut bus, cpu);
            }
            nested
        }

        unsafe fn release(nested: RawRestoreState) {
            if !nested {
                // SAFETY: only register accesses.
                let mut bus = unsafe { Mmio::new() };
                let cpu = bus.core(|core| core.cpu());
                release(&mut bus, cpu);
            }
        }
    }
}
