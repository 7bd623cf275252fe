//! Whose turn it is on the way out: the endpoints', or the host's frames'.
//!
//! ```text
//!   endpoints   frame, frame, ... | the path is the host's |              | frame, ...
//!   host                          | Send Data Ready: up to sixteen BDs    |
//! ```
//!
//! Both have turns of about sixteen frames if both have more. The path is lent to the endpoints
//! meanwhile, and who cannot go on waits: for reads that are under way, or some time.

use super::Sender;
use crate::io::IoB;
use crate::io::deadline::SlotB;
use crate::path::send::SendPath;
use crate::path::send::own::Wait;
use frame_pipeline::sdma;
use tigon2_chip::Cpu;
use tigon2_chip::events::EventBit;
use tigon2_hal::events::Dispatch;

/// Microseconds until a frame is tried again that found no room.
const AGAIN: u32 = 10;

/// Transitions of an endpoints' turn while the host has frames, too: a frame takes three. So a turn has
/// about as many frames as one of the host's, of sixteen BDs.
const TURN: u8 = 3 * 16;

impl Sender {
    /// Whether the next frame may come though an endpoint is to be closed, whose turn is behind each
    /// frame, or the host has frames, whose turn is behind each of ours.
    #[inline(never)]
    pub(super) fn goes_on<B: Dispatch>(
        &mut self,
        idle: bool,
        ahead: bool,
        send: &mut SendPath,
        io: &mut IoB<B>,
    ) -> bool {
        if self.closing != 0 && idle {
            self.close(send, io);
        }
        let is_over = (self.steps as u8).wrapping_sub(self.turn) >= TURN;
        let waits = send.has_waiting() && (self.owes || ahead && is_over);
        if waits && idle {
            // Send Data Ready is set, and begins the next turn of ours.
            send.take_back(io);
            self.owes = true;
        }
        !waits
    }

    /// Send Data Ready: the host's frames have had their turn, if the path was theirs. Ours come when
    /// those are read, or soon.
    #[inline(always)]
    pub fn begin_turn<B: Dispatch>(&mut self, send: &SendPath, io: &mut IoB<B>) {
        if !send.is_lent() {
            self.owes = false;
            self.turn = self.steps as u8;
        }
        if self.has_frames() {
            self.wait_for_turn(io);
        }
    }

    /// The next frame is tried soon, unless SDMA has one: then it comes behind that.
    #[inline(never)]
    fn wait_for_turn<B: Dispatch>(&self, io: &mut IoB<B>) {
        if self.sdma.is_in(sdma::State::Idle) && !io.is_armed(SlotB::Watch) {
            io.arm(SlotB::Watch, AGAIN);
        }
    }
}

#[inline(never)]
pub(super) fn wait_for_reads<B: Dispatch>(io: &mut IoB<B>) {
    wait(Wait::Reads, io);
}

/// The next frame has to wait.
#[inline(never)]
pub(super) fn wait<B: Dispatch>(wait: Wait, io: &mut IoB<B>) {
    match wait {
        Wait::Reads => {
            // The doorbell goes in front of the host's next frames, and what sees the reads
            // done goes in front of the doorbell.
            io.bus.set(EventBit::DmaReadComplete);
            io.bus.ring(Cpu::B);
        }
        Wait::Later => try_again(io),
    }
}

/// Tries again soon, but behind all events that wait: the timer's goes in front of them, and on a slow
/// CPU it is due again when it has ended. Send Data Ready is the last one.
fn try_again<B: Dispatch>(io: &mut IoB<B>) {
    let timer = EventBit::Timer;
    if io.bus.others(Cpu::B, timer) & (timer.mask() - 1) != 0 {
        io.bus.set(EventBit::SendDataReady);
    } else {
        io.arm(SlotB::Watch, AGAIN);
    }
}
