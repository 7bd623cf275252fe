//! The client's side of the socket: requests, replies, and the server's own
//! requests in between.

use super::error::ClientError;
use super::handler::DmaHandler;
use super::outgoing::Outgoing;
use crate::frame::{Framer, Message};
use crate::message::{
    self, Command, DEFAULT_MAX_TRANSFER, DmaAccess, Header, MAX_MESSAGE_FDS, VERSION_MAJOR,
    VERSION_MINOR, flags,
};
use crate::socket::{self, Waited};
use crate::version::{Capabilities, Version};
use rustix::event::PollFlags;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect as connect_to};
use std::collections::VecDeque;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// How long to wait before another try when a server's queue of clients is full.
const RETRY: Duration = Duration::from_millis(10);

/// Connects a socket, without waiting past the deadline.
pub(super) fn connect(path: &Path, deadline: Instant) -> Result<UnixStream, ClientError> {
    let failed = |errno: Errno| ClientError::Connect {
        path: path.into(),
        source: errno.into(),
    };
    let address = SocketAddrUnix::new(path).map_err(failed)?;
    let kind = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, kind, None)
        .map_err(failed)?;
    loop {
        match connect_to(&socket, &address) {
            Ok(()) => return Ok(socket.into()),
            Err(Errno::INTR) => {}
            // A Unix socket is connected at once or its queue is full.
            Err(Errno::AGAIN) if Instant::now() < deadline => std::thread::sleep(RETRY),
            Err(Errno::AGAIN) => return Err(ClientError::Busy),
            Err(errno) => return Err(failed(errno)),
        }
    }
}

/// A connected socket and the messages on it.
pub(super) struct Connection {
    outgoing: Arc<Outgoing>,
    incoming: Incoming,
    handler: Option<Box<dyn DmaHandler>>,
    next_id: u16,
}

/// Received bytes that are not processed yet.
struct Incoming {
    framer: Framer,
    arrived: VecDeque<Message>,
}

impl Incoming {
    /// Takes what the socket holds.
    fn receive(&mut self, socket: BorrowedFd<'_>) -> Result<(), ClientError> {
        let mut messages = Vec::new();
        let result = self.framer.receive(socket, &mut messages);
        self.arrived.extend(messages);
        match result {
            // What came before the end is looked at first.
            Err(_) if !self.arrived.is_empty() => Ok(()),
            other => other.map_err(ClientError::from),
        }
    }
}

impl Connection {
    pub(super) fn new(socket: OwnedFd) -> Self {
        Self {
            outgoing: Arc::new(Outgoing::new(socket)),
            incoming: Incoming {
                framer: Framer::new(),
                arrived: VecDeque::new(),
            },
            handler: None,
            next_id: 0,
        }
    }

    pub(super) fn set_handler(&mut self, handler: Option<Box<dyn DmaHandler>>) {
        self.handler = handler;
    }

    pub(super) fn next_id(&mut self) -> u16 {
        self.next_id = self.next_id.wrapping_add(1);
        self.next_id
    }

    /// Proposes our version; whatever is no proper answer means that nobody there
    /// speaks vfio-user.
    pub(super) fn negotiate(&mut self, deadline: Instant) -> Result<Version, ClientError> {
        let proposal = Version {
            major: VERSION_MAJOR,
            minor: VERSION_MINOR,
            capabilities: Capabilities {
                max_message_fds: MAX_MESSAGE_FDS as u64,
                max_transfer: DEFAULT_MAX_TRANSFER as u64,
                write_multiple: true,
                ..Capabilities::default()
            },
        };
        let payload = proposal.to_payload();
        let not = |why: &str| Err(ClientError::NotVfioUser(why.into()));
        let reply = self.request(Command::Version, payload.as_slice(), &[], &[], deadline);
        let reply = match reply {
            Ok(reply) => reply,
            Err(ClientError::Timeout(_)) => return Err(ClientError::Busy),
            Err(ClientError::Disconnected) => return not("it closed the connection"),
            Err(ClientError::Garbage) => return not("its answer is no message"),
            Err(ClientError::Malformed(_)) => return not("its answer does not fit the question"),
            Err(error) => return Err(error),
        };
        let answer = match Version::parse(&reply) {
            Ok(answer) => answer,
            Err(error) => return not(&error.to_string()),
        };
        if answer.major != VERSION_MAJOR || answer.minor > VERSION_MINOR {
            let Version { major, minor, .. } = answer;
            return Err(ClientError::VersionMismatch { major, minor });
        }
        Ok(answer)
    }

