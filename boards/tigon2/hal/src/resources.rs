//! The parts of the chip that move data, as values with one owner.
//!
//! Hardware reference, sections 6 and 10. A queue is built from the part that works on it, so the
//! owner of the part owns the queue, and nothing else can queue there.

use crate::assist::{ReadChannel, WriteChannel};

/// The MAC's transmitter with its descriptor ring and its buffer.
#[derive(Debug)]
pub struct Transmitter(());

/// The MAC's receiver with its descriptor ring and its buffer.
#[derive(Debug)]
pub struct Receiver(());

/// All parts of one chip.
#[derive(Debug)]
pub struct Resources {
    /// Host to NIC.
    pub read: ReadChannel,
    /// NIC to host.
    pub write: WriteChannel,
    /// NIC to wire.
    pub transmitter: Transmitter,
    /// Wire to NIC.
    pub receiver: Receiver,
}

impl Resources {
    /// The parts of a chip. Call it once for each chip, at its start.
    pub const fn of_chip() -> Resources {
        Resources {
            read: ReadChannel(()),
            write: WriteChannel(()),
            transmitter: Transmitter(()),
            receiver: Receiver(()),
        }
    }
}
