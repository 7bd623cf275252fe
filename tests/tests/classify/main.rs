//! The classifier that firmware, driver and simulator share, against other code.

mod properties;
mod vectors;
