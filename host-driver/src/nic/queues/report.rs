//! Compares the card's and the driver's data of each receive queue.

use serde::{Deserialize, Serialize};

use super::block::QueueCounters;
use crate::nic::control::Control;
use crate::nic::error::NicError;
use crate::transport::Transport;

/// One receive queue at a moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueReport {
    /// Its number.
    pub number: u8,
    /// What the card counts; wraps at 2^32.
    pub card: QueueCounters,
    /// Frames that the driver has taken.
    pub frames: u64,
    /// Their bytes, without CRC.
    pub bytes: u64,
    /// Entries of its return ring.
    pub entries: u32,
    /// Frames in the return ring when its thread last looked.
    pub fill: u32,
    /// Buffers that the card had then.
    pub buffers: u32,
    /// It was polled then: the card raised no interrupt for it.
    pub polled: bool,
    /// Somebody serves it. Of a queue that nobody serves the card drops everything.
    pub served: bool,
    /// The CPU that its thread is bound to.
    pub cpu: Option<u32>,
}

impl<T: Transport> Control<T> {
    /// Each open queue, as card and driver see it; none in classic mode. What its thread
    /// notes is as old as that thread's last look.
    ///
    /// # Errors
    /// What the transport says.
    pub fn queue_reports(&mut self) -> Result<Vec<QueueReport>, NicError> {
        let Some(settings) = self.queue_settings() else {
            return Ok(Vec::new());
        };
        let entries = settings.entries;
        let counters = self.queue_counters()?;
        let queues = (0..).zip(counters.into_iter().zip(&self.counts.received));
        let report = |(number, (card, counts)): (u8, (QueueCounters, &_))| {
            let look = crate::nic::counters::QueueCounts::look(counts);
            QueueReport {
                number,
                card,
                frames: look.frames,
                bytes: look.bytes,
                entries,
                fill: look.found,
                buffers: look.buffers,
                polled: look.polled,
                served: look.served,
                cpu: look.cpu,
            }
        };
        Ok(queues.map(report).collect())
    }
}

/// How uneven loads are: the largest against their mean. 1 for equal ones, their number if
/// one has everything, 0 if there is nothing.
#[must_use]
pub fn skew(loads: &[f64]) -> f64 {
    let sum: f64 = loads.iter().sum();
    if sum <= 0.0 {
        return 0.0;
    }
    let largest = loads.iter().copied().fold(0.0, f64::max);
    largest * loads.len() as f64 / sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skew_is_the_fullest_queue_against_the_mean() {
        assert_eq!(skew(&[2.0, 2.0]), 1.0);
        assert_eq!(skew(&[4.0, 0.0, 0.0, 0.0]), 4.0);
        assert_eq!(skew(&[3.0, 1.0]), 1.5);
        assert_eq!(skew(&[0.0, 0.0]), 0.0);
        assert_eq!(skew(&[]), 0.0);
    }
}
