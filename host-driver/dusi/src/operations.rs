//! The operations: each posts one descriptor.

use std::net::SocketAddrV4;

use dti::layout::{Descriptor, Operation, QUIET, SocketOption, region_argument};
use dti::words::{read_bytes, write_bytes};

use crate::pool::{Busy, Region};
use crate::{DusiError, EventQueue, Socket, Ual};

impl Ual {
    fn put(
        &mut self,
        operation: Operation,
        (queue, tag): (EventQueue, u64),
        socket: Socket,
        (offset, length): (u32, u32),
        argument: u64,
    ) -> Result<(), DusiError> {
        self.post(Descriptor {
            operation: operation as u16,
            queue: queue.0,
            socket: socket.0,
            tag,
            offset,
            length,
            argument,
        })
    }

    /// Makes a socket; operations on it may be posted at once.
    ///
    /// # Errors
    /// [`DusiError::Exhausted`], [`DusiError::Queue`].
    pub fn socket(&mut self, done: (EventQueue, u64)) -> Result<Socket, DusiError> {
        let socket = Socket(self.handles.first()?);
        self.put(Operation::Socket, done, socket, (0, 0), 0)?;
        self.handles.take();
        Ok(socket)
    }

    /// Gives a socket its local port.
    ///
    /// # Errors
    /// [`DusiError::Queue`].
    pub fn bind(
        &mut self,
        on: Socket,
        port: u16,
        done: (EventQueue, u64),
    ) -> Result<(), DusiError> {
        self.put(Operation::Bind, done, on, (0, 0), u64::from(port))
    }

    /// Listens; at most `backlog` connections wait.
    ///
    /// # Errors
    /// [`DusiError::Queue`].
    pub fn listen(
        &mut self,
        on: Socket,
        backlog: u32,
        done: (EventQueue, u64),
    ) -> Result<(), DusiError> {
        self.put(Operation::Listen, done, on, (0, backlog), 0)
    }

    /// Takes the next connection; the event's `child` is it.
    ///
    /// # Errors
    /// [`DusiError::Exhausted`], [`DusiError::Queue`].
    pub fn accept(&mut self, on: Socket, done: (EventQueue, u64)) -> Result<(), DusiError> {
        let child = self.handles.first()?;
        self.put(Operation::Accept, done, on, (0, 0), u64::from(child))?;
        self.handles.lend(child);
        Ok(())
    }

    /// Takes the next connection as a socket made before, which is fresh, as the paper's Table I
    /// has it. If it fails, that socket stays as it is.
    ///
    /// # Errors
    /// [`DusiError::Queue`].
    pub fn accept_as(
        &mut self,
        on: Socket,
        child: Socket,
        done: (EventQueue, u64),
    ) -> Result<(), DusiError> {
        self.put(Operation::Accept, done, on, (0, 0), u64::from(child.0))
    }

    /// Connects.
    ///
    /// # Errors
    /// [`DusiError::Queue`].
    pub fn connect_to(
        &mut self,
        on: Socket,
        to: SocketAddrV4,
        done: (EventQueue, u64),
    ) -> Result<(), DusiError> {
        let address = u64::from(u32::from(*to.ip())) << 16 | u64::from(to.port());
        self.put(Operation::Connect, done, on, (0, 0), address)
    }

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

