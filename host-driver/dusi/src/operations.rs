//! The operations: each posts one descriptor.

use std::net::SocketAddrV4;

use dti::layout::{Descriptor, Direction, MULTISHOT, Operation, SocketOption};

use crate::{DusiError, EventQueue, Socket, Ual};

impl Ual {
    /// Posts an operation that has no queue of its own.
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

    /// Posts an operation, with its flags, in a queue of its socket.
    pub(crate) fn put_on(
        &mut self,
        (direction, operation): (Direction, u16),
        (queue, tag): (EventQueue, u64),
        socket: Socket,
        (offset, length): (u32, u32),
        argument: u64,
    ) -> Result<(), DusiError> {
        let work = Descriptor {
            operation,
            queue: queue.0,
            socket: socket.0,
            tag,
            offset,
            length,
            argument,
        };
        self.post_on(direction, work)
    }

    /// Makes a socket, whose queues are bound to the event queue of this call; operations on it may
    /// be posted at once.
    ///
    /// # Errors
    /// [`DusiError::Exhausted`], [`DusiError::Queue`].
    pub fn socket(&mut self, done: (EventQueue, u64)) -> Result<Socket, DusiError> {
        self.socket_bound((done.0, done.0), done)
    }

    /// Makes a socket whose transmit queue and receive queue are bound to event queues, the same or
    /// not. Connections that are accepted by [`Ual::accept`] are bound as the listening socket is.
    ///
    /// # Errors
    /// [`DusiError::Exhausted`], [`DusiError::Queue`].
    pub fn socket_bound(
        &mut self,
        (transmits, receives): (EventQueue, EventQueue),
        done: (EventQueue, u64),
    ) -> Result<Socket, DusiError> {
        let socket = Socket(self.handles.first()?);
        let binding = u64::from(receives.0) << 16 | u64::from(transmits.0);
        self.put(Operation::Socket, done, socket, (0, 0), binding)?;
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
        self.post_accept(0, on, child, done)?;
        self.handles.lend(child);
        Ok(())
    }

    /// Takes all connections that come, each as a socket of the engine's choice, of which the
    /// attachment has [`dti::layout::Sizes::chosen`]. It stays posted while its events say so.
    ///
    /// # Errors
    /// [`DusiError::Queue`].
    pub fn accept_all(&mut self, on: Socket, done: (EventQueue, u64)) -> Result<(), DusiError> {
        self.post_accept(MULTISHOT, on, 0, done)
    }

    fn post_accept(
        &mut self,
        flags: u16,
        on: Socket,
        child: u32,
        done: (EventQueue, u64),
    ) -> Result<(), DusiError> {
        let operation = (Direction::Receive, Operation::Accept as u16 | flags);
        self.put_on(operation, done, on, (0, 0), u64::from(child))
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
        self.post_accept(0, on, child.0, done)
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
        let operation = (Direction::Transmit, Operation::Connect as u16);
        self.put_on(operation, done, on, (0, 0), address)
    }

    /// Ends the sending direction after what was posted.
    ///
    /// # Errors
    /// [`DusiError::Queue`].
    pub fn shutdown(&mut self, on: Socket, done: (EventQueue, u64)) -> Result<(), DusiError> {
        let operation = (Direction::Transmit, Operation::Shutdown as u16);
        self.put_on(operation, done, on, (0, 0), 0)
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
}
