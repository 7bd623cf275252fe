//! The two DMA channels and the assist engines that feed them.
//!
//! Hardware reference, section 6.
//!
//! ```text
//!              ring in SRAM            channel registers
//! software ──► [desc][desc][desc] ──►  host, local, length, state ──► host memory ◄─► SRAM
//!              producer  consumer              ▲
//! software (direct use) ───────────────────────┘
//! ```
//!
//! A transfer has two halves, so that an engine can put time between them:
//! [`Stages::dma_begin`](crate::Stages::dma_begin) selects it (and loads its descriptor), and
//! [`Stages::dma_complete`](crate::Stages::dma_complete) moves the bytes and applies all side effects
//! at once.

mod assist;
mod channel;
mod checksum;
mod transfer;

pub use assist::{Assist, Ring};
pub use channel::{Channel, HOST_MEMORY_ERROR, Transfer};
pub use checksum::add_bytes;
pub use transfer::{Outcome, PacketBuffers};
pub(crate) use transfer::{gather, reverse_words};

#[cfg(test)]
mod tests;

/// The direction of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Host to NIC.
    Read,
    /// NIC to host.
    Write,
}

impl Direction {
    /// Both, read first.
    pub const ALL: [Direction; 2] = [Direction::Read, Direction::Write];

    /// 0 for read, 1 for write.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The other direction.
    pub const fn other(self) -> Direction {
        match self {
            Direction::Read => Direction::Write,
            Direction::Write => Direction::Read,
        }
    }
}

/// Longest transfer in bytes: the length field has 16 bits (6.4).
pub const MAX_TRANSFER: usize = 0xFFFF;

/// Both channels with their rings, and the buffer for the transferred bytes.
#[derive(Clone, Debug)]
pub struct Dma {
    /// The channels, by [`Direction::index`].
    pub channels: [Channel; 2],
    /// The assist engines.
    pub assist: Assist,
    /// Transfers that were begun, by channel; a reset does not clear them.
    pub begun: [u64; 2],
    buffer: Vec<u8>,
}

impl Default for Dma {
    fn default() -> Self {
        Dma {
            channels: [Channel::default(); 2],
            assist: Assist::default(),
            begun: [0; 2],
            buffer: vec![0; MAX_TRANSFER],
        }
    }
}

impl Dma {
    /// Chip reset: stops and clears everything.
    pub fn reset(&mut self) {
        self.channels = [Channel::default(); 2];
        self.assist = Assist::default();
    }

    /// A channel.
    #[inline]
    pub fn channel(&self, direction: Direction) -> &Channel {
        &self.channels[direction.index()]
    }

    /// A channel.
    pub fn channel_mut(&mut self, direction: Direction) -> &mut Channel {
        &mut self.channels[direction.index()]
    }

    /// `R[11C]`: the stored bits and the live state of channels and rings (6.2, C).
    pub fn assist_state(&self) -> u32 {
        self.assist
            .state()
            .with_write_busy(self.channel(Direction::Write).busy())
            .with_write_pending(!self.assist.ring(Direction::Write).is_empty())
            .with_read_busy(self.channel(Direction::Read).busy())
            .with_read_pending(!self.assist.ring(Direction::Read).is_empty())
            .into_bits()
    }

    /// Whether the assist may load the next descriptor of a ring now (6.2, 6.3).
    #[inline]
    pub fn assist_ready(&self, direction: Direction) -> bool {
        let state = self.assist.state();
        let ready = |direction: Direction| {
            !self.assist.ring(direction).is_empty()
                && !self.channel(direction).busy()
                && !self.channel(direction).failed()
        };
        if !state.enable() || state.pause() || !ready(direction) {
            return false;
        }
        if !state.one_at_a_time() {
            return true;
        }
        // One at a time: wait for the other, and alternate when both have work.
        let other = direction.other();
        !self.channel(other).busy() && (self.assist.last() != Some(direction) || !ready(other))
    }
}
