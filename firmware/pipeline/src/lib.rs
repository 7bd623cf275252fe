//! The state machines of a pipeline in which a frame leaves while it is still being fetched.
//!
//! Jin, Balaji, Yoo, Choi and Panda (E-UDP, section 4.3, figure 6) split a NIC's firmware into four
//! machines, whose transitions they verified by Spin:
//!
//! ```text
//!   host memory ──SDMA──► NIC memory ──SEND──► wire        both on CPU B
//!   host memory ◄──RDMA── NIC memory ◄──RECV── wire        both on CPU A
//! ```
//!
//! Here each machine is a const table of rows (state, event, conditions: action, next state). The
//! table is the only place in which a transition is written:
//!
//! | who | takes from the table |
//! | --- | --- |
//! | firmware | [`Machine::step`], which alone can change a state |
//! | the model for Spin, the pages' diagrams | the crate `pipeline-verify`, which prints them |
//! | the checker of traces | [`trace::Checker`], which follows the rows that firmware took |
//!
//! The compiler checks each table ([`Table::check`]): for every state, event and set of conditions
//! there is exactly one row, unless the table says that the event has to wait or cannot come; each
//! state is reached from the first one, and leads back to it.
//!
//! Ethernet adds to the paper's states: a frame that has begun cannot be held
//! ([`send::State::Watched`], [`send::State::Aborted`]), the UDP checksum stands in front of the
//! data ([`sdma::State::HeldForSum`]), and a bad CRC is known at the end only
//! ([`rdma::State::Vanished`]).
#![no_std]
#![forbid(unsafe_code)]

mod define;
mod machine;
pub mod rdma;
pub mod recv;
pub mod sdma;
pub mod send;
pub mod table;
pub mod trace;

pub use machine::{Definition, Machine, Selected, Step, World};
pub use table::{Class, Row, Table};

/// The tables of all machines, in the order of [`trace`]'s numbers.
pub const TABLES: [&Table; 4] = [&sdma::TABLE, &send::TABLE, &recv::TABLE, &rdma::TABLE];
