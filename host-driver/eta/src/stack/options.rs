//! What an application has set of a socket.

use dti::layout::{SocketOption, Status};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer};
use smoltcp::time::Duration;

/// Smallest and largest buffer of a connection, each way.
const BUFFERS: std::ops::RangeInclusive<u32> = 2048..=4 << 20;
/// Longest time that can be set, in milliseconds.
const LONGEST: u32 = 24 * 60 * 60 * 1000;

/// The options, as numbers of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Options {
    no_delay: u32,
    keep_alive: u32,
    user_timeout: u32,
    pub(crate) connect_timeout: u32,
    hop_limit: u32,
    pub(crate) send_buffer: u32,
    pub(crate) receive_buffer: u32,
    congestion: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            no_delay: 1,
            keep_alive: 0,
            user_timeout: 0,
            connect_timeout: 20_000,
            hop_limit: 64,
            send_buffer: 64 * 1024,
            receive_buffer: 64 * 1024,
            congestion: 2,
        }
    }
}

impl Options {
    /// Sets an option; `fresh` says that the socket has no connection and does not listen.
    pub(crate) fn set(
        &mut self,
        option: SocketOption,
        value: u32,
        fresh: bool,
    ) -> Result<(), Status> {
        let (place, valid) = match option {
            SocketOption::NoDelay => (&mut self.no_delay, value <= 1),
            SocketOption::KeepAlive => (&mut self.keep_alive, value <= LONGEST),
            SocketOption::UserTimeout => (&mut self.user_timeout, value <= LONGEST),
            SocketOption::ConnectTimeout => {
                let valid = (1..=LONGEST).contains(&value);
                (&mut self.connect_timeout, valid)
            }
            SocketOption::HopLimit => (&mut self.hop_limit, (1..=255).contains(&value)),
            SocketOption::SendBuffer | SocketOption::ReceiveBuffer | SocketOption::Congestion
                if !fresh =>
            {
                return Err(Status::BadState);
            }
            SocketOption::SendBuffer => (&mut self.send_buffer, BUFFERS.contains(&value)),
            SocketOption::ReceiveBuffer => (&mut self.receive_buffer, BUFFERS.contains(&value)),
            SocketOption::Congestion => (&mut self.congestion, value <= 2),
            SocketOption::LocalAddress
            | SocketOption::PeerAddress
            | SocketOption::Unread
            | SocketOption::Unacknowledged => return Err(Status::Invalid),
        };
        if !valid {
            return Err(Status::Invalid);
        }
        *place = value;
        Ok(())
    }

    /// The value of an option that can be set; none of others.
    pub(crate) fn get(&self, option: SocketOption) -> Option<u32> {
        Some(match option {
            SocketOption::NoDelay => self.no_delay,
            SocketOption::KeepAlive => self.keep_alive,
            SocketOption::UserTimeout => self.user_timeout,
            SocketOption::ConnectTimeout => self.connect_timeout,
            SocketOption::HopLimit => self.hop_limit,
            SocketOption::SendBuffer => self.send_buffer,
            SocketOption::ReceiveBuffer => self.receive_buffer,
            SocketOption::Congestion => self.congestion,
            SocketOption::LocalAddress
            | SocketOption::PeerAddress
            | SocketOption::Unread
            | SocketOption::Unacknowledged => return None,
        })
    }

    /// Bytes of both buffers.
    pub(crate) fn buffers(&self) -> u64 {
        u64::from(self.send_buffer) + u64::from(self.receive_buffer)
    }

    /// A TCP socket with these options.
    pub(crate) fn socket(&self) -> Socket<'static> {
        let buffer = |bytes: u32| SocketBuffer::new(vec![0; bytes as usize]);
        let mut socket = Socket::new(buffer(self.receive_buffer), buffer(self.send_buffer));
        socket.set_congestion_control(match self.congestion {
            0 => CongestionControl::None,
            1 => CongestionControl::Reno,
            _ => CongestionControl::Cubic,
        });
        self.apply(&mut socket);
        socket
    }

    /// Gives a socket what may change while it lives.
    pub(crate) fn apply(&self, socket: &mut Socket<'_>) {
        let time = |millis: u32| (millis > 0).then(|| Duration::from_millis(millis.into()));
        socket.set_nagle_enabled(self.no_delay == 0);
        socket.set_keep_alive(time(self.keep_alive));
        socket.set_timeout(time(self.user_timeout));
        socket.set_hop_limit(u8::try_from(self.hop_limit).ok());
    }
}
