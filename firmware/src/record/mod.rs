//! Layer 2: logs, traces, counters, fatal errors.
//!
//! | module | what |
//! | --- | --- |
//! | `log` | messages for developers |
//! | [`trace`] | a ring of rare events, for the host |
//! | [`drops`] | dropped frames by reason |
//! | [`counters`] | per-frame counters of each side |
//! | [`custom_counters`] | custom counters for changed handlers |
//! | [`fatal`] | fatal errors |

pub mod counters;
pub mod custom_counters;
pub mod drops;
pub mod fatal;
pub(crate) mod log;
pub mod trace;
