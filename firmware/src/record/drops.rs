//! Dropped frames, counted by reason.

use host_interface::extension::{DROP_COUNT, DropReason};

/// Reasons on CPU B's side: frames to send.
pub const SEND: &[DropReason] = &[
    DropReason::BadSendBd,
    DropReason::SendTooLong,
    DropReason::LinkDown,
    DropReason::SendFault,
];

/// Reasons on CPU A's side: received frames.
pub const RECEIVE: &[DropReason] = &[
    DropReason::StackDown,
    DropReason::BadFrame,
    DropReason::TooLong,
    DropReason::TooShort,
    DropReason::NotSubscribed,
    DropReason::NoReceiveBd,
    DropReason::BufferTooSmall,
    DropReason::ReturnRingFull,
    DropReason::ReceiveFault,
];

const _: () = assert!(SEND.len() + RECEIVE.len() == DROP_COUNT);

/// Dropped frames by reason.
#[derive(Clone, Copy, Debug)]
pub struct Drops([u32; DROP_COUNT]);

impl Drops {
    /// No drops.
    pub const fn new() -> Drops {
        Drops([0; DROP_COUNT])
    }

    /// Counts a dropped frame.
    #[inline(always)]
    pub fn count(&mut self, reason: DropReason) {
        self.add(reason, 1);
    }

    /// Adds to the count of a reason.
    #[inline(always)]
    pub fn add(&mut self, reason: DropReason, more: u32) {
        if let Some(count) = self.0.get_mut(reason as usize) {
            *count = count.wrapping_add(more);
        }
    }

    /// The counts of some reasons: [`SEND`] or [`RECEIVE`].
    pub fn of(&self, reasons: &'static [DropReason]) -> impl Iterator<Item = (DropReason, u32)> {
        reasons
            .iter()
            .map(|reason| (*reason, self.0.get(*reason as usize).copied().unwrap_or(0)))
    }
}

impl Default for Drops {
    fn default() -> Drops {
        Drops::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_belongs_to_one_side() {
        assert!(SEND.iter().all(|reason| reason.is_send()));
        assert!(!RECEIVE.iter().any(|reason| reason.is_send()));
    }
}
