//! The client: a driver or a virtual machine uses it to access a device.
//!
//! Region writes can be posted: the client collects them, sends them together, and expects no
//! answer. The server works in order, so every later request sees them done; every other request
//! sends them first.
//!
//! ```text
//!   post post post ... read        one send: WWWW...R      one reply: the read's
//!        buffered      flushes --> =================> <-----------------
//! ```
//!
//! Call [`Client::flush`] after posting if no other request follows soon.

mod connection;
mod error;
mod handler;
mod outgoing;

pub use error::ClientError;
pub use handler::DmaHandler;
pub use outgoing::Poster;

use crate::dma::DmaRange;
use crate::message::{
    self, Command, DEFAULT_MAX_TRANSFER, DeviceInfo, DmaMap, DmaUnmap, IrqInfo, IrqSet,
    RegionAccess, RegionInfo, irq_set_flags, unmap_flags,
};
use crate::version::Version;
use connection::Connection;
use rustix::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};
use zerocopy::FromBytes;

/// Posted writes are sent when this many bytes of messages have been collected.
const POST_BYTES: usize = 32 << 10;

/// A connection to a vfio-user server.
pub struct Client {
    connection: Connection,
    version: Version,
    /// Posted writes that are not sent yet: whole messages.
    posted: Vec<u8>,
    timeout: Duration,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// Connects to the server at `path` and agrees on a version.
    ///
    /// `timeout` is for all of it, and later for each request
    /// (see [`set_timeout`](Self::set_timeout)).
    pub fn connect(path: impl AsRef<Path>, timeout: Duration) -> Result<Self, ClientError> {
        let deadline = Instant::now() + timeout;
        let stream = connection::connect(path.as_ref(), deadline)?;
        Self::negotiate(stream, timeout, deadline)
    }

    /// Agrees on a version over a socket that is connected already.
    pub fn from_stream(stream: UnixStream, timeout: Duration) -> Result<Self, ClientError> {
        Self::negotiate(stream, timeout, Instant::now() + timeout)
    }

    fn negotiate(
        stream: UnixStream,
        timeout: Duration,
        deadline: Instant,
    ) -> Result<Self, ClientError> {
        let mut connection = Connection::new(stream.into());
        let version = connection.negotiate(deadline)?;
        Ok(Self {
            connection,
            version,
            posted: Vec::new(),
            timeout,
        })
    }

    /// Version and capabilities that the server answered with.
    pub fn version(&self) -> &Version {
        &self.version
    }

    /// Sets how long a request may take.
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    /// Sets what serves the server's DMA messages. Without one they are refused.
    pub fn set_dma_handler(&mut self, handler: Option<Box<dyn DmaHandler>>) {
        self.connection.set_handler(handler);
    }

    /// Number of regions and of kinds of interrupt.
    pub fn device_info(&mut self) -> Result<DeviceInfo, ClientError> {
        let argsz = size_of::<DeviceInfo>() as u32;
        let request = DeviceInfo {
            argsz,
            ..DeviceInfo::default()
        };
        let reply = self.request(Command::DeviceGetInfo, &request, &[])?;
        prefix(Command::DeviceGetInfo, &reply)
    }

    /// Size and access of region `index` ([`message::region`]).
    pub fn region_info(&mut self, index: u32) -> Result<RegionInfo, ClientError> {
        let argsz = size_of::<RegionInfo>() as u32;
        let request = RegionInfo {
            argsz,
            index,
            ..RegionInfo::default()
        };
        let reply = self.request(Command::DeviceGetRegionInfo, &request, &[])?;
        prefix(Command::DeviceGetRegionInfo, &reply)
    }

    /// Interrupts of kind `index` ([`message::irq`]).
    pub fn irq_info(&mut self, index: u32) -> Result<IrqInfo, ClientError> {
        let argsz = size_of::<IrqInfo>() as u32;
        let request = IrqInfo {
            argsz,
            index,
            ..IrqInfo::default()
        };
        let reply = self.request(Command::DeviceGetIrqInfo, &request, &[])?;
        prefix(Command::DeviceGetIrqInfo, &reply)
    }

