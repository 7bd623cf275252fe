//! Experiments of "Packet classification in the NIC for improved SMP-based Internet servers"
//! (KNET): a host with several CPUs.
//!
//! | module | what |
//! | --- | --- |
//! | [`model`] | the paper's own model of the speed-up |

pub mod model;
