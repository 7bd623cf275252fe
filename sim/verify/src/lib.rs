//! Verifies the state machines of [`frame_pipeline`] with Spin.
//!
//! ```text
//!   tables ──promela──► machines.pml ─┐
//!   promela/*.pml, by hand: host, ────┼─► spin ─► pan.c ─► gcc ─► pan ─► verdict, trail
//!   bus, wire, MAC                    │
//!   property ─────────────────────────┘                           │
//!                                   simulator: the same run on the card ◄┘
//! ```
//!
//! The transitions come from the same tables as the firmware's; what is written by hand is the world
//! around them, with what may go wrong in it: stalls of any length, faults of the channels, damaged
//! frames, frames that the MAC gives up, endpoints that are closed at any moment. Time is none of the
//! model's: any process may be arbitrarily slow, but for the margin by which a deadline of the watch
//! is served before the frame's CRC leaves.
//!
//! | module | what |
//! | --- | --- |
//! | [`promela`] | prints tables as Promela |
//! | [`property`] | what is to hold, in which bounds |
//! | [`mutant`] | tables with one fault each, which Spin has to refute |
//! | [`replay`] | follows a run on the simulated card |
//! | [`spin`] | runs Spin and the verifier that it makes |
//! | [`diagram`] | prints tables for readers |
#![forbid(unsafe_code)]

pub mod diagram;
pub mod mutant;
pub mod promela;
pub mod property;
pub mod replay;
pub mod spin;

pub use mutant::Mutant;
pub use property::{Bounds, Property};
pub use spin::Outcome;
