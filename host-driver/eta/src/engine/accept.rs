//! Accepts: connections that wait meet accepts that were posted.

use std::net::Ipv4Addr;

use dti::layout::{MULTISHOT, Status, handle_of};
use dti::ring::RingError;
use host_driver::stack::Wire;
use host_driver::stack::flows::Owner;
use smoltcp::wire::{IpAddress, IpEndpoint};

use super::{Application, Engine};
use crate::sockets::{Connection, Role, Socket};

/// How an attempt to accept ended.
enum Step {
    /// Look again.
    Again,
    /// There is no accept, or no connection.
    Over,
}

impl<W: Wire> Engine<W> {
    /// Gives the connections that wait at a port to those who accept there, in turn.
    pub(super) fn offer(&mut self, port: u16) {
        for _ in 0..self.stack.ports().listeners(port) {
            if self.stack.ports().waiting(port).is_none() {
                return;
            }
            let Some(owner) = self.stack.ports().next_listener(port) else {
                return;
            };
            if self.accept(owner).is_err() {
                self.expel(owner.application as usize);
            }
        }
    }

    /// Gives the connections that wait at a listening socket's port to its accepts.
    pub(super) fn accept(&mut self, owner: Owner) -> Result<(), RingError> {
        while let Step::Again = self.accept_one(owner)? {}
        Ok(())
    }

    fn accept_one(&mut self, owner: Owner) -> Result<Step, RingError> {
        let engine = self.settings.number;
        let number = owner.application as usize;
        let Some(Some(application)) = self.applications.get_mut(number) else {
            return Ok(Step::Over);
        };
        let Application {
            queues,
            sockets,
            chosen,
            buffers,
            quota,
            ..
        } = application;
        let Some(Socket {
            role: Role::Listening(accepts),
            port: Some(port),
            ..
        }) = sockets.get_mut(&owner.socket)
        else {
            return Ok(Step::Over);
        };
        let port = *port;
        let (Some(work), Some(options)) =
            (accepts.front().copied(), self.stack.ports().waiting(port))
        else {
            return Ok(Step::Over);
        };
        // An accept that cannot be leaves the connection for a later one.
        let multishot = work.operation & MULTISHOT != 0;
        let handle = match (multishot, chosen.last()) {
            (true, None) => {
                accepts.pop_front();
                queues.complete(&work, Status::Quota, 0, 0)?;
                return Ok(Step::Again);
            }
            (true, Some(number)) => handle_of(engine, *number),
            (false, _) => work.argument as u32,
        };
        let fits = *buffers + options.buffers() <= quota.buffers;
        if !fits || queues.anonymous.promise(options.receive_buffer).is_err() {
            accepts.pop_front();
            queues.complete(&work, Status::Quota, 0, 0)?;
            return Ok(Step::Again);
        }
        // A socket of that name may have been made since the accept was posted.
        let taken = sockets.get(&handle).is_some_and(|one| !one.is_fresh());
        let child = Owner {
            application: owner.application,
            socket: handle,
        };
        let id = if taken {
            None
        } else {
            self.stack.take_waiting(port, child)
        };
        let Some(id) = id else {
            queues.anonymous.keep(options.receive_buffer);
            pop(sockets, owner);
            queues.complete(&work, Status::BadHandle, 0, 0)?;
            return Ok(Step::Again);
        };
        let peer = self.stack.socket(id).and_then(|one| one.remote_endpoint());
        let peer = peer.map_or(0, argument);
        let mut made = Socket::new(options);
        made.role = Role::Connected(Connection::new(id, None));
        sockets.insert(handle, made);
        queues.inherit(handle, owner.socket);
        *buffers += options.buffers();
        if multishot {
            chosen.pop();
            if !queues.complete_one(&work, handle, 0, peer)? {
                pop(sockets, owner);
            }
        } else {
            pop(sockets, owner);
            queues.complete(&work, Status::Ok, 0, peer)?;
        }
        Ok(Step::Again)
    }
}

fn pop(sockets: &mut std::collections::HashMap<u32, Socket>, owner: Owner) {
    if let Some(Role::Listening(accepts)) = sockets.get_mut(&owner.socket).map(|one| &mut one.role)
    {
        accepts.pop_front();
    }
}

/// An address and port as an event's argument.
pub(super) fn argument(endpoint: IpEndpoint) -> u64 {
    let IpAddress::Ipv4(address) = endpoint.addr;
    u64::from(u32::from(address)) << 16 | u64::from(endpoint.port)
}

/// An address and port of a descriptor's argument.
pub(super) fn address(argument: u64) -> (Ipv4Addr, u16) {
    (Ipv4Addr::from((argument >> 16) as u32), argument as u16)
}
