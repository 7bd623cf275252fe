//! How connections begin and end.

use std::net::Ipv4Addr;

use smoltcp::socket::tcp::{self, State};
use smoltcp::wire::{IpAddress, IpEndpoint};
use thiserror::Error;

use super::frame::Flow;
use super::{Holder, Id, Options, Owner, Slot, Stack};

/// Ended connections that are kept against late segments; beyond them the oldest is forgotten.
const TIME_WAIT_CONNECTIONS: usize = 512;
/// Milliseconds after which a connection that its application has left is reset, if the peer
/// does not end it.
const ORPHAN_TIME: u64 = 20_000;

/// Why a connection cannot be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ConnectError {
    /// No host has such an address, or the port is 0.
    #[error("no host has this address")]
    Invalid,
    /// The address is in another network, or the own one.
    #[error("there is no route to it")]
    Unreachable,
    /// There is such a connection already, or no local port is free.
    #[error("the port is in use")]
    PortInUse,
}

impl Stack {
    /// Opens a connection, from a port that the caller has bound or any other.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub fn connect(
        &mut self,
        owner: Owner,
        options: &Options,
        bound: Option<u16>,
        peer: (Ipv4Addr, u16),
    ) -> Result<Id, ConnectError> {
        let (peer, peer_port) = peer;
        let unroutable = peer.is_unspecified() || peer.is_broadcast() || peer.is_multicast();
        if peer_port == 0 || unroutable {
            return Err(ConnectError::Invalid);
        }
        let own = self.address.address();
        if !self.address.contains_addr(&peer) || peer == own {
            return Err(ConnectError::Unreachable);
        }
        let flow = |port| Flow {
            peer,
            own,
            peer_port,
            port,
        };
        let port = match bound {
            Some(port) if self.flows.contains_key(&flow(port)) => {
                return Err(ConnectError::PortInUse);
            }
            Some(port) => port,
            None => {
                let flows = &self.flows;
                let free = |port| !flows.contains_key(&flow(port));
                let free = self.ports.ephemeral(free);
                free.ok_or(ConnectError::PortInUse)?
            }
        };
        let mut socket = options.socket();
        let to = IpEndpoint::new(IpAddress::Ipv4(peer), peer_port);
        let asked = socket.connect(self.interface.context(), to, port);
        asked.map_err(|_| ConnectError::Invalid)?;
        let id = self.insert(socket, *options, flow(port), Holder::Owner(owner));
        // The tick that has begun does not count.
        let deadline = self.tick() + 1 + u64::from(options.connect_timeout);
        self.limit(id, Some(deadline));
        self.make_ready(id);
        Ok(id)
    }

    /// Gives a connection up at a tick, or not by itself.
    pub fn limit(&mut self, id: Id, deadline: Option<u64>) {
        if let Some(slot) = self.slot(id) {
            slot.deadline = deadline;
        }
    }

    /// Whether a connection's time is over.
    pub fn is_late(&mut self, id: Id) -> bool {
        let now = self.tick();
        let deadline = self.slot(id).and_then(|slot| slot.deadline);
        deadline.is_some_and(|deadline| deadline <= now)
    }

    /// The next connection of a listening port becomes the owner's.
    pub fn take_waiting(&mut self, port: u16, owner: Owner) -> Option<Id> {
        let id = self.ports.take_waiting(port)?;
        let slot = self.slot(id)?;
        slot.holder = Holder::Owner(owner);
        self.make_ready(id);
        Some(id)
    }

    /// A connection loses its owner. A finished conversation ends in order; any other is reset.
    pub fn abandon(&mut self, id: Id) {
        let deadline = self.tick() + ORPHAN_TIME;
        let Some(slot) = self.slot(id) else {
            return;
        };
        let (before, waiting) = (slot.holder, slot.waiting);
        slot.holder = Holder::Nobody;
        slot.deadline = Some(deadline);
        let socket = slot.set.get_mut::<tcp::Socket<'_>>(slot.handle);
        slot.stream.acknowledged(socket.send_queue());
        match socket.state() {
            // Its memory is the application's again.
            _ if slot.stream.is_elsewhere() => socket.abort(),
            State::FinWait1
            | State::FinWait2
            | State::Closing
            | State::LastAck
            | State::TimeWait => {}
            State::CloseWait if socket.recv_queue() == 0 => socket.close(),
            _ => socket.abort(),
        }
        if let Holder::Port(port) = before {
            self.ports.left(port, id, waiting);
        }
        self.make_ready(id);
    }

    /// A socket listens no more; what waits at its port ends with the last one there.
    pub fn unlisten(&mut self, port: u16, owner: Owner) {
        for id in self.ports.unlisten(port, owner) {
            self.abandon(id);
        }
    }

    /// A connection of nobody or of a port moves on: it ends, or it waits to be accepted. The port
    /// that has more to accept, if so.
    pub fn settle(&mut self, id: Id) -> Option<u16> {
        let late = self.is_late(id);
        let slot = self.slot(id)?;
        let socket = slot.set.get_mut::<tcp::Socket<'_>>(slot.handle);
        match (slot.holder, socket.state()) {
            (Holder::Owner(_), _) => None,
            (Holder::Port(port), State::Established | State::CloseWait) if !slot.waiting => {
                slot.waiting = true;
                slot.deadline = None;
                let options = slot.options;
                self.ports.established(port, id, options).then_some(port)
            }
            // smoltcp lets a connection listen again that was reset before it came to be.
            (_, State::Closed | State::Listen) => {
                // A reset that is still to be sent has a peer.
                if socket.remote_endpoint().is_none() {
                    self.remove(id);
                }
                None
            }
            (_, State::TimeWait) => {
                if slot.deadline.take().is_some() {
                    let flow = slot.flow;
                    self.time_wait.push_back((id, flow));
                    self.bound_time_wait();
                }
                None
            }
            _ if late => {
                socket.abort();
                slot.deadline = None;
                self.statistics.timed_out += 1;
                None
            }
            _ => None,
        }
    }

    fn bound_time_wait(&mut self) {
        while self.time_wait.len() > TIME_WAIT_CONNECTIONS {
            let Some((id, flow)) = self.time_wait.pop_front() else {
                return;
            };
            // Most have ended by themselves, and their places may be others' now.
            let same = |slot: &mut Slot| {
                let socket = slot.set.get::<tcp::Socket<'_>>(slot.handle);
                slot.flow == flow && socket.state() == State::TimeWait
            };
            if self.slot(id).is_some_and(same) {
                self.remove(id);
                self.statistics.forgotten += 1;
            }
        }
    }
}
