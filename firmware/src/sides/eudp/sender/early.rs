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
use frame_pipeline::{sdma, send};
use tigon2_hal::events::Dispatch;
use tigon2_hal::timer;

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
    /// has no room for these. So they call nothing but what cuts the frame off, and look at the clock
    /// three times.
    #[inline(never)]
    pub(super) fn part_arrived<B: Dispatch>(
        &mut self,
        send: &mut SendPath,
        io: &mut IoB<B>,
    ) -> bool {
        if self.sdma.is_in(sdma::State::SdmaFirst) {
            self.first_arrived(send, io);
            return true;
        }
        // Other parts may have taken their time.
        self.cut_off_if_late(send, io);
        let Work { frames, watch, .. } = &mut self.work;
        let frame = frames.now();
        let from = frame.here;
        frame.here = frame.arrived_to(from);
        if watch.is_on() {
            watch.over(from, frame.here);
        }
        let is_early = self.sdma.is_in(sdma::State::SdmaRest);
        if is_early {
            self.cut_off_if_late(send, io);
            self.fetch(sdma::Event::Arrived, send, io);
            match self.work.signal.take() {
                Some(send::Event::PartArrived) => {
                    self.hand_over(send::Event::PartArrived, send, io);
                }
                // SDMA tells of nothing else here.
                Some(_) => self.last_arrived(send, io),
                None => {}
            }
            // Others may be there already, but this one has taken its time, too.
            self.cut_off_if_late(send, io);
        }
        is_early
    }

    /// The first part is there: the frame leaves.
    #[inline(always)]
    fn first_arrived<B: Dispatch>(&mut self, send: &mut SendPath, io: &mut IoB<B>) {
        let frame = self.work.frames.now();
        frame.here = frame.lead;
        self.fetch(sdma::Event::Arrived, send, io);
        if self.work.signal.take().is_some() {
            self.hand_over(send::Event::OfferedEarly, send, io);
        }
        self.cut_off_if_late(send, io);
    }

    /// Cuts the frame off if parts are missing, and CPU B would come too late from now on.
    #[inline(always)]
    pub(super) fn cut_off_if_late<B: Dispatch>(&mut self, send: &mut SendPath, io: &mut IoB<B>) {
        let Work { frames, watch, .. } = &mut self.work;
        let waits = watch.is_on() && frames.now().missing != 0;
        if waits && watch.is_over(timer::now(&mut io.bus)) {
            self.deadline(send, io);
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
