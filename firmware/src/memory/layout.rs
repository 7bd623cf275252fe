//! What lies where in SRAM.
//!
//! ```text
//! 0x00_0000  mailboxes, gencom, command ring          (the host sees them in its BAR)
//! 0x00_2000  send BDs, 512 x 16                       (hardware reference, section 2.1)
//! 0x00_4000  image and variables                      (linker/*.x)
//! 0x01_AE00  hash tables of the receive queues, where the variant has queues: while these are
//!            open, also in place of the classic return BDs
//! 0x01_B000  the tables below
//! K          descriptor and buffer block              (hardware reference, section 2.2)
//! 0x20_0000  end of packet memory
//! ```
//!
//! The tables lie at fixed addresses, apart from Rust's variables: the DMA channels and
//! the host write them.

use host_interface::queue::{QUEUES_MAX, block::BLOCK_BYTES, control::CONTROL_BYTES};
use host_interface::{custom_counters, log};
use tigon2_chip::memory::{FIRMWARE_BASE, PACKET_MEMORY_END, block};

/// First byte of the tables, end of the image.
pub const TABLES: u32 = 0x1_B000;
/// Where return BDs are made, a ring beside the host's: [`RETURN_SLOTS`] of 32 bytes, each
/// for the entries of the host's ring with that number modulo as many.
pub const RETURN_BDS: u32 = TABLES;
/// How many return BDs there is room for. Two for each write descriptor, see
/// `path::receive`.
pub const RETURN_SLOTS: u32 = 128;
/// Copies of the standard receive BDs, each in the place of its index.
pub const STANDARD_BDS: u32 = RETURN_BDS + RETURN_SLOTS * 32;
/// Room for the jumbo receive BDs, 256 x 64.
pub const JUMBO_BDS: u32 = STANDARD_BDS + 512 * 32;
/// Room for the mini receive BDs, 1024 x 32.
pub const MINI_BDS: u32 = JUMBO_BDS + 256 * 64;
/// What small write transfers carry, 32 bytes for each DMA write descriptor.
pub const STAGING: u32 = MINI_BDS + 1024 * 32;
/// The statistics block as the host gets it.
pub const STATISTICS: u32 = STAGING + 64 * 32;
/// The host's general information block, fetched at start.
pub const INFORMATION: u32 = STATISTICS + 1024;
/// Handler counts for the host.
pub const HANDLER_COUNTS: u32 = INFORMATION + 0x500;
/// Drop counts for the host.
pub const DROP_COUNTS: u32 = HANDLER_COUNTS + 0x80;
/// Multicast addresses, 8 bytes each.
pub const MULTICAST_LIST: u32 = DROP_COUNTS + 0x80;
/// How many multicast addresses there is room for.
pub const MULTICAST_ENTRIES: u32 = 64;
/// The trace ring.
pub const TRACE: u32 = (MULTICAST_LIST + MULTICAST_ENTRIES * 8).next_multiple_of(32);
/// Bytes of the trace ring, a power of two.
pub const TRACE_BYTES: u32 = 128 * 32;
/// What the last event before a halt needs: the state word of its transfers (0: there is
/// no event ring), the event producer index that the host was told, and room for what is
/// moved.
pub const LAST_EVENT: u32 = TRACE + TRACE_BYTES;
/// Handler counts when the profile was cleared last.
pub const PROFILE: u32 = LAST_EVENT + 32;
/// Words that both CPUs see, see [`shared`](super::shared).
pub const SHARED: u32 = PROFILE + 0x80;
/// End of those.
pub const SHARED_END: u32 = SHARED + 0x80;
/// The log block: rings of messages, and what is recorded.
pub const LOG: u32 = SHARED_END;
/// Counts of a changed handler's own, see `record::custom_counters`.
pub const CUSTOM_COUNTERS: u32 = LOG + log::BLOCK_BYTES;
/// End of the tables.
pub const TABLES_END: u32 = CUSTOM_COUNTERS + custom_counters::BYTES;

