//! Receive queues: one buffer ring and one return ring for each CPU of the host.
//!
//! This project's own, after "Packet classification in the NIC for improved SMP-based Internet
//! servers" (KNET). *Classic mode* is the published interface: one return ring, one interrupt. A
//! host opens *queue mode* while its stack is down: up to [`QUEUES_MAX`] queues, each with its own
//! rings, status line and polled mark.
//!
//! ```text
//!   extension word Queues ──► queue block (NIC memory)      what the firmware can do,
//!                             │                             counters of each queue
//!                             └ control block, host address
//!                                        │
//!                 queue control block (host memory) ────┬── queue 0: buffer ring, return ring,
//!                 classifier, hash types, key, table    │            status line, coalescing
//!                                                       └── queue 1 ...
//! ```
//!
//! The host writes the control block's address into the queue block and issues the command
//! [`QueueCommand::Open`]; an event answers with a [`QueueResult`]. The block names the mailboxes
//! of the queues ([`BlockWord::BufferMailbox`], [`BlockWord::RearmMailbox`]), so drivers need no
//! constants for them.
//!
//! | module | what | where it lives |
//! | --- | --- | --- |
//! | [`block`] | capabilities of the firmware; counters | NIC memory |
//! | [`control`] | the host's configuration | host memory |
//! | [`status`] | status line, re-arm word | host memory, mailbox |
//! | [`commands`] | commands and their events | command and event ring |
//! | [`hash`] | classifiers, types of hash, their numbers | block, control block, return BD |

pub mod block;
pub mod commands;
pub mod control;
pub mod hash;
pub mod status;

pub use block::{BlockWord, QueueCounter};
pub use commands::{QueueCommand, QueueEvent, QueueResult};
pub use control::{QueueControl, QueueControlBlock};
pub use hash::{ClassifierKind, HashType, HashTypes};
pub use status::{RearmWord, StatusLine};

/// The most queues of any firmware.
pub const QUEUES_MAX: usize = 8;
/// Bytes of the hash key: a window of 32 bits moves over 36 bytes of addresses and ports.
pub const KEY_BYTES: usize = 40;
/// Entries of the indirection table.
pub const TABLE_ENTRIES: usize = 128;
/// Fewest entries of a queue's rings.
pub const RING_ENTRIES_MIN: u32 = 64;
/// Most entries of a queue's rings.
pub const RING_ENTRIES_MAX: u32 = 512;

/// Whether a queue's buffer or return ring may have this many entries.
pub const fn is_ring_size(entries: u32) -> bool {
    entries.is_power_of_two() && entries >= RING_ENTRIES_MIN && entries <= RING_ENTRIES_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_have_64_to_512_entries() {
        let sizes: Vec<u32> = (0..=1024).filter(|size| is_ring_size(*size)).collect();
        assert_eq!(sizes, [64, 128, 256, 512]);
        assert!(!is_ring_size(u32::MAX) && !is_ring_size(1 << 31));
    }
}
