//! The parts of the chip that move data, each of which has one owner.
//!
//! Hardware reference, sections 6 and 10. A queue is made from the part that works on it,
//! so who has the part has the queue, and nobody else can queue anything there.

use crate::assist::{ReadChannel, WriteChannel};

/// The MAC's transmitter with its descriptor ring and its buffer.
#[derive(Debug)]
pub struct Transmitter(());

/// The MAC's receiver with its descriptor ring and its buffer.
#[derive(Debug)]
pub struct Receiver(());

/// All of one chip.
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
    /// The parts of a chip. To be called once for each: where a chip starts.
    pub const fn of_chip() -> Resources {
        Resources {
            read: ReadChannel(()),
            write: WriteChannel(()),
            transmitter: Transmitter(()),
            receiver: Receiver(()),
        }
    }
}
