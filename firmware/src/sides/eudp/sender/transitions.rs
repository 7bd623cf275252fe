//! The transitions of SDMA and SEND, and what the host sees of them.

use super::Sender;
use crate::io::IoB;
use crate::memory::layout::EUDP_TRACE;
use crate::path::send::SendPath;
use crate::sides::eudp::machines::Card;
use crate::sides::eudp::{bump, word};
use frame_pipeline::trace::Entry;
use frame_pipeline::{Definition, Step, sdma, send};
use host_interface::eudp::{BlockWord, TRACE_BYTES};
use tigon2_hal::events::Dispatch;

impl Sender {
    /// The last part is there.
    #[inline(never)]
    pub(super) fn last_arrived<B: Dispatch>(&mut self, send: &mut SendPath, io: &mut IoB<B>) {
        self.hand_over(send::Event::LastArrived, send, io);
    }

    /// The wire may have come to a part that is missing, or would have left before CPU B came back.
    #[inline(never)]
    pub(super) fn deadline<B: Dispatch>(&mut self, send: &mut SendPath, io: &mut IoB<B>) {
        // At once: the row's own reset is some lines of instructions behind this one.
        send.reset(&mut io.bus, true);
        self.tell_deadline(send, io);
    }

    /// The same when the transmitter was reset.
    #[inline(never)]
    pub(super) fn tell_deadline<B: Dispatch>(&mut self, send: &mut SendPath, io: &mut IoB<B>) {
        self.hand_over(send::Event::Deadline, send, io);
        self.report_steps(io);
    }

    /// An event of SDMA. Returns what it tells SEND.
    #[inline(always)]
    pub(super) fn fetch<B: Dispatch>(
        &mut self,
        event: sdma::Event,
        send: &mut SendPath,
        io: &mut IoB<B>,
    ) -> Option<send::Event> {
        self.fetch_known(event, false, send, io)
    }

    /// The same; `whole` if it is known that the frame leaves when it is whole.
    #[inline(always)]
    pub(super) fn fetch_known<B: Dispatch>(
        &mut self,
        event: sdma::Event,
        whole: bool,
        send: &mut SendPath,
        io: &mut IoB<B>,
    ) -> Option<send::Event> {
        let work = &mut self.work;
        let mut card = Card {
            work,
            send,
            io,
            whole,
            begun: false,
            signal: None,
        };
        let step = self.sdma.step(event, &mut card);
        let signal = card.signal;
        self.note(0, step, io);
        signal
    }

    /// An event of SEND.
    #[inline(always)]
    pub(super) fn hand_over<B: Dispatch>(
        &mut self,
        event: send::Event,
        send: &mut SendPath,
        io: &mut IoB<B>,
    ) {
        self.hand_over_behind(event, false, send, io);
    }

    /// The same of the frame that has just arrived: in front of that in SDMA if this has `begun`
    /// since.
    #[inline(always)]
    pub(super) fn hand_over_behind<B: Dispatch>(
        &mut self,
        event: send::Event,
        begun: bool,
        send: &mut SendPath,
        io: &mut IoB<B>,
    ) {
        let work = &mut self.work;
        let mut card = Card {
            work,
            send,
            io,
            whole: false,
            begun,
            signal: None,
        };
        let step = self.send.step(event, &mut card);
        self.note(1, step, io);
    }

    /// Sees which others have left behind one, of which the MAC still has `left` or more. SEND stays in
    /// its state: each takes the same row, which does nothing. Four entries of the trace are a word.
    #[inline(always)]
    pub(super) fn see_others_sent<B: Dispatch>(&mut self, left: u32, io: &mut IoB<B>) {
        let state = send::Send::place(send::State::CoarseGrainedSend);
        let Ok(same) = send::Send::select(state, send::Event::Sent, |_| true) else {
            return fault(io);
        };
        let byte = Entry::new(1, same.row).byte();
        let word = u32::from_ne_bytes([byte; 4]);
        let others = self.work.pending.saturating_sub(left);
        self.work.pending -= others;
        let mut step = self.steps;
        self.steps = step.wrapping_add(others);
        while step != self.steps {
            let at = EUDP_TRACE + (step & (TRACE_BYTES - 1));
            if at & 3 == 0 && self.steps.wrapping_sub(step) >= 4 {
                io.bus.store(at, word);
                step = step.wrapping_add(4);
            } else {
                io.bus.store_byte(at, byte);
                step = step.wrapping_add(1);
            }
        }
    }

    /// Another event of SEND.
    #[inline(never)]
    pub(super) fn rarely<B: Dispatch>(
        &mut self,
        event: send::Event,
        send: &mut SendPath,
        io: &mut IoB<B>,
    ) {
        self.hand_over(event, send, io);
    }

    /// Records a transition for the host.
    #[inline(always)]
    pub(super) fn note<B: Dispatch>(&mut self, machine: usize, step: Step, io: &mut IoB<B>) {
        let Step::Taken(row) = step else {
            return fault(io);
        };
        put(self.steps, machine, row, io);
        self.steps = self.steps.wrapping_add(1);
    }
}

/// Stores the entry of the trace with this number.
#[inline(always)]
pub(super) fn put<B: Dispatch>(number: u32, machine: usize, row: u8, io: &mut IoB<B>) {
    let at = EUDP_TRACE + (number & (TRACE_BYTES - 1));
    io.bus.store_byte(at, Entry::new(machine, row).byte());
}

/// A transition that the table excludes.
#[inline(never)]
pub(super) fn fault<B: Dispatch>(io: &mut IoB<B>) {
    bump(&mut io.bus, word(BlockWord::Faults));
}
