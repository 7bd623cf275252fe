//! What the server keeps of a connection.

use std::time::Instant;

use dusi::Region;

use crate::request::Request;

/// A connection.
pub(crate) struct Connection {
    /// When it was accepted, until it has its first reply.
    pub(crate) since: Option<Instant>,
    /// When it is given up, whatever it does.
    pub(crate) deadline: Instant,
    pub(crate) input: Region,
    pub(crate) header: Region,
    /// Bytes of a file that is not in the cache, until they are sent.
    pub(crate) alone: Option<Region>,
    /// Bytes received and not yet parsed.
    pub(crate) pending: Vec<u8>,
    /// A request whose file is being read.
    pub(crate) waits: Option<(u64, Box<Request>)>,
    /// Transmits without a completion.
    pub(crate) transmits: usize,
    /// It goes on when they are complete.
    pub(crate) eager: bool,
    /// A receive has been posted.
    pub(crate) receiving: bool,
    /// The client sends nothing more.
    pub(crate) ended: bool,
    /// The connection ends after the reply.
    pub(crate) last: bool,
    /// The sending direction is shut down.
    pub(crate) shut: bool,
    pub(crate) closing: bool,
}
