//! What a card knows of a bus that it shares with others: the latency of each target on it.

use crate::memory::Target;
use crate::timing::dma::Latency;
use tigon2_model::window::WINDOW_OFFSET;

/// Where the first card's BAR 0 lies on the bus, and how far the next one's is.
const BARS: u64 = 0xE000_0000;
const BAR_DISTANCE: u64 = 0x1_0000;

/// Address on the bus of a card's BAR 0.
pub(crate) const fn bar(card: usize) -> u64 {
    BARS + card as u64 * BAR_DISTANCE
}

/// The bus, as its cards share it: the clocks before the first beat of a transaction, by its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bus {
    /// Host memory; `None`: those of each card's timing profile.
    pub memory: Option<Latency>,
    /// What a card has in its BAR below the window: registers and mailboxes.
    pub registers: Latency,
    /// A card's window to its SRAM.
    pub window: Latency,
    /// A frame buffer.
    pub frame_buffer: Latency,
}

impl Default for Bus {
    /// Devices take as long as a write to host memory: the profile's figures are fitted to whole
    /// transfers, and nothing says which part of them is the bridge's.
    fn default() -> Self {
        let device = Latency {
            read: 25,
            write: 25,
        };
        Bus {
            memory: None,
            registers: device,
            window: device,
            frame_buffer: device,
        }
    }
}

impl Bus {
    /// The latency of an address that belongs to a target; `None`: that of the timing profile.
    pub(crate) fn latency(&self, target: Target, address: u64) -> Option<Latency> {
        match target {
            Target::Memory => self.memory,
            Target::FrameBuffer(_) => Some(self.frame_buffer),
            Target::Card(card) => {
                let offset = address.wrapping_sub(bar(card));
                let below = offset < WINDOW_OFFSET.into();
                Some(if below { self.registers } else { self.window })
            }
        }
    }
}
