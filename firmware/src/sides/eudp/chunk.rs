//! How much of a frame is written while it arrives, and when.
//!
//! ```text
//!   frame on the wire  | headers | 1st chunk | 2nd chunk | last chunk |
//!   write channel                        | 1st | wait | 2nd |   | last | completion
//! ```
//!
//! The last chunk begins when the frame has ended; the others are done by then.

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

/// Bytes of the next chunk of a datagram with `length` bytes of data, of which so many were queued
/// before, when `there` bytes of its frame have come; 0 if it is better to wait.
///
/// The write channel moves a byte in less than half of the wire's time. A chunk that is under way when
/// the frame ends would delay the rest, so the last one begins early enough to be done by then, and
/// as late as that allows.
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
    let Some(spare) = left.checked_sub(ready / 2 + TURN) else {
        // Who looks late writes the part of it that is done by then, if that is worth it.
        let most = (left.saturating_sub(TURN + LOOKS) * 2) & !3;
        return if most >= 2 * CHUNK { most } else { 0 };
    };
    if ready >= CHUNK || spare < LOOKS && ready >= LEAST_CHUNK {
        ready
    } else {
        0
    }
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
                assert!(
                    free <= HEADERS + length,
                    "it is done before the frame's end"
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

    /// Who looks late writes less than has come, so that it is done before the frame has ended.
    #[test]
    fn a_late_look_writes_what_is_done_by_then() {
        let length = 8976;
        assert_eq!(chunk(length, 0, HEADERS + 5000), 5000);
        let late = chunk(length, 0, HEADERS + 6500);
        assert_eq!(late, (2 * (length - 6500 - TURN - LOOKS)) & !3);
        assert_eq!(chunk(length, 0, HEADERS + 8400), 0, "too late");
    }
}
