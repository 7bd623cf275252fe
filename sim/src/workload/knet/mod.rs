//! Experiments of "Packet classification in the NIC for improved SMP-based Internet servers"
//! (KNET): a host with several CPUs ([`crate::hosts`]).
//!
//! | module | what |
//! | --- | --- |
//! | [`model`] | the paper's own model of the speed-up |
//! | [`flows`], [`sorting`], [`cost`] | the card's cost of sorting frames of many flows |
//! | [`recording`] | records a timeline of it |
//! | [`latency`] | what sorting adds to the latency of a frame alone |
//! | [`random`], [`reference`] | random frames, and their queues by an independent classifier |
//! | [`check`] | a comparison of the simulated host with the model |
//! | [`web`] | files over TCP to closed-loop clients (section 5) |
//! | [`livelock`] | overload with datagrams (section 3) |
//! | [`figures`] | the paper's figures beside ours |
//! | [`measured`] | their results |

pub mod check;
pub mod cost;
pub mod figures;
pub mod flows;
pub mod latency;
pub mod livelock;
pub mod measured;
pub mod model;
pub mod random;
pub mod recording;
pub mod reference;
pub mod sorting;
pub mod web;
