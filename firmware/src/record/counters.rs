//! Per-frame counters, kept in the scratch pads.
//!
//! Each path counts for itself. `sides::statistics` copies the counts to NIC memory each
//! hundredth of a second.

use super::drops::Drops;
use host_interface::bd::destination;
use host_interface::statistics::Counter64;

const ZERO: Counter64 = Counter64::new(0);

/// Frames by destination: unicast, multicast, broadcast.
#[derive(Clone, Copy, Debug)]
pub struct ByDestination(pub [Counter64; 3]);

impl ByDestination {
    const NONE: ByDestination = ByDestination([ZERO; 3]);

    #[inline(always)]
    fn add(&mut self, destination: u8, frames: u32) {
        let [unicast, multicast, broadcast] = &mut self.0;
        match destination {
            destination::BROADCAST => broadcast.add(frames),
            destination::MULTICAST => multicast.add(frames),
            _ => unicast.add(frames),
        }
    }

    fn subtract(&mut self, destination: u8) {
        let [unicast, multicast, broadcast] = &mut self.0;
        match destination {
            destination::BROADCAST => broadcast.subtract(1),
            destination::MULTICAST => multicast.subtract(1),
            _ => unicast.subtract(1),
        }
    }
}

/// Counters of the receive path.
#[derive(Debug)]
pub struct ReceiveCounters {
    /// Bytes received, without CRC.
    pub octets: Counter64,
    /// Frames received.
    pub frames: ByDestination,
    /// Frames dropped.
    pub drops: Drops,
    /// Index updates of the return ring.
    pub return_updates: u32,
}

impl ReceiveCounters {
    /// All zero.
    pub const fn new() -> ReceiveCounters {
        ReceiveCounters {
            octets: ZERO,
            frames: ByDestination::NONE,
            drops: Drops::new(),
            return_updates: 0,
        }
    }

    /// Counts received frames with this destination, and their bytes.
    #[inline(always)]
    pub fn received(&mut self, destination: u8, frames: u32, bytes: u32) {
        self.octets.add(bytes);
        self.frames.add(destination, frames);
    }
}

impl Default for ReceiveCounters {
    fn default() -> ReceiveCounters {
        ReceiveCounters::new()
    }
}

/// Counters of the send path.
#[derive(Debug)]
pub struct SendCounters {
    /// Bytes sent, without CRC.
    pub octets: Counter64,
    /// Frames sent.
    pub frames: ByDestination,
    /// Frames dropped.
    pub drops: Drops,
    /// Index updates of the send ring.
    pub updates: u32,
    /// Moves of the host's send producer.
    pub producer_updates: u32,
    /// Updates that the BD threshold triggered.
    pub threshold_hits: u32,
    /// Frames that found the transmit buffer full, counted on every attempt.
    pub buffer_retries: u32,
    /// Frames that found the MAC's ring full.
    pub mac_ring_full: u32,
    /// Transfers that found no read descriptor.
    pub read_ring_full: u32,
    /// Errors of the read channel.
    pub read_aborts: u32,
}

impl SendCounters {
    /// All zero.
    pub const fn new() -> SendCounters {
        SendCounters {
            octets: ZERO,
            frames: ByDestination::NONE,
            drops: Drops::new(),
            updates: 0,
            producer_updates: 0,
            threshold_hits: 0,
            buffer_retries: 0,
            mac_ring_full: 0,
            read_ring_full: 0,
            read_aborts: 0,
        }
    }

    /// Counts sent frames with this destination.
    #[inline(always)]
    pub fn sent(&mut self, destination: u8, frames: u32) {
        self.frames.add(destination, frames);
    }

    /// Takes back a frame that was counted as sent.
    pub fn not_sent(&mut self, destination: u8) {
        self.frames.subtract(destination);
    }
}

impl Default for SendCounters {
    fn default() -> SendCounters {
        SendCounters::new()
    }
}