    /// Sends whole messages; `fds` go with the first. Reads meanwhile if the socket is
    /// full, since the server may be waiting for us just then.
    pub(super) fn send(
        &mut self,
        command: Command,
        bytes: &[u8],
        fds: &[BorrowedFd<'_>],
        deadline: Instant,
    ) -> Result<(), ClientError> {
        let Self {
            outgoing, incoming, ..
        } = self;
        let mut arrived = || incoming.receive(outgoing.as_fd());
        outgoing.send(command, bytes, fds, deadline, Some(&mut arrived))
    }

    /// The sending side, for another thread.
    pub(super) fn outgoing(&self) -> Arc<Outgoing> {
        self.outgoing.clone()
    }

    /// Sends a request and waits for the payload of its reply.
    pub(super) fn request(
        &mut self,
        command: Command,
        payload: &(impl IntoBytes + Immutable + ?Sized),
        data: &[u8],
        fds: &[BorrowedFd<'_>],
        deadline: Instant,
    ) -> Result<Vec<u8>, ClientError> {
        let id = self.next_id();
        let mut bytes = Vec::new();
        message::encode(&mut bytes, id, command, flags::COMMAND, payload, data);
        self.send(command, &bytes, fds, deadline)?;
        loop {
            while let Some(message) = self.incoming.arrived.pop_front() {
                if message.header.is_command() {
                    self.answer(&message, deadline)?;
                } else if message.header.is_reply() && message.header.id == id {
                    if message.header.command != command as u16 {
                        return Err(ClientError::Malformed(command));
                    }
                    // What was read together with the reply is in no socket any more,
                    // so nobody would be woken for it.
                    self.answer_arrived(deadline)?;
                    return match message.header.failure() {
                        Some(errno) => Err(ClientError::refused(command, errno)),
                        None => Ok(message.payload),
                    };
                }
                // Any other reply is to a request that has timed out.
            }
            // A server that talks without end does not get round the deadline.
            if Instant::now() >= deadline {
                return Err(ClientError::Timeout(command));
            }
            match socket::wait(self.outgoing.as_fd(), PollFlags::IN, None, Some(deadline)) {
                Ok(Waited::TimedOut) => return Err(ClientError::Timeout(command)),
                Ok(_) => self.incoming.receive(self.outgoing.as_fd())?,
                Err(errno) => return Err(ClientError::from_socket(errno)),
            }
        }
    }

    /// Answers the requests of the server that have arrived; gives their number.
    pub(super) fn answer_arrived(&mut self, deadline: Instant) -> Result<usize, ClientError> {
        let mut served = 0;
        while let Some(message) = self.incoming.arrived.pop_front() {
            if message.header.is_command() {
                self.answer(&message, deadline)?;
                served += 1;
            }
        }
        Ok(served)
    }

    /// Serves the server's requests until none has come for `idle`. Each answer may
    /// take `patience`.
    pub(super) fn serve(
        &mut self,
        idle: Duration,
        patience: Duration,
    ) -> Result<usize, ClientError> {
        let mut served = 0;
        loop {
            served += self.answer_arrived(Instant::now() + patience)?;
            let deadline = Instant::now() + idle;
            match socket::wait(self.outgoing.as_fd(), PollFlags::IN, None, Some(deadline)) {
                Ok(Waited::TimedOut) => return Ok(served),
                Ok(_) => self.incoming.receive(self.outgoing.as_fd())?,
                Err(errno) => return Err(ClientError::from_socket(errno)),
            }
        }
    }

    /// Answers one request of the server.
    fn answer(&mut self, message: &Message, deadline: Instant) -> Result<(), ClientError> {
        let command = Command::from_number(message.header.command);
        let result = match (
            DmaAccess::read_from_prefix(&message.payload),
            self.handler.as_mut(),
        ) {
            (Ok((access, data)), Some(handler)) => dma(handler.as_mut(), command, access, data),
            (Ok(_), None) => Err(Errno::OPNOTSUPP),
            (Err(_), _) => Err(Errno::INVAL),
        };
        if message.header.is_posted() {
            return Ok(());
        }
        let mut header = Header {
            flags: flags::REPLY,
            error: 0,
            ..message.header
        };
        let body = result.unwrap_or_else(|errno| {
            header.flags |= flags::ERROR;
            header.error = errno.raw_os_error().unsigned_abs();
            Vec::new()
        });
        header.size = (message::HEADER_BYTES + body.len()) as u32;
        let mut bytes = header.as_bytes().to_vec();
        bytes.extend_from_slice(&body);
        self.send(command.unwrap_or(Command::DmaRead), &bytes, &[], deadline)
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.outgoing.as_fd()
    }
}

/// Does a DMA request; gives the payload of its reply.
fn dma(
    handler: &mut dyn DmaHandler,
    command: Option<Command>,
    access: DmaAccess,
    data: &[u8],
) -> Result<Vec<u8>, Errno> {
    let count = usize::try_from(access.count).map_err(|_| Errno::INVAL)?;
    let mut reply = access.as_bytes().to_vec();
    match command {
        Some(Command::DmaRead) if data.is_empty() && count <= DEFAULT_MAX_TRANSFER => {
            let start = reply.len();
            reply.resize(start + count, 0);
            handler.dma_read(access.address, &mut reply[start..])?;
        }
        Some(Command::DmaWrite) if data.len() == count => {
            handler.dma_write(access.address, data)?;
        }
        _ => return Err(Errno::INVAL),
    }
    Ok(reply)
}
