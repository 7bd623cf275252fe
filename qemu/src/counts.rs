//! Counts errors and delays on the wire: the monitor's property `counts`.
//!
//! | name | meaning |
//! | --- | --- |
//! | `lost` | frames of the card that were lost: the netdev failed, or the machine was stopped |
//! | `full` | times that the wire was full and the transmitter waited |
//! | `refused` | times that a frame from the wire waited because the card had no room |
//! | `pauses` | pause frames that the card has sent |
//! | `offered` | times that QEMU was asked to deliver the waiting frames again |

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// The counts; they only grow. A reader may find one a moment before another.
#[derive(Debug, Default)]
pub struct Counts {
    /// Frames that the wire has lost.
    pub lost: Count,
    /// The wire was full.
    pub full: Count,
    /// A frame had to wait.
    pub refused: Count,
    /// The card sent a pause frame.
    pub pauses: Count,
    /// Waiting frames were asked for.
    pub offered: Count,
}

/// One of them.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Adds one; returns how many there were before.
    pub fn add(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }

    /// How many there are.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = [
            ("lost", &self.lost),
            ("full", &self.full),
            ("refused", &self.refused),
            ("pauses", &self.pauses),
            ("offered", &self.offered),
        ];
        let text: Vec<_> = named
            .map(|(name, count)| format!("{name}={}", count.get()))
            .into();
        f.write_str(&text.join(" "))
    }
}