    /// Sends bytes of a region from an offset on, a multiple of 8.
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
        self.move_payload(Operation::Transmit, on, region, tag, (offset, length), done)
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
        let operation = Operation::TransmitInPlace;
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
        self.move_payload(Operation::Receive, on, region, tag, (offset, length), done)
    }

    /// Posts a transmit or receive of a range of a region.
    fn move_payload(
        &mut self,
        operation: Operation,
        on: Socket,
        region: &Region,
        tag: u32,
        (offset, length): (usize, usize),
        done: (EventQueue, u64),
    ) -> Result<(), DusiError> {
        let range = region.range(offset, length)?;
        let argument = region_argument(region.number(), tag);
        self.put(operation, done, on, range, argument)?;
        self.pool.used(region);
        Ok(())
    }

    /// Ends the sending direction after what was posted.
    ///
    /// # Errors
    /// [`DusiError::Queue`].
    pub fn shutdown(&mut self, on: Socket, done: (EventQueue, u64)) -> Result<(), DusiError> {
        self.put(Operation::Shutdown, done, on, (0, 0), 0)
    }

    /// Frees a socket; posted operations end as cancelled. A connection that was not shut down is
    /// reset.
    ///
    /// # Errors
    /// [`DusiError::Queue`].
    pub fn close(&mut self, on: Socket, done: (EventQueue, u64)) -> Result<(), DusiError> {
        self.put(Operation::Close, done, on, (0, 0), 0)
    }

    /// Sets an option.
    ///
    /// # Errors
    /// [`DusiError::Queue`].
    pub fn set_option(
        &mut self,
        on: Socket,
        option: SocketOption,
        value: u32,
        done: (EventQueue, u64),
    ) -> Result<(), DusiError> {
        let argument = (option as u64) << 32 | u64::from(value);
        self.put(Operation::SetOption, done, on, (0, 0), argument)
    }

    /// Asks for an option: the event's `value`.
    ///
    /// # Errors
    /// [`DusiError::Queue`].
    pub fn get_option(
        &mut self,
        on: Socket,
        option: SocketOption,
        done: (EventQueue, u64),
    ) -> Result<(), DusiError> {
        self.put(
            Operation::GetOption,
            done,
            on,
            (0, 0),
            (option as u64) << 32,
        )
    }

    /// Cancels a socket's operations that were posted with a tag; the event's `length` counts
    /// them, and each has its own event before.
    ///
    /// # Errors
    /// [`DusiError::Queue`].
    pub fn cancel(
        &mut self,
        on: Socket,
        tag: u64,
        done: (EventQueue, u64),
    ) -> Result<(), DusiError> {
        self.put(Operation::Cancel, done, on, (0, 0), tag)
    }

    /// Registers memory for payload, with protection tag 0.
    ///
    /// # Errors
    /// [`DusiError::Exhausted`], [`DusiError::Queue`].
    pub fn register(&mut self, bytes: usize) -> Result<Region, DusiError> {
        self.register_with_tag(bytes, 0)
    }

    /// Registers memory for payload. Operations show the engine the region's protection tag.
    ///
    /// # Errors
    /// [`DusiError::Exhausted`], [`DusiError::Queue`].
    pub fn register_with_tag(&mut self, bytes: usize, tag: u32) -> Result<Region, DusiError> {
        let region = self.pool.take(bytes, tag);
        let region = region.ok_or(DusiError::Exhausted("pool memory"))?;
        let posted = self.post_region(Operation::Register, &region);
        match posted {
            Ok(()) => Ok(region),
            Err(error) => {
                self.pool.give(region);
                Err(error)
            }
        }
    }

    fn post_region(&mut self, operation: Operation, region: &Region) -> Result<(), DusiError> {
        self.post(Descriptor {
            operation: operation as u16,
            queue: QUIET,
            socket: 0,
            tag: 0,
            offset: region.offset(),
            length: region.len() as u32,
            argument: region_argument(region.number(), region.tag()),
        })
    }

    /// Ends a region that no operation uses.
    ///
    /// # Errors
    /// [`Busy`], with the region, if an operation uses it or the work queue is full.
    pub fn deregister(&mut self, region: Region) -> Result<(), Busy> {
        let free = !self.pool.in_use(&region);
        if free && self.post_region(Operation::Deregister, &region).is_ok() {
            self.pool.give(region);
            Ok(())
        } else {
            Err(Busy(region))
        }
    }

    /// Writes into a region from its start.
    ///
    /// # Errors
    /// [`DusiError::Range`].
    pub fn write(&self, region: &Region, bytes: &[u8]) -> Result<(), DusiError> {
        self.write_part(region, 0, bytes)
    }

    /// Writes into a region from an offset on, a multiple of 8; the rest of the last eight bytes
    /// becomes 0.
    ///
    /// # Errors
    /// [`DusiError::Range`].
    pub fn write_part(
        &self,
        region: &Region,
        offset: usize,
        bytes: &[u8],
    ) -> Result<(), DusiError> {
        region.range(offset, bytes.len())?;
        let start = (region.offset() as usize + offset) / 8;
        write_bytes(&self.memory, self.sizes.pool_start() + start, bytes);
        Ok(())
    }

    /// Reads a region from its start.
    ///
    /// # Errors
    /// [`DusiError::Range`].
    pub fn read(&self, region: &Region, bytes: &mut [u8]) -> Result<(), DusiError> {
        self.read_part(region, 0, bytes)
    }

    /// Reads a region from an offset on, a multiple of 8.
    ///
    /// # Errors
    /// [`DusiError::Range`].
    pub fn read_part(
        &self,
        region: &Region,
        offset: usize,
        bytes: &mut [u8],
    ) -> Result<(), DusiError> {
        region.range(offset, bytes.len())?;
        let start = (region.offset() as usize + offset) / 8;
        read_bytes(&self.memory, self.sizes.pool_start() + start, bytes);
        Ok(())
    }
}
