//! Frames with a VLAN tag, for endpoints of that VLAN.
//!
//! ```text
//!    0          12     14    16
//!   | stations | 8100 | tag | 0800 ...      a frame with its tag
//!              4                            where it begins without
//! ```
//!
//! The MAC puts the tag into what is sent. What comes in still has it: behind the stations the frame
//! is that without tag, four bytes further on. It is never written while it arrives. The VLAN is in
//! bits 31:16 of an endpoint's port, so endpoints without one do not see such frames.

use super::completion::Reporter;
use super::delivery::CHOICE;
use super::fragment::{self, Outcome};
use super::headers::HEADERS;
use super::receiver::Receiver;
use super::wait_for_writes;
use crate::io::IoA;
use crate::path::receive::frame::{CRC, TAG, wrapped};
use crate::path::receive::guarded;
use tigon2_chip::events::EventBit;
use tigon2_chip::mac::VLAN_TYPE;
use tigon2_hal::events::Dispatch;
use tigon2_hal::mac::ReceivedFrame;

/// A VLAN's number in a tag; above it is the priority.
const NUMBER: u32 = 0xFFF;

/// Sees to the oldest frame if it has a tag and is for an endpoint.
#[inline(always)]
pub fn arrived<B: Dispatch>(
    receiver: &mut Receiver,
    reporter: &mut Reporter,
    io: &mut IoA<B>,
    frame: &ReceivedFrame,
    base: u32,
) -> Outcome {
    let word = io.bus.load(wrapped(base, frame.start + 12));
    if word >> 16 != u32::from(VLAN_TYPE) || word & NUMBER == 0 {
        return Outcome::Passed;
    }
    arrived_one(receiver, reporter, io, frame, (base, (word & NUMBER) << 16))
}

#[inline(never)]
fn arrived_one<B: Dispatch>(
    receiver: &mut Receiver,
    reporter: &mut Reporter,
    io: &mut IoA<B>,
    frame: &ReceivedFrame,
    (base, vlan): (u32, u32),
) -> Outcome {
    if !guarded::is_own(io, frame, TAG + HEADERS) {
        return Outcome::Passed;
    }
    let inner = ReceivedFrame {
        start: wrapped(base, frame.start + TAG),
        length: frame.length - TAG,
        ..*frame
    };
    let outcome = fragment::arrived(receiver, reporter, io, &inner, (base, vlan));
    if outcome != Outcome::Passed {
        return outcome;
    }
    let bytes = inner.length - CRC;
    let datagram = &mut receiver.work.flights.next().datagram;
    let place = (base, vlan);
    let Some(endpoint) = datagram.take_tagged(reporter, &mut io.bus, inner.start, bytes, place)
    else {
        return Outcome::Passed;
    };
    // These are rare: they come alone.
    if receiver.is_busy() || !io.has_write_room(CHOICE) {
        wait_for_writes(io);
        return Outcome::Waits;
    }
    if !reporter.has_next(io, endpoint) {
        // CPU B calls again.
        io.bus.clear(EventBit::ReceiveComplete);
        return Outcome::Waits;
    }
    receiver.take_slowly(reporter, io, (inner.start, base));
    Outcome::Taken
}
