//! For how long a client may owe something.
//!
//! A client that has begun a message owes the rest of it; one that was answered owes room
//! for the answer in its socket; one that was asked for its memory owes a reply. Who owes
//! nothing is healthy, however long it is silent: a driver that sleeps reads no socket, so
//! there is nothing to ask it by. Who owes for too long is dead, and sooner so while
//! somebody else waits for the device:
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
    /// Since when somebody else waits for the device.
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

    /// Somebody else waits for the device, or nobody does any more.
    pub(crate) fn set_contested(&self, contested: bool) {
        let mut newcomer = self.newcomer.lock().unwrap_or_else(PoisonError::into_inner);
        if !contested {
            *newcomer = None;
        } else if newcomer.is_none() {
            *newcomer = Some(Instant::now());
        }
    }

    /// Has a newcomer waited long enough for what has been owed since then?
    pub(crate) fn is_contested_out(&self, owed_since: Instant) -> bool {
        let newcomer = *self.newcomer.lock().unwrap_or_else(PoisonError::into_inner);
        newcomer.is_some_and(|newcomer| newcomer.max(owed_since).elapsed() >= self.contested)
    }

    /// Has it been owed for too long?
    pub(crate) fn is_over(&self, owed_since: Instant) -> bool {
        owed_since.elapsed() >= self.alone || self.is_contested_out(owed_since)
    }
}
