//! The Linux hosts at either end: namespaces, and the traffic run in them.

pub mod iperf;
pub mod namespace;
pub mod ping;
