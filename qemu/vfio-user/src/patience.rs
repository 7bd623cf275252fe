//! Limits how long a client may leave an obligation open.
//!
//! A client that has begun a message owes the rest of it; a client that is being answered owes
//! room for the answer in its socket; a client that got a DMA request owes a reply. A client that
//! owes nothing is healthy, however long it is silent: a sleeping driver reads no socket, so it
//! cannot be probed. A client that owes for too long is disconnected, and sooner if another client
//! waits for the device:
//!
//! ```text
//!   owes ──────────────────────────────────────────► alone: cut off
//!   owes ──── another waits ───────► contested: cut off
//! ```

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often a waiting thread looks whether there is a newcomer.
pub(crate) const LOOK: Duration = Duration::from_millis(100);

/// The two patiences, and whether anybody else waits.
#[derive(Debug)]
pub(crate) struct Patience {
    alone: Duration,
    contested: Duration,
    /// Since when another client waits for the device.
    newcomer: Mutex<Option<Instant>>,
}

impl Patience {
    pub(crate) fn new(alone: Duration, contested: Duration) -> Self {
        Self {
            alone,
            contested,
            newcomer: Mutex::default(),
        }
    }

    /// The patience with a client that is alone.
    pub(crate) fn alone(&self) -> Duration {
        self.alone
    }

    /// Another client waits for the device, or none does any more.
    pub(crate) fn set_contested(&self, contested: bool) {
        let mut newcomer = self.newcomer.lock().unwrap_or_else(PoisonError::into_inner);
        if !contested {
            *newcomer = None;
        } else if newcomer.is_none() {
            *newcomer = Some(Instant::now());
        }
    }

    /// Has a newcomer waited long enough for what has been owed since then?
    pub(crate) fn is_contested_out(&self, waiting_since: Instant) -> bool {
        let newcomer = *self.newcomer.lock().unwrap_or_else(PoisonError::into_inner);
        newcomer.is_some_and(|newcomer| newcomer.max(waiting_since).elapsed() >= self.contested)
    }

    /// Has it been owed for too long?
    pub(crate) fn is_over(&self, waiting_since: Instant) -> bool {
        waiting_since.elapsed() >= self.alone || self.is_contested_out(waiting_since)
    }
}
