//! Layer 0: the layout of SRAM, the shared words, and the host's configuration.
//!
//! | module | what |
//! | --- | --- |
//! | [`layout`] | the tables in SRAM |
//! | [`copy`] | words that a CPU moves itself |
//! | [`flow_cache`] | the tables in which both CPUs look flows up |
//! | [`last_event`] | the state that reporting a fatal error needs |
//! | [`region`] | the parts of SRAM with an owner: memory of rings and lists |
//! | [`shared`] | words that cross between the CPUs, each with one writer |
//! | [`config`] | gencom and the general information block, as they were at start |
//! | [`statistics`] | the words of the statistics block |
//! | [`verdict`] | what both CPUs find out about received frames |

pub mod config;
pub mod copy;
pub mod flow_cache;
pub mod last_event;
pub mod layout;
pub mod overlay;
pub mod region;
pub mod shared;
pub mod statistics;
pub mod verdict;

#[cfg(test)]
pub(crate) mod words;
