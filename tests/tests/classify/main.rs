//! Tests the classifier that firmware, driver and simulator share, against independent code.

mod cycles;
mod properties;
mod vectors;
