//! The driver's view of a queue's polled mark.
//!
//! "Packet classification in the NIC for improved SMP-based Internet servers" (KNET), section 3.2.
//! A queue is *armed* or *polled*: the interrupt of an armed queue marks it polled, and a polled
//! queue raises none. One mailbox write re-arms it and reports what was taken:
//!
//! ```text
//!   card:   armed ──frames──► status line, interrupt: polled ─────────────┐
//!   driver:                   takes frames: consumer, bit 31 (stay polled)│
//!           armed ◄────────── no more: consumer ◄─────────────────────────┘
//! ```
//!
//! The status line counts interrupts, so it shows the driver that the queue is polled. The card
//! decides whether the queue holds more frames when it is re-armed.

use host_interface::bd::ReturnBd;
use host_interface::queue::RearmWord;

use crate::nic::plan::QueuePlan;

/// Whether the queue is armed, and its re-arm mailbox.
pub(in crate::nic) struct PolledMark {
    queue: QueuePlan,
    /// The status line's interrupt count when the queue was armed: the queue is polled once the
    /// count is higher.
    armed: u32,
}

impl PolledMark {
    /// A queue that was just opened: it is armed, without interrupts so far.
    pub fn new(queue: QueuePlan) -> Self {
        Self { queue, armed: 0 }
    }

    /// The queue is opened again.
    pub fn restart(&mut self) {
        self.armed = 0;
    }

    /// The queue's number.
    pub fn number(&self) -> u8 {
        self.queue.number
    }

    /// Whether a return BD belongs to this queue.
    pub fn is_of(&self, bd: &ReturnBd) -> bool {
        bd.queue() == self.queue.number && bd.hash_type().is_some()
    }

    /// Whether it is polled, where `interrupts` is what the status line counts.
    pub fn is_polled(&self, interrupts: u32) -> bool {
        self.armed != interrupts
    }

    /// Mailbox and word that report "taken up to `consumer`" and leave the mark unchanged;
    /// `interrupts` is the status line's count.
    pub fn stay(&self, consumer: u32, interrupts: u32) -> (u32, u32) {
        let word = RearmWord::new()
            .with_consumer(consumer as u16)
            .with_stay_polled(self.is_polled(interrupts));
        (self.queue.rearm, word.into_bits())
    }

    /// Mailbox and word that arm the queue. None if it is armed, no interrupt has come, and the
    /// card knows the index (`known`).
    pub fn rearm(&mut self, consumer: u32, interrupts: u32, known: bool) -> Option<(u32, u32)> {
        if self.armed == interrupts && known {
            return None;
        }
        self.armed = interrupts;
        let word = RearmWord::new().with_consumer(consumer as u16);
        Some((self.queue.rearm, word.into_bits()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use host_interface::queue::HashType;

    fn mark() -> PolledMark {
        PolledMark::new(QueuePlan {
            number: 3,
            rearm: 0x598,
        })
    }

    #[test]
    fn a_queue_is_rearmed_once_for_each_interrupt() {
        let mut mark = mark();
        assert_eq!(mark.rearm(0, 0, true), None, "it is armed from the start");
        assert!(!mark.is_polled(0) && mark.is_polled(1));
        assert_eq!(mark.rearm(5, 1, false), Some((0x598, 5)));
        assert_eq!(mark.rearm(5, 1, true), None);
        assert_eq!(
            mark.rearm(5, 2, true),
            Some((0x598, 5)),
            "raised for nothing"
        );
    }

    /// Frames taken from an armed queue must be reported, or the ring fills up.
    #[test]
    fn what_was_taken_of_an_armed_queue_is_reported() {
        let mut mark = mark();
        assert_eq!(mark.rearm(7, 0, false), Some((0x598, 7)));
        assert_eq!(mark.stay(9, 0), (0x598, 9), "it stays armed");
        assert_eq!(mark.stay(9, 1), (0x598, 0x8000_0009), "it stays polled");
    }

    #[test]
    fn bds_of_other_queues_are_not_taken() {
        let mark = mark();
        let bd = ReturnBd::from_words([0; 8]);
        let with = |queue, kind| mark.is_of(&bd.with_classification(queue, kind, 1));
        assert!(with(3, HashType::TcpIpv4) && with(3, HashType::None));
        assert!(!with(2, HashType::TcpIpv4));
        let unknown = ReturnBd::from_words([0, 0, 0, 0x0703_0000, 0, 0, 0, 0]);
        assert!(!mark.is_of(&unknown));
    }
}
