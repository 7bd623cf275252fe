//! Refused commands of queue mode.

use host_interface::queue::QueueResult;

/// Why a command of queue mode is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The error.
    pub result: QueueResult,
    /// The index of the queue or table entry with the error.
    pub index: u32,
}

impl Refused {
    /// An error that is not about one queue or entry.
    pub const fn of(result: QueueResult) -> Refused {
        Refused::about(result, 0)
    }

    /// An error of one queue or entry.
    pub const fn about(result: QueueResult, index: u32) -> Refused {
        Refused { result, index }
    }
}
