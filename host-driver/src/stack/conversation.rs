//! A client's end of a conversation: its socket, its target and its timeout.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::time::{Duration, Instant};

use smoltcp::iface::SocketHandle;
use smoltcp::socket::{tcp, udp};
use smoltcp::wire::{IpAddress, IpEndpoint};

use super::protocol::{Datagram, HEADER_BYTES, Kind};
use super::service::{send, tcp_socket, udp_socket};
use super::{Host, StackError, Wire};

/// How long a peer may be silent before a conversation fails.
const SILENCE: Duration = Duration::from_secs(5);
/// How often a lost end mark or request is repeated.
pub(super) const REPEAT: Duration = Duration::from_millis(200);
/// First local port of connections.
const FIRST_LOCAL_PORT: u16 = 49_152;

/// A local port that was not used recently.
pub(super) fn local_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    FIRST_LOCAL_PORT + NEXT.fetch_add(1, Ordering::Relaxed) % 16_000
}

/// One conversation: a socket that is removed at its end, and a timeout.
pub(super) struct Conversation<'a, W: Wire> {
    pub host: &'a mut Host<W>,
    pub socket: SocketHandle,
    what: &'static str,
    target: Ipv4Addr,
    stop: &'a AtomicBool,
    /// When the peer was last heard from.
    pub heard: Instant,
}

impl<W: Wire> Drop for Conversation<'_, W> {
    fn drop(&mut self) {
        self.host.sockets.remove(self.socket);
    }
}

impl<'a, W: Wire> Conversation<'a, W> {
    pub fn connect(
        host: &'a mut Host<W>,
        what: &'static str,
        target: Ipv4Addr,
        port: u16,
        stop: &'a AtomicBool,
    ) -> Result<Self, StackError> {
        let socket = host.sockets.add(tcp_socket());
        let mut conversation = Self {
            host,
            socket,
            what,
            target,
            stop,
            heard: Instant::now(),
        };
        let (interface, sockets) = conversation.host.parts();
        let remote = IpEndpoint::new(IpAddress::Ipv4(target), port);
        sockets
            .get_mut::<tcp::Socket<'_>>(socket)
            .connect(interface.context(), remote, local_port())
            .map_err(|error| StackError::Broken {
                what,
                reason: error.to_string(),
            })?;
        while !conversation.tcp().may_send() {
            if conversation.tcp().state() == tcp::State::Closed {
                return Err(conversation.broken("connection refused"));
            }
            conversation.step(REPEAT)?;
        }
        conversation.heard = Instant::now();
        Ok(conversation)
    }

    pub fn datagrams(
        host: &'a mut Host<W>,
        what: &'static str,
        target: Ipv4Addr,
        stop: &'a AtomicBool,
    ) -> Result<Self, StackError> {
        let socket = host.sockets.add(udp_socket());
        let mut conversation = Self {
            host,
            socket,
            what,
            target,
            stop,
            heard: Instant::now(),
        };
        conversation
            .udp()
            .bind(local_port())
            .map_err(|error| StackError::Broken {
                what,
                reason: error.to_string(),
            })?;
        Ok(conversation)
    }

    pub fn tcp(&mut self) -> &mut tcp::Socket<'static> {
        self.host.sockets.get_mut(self.socket)
    }

    pub fn udp(&mut self) -> &mut udp::Socket<'static> {
        self.host.sockets.get_mut(self.socket)
    }

    pub fn broken(&self, reason: &str) -> StackError {
        StackError::Broken {
            what: self.what,
            reason: reason.to_owned(),
        }
    }

    /// Runs the stack and waits for more.
    pub fn step(&mut self, limit: Duration) -> Result<(), StackError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(StackError::Stopped);
        }
        if self.heard.elapsed() > SILENCE {
            return Err(StackError::NoAnswer {
                what: self.what,
                address: self.target,
                after: SILENCE,
                card: self.host.card_state()?.map(Box::new),
            });
        }
        if !self.host.turn()? {
            self.host.wait(limit)?;
            self.host.turn()?;
        }
        Ok(())
    }
}

impl<W: Wire> Conversation<'_, W> {
    /// Waits until the connection is closed on both sides.
    pub fn close(&mut self) -> Result<(), StackError> {
        self.heard = Instant::now();
        self.tcp().close();
        while self.tcp().is_active() && self.tcp().state() != tcp::State::TimeWait {
            self.step(REPEAT)?;
        }
        // The last acknowledgement leaves now; nothing waits for TIME-WAIT.
        self.host.turn()?;
        Ok(())
    }

    pub fn ask_for_report(
        &mut self,
        to: IpEndpoint,
        number: u64,
    ) -> Result<(u64, u64), StackError> {
        let end = Datagram {
            kind: Kind::End,
            sequence: 0,
            number,
        };
        let mut asked: Option<Instant> = None;
        self.heard = Instant::now();
        loop {
            if asked.is_none_or(|at| at.elapsed() >= REPEAT) && self.udp().can_send() {
                send(self.udp(), to, end, HEADER_BYTES);
                asked = Some(Instant::now());
            }
            self.step(REPEAT)?;
            while let Ok((bytes, _)) = self.udp().recv() {
                if let Some((datagram, _)) = Datagram::read(bytes)
                    && datagram.kind == Kind::Report
                {
                    return Ok((datagram.sequence, datagram.number));
                }
            }
        }
    }
}
