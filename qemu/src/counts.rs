//! What went wrong on the wire or had to wait, counted: the monitor's property `counts`.
//!
//! | name | what |
//! | --- | --- |
//! | `lost` | frames of the card that the wire has lost: the netdev failed, or the machine stood still |
//! | `full` | times that the wire was full and the transmitter waited |
//! | `refused` | times that a frame from the wire had to wait for room in the card |
//! | `offered` | times that the frames that wait were asked for again |

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
            ("offered", &self.offered),
        ];
        let text: Vec<_> = named
            .map(|(name, count)| format!("{name}={}", count.get()))
            .into();
        f.write_str(&text.join(" "))
    }
}
