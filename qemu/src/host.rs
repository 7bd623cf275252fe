//! QEMU behind a safe trait.
//!
//! The rest of the crate uses QEMU only through [`Host`], so it can be tested without QEMU;
//! [`Qemu`] is the implementation.

use crate::ffi::{HostOps, NEVER};
use tigon2_model::Cpu;

/// What the machine needs of QEMU.
///
/// Except where it says otherwise, a method is called with the big lock held.
pub trait Host: Send + Sync {
    /// Nanoseconds of the virtual clock. Needs no lock.
    fn now(&self) -> u64;
    /// Sets the one timer; the last call counts. Needs no lock, like what follows up to
    /// [`gpr`](Self::gpr), but for [`spill`](Self::spill).
    fn arm(&self, deadline: Option<u64>);
    /// Copies out of the installed SRAM.
    fn sram_read(&self, address: u32, out: &mut [u8]);
    /// Copies into the installed SRAM.
    fn sram_write(&self, address: u32, data: &[u8]);
    /// A word of a scratch pad.
    fn scratch_read(&self, cpu: Cpu, offset: u32) -> u32;
    /// Sets a word of a scratch pad.
    fn scratch_write(&self, cpu: Cpu, offset: u32, value: u32);
    /// Sets the SRAM offset at which a CPU's spill window starts.
    fn spill(&self, cpu: Cpu, offset: u32);
    /// Program counter of a CPU that is halted, or makes an exact access.
    fn pc(&self, cpu: Cpu) -> u32;
    /// A general register of such a CPU.
    fn gpr(&self, cpu: Cpu, number: usize) -> u32;
    /// Starts a CPU.
    fn start(&self, cpu: Cpu, pc: u32);
    /// Halts a CPU after its current instruction.
    fn halt(&self, cpu: Cpu);
    /// Operands of the last PRI that a CPU has executed since the last call, all ones if
    /// it has executed none. Needs no lock; for that CPU's thread, or while it is stopped.
    fn encoded(&self, cpu: Cpu) -> [u32; 2];
    /// Waits until starts and halts have happened. Lets go of the big lock
    /// meanwhile; not for a CPU's thread.
    fn settle(&self);
    /// A frame for the wire, without CRC. False: it was taken, but the wire is
    /// full now.
    fn transmit(&self, frame: &[u8]) -> bool;
    /// The card takes frames again after it had refused one: has the main loop offer them
    /// soon, never from within this call. Needs no lock.
    fn wire_ready(&self);
    /// Called first by a thread that is not QEMU's, without the big lock.
    fn thread_begin(&self);
    /// Called last by such a thread, without the big lock.
    fn thread_end(&self);
    /// Whether this thread holds the big lock. Needs no lock, of course.
    fn locked(&self) -> bool;
    /// Takes the big lock; called without it.
    fn lock(&self);
    /// Takes the big lock if it is free; called without it.
    fn try_lock(&self) -> bool;
    /// Gives the big lock back.
    fn unlock(&self);
    /// Has the main loop call [`Machine::deliver`](crate::machine::Machine::deliver)
    /// soon. Needs no lock.
    fn call_errands(&self);
}

/// The machine in QEMU.
pub struct Qemu {
    ops: HostOps,
}

// SAFETY: the handle in `ops` stays valid until the process ends, and QEMU's
// functions may be called from any thread that follows the rules of `ffi.h`:
// the callers of `Host` hold the big lock where it is needed.
unsafe impl Send for Qemu {}
// SAFETY: as for Send; QEMU's side is serialised by the big lock, or safe without.
unsafe impl Sync for Qemu {}

impl Qemu {
    /// The machine behind these functions.
    ///
    /// # Safety
    /// `ops` must be what QEMU's machine `tigon2` hands out, of the ABI of
    /// this crate; its functions must stay callable until the process ends.
    pub unsafe fn new(ops: HostOps) -> Self {
        Qemu { ops }
    }
}

/// Lengths inside the card's memory fit in 32 bits.
fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

// Every call in this block passes QEMU's own handle back to QEMU's own
// function (the contract of `Qemu::new`).
impl Host for Qemu {
    fn now(&self) -> u64 {
        // SAFETY: contract of `Qemu::new`.
        let now = unsafe { (self.ops.now)(self.ops.card) };
        u64::try_from(now).unwrap_or(0)
    }

    fn arm(&self, deadline: Option<u64>) {
        let deadline = deadline.map_or(NEVER, |at| i64::try_from(at).unwrap_or(NEVER));
        // SAFETY: contract of `Qemu::new`.
        unsafe { (self.ops.arm)(self.ops.card, deadline) }
    }

