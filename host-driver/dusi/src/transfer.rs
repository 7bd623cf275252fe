//! Sends and receives.

use dti::layout::{ANONYMOUS, Direction, LAST, MULTISHOT, Operation, WHOLE, region_argument};

use crate::pool::Region;
use crate::{DusiError, EventQueue, Socket, Ual};

impl Ual {
    /// Sends the first `length` bytes of a region, which stay as they are until the event.
    ///
    /// # Errors
    /// [`DusiError::Range`], [`DusiError::Queue`].
    pub fn transmit(
        &mut self,
        on: Socket,
        region: &Region,
        length: usize,
        done: (EventQueue, u64),
    ) -> Result<(), DusiError> {
        self.transmit_part(on, region, (0, length), done)
    }

    /// Sends bytes of a region from an offset on.
    ///
    /// # Errors
    /// [`DusiError::Range`], [`DusiError::Queue`].
    pub fn transmit_part(
        &mut self,
        on: Socket,
        region: &Region,
        (offset, length): (usize, usize),
        done: (EventQueue, u64),
    ) -> Result<(), DusiError> {
        self.transmit_showing(on, region, region.tag(), (offset, length), done)
    }

    /// As [`Ual::transmit_part`], for a caller that keeps protection tags itself: one that is not
    /// the region's ends as [`dti::layout::Status::Protection`].
    ///
    /// # Errors
    /// [`DusiError::Range`], [`DusiError::Queue`].
    pub fn transmit_showing(
        &mut self,
        on: Socket,
        region: &Region,
        tag: u32,
        (offset, length): (usize, usize),
        done: (EventQueue, u64),
    ) -> Result<(), DusiError> {
        let operation = (Direction::Transmit, Operation::Transmit as u16);
        self.move_payload(operation, on, region, tag, (offset, length), done)
    }

    /// As [`Ual::transmit_part`], and the sending direction ends behind it.
    ///
    /// # Errors
    /// [`DusiError::Range`], [`DusiError::Queue`].
    pub fn transmit_last(
        &mut self,
        on: Socket,
        region: &Region,
        (offset, length): (usize, usize),
        done: (EventQueue, u64),
    ) -> Result<(), DusiError> {
        let operation = (Direction::Transmit, Operation::Transmit as u16 | LAST);
        self.move_payload(operation, on, region, region.tag(), (offset, length), done)
    }

    /// As [`Ual::transmit_part`], without a copy: the engine, or its card, reads the bytes where
    /// they are whenever a packet leaves. The event comes when the peer has acknowledged them, and
    /// only then they may be overwritten. Who closes the socket before resets the connection.
    ///
    /// # Errors
    /// [`DusiError::Range`], [`DusiError::Queue`].
    pub fn transmit_in_place(
        &mut self,
        on: Socket,
        region: &Region,
        (offset, length): (usize, usize),
        done: (EventQueue, u64),
    ) -> Result<(), DusiError> {
        self.transmit_in_place_showing(on, region, region.tag(), (offset, length), done)
    }

    /// As [`Ual::transmit_in_place`], for a caller that keeps protection tags itself.
    ///
    /// # Errors
    /// [`DusiError::Range`], [`DusiError::Queue`].
    pub fn transmit_in_place_showing(
        &mut self,
        on: Socket,
        region: &Region,
        tag: u32,
        (offset, length): (usize, usize),
        done: (EventQueue, u64),
    ) -> Result<(), DusiError> {
        let operation = (Direction::Transmit, Operation::TransmitInPlace as u16);
        self.move_payload(operation, on, region, tag, (offset, length), done)
    }

    /// Receives what there is into a region; 0 bytes are the end of the stream.
    ///
    /// # Errors
    /// [`DusiError::Queue`].
    pub fn receive(
        &mut self,
        on: Socket,
        region: &Region,
        done: (EventQueue, u64),
    ) -> Result<(), DusiError> {
        self.receive_part(on, region, (0, region.len()), done)
    }

    /// Receives what there is into a part of a region from an offset on, a multiple of 8.
    ///
    /// # Errors
    /// [`DusiError::Range`], [`DusiError::Queue`].
    pub fn receive_part(
        &mut self,
        on: Socket,
        region: &Region,
        (offset, length): (usize, usize),
        done: (EventQueue, u64),
    ) -> Result<(), DusiError> {
        self.receive_showing(on, region, region.tag(), (offset, length), done)
    }

    /// As [`Ual::receive_part`], for a caller that keeps protection tags itself.
    ///
    /// # Errors
    /// [`DusiError::Range`], [`DusiError::Queue`].
    pub fn receive_showing(
        &mut self,
        on: Socket,
        region: &Region,
        tag: u32,
        (offset, length): (usize, usize),
        done: (EventQueue, u64),
    ) -> Result<(), DusiError> {
        let operation = (Direction::Receive, Operation::Receive as u16);
        self.move_payload(operation, on, region, tag, (offset, length), done)
    }

    /// Receives a whole range of a region, an offset that is a multiple of 8 and its bytes; fewer
    /// only at the end of the stream.
    ///
    /// # Errors
    /// [`DusiError::Range`], [`DusiError::Queue`].
    pub fn receive_whole(
        &mut self,
        on: Socket,
        region: &Region,
        (offset, length): (usize, usize),
        done: (EventQueue, u64),
    ) -> Result<(), DusiError> {
        let operation = (Direction::Receive, Operation::Receive as u16 | WHOLE);
        self.move_payload(operation, on, region, region.tag(), (offset, length), done)
    }

    /// Receives what there is into a buffer of the anonymous pool, which the event names.
    ///
    /// # Errors
    /// [`DusiError::Queue`].
    pub fn receive_anonymous(
        &mut self,
        on: Socket,
        done: (EventQueue, u64),
    ) -> Result<(), DusiError> {
        self.receive_nowhere(0, on, done)
    }

    /// Receives all that comes, into one buffer of the anonymous pool after another. It stays
    /// posted while its events say so.
    ///
    /// # Errors
    /// [`DusiError::Queue`].
    pub fn receive_all(&mut self, on: Socket, done: (EventQueue, u64)) -> Result<(), DusiError> {
        self.receive_nowhere(MULTISHOT, on, done)
    }

    fn receive_nowhere(
        &mut self,
        flags: u16,
        on: Socket,
        done: (EventQueue, u64),
    ) -> Result<(), DusiError> {
        let operation = (Direction::Receive, Operation::Receive as u16 | flags);
        self.put_on(operation, done, on, (0, 0), u64::from(ANONYMOUS))
    }

    /// Posts a transmit or receive of a range of a region.
    fn move_payload(
        &mut self,
        operation: (Direction, u16),
        on: Socket,
        region: &Region,
        tag: u32,
        (offset, length): (usize, usize),
        done: (EventQueue, u64),
    ) -> Result<(), DusiError> {
        let writes = operation.0 == Direction::Receive;
        let range = region.range(offset, length, writes)?;
        let argument = region_argument(region.number(), tag);
        self.put_on(operation, done, on, range, argument)?;
        self.pool.used(region);
        Ok(())
    }
}
