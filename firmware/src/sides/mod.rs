//! Floor 5: the state of CPU A and of CPU B, and what joins paths.
//!
//! | module | what |
//! | --- | --- |
//! | [`a`], [`b`] | the two sides |
//! | [`completion`] | what follows when a transfer is done |
//! | [`recovery`] | a channel that stopped with an error |
//! | [`mailbox`] | the host's doorbells |
//! | [`doorbell`] | those between the CPUs |
//! | [`timer`] | what is due: coalescing, housekeeping |
//! | [`command`] | the host's commands |
//! | [`cross_call`] | what CPU A has CPU B do for them |
//! | [`queues`] | commands that open and close the receive queues |
//! | [`statistics`] | the statistics block |
//! | [`fatal`] | fatal errors of CPU A |

pub mod a;
pub mod b;
pub mod command;
pub mod completion;
pub mod cross_call;
pub mod doorbell;
pub mod fatal;
pub mod mailbox;
pub mod queues;
pub mod recovery;
pub mod statistics;
pub mod timer;

pub use a::SideA;
pub use b::SideB;