    /// Reads `out.len()` bytes from `offset` of `region`.
    pub fn region_read(
        &mut self,
        region: u32,
        offset: u64,
        out: &mut [u8],
    ) -> Result<(), ClientError> {
        let access = self.access(region, offset, out.len())?;
        let reply = self.request(Command::RegionRead, &access, &[])?;
        match RegionAccess::read_from_prefix(&reply) {
            Ok((echo, data)) if echo == access && data.len() == out.len() => {
                out.copy_from_slice(data);
                Ok(())
            }
            _ => Err(ClientError::Malformed(Command::RegionRead)),
        }
    }

    /// Writes `data` to `offset` of `region` and waits until the device has it.
    pub fn region_write(
        &mut self,
        region: u32,
        offset: u64,
        data: &[u8],
    ) -> Result<(), ClientError> {
        let access = self.access(region, offset, data.len())?;
        self.flush()?;
        let deadline = Instant::now() + self.timeout;
        self.connection
            .request(Command::RegionWrite, &access, data, &[], deadline)?;
        Ok(())
    }

    /// Posts a write of `data` to `offset` of `region`: no answer, no errors from
    /// the device. It may stay in the buffer until [`flush`](Self::flush) or the
    /// next request.
    pub fn region_post(
        &mut self,
        region: u32,
        offset: u64,
        data: &[u8],
    ) -> Result<(), ClientError> {
        let access = self.access(region, offset, data.len())?;
        let id = self.connection.next_id();
        let flags = message::flags::COMMAND | message::flags::NO_REPLY;
        message::encode(
            &mut self.posted,
            id,
            Command::RegionWrite,
            flags,
            &access,
            data,
        );
        if self.posted.len() >= POST_BYTES {
            self.flush()
        } else {
            Ok(())
        }
    }

    /// Sends the posted writes that are still in the buffer.
    pub fn flush(&mut self) -> Result<(), ClientError> {
        if self.posted.is_empty() {
            return Ok(());
        }
        let deadline = Instant::now() + self.timeout;
        let result = self
            .connection
            .send(Command::RegionWrite, &self.posted, &[], deadline);
        self.posted.clear();
        result?;
        // What came while the socket was full may never make it readable again.
        self.connection.answer_arrived(deadline).map(drop)
    }

    /// Makes a way for another thread to post writes beside this client.
    pub fn poster(&self) -> Poster {
        let outgoing = self.connection.outgoing();
        Poster::new(outgoing, self.max_transfer(), self.timeout)
    }

    /// Most bytes of an access.
    fn max_transfer(&self) -> usize {
        let theirs = usize::try_from(self.version.capabilities.max_transfer).unwrap_or(usize::MAX);
        theirs.min(DEFAULT_MAX_TRANSFER)
    }

