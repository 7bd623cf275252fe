//! What RECV and RDMA know of frames.

use super::{Frame, PART, World};
use tigon2_chip::mac::{CRC_BYTES, RxDescriptor};

/// What a frame's descriptor says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ended {
    pub frame: usize,
    pub start: u32,
    /// Without its CRC.
    pub length: u32,
    pub good: bool,
}

impl Ended {
    pub fn new(frame: usize, descriptor: &RxDescriptor) -> Ended {
        Ended {
            frame,
            start: descriptor.start,
            length: descriptor.length() - CRC_BYTES as u32,
            good: descriptor.error().is_none(),
        }
    }
}

/// A frame that RDMA writes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Job {
    pub frame: usize,
    pub slot: usize,
    pub start: u32,
    /// Bytes of it that are written, or queued to be.
    pub written: u32,
    pub length: u32,
    /// Its descriptor is there, so its room is to be freed.
    pub has_room: bool,
    /// Its completion is queued behind its data.
    pub ahead: bool,
    /// The channel failed with it.
    pub spoiled: bool,
}

impl World {
    pub(super) fn frame(&self, number: usize) -> &Frame {
        &self.frames[number]
    }

    /// Bytes of the parts of a frame that have come.
    pub(super) fn here(&self, frame: usize) -> u32 {
        self.frame(frame).parts * PART
    }

    pub(super) fn has_buffer(&self, frame: usize) -> bool {
        let endpoint = self.frame(frame).plan.endpoint;
        !self.closed[endpoint] && !self.buffers[endpoint].is_empty()
    }

    /// The completion of all frames in front of a new one is queued.
    pub(super) fn all_ahead(&self) -> bool {
        let last = self.jobs.back().filter(|job| job.has_room);
        last.is_none_or(|job| job.ahead)
    }
}
