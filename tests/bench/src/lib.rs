//! What measures the card and shows what it does.
//!
//! ```text
//!   simulated   the paper's microbenchmarks in the card's own time   plots beside the papers'
//!   linux       iperf3 through the card under QEMU, and a copy loop
//!   guest       iperf3 in a Linux guest: the card beside QEMU's e1000
//!   speed       how fast both engines run, by this computer's clock
//!   soak        two guests under load for minutes, every frame accounted for
//!   explore     the firmware under thousands of random schedules
//!   trace       what happens in the card, when, and to which frame
//!   replay      a capture through the simulated card
//! ```
//!
//! [`report`] has what all of them write, [`chart`] and [`pictures`] what they draw, and
//! [`conversation`] the traffic between two stacks of smoltcp.
#![forbid(unsafe_code)]

pub mod chart;
pub mod conversation;
pub mod copy_loop;
pub mod explore;
pub mod guest;
pub mod linux;
pub mod pictures;
pub mod replay;
pub mod report;
pub mod simulated;
pub mod soak;
pub mod speed;
pub mod trace;
