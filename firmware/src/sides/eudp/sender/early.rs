//! A frame that may leave before it is whole: it begins, its parts arrive, it is watched.
//!
//! ```text
//!   CPU B    | begin | headers | first: TxPrd | second .. | third .. |
//!   channel     | first part | second part | third part ..    |
//!   wire                               | frame ...
//! ```

use super::Sender;
use crate::io::IoB;
use crate::io::deadline::SlotB;
use crate::path::send::SendPath;
use crate::sides::eudp::frame::TRANSFERS;
use crate::sides::eudp::machines::Work;
use frame_pipeline::{World, sdma, send};
use tigon2_hal::events::Dispatch;
use tigon2_hal::timer;

/// A part of a frame that leaves, for both machines: what their rows ask for is known, and what SEND's
/// row does is left to who asks. So nothing is called, and little laid down.
struct Part {
    may_cut: bool,
    is_last: bool,
    is_in_time: bool,
    action: send::Action,
}

impl World<sdma::Sdma> for Part {
    #[inline(always)]
    fn holds(&mut self, condition: sdma::Condition) -> bool {
        match condition {
            sdma::Condition::MayCut => self.may_cut,
            sdma::Condition::MoreParts => !self.is_last,
            sdma::Condition::SumWanted => false,
        }
    }

    /// SEND hears of it from who asks.
    #[inline(always)]
    fn act(&mut self, _: sdma::Action) {}
}

impl World<send::Send> for Part {
    #[inline(always)]
    fn holds(&mut self, condition: send::Condition) -> bool {
        matches!(condition, send::Condition::InTime) && self.is_in_time
    }

    #[inline(always)]
    fn act(&mut self, action: send::Action) {
        self.action = action;
    }
}

impl Sender {
    /// SDMA gets the frame that is prepared and may leave before it is whole, as its turn is next.
    /// Returns whether there was room for its transfers.
    #[inline(never)]
    pub(super) fn begin_early<B: Dispatch>(
        &mut self,
        send: &mut SendPath,
        io: &mut IoB<B>,
    ) -> bool {
        if !io.read_ring.has_room(TRANSFERS) {
            self.work.frames.next().keep_whole();
            return false;
        }
        self.turn();
        self.see_sent(send, io);
        // What is in front of it in the channel would make its parts late.
        if !io.read_ring.is_idle(&mut io.bus) {
            self.work.frames.now().keep_whole();
        }
        self.fetch(sdma::Event::Posted, send, io);
        self.work.is_cut = self.work.frames.now().may_be_cut();
        true
    }

    /// A part of a frame that is fetched in parts is there. Returns whether it leaves before it is
    /// whole, so that all was seen to.
    ///
    /// While the SRAM port is full CPU B takes 2 us and more for a line of 16 instructions, and the pad
    /// has no room for these. So they are few, call nothing but what cuts the frame off, and look at
    /// the clock three times.
    #[inline(never)]
    pub(super) fn part_arrived<B: Dispatch>(
        &mut self,
        send: &mut SendPath,
        io: &mut IoB<B>,
    ) -> bool {
        // Other parts may have taken their time.
        self.cut_off_if_late(send, io);
        if self.sdma.is_in(sdma::State::SdmaFirst) {
            self.first_arrived(send, io);
            return true;
        }
        let Work {
            frames, watch, now, ..
        } = &mut self.work;
        let frame = frames.now();
        let from = frame.here;
        if !self.sdma.is_in(sdma::State::SdmaRest) {
            frame.here = frame.arrived_to(from);
            return false;
        }
        let is_last = frame.missing == 0;
        frame.here = if is_last {
            frame.length
        } else {
            frame.end_of(from)
        };
        if watch.is_on() {
            watch.over(from, frame.here);
        }
        let mut part = Part {
            may_cut: true,
            is_last,
            is_in_time: watch.is_in_time(*now),
            action: send::Action::Nothing,
        };
        if watch.is_on() {
            let is_over = !is_last && watch.is_over(timer::now(&mut io.bus));
            if is_over || !part.is_in_time {
                // At once: what follows is some lines of instructions.
                send.reset(&mut io.bus, true);
            }
            if is_over && part.is_in_time {
                self.tell_deadline(send, io);
            }
        }
        let step = self.sdma.step(sdma::Event::Arrived, &mut part);
        self.note(0, step, io);
        if part.is_last {
            self.work.end();
            self.last_arrived(send, io);
            return true;
        }
        let step = self.send.step(send::Event::PartArrived, &mut part);
        self.note(1, step, io);
        if part.action == send::Action::Abort {
            self.work.cut_off(true, send, io);
        }
        // Others may be there already, but this one has taken its time, too.
        self.cut_off_if_late(send, io);
        true
    }

    /// The first part is there: the frame leaves.
    #[inline(never)]
    fn first_arrived<B: Dispatch>(&mut self, send: &mut SendPath, io: &mut IoB<B>) {
        let may_cut = self.work.may_cut(send, io);
        let frame = self.work.frames.now();
        frame.here = frame.lead;
        let mut part = Part {
            may_cut,
            is_last: false,
            is_in_time: true,
            action: send::Action::Nothing,
        };
        let step = self.sdma.step(sdma::Event::Arrived, &mut part);
        self.note(0, step, io);
        if may_cut {
            let step = self.send.step(send::Event::OfferedEarly, &mut part);
            self.work.queue_early(send, io);
            self.note(1, step, io);
        }
        self.cut_off_if_late(send, io);
    }

    /// Cuts the frame off if parts are missing, and CPU B would come too late from now on.
    #[inline(always)]
    pub(super) fn cut_off_if_late<B: Dispatch>(&mut self, send: &mut SendPath, io: &mut IoB<B>) {
        let Work { frames, watch, .. } = &mut self.work;
        let waits = watch.is_on() && frames.now().missing != 0;
        if waits && watch.is_over(timer::now(&mut io.bus)) {
            // At once, see above.
            send.reset(&mut io.bus, true);
            self.tell_deadline(send, io);
        }
    }

    /// All that a look has shown was seen to: sets the deadline of the next part. If that is over
    /// already, the timer's turn would come too late.
    #[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_b.endpoints"))]
    #[inline(never)]
    pub fn set_deadline<B: Dispatch>(&mut self, send: &mut SendPath, io: &mut IoB<B>) {
        let Work { frames, watch, .. } = &mut self.work;
        let frame = frames.now();
        let late = watch.over(frame.here, frame.end_of(frame.here));
        let now = timer::now(&mut io.bus);
        if late.wrapping_sub(now) as i32 > 0 {
            io.arm_at(SlotB::Part, now, late);
        } else {
            self.deadline(send, io);
        }
    }
}
