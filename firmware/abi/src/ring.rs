//! Sizes of the rings and arithmetic on their indices.
//!
//! Host/NIC software interface, "General information block", last paragraphs. A ring is
//! empty when producer and consumer are equal, so it holds one entry less than its size.
//!
//! | ring | entries | bytes each | producer | consumer |
//! | --- | --- | --- | --- | --- |
//! | event | 256 | 8 | NIC, by DMA | host, gencom |
//! | command | 64 | 4 | host, mailbox 1 | NIC, gencom |
//! | send | 128, 256 or 512 | 16 | host, mailbox 2 | NIC, by DMA and extension word |
//! | standard | 512 | 32 | host, mailbox 3 | NIC (not reported) |
//! | jumbo | 256 | 32 or 64 | host, mailbox 4 | NIC (not reported) |
//! | mini | 1024 | 32 | host, mailbox 5 | NIC (not reported) |
//! | receive return | 2048 or 1024 | 32 | NIC, by DMA | host, gencom |

/// Entries of the event ring.
pub const EVENT_ENTRIES: u32 = 256;
/// Bytes of an event.
pub const EVENT_BYTES: u32 = 8;
/// Entries of the command ring.
pub const COMMAND_ENTRIES: u32 = 64;
/// Bytes of a command.
pub const COMMAND_BYTES: u32 = 4;
/// The permitted sizes of a send ring.
pub const SEND_SIZES: [u32; 3] = [128, 256, 512];
/// Entries of the largest send ring.
pub const SEND_ENTRIES_MAX: u32 = 512;
/// Entries of the standard receive ring.
pub const STANDARD_ENTRIES: u32 = 512;
/// Entries of the jumbo receive ring.
pub const JUMBO_ENTRIES: u32 = 256;
/// Entries of the mini receive ring.
pub const MINI_ENTRIES: u32 = 1024;
/// Entries of the receive return ring; 0 means this size as well.
pub const RETURN_ENTRIES: u32 = 2048;
/// Entries of the small receive return ring, for hosts without a mini ring.
pub const RETURN_ENTRIES_SMALL: u32 = 1024;

/// NIC address of the send ring copy of a size; `None` for an invalid size. The ring ends at
/// 0x4000, where firmware starts.
pub const fn nic_send_ring(entries: u32) -> Option<u32> {
    match entries {
        128 => Some(0x3800),
        256 => Some(0x3000),
        512 => Some(0x2000),
        _ => None,
    }
}

/// Entries of a receive return ring with this `max_len`; `None` for an invalid size.
pub const fn return_entries(max_len: u16) -> Option<u32> {
    match max_len {
        0 | 2048 => Some(RETURN_ENTRIES),
        1024 => Some(RETURN_ENTRIES_SMALL),
        _ => None,
    }
}

/// The index `count` entries after `index`; `entries` is a power of two.
pub const fn advance(index: u32, count: u32, entries: u32) -> u32 {
    index.wrapping_add(count) & (entries - 1)
}

/// The number of entries from `consumer` to `producer`; `entries` is a power of two.
pub const fn used(producer: u32, consumer: u32, entries: u32) -> u32 {
    producer.wrapping_sub(consumer) & (entries - 1)
}

/// The number of free entries; `entries` is a power of two.
pub const fn free(producer: u32, consumer: u32, entries: u32) -> u32 {
    entries - 1 - used(producer, consumer, entries)
}

const _: () = {
    assert!(EVENT_ENTRIES.is_power_of_two() && COMMAND_ENTRIES.is_power_of_two());
    assert!(STANDARD_ENTRIES.is_power_of_two() && JUMBO_ENTRIES.is_power_of_two());
    assert!(MINI_ENTRIES.is_power_of_two() && RETURN_ENTRIES.is_power_of_two());
    let mut index = 0;
    while index < SEND_SIZES.len() {
        let base = nic_send_ring(SEND_SIZES[index]);
        assert!(matches!(base, Some(base) if base + 16 * SEND_SIZES[index] == 0x4000));
        index += 1;
    }
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_go_round() {
        assert_eq!(advance(511, 1, 512), 0);
        assert_eq!(used(3, 510, 512), 5);
        assert_eq!(used(7, 7, 512), 0);
        assert_eq!(free(7, 7, 512), 511);
        assert_eq!(free(6, 7, 512), 0);
    }

    /// "return ring = 2048 or 1024 (0 means 2048)".
    #[test]
    fn return_ring_sizes() {
        assert_eq!(return_entries(0), Some(2048));
        assert_eq!(return_entries(2048), Some(2048));
        assert_eq!(return_entries(1024), Some(1024));
        assert_eq!(return_entries(512), None);
    }
}
