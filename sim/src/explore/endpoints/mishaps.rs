//! What goes wrong in a story, or is rare: frames that the wire damages or the MAC rejects, memory that
//! comes and goes, datagrams in fragments, frames of the driver's own.
//!
//! Two of five seeds have none of it. What is chosen here comes from random numbers of its own, so
//! these seeds' stories are what they were.

use crate::explore::disturbance::{below, choose};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::SeedableRng;
use tigon2_chip::mac::RxError;
use tigon2_model::faults::Damage as Burst;

/// What came that is nobody's, and what became of it.
#[derive(Debug, Default)]
pub(super) struct Odd {
    /// Frames of all kinds that are damaged.
    pub(super) frames: u32,
    /// Frames with a wrong UDP checksum, and with a length that is wrong.
    pub(super) wrong_sums: u32,
    pub(super) short: u32,
    /// Datagrams in fragments: their identifications. One fragment of each comes twice.
    pub(super) parted: u16,
    /// Whole datagrams whose buffer could not be written, with those that have a wrong checksum.
    pub(super) unwritten: u32,
    /// Datagrams in fragments of which that is so.
    pub(super) incomplete: u32,
}

/// How often each of them happens: to one in so many, 0 for never.
#[derive(Clone, Debug)]
pub(super) struct Mishaps {
    pub(super) random: SplitMix64,
    /// Turns with a frame that is damaged.
    damaged: u64,
    /// Turns with a long frame that the MAC rejects at its end.
    rejected: u64,
    /// Buffers that cannot be written.
    unwritable: u64,
    /// Datagrams of which some memory cannot be read.
    unreadable: u64,
    /// Turns in which that memory comes back, or goes again.
    turned: u64,
    /// Clocks that a write of the bus waits, 0 for the usual ones.
    pub(super) write_stall: u64,
    /// Turns with a frame of the driver's own.
    plain: u64,
    /// Datagrams from the wire in fragments.
    parted: u64,
    /// Datagrams from the wire without a checksum.
    sumless: u64,
}

/// How a frame is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Damage {
    /// The MAC says so.
    Error(RxError),
    /// The wire has changed some of its bytes, and its CRC is wrong.
    Burst,
    /// Its UDP checksum is wrong, and its CRC right.
    Sum,
    /// It is shorter than its IP header says, and its CRC right.
    Short,
}

impl Mishaps {
    /// Those of a seed.
    pub(super) fn new(seed: u64) -> Mishaps {
        let mut random = SplitMix64::seed_from_u64(seed ^ 0x6D69_7368);
        let is_on = seed % 5 >= 2;
        let mut rate = |rates: [u64; 4]| if is_on { choose(&mut random, rates) } else { 0 };
        let [damaged, rejected] = [rate([0, 4, 12, 30]), rate([0, 0, 30, 60])];
        let [unwritable, unreadable] = [rate([0, 1, 3, 10]), rate([0, 3, 8, 20])];
        let [turned, plain] = [rate([0, 1, 2, 6]), rate([0, 0, 3, 20])];
        let [parted, sumless] = [rate([0, 2, 5, 12]), rate([0, 1, 2, 8])];
        let write_stall = rate([0, 0, 300, 1500]);
        Mishaps {
            write_stall,
            damaged,
            rejected,
            unwritable,
            unreadable,
            turned,
            plain,
            parted,
            sumless,
            random,
        }
    }

    fn one_in(&mut self, rate: u64) -> bool {
        rate != 0 && below(&mut self.random, rate) == 0
    }

    /// Whether some memory is gone.
    pub(super) const fn have_gone_memory(&self) -> bool {
        self.unwritable != 0 || self.unreadable != 0
    }

    /// Whether some frames are in nobody's list of what is due.
    pub(super) const fn have_bad_frames(&self) -> bool {
        self.damaged != 0 || self.rejected != 0
    }

    /// Whether some datagrams come in fragments.
    pub(super) const fn have_parted(&self) -> bool {
        self.parted != 0
    }

    /// Whether a frame comes that is damaged, and how.
    pub(super) fn damaged(&mut self) -> Option<Damage> {
        if !self.one_in(self.damaged) {
            return None;
        }
        Some(choose(
            &mut self.random,
            [
                Damage::Error(RxError::CRC),
                Damage::Error(RxError(RxError::TRUNCATED.0 | RxError::CRC.0)),
                Damage::Error(RxError::PHY_DECODE),
                Damage::Burst,
                Damage::Burst,
                Damage::Sum,
                Damage::Sum,
                Damage::Short,
            ],
        ))
    }

    /// What a frame is behind a wire that changes up to 8 bytes of it in a row.
    pub(super) fn burst(&mut self, frame: &[u8]) -> Vec<u8> {
        Burst::any(&mut self.random, 0..frame.len() as u16).apply(frame, 0)
    }

    /// Whether the MAC rejects a long frame now.
    pub(super) fn is_rejected(&mut self) -> bool {
        self.one_in(self.rejected)
    }

    /// Whether the next buffer cannot be written.
    pub(super) fn is_unwritable(&mut self) -> bool {
        self.one_in(self.unwritable)
    }

    /// Whether some of the next datagram's memory cannot be read.
    pub(super) fn is_unreadable(&mut self) -> bool {
        self.one_in(self.unreadable)
    }

    /// Whether memory that is gone comes back now, or that which came back goes.
    pub(super) fn is_turned(&mut self) -> bool {
        self.one_in(self.turned)
    }

    /// Whether the driver sends a frame of its own now.
    pub(super) fn is_plain(&mut self) -> bool {
        self.one_in(self.plain)
    }

    /// Whether the next datagram comes in fragments.
    pub(super) fn is_parted(&mut self) -> bool {
        self.one_in(self.parted)
    }

    /// Whether the next datagram has a checksum.
    pub(super) fn is_summed(&mut self) -> bool {
        !self.one_in(self.sumless)
    }
}