    /// Makes a range of this process's memory known to the device. With a file, it
    /// starts `offset` bytes into it; without one, the [`DmaHandler`] serves it.
    pub fn dma_map(
        &mut self,
        range: DmaRange,
        file: Option<(BorrowedFd<'_>, u64)>,
    ) -> Result<(), ClientError> {
        let request = DmaMap {
            argsz: size_of::<DmaMap>() as u32,
            flags: range.flags(),
            offset: file.map_or(0, |(_, offset)| offset),
            address: range.iova,
            size: range.size,
        };
        let fd = file.map(|(fd, _)| fd);
        self.request(Command::DmaMap, &request, fd.as_slice())
            .map(drop)
    }

    /// Takes a range back; it must be exactly one that was mapped. When this
    /// returns, the device no longer touches the memory.
    pub fn dma_unmap(&mut self, iova: u64, size: u64) -> Result<(), ClientError> {
        self.unmap(0, iova, size)
    }

    /// Takes all ranges back.
    pub fn dma_unmap_all(&mut self) -> Result<(), ClientError> {
        self.unmap(unmap_flags::ALL, 0, 0)
    }

    fn unmap(&mut self, flags: u32, address: u64, size: u64) -> Result<(), ClientError> {
        let argsz = size_of::<DmaUnmap>() as u32;
        let request = DmaUnmap {
            argsz,
            flags,
            address,
            size,
        };
        self.request(Command::DmaUnmap, &request, &[]).map(drop)
    }

    /// Connects interrupt 0 of kind `index` ([`message::irq`]) to an eventfd, or
    /// disconnects it.
    pub fn set_irq_eventfd(
        &mut self,
        index: u32,
        fd: Option<BorrowedFd<'_>>,
    ) -> Result<(), ClientError> {
        use irq_set_flags::{ACTION_TRIGGER, DATA_EVENTFD, DATA_NONE};
        let (data, count) = if fd.is_some() {
            (DATA_EVENTFD, 1)
        } else {
            (DATA_NONE, 0)
        };
        self.set_irqs(index, data | ACTION_TRIGGER, count, fd.as_slice())
    }

    /// Masks interrupt 0 of kind `index`.
    pub fn mask_irq(&mut self, index: u32) -> Result<(), ClientError> {
        use irq_set_flags::{ACTION_MASK, DATA_NONE};
        self.set_irqs(index, DATA_NONE | ACTION_MASK, 1, &[])
    }

    /// Unmasks interrupt 0 of kind `index`, as is due after each signal of the pin.
    pub fn unmask_irq(&mut self, index: u32) -> Result<(), ClientError> {
        use irq_set_flags::{ACTION_UNMASK, DATA_NONE};
        self.set_irqs(index, DATA_NONE | ACTION_UNMASK, 1, &[])
    }

    /// Posts an unmask of interrupt 0 of kind `index`; buffered like a posted write.
    pub fn post_unmask_irq(&mut self, index: u32) {
        use irq_set_flags::{ACTION_UNMASK, DATA_NONE};
        let request = irq_set(index, DATA_NONE | ACTION_UNMASK, 1);
        let id = self.connection.next_id();
        let flags = message::flags::COMMAND | message::flags::NO_REPLY;
        message::encode(
            &mut self.posted,
            id,
            Command::DeviceSetIrqs,
            flags,
            &request,
            &[],
        );
    }

    /// Has the server signal interrupt 0 of kind `index` once, to test the way.
    pub fn trigger_irq(&mut self, index: u32) -> Result<(), ClientError> {
        use irq_set_flags::{ACTION_TRIGGER, DATA_NONE};
        self.set_irqs(index, DATA_NONE | ACTION_TRIGGER, 1, &[])
    }

    fn set_irqs(
        &mut self,
        index: u32,
        flags: u32,
        count: u32,
        fds: &[BorrowedFd<'_>],
    ) -> Result<(), ClientError> {
        self.request(Command::DeviceSetIrqs, &irq_set(index, flags, count), fds)
            .map(drop)
    }

    /// Resets the device.
    pub fn reset(&mut self) -> Result<(), ClientError> {
        self.request(Command::DeviceReset, &(), &[]).map(drop)
    }

    /// Serves DMA messages until none has come for `idle`; gives their number.
    pub fn serve(&mut self, idle: Duration) -> Result<usize, ClientError> {
        self.flush()?;
        self.connection.serve(idle, self.timeout)
    }

    /// Sends a request after the posted writes, and waits for its reply's payload.
    fn request<T: zerocopy::IntoBytes + zerocopy::Immutable>(
        &mut self,
        command: Command,
        payload: &T,
        fds: &[BorrowedFd<'_>],
    ) -> Result<Vec<u8>, ClientError> {
        self.flush()?;
        let deadline = Instant::now() + self.timeout;
        self.connection
            .request(command, payload, &[], fds, deadline)
    }

    fn access(&self, region: u32, offset: u64, bytes: usize) -> Result<RegionAccess, ClientError> {
        let max = self.max_transfer();
        if bytes > max {
            return Err(ClientError::TooLarge { bytes, max });
        }
        Ok(RegionAccess {
            offset,
            region,
            count: bytes as u32,
        })
    }
}

impl AsFd for Client {
    /// The socket: readable when the server sends a DMA message or is gone.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.connection.as_fd()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Posted writes are not lost for want of a flush; a server that is gone
        // does not miss them.
        let _ = self.flush();
    }
}

fn irq_set(index: u32, flags: u32, count: u32) -> IrqSet {
    IrqSet {
        argsz: size_of::<IrqSet>() as u32,
        flags,
        index,
        start: 0,
        count,
    }
}

fn prefix<T: FromBytes>(command: Command, reply: &[u8]) -> Result<T, ClientError> {
    match T::read_from_prefix(reply) {
        Ok((value, _)) => Ok(value),
        Err(_) => Err(ClientError::Malformed(command)),
    }
}
