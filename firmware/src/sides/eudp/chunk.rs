//! How much of a frame is written while it arrives, and when.
//!
//! ```text
//!   frame on the wire  | headers | 1st chunk | 2nd chunk | last chunk |
//!   write channel                        | 1st | wait | 2nd |   | last | completion
//! ```
//!
//! The last chunk begins when the frame has ended. The others are done by then, unless CPU A looked so
//! late that it is better to have the channel at work.

use super::headers::HEADERS;
#[cfg(test)]
use crate::path::receive::frame::CRC;

/// Bytes of the least chunk.
const LEAST_CHUNK: u32 = 512;
/// A chunk of a long frame.
const CHUNK: u32 = 1024;
/// The wire's bytes that pass while the write channel begins a chunk, and CPU A sees it done.
const TURN: u32 = 256;
/// The wire's bytes that may pass between two looks.
const LOOKS: u32 = 448;
/// The wire's bytes that pass until CPU A sees to a frame that ended while a chunk was under way, beyond
/// those until it sees to another one.
const LATE: u32 = 640;

/// Bytes of the next chunk of a datagram with `length` bytes of data, of which so many were queued
/// before, when `there` bytes of its frame have come; 0 if it is better to wait.
///
/// The write channel moves a byte in less than half of the wire's time. The last chunk in front of the
/// frame's end begins as late as allows it to be done by then. If less time than that is left, it is
/// written if the channel has done more of it by then than CPU A loses by seeing the frame's end late.
#[inline(always)]
pub(super) const fn chunk(length: u32, written: u32, there: u32) -> u32 {
    // What follows the data counts for nothing: where a next word ends, so does a chunk.
    let Some(come) = there.checked_sub(HEADERS + written) else {
        return 0;
    };
    let ready = come & !3;
    let Some(left) = length.checked_sub(written + come) else {
        return 0;
    };
    let is_worth = match left.checked_sub(ready / 2 + TURN) {
        // It will be under way when the frame ends.
        None => left > TURN + LATE && ready >= LEAST_CHUNK,
        Some(spare) => ready >= CHUNK || spare < LOOKS && ready >= LEAST_CHUNK,
    };
    if is_worth { ready } else { 0 }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    /// The chunks of a datagram whose frame comes in steps of so many bytes; each is written in half
    /// of the time in which it came.
    fn chunks(length: u32, step: u32) -> Vec<u32> {
        let mut chunks = Vec::new();
        let (mut written, mut free) = (0, 0);
        for there in (0..HEADERS + length + CRC).step_by(step as usize) {
            if there < free {
                continue;
            }
            let next = chunk(length, written, there);
            if next != 0 {
                assert!(HEADERS + written + next <= there, "it has come");
                written += next;
                free = there + next / 2 + TURN;
                let left = HEADERS + length - there;
                assert!(
                    free <= HEADERS + length || left > TURN + LATE,
                    "it is done before the frame's end, or worth the delay"
                );
                chunks.push(next);
            }
        }
        assert!(written < length, "something is left for the end");
        chunks.push(length - written);
        chunks
    }

    #[test]
    fn chunks_are_written_before_the_frame_has_ended() {
        for step in [8, 64, 184, 440] {
            for length in 1..9000 {
                let all = chunks(length, step);
                assert_eq!(all.iter().sum::<u32>(), length);
                let long = length >= 1500 + CHUNK;
                assert!(!long || all.len() > 1, "{length}: {all:?}");
            }
        }
        assert_eq!(chunks(1472, 8).len(), 2);
        assert!(chunks(8972, 8).len() > 4);
    }

    /// Who looks late writes what has come, unless the frame is about to end.
    #[test]
    fn a_late_look_keeps_the_channel_at_work() {
        let length = 8976;
        for there in [5000, 6000, 8000] {
            assert_eq!(chunk(length, 0, HEADERS + there), there);
        }
        assert_eq!(chunk(length, 0, HEADERS + 8400), 0, "too late");
    }
}
