//! What an engine has done, and who uses it.

use host_driver::stack::flows::StackStatistics;
use serde::Serialize;

/// What the engine has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Statistics {
    /// Descriptors taken.
    pub descriptors: u64,
    /// Payload bytes copied from pools to connections.
    pub sent: u64,
    /// Payload bytes copied from connections to pools.
    pub received: u64,
    /// Payload bytes that connections send from pools without a copy.
    pub in_place: u64,
    /// Applications that attached.
    pub attached: u64,
    /// Applications that ended, in whatever way.
    pub ended: u64,
    /// Applications dropped because they wrote nonsense into a queue.
    pub expelled: u64,
    /// Turns without work.
    pub idle: u64,
    /// Times that it slept.
    pub sleeps: u64,
    /// Times that it woke a sleeping application.
    pub wakes: u64,
    /// System calls for applications and sleep: looks at the door, sleeps, wake-ups. Those of the
    /// wire are the wire's.
    pub calls: u64,
    /// The stack's.
    #[serde(skip)]
    pub stack: StackStatistics,
}

/// An application, for those who look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ApplicationReport {
    /// Its process.
    pub process: u32,
    /// Its user.
    pub user: u32,
    /// Its sockets.
    pub sockets: usize,
    /// Bytes of its connections' buffers.
    pub buffers: u64,
    /// Its regions.
    pub regions: u32,
    /// Bytes of its own memory files in regions.
    pub files: u64,
    /// Bytes that the receive windows of its connections may promise.
    pub promised: u64,
    /// Buffers of the anonymous pool that it has.
    pub lent: usize,
}
