//! A small web server for files over [`dusi`], and over the kernel ([`epoll`]) to compare.
//!
//! "Scalable networking for next-generation computing platforms", section V: an event-driven
//! server without threads for its connections, with an event queue each for accepts, reads, writes
//! and closes. One helper thread reads files that are not in the cache.
//!
//! ```text
//!                        ┌─► load a file ─┐
//!   accept ──► read ──► parse ──────────► reply ──► read     (persistent connection)
//!                └─ end of stream, error,    └► shutdown ──► close
//!                   too slow ──────────────────────────────►
//! ```
//!
//! | module | what |
//! | --- | --- |
//! | [`request`], [`reply`] | HTTP: what is asked, and what is given of a file |
//! | [`cache`], `loader` | files in memory that copies of the server share, and who reads them |
//! | `server`, `exchange` | the server over queues: its loop, and the states of a connection |
//! | [`epoll`] | the server over the kernel's sockets |
//! | `accepting`, `limits`, `dynamic` | when to accept, how long clients may take, a page that costs time |

#![forbid(unsafe_code)]

mod accepting;
pub mod cache;
mod connection;
mod dynamic;
pub mod epoll;
mod exchange;
mod limits;
mod loader;
pub mod reply;
pub mod request;
mod server;

pub use accepting::AcceptPolicy;
pub use dusi::Status;
pub use dynamic::DynamicPage;
pub use limits::Limits;
pub use server::{Server, ServerError, Settings};

/// The longest request header.
const LONGEST_REQUEST: usize = 8192;
/// Connections that may wait to be accepted.
const BACKLOG: u32 = 128;

/// What a server has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Connections accepted.
    pub accepted: u64,
    /// Requests answered.
    pub requests: u64,
    /// Connections closed.
    pub closed: u64,
    /// Connections closed at once because there was no memory for them.
    pub refused: u64,
    /// Connections that their clients reset: work for nothing.
    pub given_up: u64,
    /// Connections that were closed because their clients were idle or too slow.
    pub timed_out: u64,
    /// Files that the helper was asked for.
    pub loads: u64,
}
