//! What the driver keeps of the card's log.

use host_interface::log::{Level, RING_COUNT};

use crate::log::{Backlog, LogReader};

/// The driver's state of the card's log.
#[derive(Debug, Default)]
pub struct Log {
    pub(super) reader: LogReader,
    pub(super) backlog: Backlog,
    /// The position of [`drain_log`](crate::nic::Control::drain_log) in the backlog.
    pub(super) drained: u64,
    /// Messages lost before the firmware's last start, and since then.
    pub(super) lost: [(u64, u32); RING_COUNT],
    /// Requested levels, for the next start of the firmware.
    pub(super) levels: Vec<(usize, Level)>,
}

impl Log {
    /// The firmware restarts.
    pub fn restart(&mut self) {
        self.reader = LogReader::new();
        for (before, since) in &mut self.lost {
            *before += u64::from(std::mem::take(since));
        }
    }
}
