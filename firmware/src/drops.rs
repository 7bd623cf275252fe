//! Frames that go nowhere, each counted with its reason.

use host_interface::extension::{DROP_COUNT, Drop};

/// How many there were of each reason.
#[derive(Clone, Copy, Debug)]
pub struct Drops([u32; DROP_COUNT]);

impl Drops {
    /// None.
    pub const fn new() -> Drops {
        Drops([0; DROP_COUNT])
    }

    /// Counts a dropped frame.
    #[inline(always)]
    pub fn count(&mut self, reason: Drop) {
        if let Some(count) = self.0.get_mut(reason as usize) {
            *count = count.wrapping_add(1);
        }
    }

    /// The reasons of one side with their numbers: those of frames to send, or the others.
    pub fn of(&self, send: bool) -> impl Iterator<Item = (Drop, u32)> {
        (0..)
            .map_while(Drop::from_number)
            .zip(self.0)
            .filter(move |(reason, _)| reason.is_send() == send)
    }
}

impl Default for Drops {
    fn default() -> Drops {
        Drops::new()
    }
}