    fn sram_read(&self, address: u32, out: &mut [u8]) {
        // SAFETY: `out` is valid for its length; the model keeps the range
        // inside the installed SRAM.
        unsafe {
            (self.ops.sram_read)(
                self.ops.card,
                address,
                out.as_mut_ptr().cast(),
                length(out.len()),
            );
        }
    }

    fn sram_write(&self, address: u32, data: &[u8]) {
        // SAFETY: as for `sram_read`.
        unsafe {
            (self.ops.sram_write)(
                self.ops.card,
                address,
                data.as_ptr().cast(),
                length(data.len()),
            );
        }
    }

    fn scratch_read(&self, cpu: Cpu, offset: u32) -> u32 {
        // SAFETY: contract of `Qemu::new`; QEMU checks the address.
        unsafe { (self.ops.scratch_read)(self.ops.card, number(cpu), offset) }
    }

    fn scratch_write(&self, cpu: Cpu, offset: u32, value: u32) {
        // SAFETY: contract of `Qemu::new`; QEMU checks the address.
        unsafe { (self.ops.scratch_write)(self.ops.card, number(cpu), offset, value) }
    }

    fn spill(&self, cpu: Cpu, offset: u32) {
        // SAFETY: contract of `Qemu::new`; QEMU wraps the offset.
        unsafe { (self.ops.spill)(self.ops.card, number(cpu), offset) }
    }

    fn pc(&self, cpu: Cpu) -> u32 {
        // SAFETY: contract of `Qemu::new`.
        unsafe { (self.ops.pc)(self.ops.card, number(cpu)) }
    }

    fn gpr(&self, cpu: Cpu, register: usize) -> u32 {
        // SAFETY: contract of `Qemu::new`; QEMU wraps the number.
        unsafe { (self.ops.gpr)(self.ops.card, number(cpu), length(register)) }
    }

    fn start(&self, cpu: Cpu, pc: u32) {
        // SAFETY: contract of `Qemu::new`.
        unsafe { (self.ops.start)(self.ops.card, number(cpu), pc) }
    }

    fn halt(&self, cpu: Cpu) {
        // SAFETY: contract of `Qemu::new`.
        unsafe { (self.ops.halt)(self.ops.card, number(cpu)) }
    }

    fn encoded(&self, cpu: Cpu) -> [u32; 2] {
        let mut operands = [0; 2];
        // SAFETY: contract of `Qemu::new`; there is room for both.
        unsafe { (self.ops.encoded)(self.ops.card, number(cpu), operands.as_mut_ptr()) }
        operands
    }

    fn settle(&self) {
        // SAFETY: contract of `Qemu::new`.
        unsafe { (self.ops.settle)(self.ops.card) }
    }

    fn transmit(&self, frame: &[u8]) -> bool {
        // SAFETY: `frame` is valid for its length; QEMU copies it.
        unsafe { (self.ops.transmit)(self.ops.card, frame.as_ptr().cast(), frame.len()) }
    }

    fn wire_ready(&self) {
        // SAFETY: contract of `Qemu::new`.
        unsafe { (self.ops.wire_ready)(self.ops.card) }
    }

    fn thread_begin(&self) {
        // SAFETY: contract of `Qemu::new`.
        unsafe { (self.ops.thread_begin)(self.ops.card) }
    }

    fn thread_end(&self) {
        // SAFETY: contract of `Qemu::new`.
        unsafe { (self.ops.thread_end)(self.ops.card) }
    }

    fn locked(&self) -> bool {
        // SAFETY: contract of `Qemu::new`.
        unsafe { (self.ops.locked)(self.ops.card) }
    }

    fn lock(&self) {
        // SAFETY: contract of `Qemu::new`; the caller does not hold the lock.
        unsafe { (self.ops.lock)(self.ops.card) }
    }

    fn try_lock(&self) -> bool {
        // SAFETY: as for `lock`.
        unsafe { (self.ops.try_lock)(self.ops.card) }
    }

    fn unlock(&self) {
        // SAFETY: contract of `Qemu::new`; the caller holds the lock.
        unsafe { (self.ops.unlock)(self.ops.card) }
    }

    fn call_errands(&self) {
        // SAFETY: contract of `Qemu::new`.
        unsafe { (self.ops.call_errands)(self.ops.card) }
    }
}

fn number(cpu: Cpu) -> u32 {
    cpu as u32
}
