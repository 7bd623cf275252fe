//! The environment that an engine provides to the card, and the effects that it gets back.
//!
//! Calls that need it take an [`Environment`]: the time, NIC memory, host memory and the CPUs. The
//! card keeps nothing of it between calls.

use thiserror::Error;
use tigon2_chip::Cpu;

/// The card's external SRAM. Addresses are physical: the model has wrapped them, and a range never
/// crosses the end of the installed memory.
///
/// Bytes are in the order of the NIC's big-endian CPUs.
pub trait Sram {
    /// Copies `out.len()` bytes from `address` on.
    fn read(&self, address: u32, out: &mut [u8]);
    /// Stores `data` from `address` on.
    fn write(&mut self, address: u32, data: &[u8]);
}

/// The host has not mapped a range of an access, or not all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("host memory {address:#x}, {length} bytes: not mapped for the card")]
pub struct HostMemoryError {
    /// First host address of the access.
    pub address: u64,
    /// Bytes of the access.
    pub length: usize,
}

/// Host memory for a PCI bus master. The implementation decides which memory the card may access.
pub trait HostMemory {
    /// Copies `out.len()` bytes from bus address `address` on.
    ///
    /// # Errors
    /// [`HostMemoryError`] if any byte of the range is not mapped; `out` may then be
    /// partly written.
    fn read(&mut self, address: u64, out: &mut [u8]) -> Result<(), HostMemoryError>;
    /// Stores `data` from bus address `address` on.
    ///
    /// # Errors
    /// [`HostMemoryError`] if any byte of the range is not mapped.
    fn write(&mut self, address: u64, data: &[u8]) -> Result<(), HostMemoryError>;

    /// Whether an access to this range would have to wait. [`Device::run`](crate::Device::run) then
    /// only begins the transfer, and the engine completes it when it is ready.
    fn waits(&self, _address: u64, _length: usize) -> bool {
        false
    }
}

/// The engine's CPUs, for the host's debug registers.
pub trait CpuPort {
    /// The CPU's program counter.
    fn pc(&self, cpu: Cpu) -> u32;
    /// General register `n` (0..32).
    fn gpr(&self, cpu: Cpu, n: usize) -> u32;
    /// The word at byte `offset` of the CPU's scratch pad; the model keeps the offset
    /// aligned and inside the pad.
    fn scratch_read(&self, cpu: Cpu, offset: u32) -> u32;
    /// Stores a word at byte `offset` of the CPU's scratch pad.
    fn scratch_write(&mut self, cpu: Cpu, offset: u32, value: u32);
}

/// What the card may access during one call.
pub struct Environment<'a> {
    /// The time in nanoseconds since any fixed point; it never decreases.
    pub now: u64,
    /// NIC memory.
    pub sram: &'a mut dyn Sram,
    /// Host memory.
    pub host: &'a mut dyn HostMemory,
    /// The two CPUs.
    pub cpus: &'a mut dyn CpuPort,
}

/// What the engine has to do after a call; [`crate::Card::drain_effects`] returns them in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// INTA# is now asserted (true) or not; only changes are reported.
    Interrupt(bool),
    /// A frame left the card: at least 60 bytes, without CRC.
    Transmit(Vec<u8>),
    /// The CPU runs from `pc` on, with an empty pipeline.
    CpuStart {
        /// Which CPU.
        cpu: Cpu,
        /// Its first instruction.
        pc: u32,
    },
    /// The CPU stops after its current instruction.
    CpuHalt {
        /// Which CPU.
        cpu: Cpu,
    },
    /// The CPU's spill window moved: SRAM address = address - `base`.
    SpillBase {
        /// Which CPU.
        cpu: Cpu,
        /// The value of `R[150]` or `R[250]`: a multiple of 4 KB.
        base: u32,
    },
}
