//! What the wire will bring.
//!
//! It sends whole frames, so the end of each one is known at its beginning.

use super::super::Step;
use std::collections::VecDeque;

/// How a frame ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// With a CRC.
    Received {
        /// Which is right.
        good: bool,
        /// It has a sum.
        summed: bool,
        /// Which is right, too.
        right: bool,
    },
    /// The MAC gives it up.
    GivenUp,
}

/// A frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub endpoint: usize,
    pub parts: u32,
    pub ending: Ending,
}

impl Plan {
    /// Whether it belongs into a buffer.
    pub const fn is_right(&self) -> bool {
        matches!(
            self.ending,
            Ending::Received {
                good: true,
                right: true,
                ..
            }
        )
    }

    /// Whether its CRC is right.
    pub const fn is_good(&self) -> bool {
        matches!(self.ending, Ending::Received { good: true, .. })
    }

    pub const fn is_summed(&self) -> bool {
        matches!(self.ending, Ending::Received { summed: true, .. })
    }
}

/// The frames of a run. One that has no end there ends well.
pub(super) fn plans(steps: &[Step]) -> VecDeque<Plan> {
    let mut plans = VecDeque::<Plan>::new();
    for step in steps {
        if let Step::Incoming(endpoint) = *step {
            plans.push_back(Plan {
                endpoint,
                parts: 1,
                ending: Ending::Received {
                    good: true,
                    summed: false,
                    right: true,
                },
            });
        }
        let Some(last) = plans.back_mut() else {
            continue;
        };
        match *step {
            Step::Part => last.parts += 1,
            Step::GivenUp => last.ending = Ending::GivenUp,
            Step::Received {
                good,
                summed,
                right,
            } => {
                last.ending = Ending::Received {
                    good,
                    summed,
                    right,
                };
            }
            _ => {}
        }
    }
    plans
}
