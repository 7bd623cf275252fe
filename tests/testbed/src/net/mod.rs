//! The Linux hosts at both ends: namespaces, and the traffic between them.

pub mod iperf;
pub mod namespace;
pub mod ping;
