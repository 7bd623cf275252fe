//! Layer 5: the state of CPU A and of CPU B, and the code that joins paths.
//!
//! | module | what |
//! | --- | --- |
//! | [`a`], [`b`] | the two sides |
//! | [`completion`] | actions on completed transfers |
//! | [`recovery`] | recovery of a channel that stopped with an error |
//! | [`mailbox`] | the host's doorbells |
//! | [`doorbell`] | the doorbells between the CPUs |
//! | [`timer`] | deadlines: coalescing, housekeeping |
//! | [`command`] | the host's commands |
//! | [`cross_call`] | CPU A's calls to CPU B |
//! | [`queues`] | commands that open and close the receive queues |
//! | [`spine`] | extensions that the host loads |
//! | [`eudp`] | endpoints for datagrams |
//! | [`statistics`] | the statistics block |
//! | [`fatal`] | fatal errors of CPU A |

pub mod a;
pub mod b;
pub mod command;
pub mod completion;
pub mod cross_call;
pub mod doorbell;
pub mod endpoints;
pub mod eudp;
pub mod fatal;
pub mod mailbox;
pub mod queues;
pub mod recovery;
pub mod spine;
pub mod statistics;
pub mod timer;

pub use a::SideA;
pub use b::SideB;