/// Receive queues that can be opened; 0 in firmware that has none: the uniprocessor variant
/// has no room in its scratch pad for them, and more CPUs do not sort.
pub const QUEUES: usize = if cfg!(any(not(target_arch = "mips"), feature = "parallel")) {
    QUEUES_MAX
} else {
    0
};
/// BDs of a queue that are in NIC memory at most; as many return BDs are made there.
pub const QUEUE_WINDOW: u32 = 128;
/// How far a queue's number is shifted to find its rings.
pub const QUEUE_SHIFT: u32 = 13;
/// Rings of the queues, 8 KB each: [`QUEUE_WINDOW`] copies of BDs, then as many slots in which
/// return BDs are made. They lie where classic mode has its copies of BDs, which are fetched
/// again when the queues are closed.
pub const QUEUE_RINGS: u32 = STANDARD_BDS;
/// Distance of a queue's return slots from its copies of BDs.
pub const QUEUE_SLOTS: u32 = QUEUE_WINDOW * 32;
/// The tables that a hash is looked up in, 16 words for each half byte of what is hashed. Most of
/// them lie where classic mode makes its return BDs, [`RETURN_BDS`].
pub const HASH_TABLES: u32 = STANDARD_BDS - 72 * 64;
/// The queue block, see [`host_interface::queue::block`].
pub const QUEUE_BLOCK: u32 = TABLES_END.next_multiple_of(32);
/// The queue control block as it was read from the host.
pub const QUEUE_CONTROL: u32 = QUEUE_BLOCK + BLOCK_BYTES;
/// The indirection table, a byte for each entry.
pub const INDIRECTION: u32 = QUEUE_CONTROL + CONTROL_BYTES as u32;
/// Words of the queues that both CPUs see.
pub const QUEUE_SHARED: u32 = INDIRECTION + 128;
/// End of those.
pub const QUEUE_SHARED_END: u32 = QUEUE_SHARED + 0x80;

/// Distance of the block's base K from the lowest alias of SRAM below
/// [`PACKET_MEMORY_END`]: vendor's choice (hardware reference, section 2.2).
pub const BLOCK_OFFSET: u32 = 0x2_F000;

/// Base K of the descriptor and buffer block for an SRAM of `bytes`: the block ends at
/// [`PACKET_MEMORY_END`] and begins behind the tables, in an alias where SRAM is smaller
/// than 2 MB.
pub const fn block_base(bytes: u32) -> u32 {
    let used = if bytes > PACKET_MEMORY_END {
        PACKET_MEMORY_END
    } else {
        bytes
    };
    PACKET_MEMORY_END - used + BLOCK_OFFSET
}

const _: () = {
    assert!(TABLES > FIRMWARE_BASE);
    assert!(TABLES_END <= BLOCK_OFFSET);
    assert!(LOG.is_multiple_of(32) && RETURN_BDS.is_multiple_of(32));
    assert!(INFORMATION.is_multiple_of(8) && STAGING.is_multiple_of(32));
    assert!(TRACE_BYTES.is_power_of_two());
    assert!(BLOCK_OFFSET.is_multiple_of(block::ALIGNMENT));
    assert!(QUEUE_SHARED_END <= BLOCK_OFFSET);
    assert!(QUEUE_SLOTS * 2 == 1 << QUEUE_SHIFT);
    assert!(QUEUE_RINGS + ((QUEUES_MAX as u32) << QUEUE_SHIFT) == STAGING);
    assert!(QUEUE_CONTROL.is_multiple_of(8) && QUEUE_BLOCK.is_multiple_of(4));
    // With 512 KB the packet buffers still get more than half of it.
    assert!(PACKET_MEMORY_END - block_base(0x8_0000) - block::PACKET_BUFFERS > 0x4_0000);
};

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference 2.2: K is 0x12F000 with 1 MB of SRAM.
    #[test]
    fn the_block_is_where_the_reference_puts_it() {
        assert_eq!(block_base(0x10_0000), 0x12_F000);
        assert_eq!(block_base(0x8_0000), 0x1A_F000);
        assert_eq!(block_base(0x20_0000), 0x2_F000);
        assert_eq!(block_base(0x80_0000), 0x2_F000);
    }
}
