//! A run that Spin has found, as a schedule of the simulated card.
//!
//! Spin refutes tables by a run of its model: which row was taken, when a part arrived, when a
//! transfer was done. Here the same tables drive the registers of the card's model in the same order:
//! a channel does its next transfer when the run says so, and the MAC begins a frame, comes to its
//! next part, and ends it when the run says so. What is wrong with the tables shows on the wire, in
//! the processes' memory, or in what is left undone.
//!
//! | module | what |
//! | --- | --- |
//! | [`sending`] | a run of SDMA and SEND |
//! | [`receiving`] | a run of RECV and RDMA |

mod finding;
pub mod receiving;
#[cfg(test)]
mod script;
pub mod sending;
mod step;
mod walk;

pub use finding::Finding;
pub use step::Step;

use thiserror::Error;

/// A run that the card does not follow.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("step {number}, {step:?}: {why}")]
pub struct Diverged {
    /// The step's number.
    pub number: usize,
    /// It.
    pub step: Step,
    /// What the card says.
    pub why: &'static str,
}

/// Whether the card does a step, and why not.
type Followed = Result<(), &'static str>;

/// Does all steps, in their order.
fn follow_all(steps: &[Step], mut follow: impl FnMut(Step) -> Followed) -> Result<(), Diverged> {
    for (number, step) in steps.iter().copied().enumerate() {
        follow(step).map_err(|why| Diverged { number, step, why })?;
    }
    Ok(())
}
