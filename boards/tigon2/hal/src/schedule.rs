//! Scheduling barriers: they keep work between two memory accesses.
//!
//! The store buffer holds one store (timing.md 1.1): the next store, or a load, waits until the
//! SRAM port has taken it, seven cycles and more while the engines move frames. Work in between
//! costs nothing, but a compiler moves computations to where their results are used, before the
//! access, and puts the accesses next to each other.

/// Returns `value`, computed at this place among the accesses of a [`Bus`](crate::Bus), neither
/// earlier nor later.
#[inline(always)]
#[must_use]
pub fn barrier(value: u32) -> u32 {
    #[cfg(target_arch = "mips")]
    {
        let mut value = value;
        // SAFETY: there is no instruction in it, a comment only.
        unsafe {
            core::arch::asm!("# {0}", inout(reg) value, options(nomem, nostack, preserves_flags));
        }
        value
    }
    #[cfg(not(target_arch = "mips"))]
    value
}

/// Keeps a compiler from moving accesses to variables across this place. The chip's CPUs make
/// accesses in order, so no instruction is needed; the chip has none.
#[inline(always)]
pub fn fence() {
    #[cfg(target_arch = "mips")]
    // SAFETY: there is no instruction in it, a comment only.
    unsafe {
        core::arch::asm!("# fence", options(nostack, preserves_flags));
    }
    #[cfg(not(target_arch = "mips"))]
    core::sync::atomic::fence(core::sync::atomic::Ordering::SeqCst);
}
