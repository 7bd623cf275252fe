//! Keeping work between two accesses.
//!
//! The store buffer holds one store (timing.md 1.1): the next one, or a load, waits until the
//! SRAM port has taken it, seven cycles and more while the engines move frames. What is
//! computed meanwhile costs nothing, but a compiler collects computations where their results
//! are used, in front of the access, and the accesses one behind the other.

/// The value, computed at this place of the program among the accesses of a
/// [`Bus`](crate::Bus): not further up, not further down.
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

/// Keeps a compiler from moving accesses to variables over this place of the program. The
/// chip's CPUs make theirs in order, so that no instruction is needed: it has none for it.
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
