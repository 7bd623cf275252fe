//! Floor 0: what lies where in SRAM, what both CPUs see, and what the host configured.
//!
//! | module | what |
//! | --- | --- |
//! | [`layout`] | the tables in SRAM |
//! | [`last_event`] | what the event of a fatal error needs |
//! | [`shared`] | words that cross between the CPUs, each with one writer |
//! | [`config`] | gencom and the general information block, as they were at start |
//! | [`statistics`] | the words of the statistics block |

pub mod config;
pub mod last_event;
pub mod layout;
pub mod shared;
pub mod statistics;
