//! Which queue a frame belongs to, said by other code than the firmware's, and frames to ask
//! about.
//!
//! The reference reads a frame with the crate etherparse, header by header, and makes the
//! Toeplitz hash bit by bit from a key that is shifted along. It shares nothing with the crate
//! `flow-classify` but the rules, which that crate's documentation states.

pub mod random;
pub mod reference;

pub use reference::{Reference, Told};
