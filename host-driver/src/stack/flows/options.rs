//! What may be set of a connection.

use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer};
use smoltcp::time::Duration;

/// Congestion control of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Congestion {
    /// None: as much as the peer's window takes.
    None,
    /// Reno.
    Reno,
    /// CUBIC.
    Cubic,
}

/// The options, of which 0 stands for "not".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Small segments are not held back.
    pub no_delay: bool,
    /// Milliseconds between probes of a silent peer.
    pub keep_alive: u32,
    /// Milliseconds after which a peer that answers nothing is given up.
    pub user_timeout: u32,
    /// Milliseconds after which a connect fails.
    pub connect_timeout: u32,
    /// Hop limit of the packets, 1 to 255.
    pub hop_limit: u8,
    /// Bytes of the send buffer.
    pub send_buffer: u32,
    /// Bytes of the receive buffer.
    pub receive_buffer: u32,
    /// Congestion control.
    pub congestion: Congestion,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            no_delay: true,
            keep_alive: 0,
            user_timeout: 0,
            connect_timeout: 20_000,
            hop_limit: 64,
            send_buffer: 64 * 1024,
            receive_buffer: 64 * 1024,
            congestion: Congestion::Cubic,
        }
    }
}

impl Options {
    /// Bytes of both buffers.
    #[must_use]
    pub fn buffers(&self) -> u64 {
        u64::from(self.send_buffer) + u64::from(self.receive_buffer)
    }

    /// A TCP socket with these options.
    pub(super) fn socket(&self) -> Socket<'static> {
        let buffer = |bytes: u32| SocketBuffer::new(vec![0; bytes as usize]);
        let mut socket = Socket::new(buffer(self.receive_buffer), buffer(self.send_buffer));
        socket.set_congestion_control(match self.congestion {
            Congestion::None => CongestionControl::None,
            Congestion::Reno => CongestionControl::Reno,
            Congestion::Cubic => CongestionControl::Cubic,
        });
        self.apply(&mut socket);
        socket
    }

    /// Gives a socket what may change while it lives.
    pub fn apply(&self, socket: &mut Socket<'_>) {
        let time = |millis: u32| (millis > 0).then(|| Duration::from_millis(millis.into()));
        socket.set_nagle_enabled(!self.no_delay);
        socket.set_keep_alive(time(self.keep_alive));
        socket.set_timeout(time(self.user_timeout));
        socket.set_hop_limit(Some(self.hop_limit));
    }
}
