//! What the driver counts itself.
//!
//! Each queue counts for itself, in a cache line of its own that only its thread writes, and
//! control reads them all: [`DriverCounters`] is a snapshot.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

use super::drops::{DropCounts, DropReason};

/// What the driver counts itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct DriverCounters {
    /// Frames queued for sending.
    pub frames_sent: u64,
    /// Their bytes, without CRC.
    pub bytes_sent: u64,
    /// Frames that were received and delivered.
    pub frames_received: u64,
    /// Their bytes, without CRC.
    pub bytes_received: u64,
    /// Interrupts taken.
    pub interrupts: u64,
    /// Times that the card was told of frames to send.
    pub send_rings: u64,
    /// Resets after a failure.
    pub recoveries: u64,
}

/// A count that one thread adds to and others may read.
#[derive(Debug, Default)]
struct Count(AtomicU64);

impl Count {
    /// Adds without a locked instruction: nobody else adds.
    fn add(&self, more: u64) {
        let now = self.0.load(Ordering::Relaxed);
        self.0.store(now.wrapping_add(more), Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Frames of one queue.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(super) struct QueueCounts {
    frames: Count,
    bytes: Count,
    rings: Count,
}

impl QueueCounts {
    /// Counts a frame.
    pub fn frame(&self, bytes: usize) {
        self.frames.add(1);
        self.bytes.add(bytes as u64);
    }

    /// Counts a ring of the queue's doorbell.
    pub fn ring(&self) {
        self.rings.add(1);
    }
}

/// What all parts of a driver count. Rare things may be counted by anybody.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Of the send queue.
    pub sent: QueueCounts,
    /// Of the receive queue.
    pub received: QueueCounts,
    interrupts: AtomicU64,
    recoveries: AtomicU64,
    drops: [AtomicU64; DropReason::ALL.len()],
}

impl Counts {
    /// Counts an interrupt that was taken.
    pub fn interrupt(&self) {
        self.interrupts.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a reset after a failure.
    pub fn recovery(&self) {
        self.recoveries.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts frames that were dropped.
    pub fn drop_frames(&self, reason: DropReason, frames: u64) {
        if let Some(count) = self.drops.get(reason as usize) {
            count.fetch_add(frames, Ordering::Relaxed);
        }
    }

    /// Frames that were dropped, by reason.
    pub fn drops(&self) -> DropCounts {
        let mut counts = DropCounts::default();
        for (reason, count) in DropReason::ALL.into_iter().zip(&self.drops) {
            counts.add(reason, count.load(Ordering::Relaxed));
        }
        counts
    }

    /// All but the drops.
    pub fn snapshot(&self) -> DriverCounters {
        DriverCounters {
            frames_sent: self.sent.frames.get(),
            bytes_sent: self.sent.bytes.get(),
            frames_received: self.received.frames.get(),
            bytes_received: self.received.bytes.get(),
            interrupts: self.interrupts.load(Ordering::Relaxed),
            send_rings: self.sent.rings.get(),
            recoveries: self.recoveries.load(Ordering::Relaxed),
        }
    }
}
