//! Datagram sockets of the stack's own services. Applications have none yet.

use smoltcp::iface::{PollResult, SocketHandle};
use smoltcp::phy::Device;
use smoltcp::socket::udp;
use std::time::Duration;

use super::Stack;

/// Datagrams, or fragments of them, that leave before others have their turn.
const BURST: usize = 64;

impl Stack {
    /// Adds a datagram socket.
    pub fn add_datagrams(&mut self, socket: udp::Socket<'static>) -> SocketHandle {
        self.nobody.add(socket)
    }

    /// A datagram socket.
    pub fn datagrams(&mut self, handle: SocketHandle) -> &mut udp::Socket<'static> {
        self.nobody.get_mut(handle)
    }

    /// Sends datagrams that wait, but not more than a burst; true if more wait.
    pub fn transmit_datagrams(&mut self, wire: &mut impl Device) -> bool {
        for _ in 0..BURST {
            let polled = self.interface.poll_egress(self.now, wire, &mut self.nobody);
            if polled == PollResult::None {
                return false;
            }
        }
        true
    }

    /// How long no datagram is to be sent if nobody adds one; none if there is none.
    pub fn datagram_delay(&mut self) -> Option<Duration> {
        let delay = self.interface.poll_delay(self.now, &self.nobody)?;
        Some(Duration::from_micros(delay.total_micros()))
    }
}
