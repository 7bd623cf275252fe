//! Benchmarks of the card, and recordings of its work.
//!
//! ```text
//!   simulated   the paper's microbenchmarks in the card's own time   plots beside the papers'
//!   eta         a web server without the kernel beside one with it
//!   eudp        datagrams of endpoints, cut through and stored
//!   knet        the KNET paper's experiments on a simulated host with several CPUs
//!   linux       iperf3 through the card under QEMU, and a copy loop
//!   guest       iperf3 in a Linux guest: the card beside QEMU's e1000
//!   speed       how fast both engines run, by this computer's clock
//!   soak        two guests under load for minutes, every frame accounted for
//!   explore     the firmware under thousands of random schedules
//!   trace       what happens in the card, when, and to which frame
//!   queues      two Linux hosts, a card in queue mode, a thread for each queue
//!   replay      a capture through the simulated card
//!   spine       extensions in the simulated card: cut off everywhere, loaded under load
//!   peered      a simulated card with a peer at the end of its wire
//!   front_page  the figures and pictures of the README
//! ```
//!
//! [`functions`] tells which function of the firmware an instruction is in. [`report`] is the
//! common report format, [`chart`], [`rows`] and [`pictures`] draw, and [`conversation`] is the
//! traffic between two stacks of smoltcp.
#![forbid(unsafe_code)]

pub mod chart;
pub mod conversation;
pub mod copy_loop;
pub mod eta;
pub mod eudp;
pub mod explore;
pub mod front_page;
pub mod functions;
pub mod guest;
pub mod knet;
pub mod linux;
pub mod peered;
pub mod pictures;
pub mod queues;
pub mod replay;
pub mod report;
pub mod rounds;
pub mod rows;
pub mod simulated;
pub mod soak;
pub mod speed;
pub mod spine;
pub mod trace;
