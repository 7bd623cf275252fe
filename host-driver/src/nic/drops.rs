//! Frames that the driver did not deliver or send, by reason.

use serde::Serialize;

/// Why the driver dropped a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[repr(usize)]
pub enum DropReason {
    /// A return BD names a buffer that does not exist.
    BadIndex = 0,
    /// A return BD does not carry the mark of its buffer.
    BadMark,
    /// A return BD in a queue's ring names another queue, or no hash type.
    BadQueue,
    /// A return BD names a buffer that was already returned.
    Stale,
    /// The frame is longer than its buffer.
    TooLong,
    /// The frame is shorter than an Ethernet header.
    TooShort,
    /// The card marked the frame as damaged.
    FrameError,
    /// The card's sums show that the frame is damaged.
    BadChecksum,
    /// The user of the driver had no room for the frame (a full TAP queue).
    NoTaker,
    /// A frame from the driver's user cannot be sent (longer than the MTU).
    Unsendable,
    /// The card had the frame when it was reset.
    LostInReset,
}

impl DropReason {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Self; 11] = [
        Self::BadIndex,
        Self::BadMark,
        Self::BadQueue,
        Self::Stale,
        Self::TooLong,
        Self::TooShort,
        Self::FrameError,
        Self::BadChecksum,
        Self::NoTaker,
        Self::Unsendable,
        Self::LostInReset,
    ];

    /// Name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::BadIndex => "bad_index",
            Self::BadMark => "bad_mark",
            Self::BadQueue => "bad_queue",
            Self::Stale => "stale",
            Self::TooLong => "too_long",
            Self::TooShort => "too_short",
            Self::FrameError => "frame_error",
            Self::BadChecksum => "bad_checksum",
            Self::NoTaker => "no_taker",
            Self::Unsendable => "unsendable",
            Self::LostInReset => "lost_in_reset",
        }
    }
}

/// A counter for each reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DropCounts([u64; DropReason::ALL.len()]);

impl DropCounts {
    /// Counts one frame.
    pub fn count(&mut self, reason: DropReason) {
        self.add(reason, 1);
    }

    /// Counts several frames.
    pub fn add(&mut self, reason: DropReason, frames: u64) {
        if let Some(counter) = self.0.get_mut(reason as usize) {
            *counter += frames;
        }
    }

    /// Frames dropped for a reason.
    #[must_use]
    pub fn get(&self, reason: DropReason) -> u64 {
        self.0.get(reason as usize).copied().unwrap_or(0)
    }

    /// Frames dropped in all.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Reasons and counts.
    pub fn iter(&self) -> impl Iterator<Item = (DropReason, u64)> + '_ {
        DropReason::ALL
            .into_iter()
            .map(|reason| (reason, self.get(reason)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_own_counter() {
        let mut counts = DropCounts::default();
        for (index, reason) in DropReason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index);
            counts.add(reason, index as u64 + 1);
        }
        for (index, (_, count)) in counts.iter().enumerate() {
            assert_eq!(count, index as u64 + 1);
        }
        assert_eq!(counts.total(), 66);
    }
}
