//! Endpoints' datagrams that were written to the host, or could not be.

use super::IoA;
use crate::io::Failed;
use tigon2_hal::events::Dispatch;

/// The bit of a datagram that could not be written.
const FAILED: u32 = 1 << 16;
/// Endpoints' datagrams that may be in the write channel's queue: so many may end before anybody asks.
pub const DATAGRAMS: u32 = 4;

/// Datagrams that have ended: their sums, the oldest first.
#[derive(Debug)]
pub(super) struct Ended {
    list: [u32; DATAGRAMS as usize],
    noted: u32,
    taken: u32,
}

impl Ended {
    pub const NONE: Ended = Ended {
        list: [0; DATAGRAMS as usize],
        noted: 0,
        taken: 0,
    };

    #[inline(always)]
    const fn put(&mut self, end: u32) {
        self.list[(self.noted % DATAGRAMS) as usize] = end;
        self.noted = self.noted.wrapping_add(1);
    }

    #[inline(always)]
    const fn take(&mut self) -> Option<u32> {
        if self.taken == self.noted {
            return None;
        }
        let end = self.list[(self.taken % DATAGRAMS) as usize];
        self.taken = self.taken.wrapping_add(1);
        Some(end)
    }
}

impl<B: Dispatch> IoA<B> {
    /// An endpoint's datagram was written, and summed.
    #[inline(always)]
    pub fn note_datagram(&mut self, sum: u16) {
        if let Some(datagrams) = self.datagrams.first_mut() {
            datagrams.put(u32::from(sum));
        }
    }

    /// An endpoint's datagram could not be written.
    pub fn note_failed_datagram(&mut self) {
        if let Some(datagrams) = self.datagrams.first_mut() {
            datagrams.put(FAILED);
        }
    }

    /// The oldest datagram that has ended and that nobody has seen to: its sum.
    #[inline(always)]
    pub fn take_datagram(&mut self) -> Option<Result<u32, Failed>> {
        let end = self.datagrams.first_mut()?.take()?;
        Some(if end & FAILED != 0 {
            Err(Failed)
        } else {
            Ok(end)
        })
    }
}
