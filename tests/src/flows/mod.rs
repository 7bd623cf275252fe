//! Computes a frame's queue independently of the firmware, and generates frames to compare.
//!
//! The reference parses a frame with the crate etherparse, header by header, and computes the
//! Toeplitz hash bit by bit with a shifted key. It shares only the rules with the crate
//! `flow-classify`, whose documentation states them.

pub mod random;
pub mod reference;

pub use reference::{Expected, Reference};
