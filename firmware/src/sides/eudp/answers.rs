//! What rows ask, answered beforehand.
//!
//! Where the answers are known, the compiler turns an event's rows into a few branches, and what they do
//! stands in the code once, behind them.

use super::recorded::{RDMA, Recorder};
use frame_pipeline::{Machine, Step, World, rdma, recv};
use tigon2_hal::Bus;

/// Answers to what the rows of RDMA ask.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answers {
    /// [`rdma::Condition::BufferPosted`].
    pub is_posted: bool,
    /// [`rdma::Condition::Sumless`].
    pub is_sumless: bool,
    /// [`rdma::Condition::Completed`].
    pub is_completed: bool,
    /// [`rdma::Condition::SumRight`].
    pub is_right: bool,
    /// [`rdma::Condition::MoreQueued`].
    pub are_more: bool,
}

impl Answers {
    /// Nothing holds.
    pub const NONE: Answers = Answers {
        is_posted: false,
        is_sumless: false,
        is_completed: false,
        is_right: false,
        are_more: false,
    };

    /// Takes the row of an event. Returns what is to be done; `None` if the table excludes the event.
    #[inline(always)]
    pub fn step<B: Bus>(
        self,
        rdma: &mut Machine<rdma::Rdma>,
        event: rdma::Event,
        recorder: Recorder<'_, B>,
    ) -> Option<rdma::Action> {
        let mut asked = Asked {
            answers: self,
            action: rdma::Action::Nothing,
        };
        match rdma.step(event, &mut asked) {
            Step::Taken(row) => {
                recorder.record(RDMA, row);
                Some(asked.action)
            }
            Step::Deferred | Step::Impossible => None,
        }
    }
}

/// The answers, and what the row does that is taken.
struct Asked {
    answers: Answers,
    action: rdma::Action,
}

impl World<rdma::Rdma> for Asked {
    #[inline(always)]
    fn holds(&mut self, condition: rdma::Condition) -> bool {
        match condition {
            rdma::Condition::BufferPosted => self.answers.is_posted,
            rdma::Condition::Sumless => self.answers.is_sumless,
            rdma::Condition::Completed => self.answers.is_completed,
            rdma::Condition::SumRight => self.answers.is_right,
            rdma::Condition::MoreQueued => self.answers.are_more,
            rdma::Condition::EnoughHere => false,
        }
    }

    #[inline(always)]
    fn act(&mut self, action: rdma::Action) {
        self.action = action;
    }
}

/// A frame that is right, and is RDMA's at once.
pub(super) struct Good;

impl World<recv::Recv> for Good {
    #[inline(always)]
    fn holds(&mut self, condition: recv::Condition) -> bool {
        matches!(condition, recv::Condition::Good)
    }

    #[inline(always)]
    fn act(&mut self, _: recv::Action) {}
}
