//! Floor 2: what is written down about what happens.
//!
//! | module | what |
//! | --- | --- |
//! | `log` | messages for developers |
//! | [`trace`] | entries about what is rare, for the host |
//! | [`drops`] | frames that go nowhere, by reason |
//! | [`counters`] | what each side counts for each frame |
//! | [`custom_counters`] | counts for a handler that is changed |
//! | [`fatal`] | the end |

pub mod counters;
pub mod custom_counters;
pub mod drops;
pub mod fatal;
pub(crate) mod log;
pub mod trace;
