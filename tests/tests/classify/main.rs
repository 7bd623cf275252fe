//! The classifier that firmware, driver and simulator share, against other code.

mod cycles;
mod properties;
mod vectors;
