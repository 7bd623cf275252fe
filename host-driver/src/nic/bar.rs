//! Access to the BAR 0 words of a queue.

use crate::transport::{Port, Transport, TransportError};

/// A queue's access to its words: the transport of the whole driver, or its own port.
pub(super) trait Bar {
    fn read(&mut self, offset: u32) -> Result<u32, TransportError>;
    fn write(&mut self, offset: u32, value: u32) -> Result<(), TransportError>;
    fn flush(&mut self) -> Result<(), TransportError>;
}

/// The transport of a driver that is not split.
pub(super) struct Whole<'a, T: ?Sized>(pub &'a mut T);

impl<T: Transport + ?Sized> Bar for Whole<'_, T> {
    fn read(&mut self, offset: u32) -> Result<u32, TransportError> {
        self.0.read(offset)
    }

    fn write(&mut self, offset: u32, value: u32) -> Result<(), TransportError> {
        self.0.write(offset, value)
    }

    fn flush(&mut self) -> Result<(), TransportError> {
        self.0.flush()
    }
}

impl Bar for Box<dyn Port> {
    fn read(&mut self, offset: u32) -> Result<u32, TransportError> {
        (**self).read(offset)
    }

    fn write(&mut self, offset: u32, value: u32) -> Result<(), TransportError> {
        (**self).write(offset, value)
    }

    fn flush(&mut self) -> Result<(), TransportError> {
        (**self).flush()
    }
}
