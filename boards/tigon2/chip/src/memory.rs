//! The address map as a CPU sees it, and the NIC memory with fixed meaning.
//!
//! Hardware reference, section 2.
//!
//! ```text
//! 0x0000_0000  SRAM, wraps at the installed size up to 8 MB
//! 0x0080_0000  stack spill window into SRAM, one base per CPU
//! 0x00C0_0000  private scratch pad: 16 KB for CPU A, 8 KB for CPU B
//! 0xC000_0000  registers, 32-bit accesses only
//! ```

use crate::Cpu;
use core::ops::Range;

/// External SRAM's address range: addresses below this wrap at the installed size (2, C!).
pub const SRAM_MAX_BYTES: u32 = 0x0080_0000;

/// Stack spill window: SRAM address = address - the CPU's spill base register, modulo
/// the SRAM's size (2, C!). The lower bound is a choice: only 0x00BF_F000 upwards was seen (U).
pub const SPILL_WINDOW: Range<u32> = 0x0080_0000..0x00C0_0000;

/// Start of the private scratch pad, the same address for both CPUs (2, C).
pub const SCRATCH_BASE: u32 = 0x00C0_0000;

/// CPU A's scratch pad in bytes (2, C).
pub const SCRATCH_A_BYTES: u32 = 0x4000;

/// CPU B's scratch pad in bytes (2, C).
pub const SCRATCH_B_BYTES: u32 = 0x2000;

/// Boot PROM space (2, I).
pub const BOOT_PROM_BASE: u32 = 0x4000_0000;

/// Flash space, one byte in bits 31:24 of each word (2, I).
pub const FLASH_BASE: u32 = 0x8000_0000;

/// On-chip registers; the offsets are those of the host's BAR (2, C).
pub const REGISTERS_BASE: u32 = 0xC000_0000;

/// Size of the register page in bytes (2, C).
pub const REGISTERS_BYTES: u32 = 0x400;

/// MAC statistics, which the MAC counts in SRAM (2.1, C).
pub const MAC_STATISTICS: u32 = 0x80;

/// Size of the MAC statistics in bytes (2.1, C).
pub const MAC_STATISTICS_BYTES: u32 = 0x80;

/// 32 mailboxes of 8 bytes (2.1, C).
pub const MAILBOXES: u32 = 0x100;

/// General communication area, plain memory defined by software (2.1, C).
pub const GENCOM: u32 = 0x200;

/// Command ring of 64 words, defined by software (2.1, C).
pub const COMMAND_RING: u32 = 0x300;

/// NIC-resident copy of the send ring, 8 KB (2.1, C).
pub const NIC_SEND_RING: u32 = 0x2000;

/// Lowest address of firmware (2.1, C).
pub const FIRMWARE_BASE: u32 = 0x4000;

/// The RX packet buffer ends here; with less SRAM this is an alias (2.2, C).
pub const PACKET_MEMORY_END: u32 = 0x0020_0000;

/// NIC memory that the host sees directly in the BAR: 0..this (2.1, C).
pub const DIRECT_BYTES: u32 = 0x400;

