//! The frame that comes next: prepared while the one before is fetched, then given to SDMA.

use super::turns::{wait, wait_for_reads};
use super::{SEEN, Sender};
use crate::io::IoB;
use crate::path::send::SendPath;
use crate::sides::eudp::frame::{AHEAD, GATHERED, WHOLE};
use crate::sides::eudp::job::Next;
use crate::sides::eudp::machines::Work;
use crate::sides::eudp::queue::Here;
use crate::sides::eudp::whole::Other;
use frame_pipeline::{sdma, send};
use host_interface::eudp::Status;
use tigon2_hal::events::Dispatch;

impl Sender {
    /// Prepares the next frame, if there is one and room for it; `idle` if it is not in front of
    /// its turn: then a descriptor that is refused is done at once. Returns whether it is worth a
    /// further look.
    #[inline(always)]
    pub(super) fn prepare<B: Dispatch>(
        &mut self,
        idle: bool,
        send: &mut SendPath,
        io: &mut IoB<B>,
    ) -> bool {
        if !self.queues.any() && !self.work.job.is_left {
            if idle && send.has_waiting() {
                send.take_back(io);
            }
            return false;
        }
        if let Err(why) = send.lend(io) {
            if idle {
                wait(why, io);
            }
            return false;
        }
        if !self.work.job.is_left {
            let next = self.queues.next(&mut io.bus);
            let here = self.queues.is_here(io, &mut self.pulls, next);
            if here != Here::Yes {
                if idle && here == Here::Later {
                    wait_for_reads(io);
                    return false;
                }
                return idle && self.has_more(send);
            }
            let Work {
                job, frames, rows, ..
            } = &mut self.work;
            match frames.next().take(&next, !idle, job, rows, send, io) {
                Ok(headers) => {
                    self.work.is_prepared = true;
                    let has_begun = idle && self.ask(send, io);
                    // The headers come while the data is fetched.
                    let Work { frames, rows, .. } = &mut self.work;
                    let frame = if has_begun {
                        frames.now()
                    } else {
                        frames.next()
                    };
                    frame.put_whole_headers(&headers, &mut rows.handle, io);
                    self.queues.take(next);
                    if self.work.is_bus_slow {
                        self.ask_ahead(io);
                    }
                    return true;
                }
                // Where SDMA has a frame, it goes first.
                Err(Other::Inline) => return idle && self.send_inline(send, io),
                Err(Other::Split) => self.queues.take(next),
                Err(other) => {
                    if !self.take_other(&next, other, idle, io) {
                        return idle;
                    }
                }
            }
        }
        self.prepare_more(idle, send, io)
    }

    /// Whether there is more to do: descriptors, or frames of the host's that wait for the path.
    #[inline(always)]
    pub(super) fn has_more(&self, send: &SendPath) -> bool {
        self.queues.any() || send.has_waiting()
    }

    /// Asks for the data of the frame that is prepared, as its turn is next. Returns whether SDMA has
    /// it already.
    #[inline(always)]
    fn ask<B: Dispatch>(&mut self, send: &mut SendPath, io: &mut IoB<B>) -> bool {
        let frame = self.work.frames.next();
        if !frame.has(WHOLE) {
            return self.begin_early(send, io);
        }
        frame.fetch_ahead(io);
        false
    }

    /// Asks for the data of the frame that is prepared while SDMA has the one in front. In SRAM: on a
    /// slow bus CPU B has time.
    #[inline(never)]
    fn ask_ahead<B: Dispatch>(&mut self, io: &mut IoB<B>) {
        let Work {
            frames,
            is_prepared,
            is_cut,
            ..
        } = &mut self.work;
        let frame = frames.next();
        // As in `prepare_more`.
        if *is_prepared && !*is_cut && !frame.has(AHEAD) {
            frame.fetch_ahead(io);
        }
    }

    /// Takes a descriptor of several pieces, or one that is refused; `idle` as in
    /// [`prepare`](Self::prepare). Returns whether frames come of it.
    #[inline(never)]
    fn take_other<B: Dispatch>(
        &mut self,
        next: &Next,
        other: Other,
        idle: bool,
        io: &mut IoB<B>,
    ) -> bool {
        let Work { job, rows, .. } = &mut self.work;
        let judged = match other {
            Other::Refused(status) => Err(status),
            _ => job.take(&mut io.bus, next, rows),
        };
        match judged {
            Ok(()) => self.queues.take(*next),
            Err(status) => {
                job.is_left = false;
                if idle {
                    self.refuse(*next, status, io);
                }
            }
        }
        judged.is_ok()
    }

    /// The next frame of a datagram of several.
    #[inline(always)]
    fn prepare_more<B: Dispatch>(
        &mut self,
        idle: bool,
        send: &mut SendPath,
        io: &mut IoB<B>,
    ) -> bool {
        let Work {
            job,
            frames,
            rows,
            is_prepared,
            is_cut,
            ..
        } = &mut self.work;
        if !idle && job.is_behind_lead() {
            // Where the next one's headers would stand, data is written for the sum.
            return false;
        }
        let frame = frames.next();
        frame.begin(job, &rows.handle, !idle, send, io);
        *is_prepared = true;
        if frame.may_be_cut() {
            self.begin_early(send, io);
        } else if !*is_cut && !frame.has(GATHERED) {
            // Transfers of a frame that is cut through may be tried again: none may be in front.
            frame.fetch_ahead(io);
        }
        true
    }

    /// A descriptor is done at once.
    #[inline(never)]
    pub(super) fn refuse<B: Dispatch>(&mut self, next: Next, status: Status, io: &mut IoB<B>) {
        self.queues.take(next);
        let at = (next.endpoint, next.descriptor);
        self.queues.refuse(io, at, next.number, status);
    }

    /// SDMA gets the frame that is prepared, and leaves when it is whole.
    #[inline(always)]
    pub(super) fn begin<B: Dispatch>(&mut self, send: &mut SendPath, io: &mut IoB<B>) {
        self.turn();
        if self.work.pending > SEEN {
            self.see_sent(send, io);
        }
        self.fetch_known(sdma::Event::Posted, true, send, io);
    }

    #[inline(always)]
    pub(super) const fn turn(&mut self) {
        let work = &mut self.work;
        work.is_prepared = false;
        work.frames.turn();
        work.is_cut = false;
    }

    /// Sees which frames have left.
    #[inline(never)]
    pub(super) fn see_sent<B: Dispatch>(&mut self, send: &mut SendPath, io: &mut IoB<B>) {
        // The host's frames are among them: those of ours are no more.
        let unsent = send.unsent(&mut io.bus);
        while self.work.pending > unsent {
            self.work.pending -= 1;
            self.hand_over(send::Event::Sent, send, io);
            if self.send.is_in(send::State::CoarseGrainedSend) {
                self.see_others_sent(unsent.max(1), io);
            }
        }
    }
}
