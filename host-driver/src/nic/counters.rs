//! The driver's own counters.
//!
//! Each queue counts for itself, in its own cache line that only its thread writes. Control reads
//! all of them: [`DriverCounters`] is a snapshot.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use host_interface::queue::QUEUES_MAX;
use serde::Serialize;

use super::drops::{DropCounts, DropReason};

/// The driver's own counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct DriverCounters {
    /// Frames queued for sending.
    pub frames_sent: u64,
    /// Their bytes, without CRC.
    pub bytes_sent: u64,
    /// Frames that were received and delivered to the user.
    pub frames_received: u64,
    /// Their bytes, without CRC.
    pub bytes_received: u64,
    /// Interrupts taken.
    pub interrupts: u64,
    /// Doorbell writes for frames to send.
    pub send_rings: u64,
    /// Resets after a failure.
    pub recoveries: u64,
}

/// A counter that one thread increments and others may read.
#[derive(Debug, Default)]
struct Count(AtomicU64);

impl Count {
    /// Adds without a locked instruction, since no other thread adds.
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
    found: AtomicU32,
    buffers: AtomicU32,
    polled: AtomicBool,
    served: AtomicBool,
    /// The CPU that its thread is bound to, and one more; 0 for none.
    cpu: AtomicU32,
}

/// What a receive queue was like when its thread last looked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Look {
    /// Frames taken since the driver came.
    pub frames: u64,
    /// Their bytes, without CRC.
    pub bytes: u64,
    /// Frames that waited.
    pub found: u32,
    /// Buffers that the card had.
    pub buffers: u32,
    /// It was polled.
    pub polled: bool,
    /// It is in somebody's hands.
    pub served: bool,
    /// The CPU that its thread is bound to.
    pub cpu: Option<u32>,
}

impl QueueCounts {
    /// Counts a frame.
    pub fn frame(&self, bytes: usize) {
        self.frames.add(1);
        self.bytes.add(bytes as u64);
    }

    /// Notes what its thread has found. Plain stores: nobody else writes them.
    pub fn note(&self, found: u32, buffers: usize, polled: bool) {
        self.found.store(found, Ordering::Relaxed);
        self.buffers.store(buffers as u32, Ordering::Relaxed);
        self.polled.store(polled, Ordering::Relaxed);
    }

    /// Notes whether the queue is in somebody's hands.
    pub fn serve(&self, served: bool) {
        self.served.store(served, Ordering::Relaxed);
        self.cpu.store(0, Ordering::Relaxed);
    }

    /// Notes which CPU its thread is bound to.
    pub fn bind(&self, cpu: u32) {
        self.cpu.store(cpu.saturating_add(1), Ordering::Relaxed);
    }

    /// What it was like when its thread last looked.
    pub fn look(&self) -> Look {
        Look {
            frames: self.frames.get(),
            bytes: self.bytes.get(),
            found: self.found.load(Ordering::Relaxed),
            buffers: self.buffers.load(Ordering::Relaxed),
            polled: self.polled.load(Ordering::Relaxed),
            served: self.served.load(Ordering::Relaxed),
            cpu: self.cpu.load(Ordering::Relaxed).checked_sub(1),
        }
    }

    /// Counts a ring of the queue's doorbell.
    pub fn ring(&self) {
        self.rings.add(1);
    }
}

/// The counters of all parts of a driver. Any thread may count rare events.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Of the send queue.
    pub sent: QueueCounts,
    /// Of each receive queue; classic mode uses the first.
    pub received: [QueueCounts; QUEUES_MAX],
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

    /// All counters except the drops.
    pub fn snapshot(&self) -> DriverCounters {
        DriverCounters {
            frames_sent: self.sent.frames.get(),
            bytes_sent: self.sent.bytes.get(),
            frames_received: self.received.iter().map(|queue| queue.frames.get()).sum(),
            bytes_received: self.received.iter().map(|queue| queue.bytes.get()).sum(),
            interrupts: self.interrupts.load(Ordering::Relaxed),
            send_rings: self.sent.rings.get(),
            recoveries: self.recoveries.load(Ordering::Relaxed),
        }
    }
}