/// The descriptor/buffer block of reference 2.2, as offsets from its 4 KB aligned base K.
///
/// Keep this relative layout: the register that holds the base of the DMA rings is unknown, and
/// all candidate rules agree on this layout (6.3).
pub mod block {
    /// CPU A's stack spill (C).
    pub const SPILL_A: u32 = 0x0000;
    /// CPU B's stack spill (C).
    pub const SPILL_B: u32 = 0x1000;
    /// Size of each stack spill in bytes (C).
    pub const SPILL_BYTES: u32 = 0x1000;
    /// Not used by the chip (C).
    pub const SPARE: u32 = 0x2000;
    /// Size of the spare part in bytes (C).
    pub const SPARE_BYTES: u32 = 0x800;
    /// MAC TX descriptor ring (C).
    pub const MAC_TX_RING: u32 = 0x2800;
    /// Size of the MAC TX descriptor ring: 256 x 8 bytes (C).
    pub const MAC_TX_RING_BYTES: u32 = 0x800;
    /// MAC RX descriptor ring (C).
    pub const MAC_RX_RING: u32 = 0x3000;
    /// Size of the MAC RX descriptor ring: 512 x 8 bytes (C).
    pub const MAC_RX_RING_BYTES: u32 = 0x1000;
    /// DMA read (host to NIC) descriptor ring (C).
    pub const DMA_READ_RING: u32 = 0x4000;
    /// DMA write (NIC to host) descriptor ring (C).
    pub const DMA_WRITE_RING: u32 = 0x4800;
    /// Size of each DMA descriptor ring: 64 x 32 bytes (C).
    pub const DMA_RING_BYTES: u32 = 0x800;
    /// TX packet buffer; it ends at the RX buffer, which ends at
    /// [`PACKET_MEMORY_END`](super::PACKET_MEMORY_END) (C).
    pub const PACKET_BUFFERS: u32 = 0x5000;
    /// Alignment of the block's base K in bytes.
    pub const ALIGNMENT: u32 = 0x1000;

    /// The value of a CPU's spill base register that maps its top page of the spill window to its
    /// spill area of the block at `k` (2.2, C): 0x00BF_F000 - K for CPU A, 0x00BF_E000 - K for CPU
    /// B.
    pub const fn spill_base(cpu: crate::Cpu, k: u32) -> u32 {
        match cpu {
            crate::Cpu::A => 0x00BF_F000 - k,
            // A board beyond the chip has no further spill areas.
            _ => 0x00BF_E000 - k,
        }
    }
}

/// Size of a CPU's scratch pad in bytes.
pub const fn scratch_bytes(cpu: Cpu) -> u32 {
    match cpu {
        Cpu::A => SCRATCH_A_BYTES,
        _ => SCRATCH_B_BYTES,
    }
}

const _: () = {
    assert!(SPILL_WINDOW.start == SRAM_MAX_BYTES);
    assert!(SPILL_WINDOW.end == SCRATCH_BASE);
    assert!(MAC_STATISTICS + MAC_STATISTICS_BYTES == MAILBOXES);
    assert!(MAILBOXES + 32 * 8 == GENCOM);
    assert!(COMMAND_RING + 64 * 4 == DIRECT_BYTES);
    assert!(block::SPILL_A + block::SPILL_BYTES == block::SPILL_B);
    assert!(block::SPILL_B + block::SPILL_BYTES == block::SPARE);
    assert!(block::SPARE + block::SPARE_BYTES == block::MAC_TX_RING);
    assert!(block::MAC_TX_RING + block::MAC_TX_RING_BYTES == block::MAC_RX_RING);
    assert!(block::MAC_RX_RING + block::MAC_RX_RING_BYTES == block::DMA_READ_RING);
    assert!(block::DMA_READ_RING + block::DMA_RING_BYTES == block::DMA_WRITE_RING);
    assert!(block::DMA_WRITE_RING + block::DMA_RING_BYTES == block::PACKET_BUFFERS);
};

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference 2.2: with 1 MB the vendor's K is 0x12F000 and both spill areas are
    /// reached through the last page of the window (C).
    #[test]
    fn the_last_page_of_the_spill_window_is_each_cpus_own_spill_area() {
        let k = 0x12_F000;
        let stack = 0x00BF_F000;
        assert_eq!(stack - block::spill_base(Cpu::A, k), k + block::SPILL_A);
        assert_eq!(stack - block::spill_base(Cpu::B, k), k + block::SPILL_B);
    }

    /// Reference 2: 16 KB for A, 8 KB for B (C).
    #[test]
    fn scratch_pads_have_their_own_sizes() {
        assert_eq!(scratch_bytes(Cpu::A), 16 * 1024);
        assert_eq!(scratch_bytes(Cpu::B), 8 * 1024);
    }
}
