//! Accepts: connections that wait meet accepts that were posted.

use std::net::Ipv4Addr;

use dti::layout::Status;
use dti::ring::RingError;
use host_driver::stack::Wire;
use smoltcp::wire::{IpAddress, IpEndpoint};

use super::{Application, Engine};
use crate::sockets::{Connection, Role, Socket};
use crate::stack::Owner;

impl<W: Wire> Engine<W> {
    /// Gives the connections that wait at a listening socket to its accepts.
    pub(super) fn accept(&mut self, owner: Owner) -> Result<(), RingError> {
        let number = owner.application as usize;
        let Some(Some(application)) = self.applications.get_mut(number) else {
            return Ok(());
        };
        let Application {
            queues,
            sockets,
            buffers,
            ..
        } = application;
        loop {
            let Some(Socket {
                role: Role::Listening(accepts),
                port: Some(port),
                options,
            }) = sockets.get_mut(&owner.socket)
            else {
                return Ok(());
            };
            let (port, options) = (*port, *options);
            let Some(work) = accepts.front().copied() else {
                return Ok(());
            };
            let child = Owner {
                application: owner.application,
                socket: work.argument as u32,
            };
            if *buffers + options.buffers() > self.settings.buffers {
                // The connection stays for a later accept.
                accepts.pop_front();
                queues.complete(&work, Status::Quota, 0, 0)?;
                continue;
            }
            // A socket of that name may have been made since the accept was posted.
            let taken = sockets
                .get(&child.socket)
                .is_some_and(|one| !one.is_fresh());
            if taken {
                pop(sockets, owner);
                queues.complete(&work, Status::BadHandle, 0, 0)?;
                continue;
            }
            let Some(id) = self.stack.take_waiting(port, child) else {
                return Ok(());
            };
            pop(sockets, owner);
            let peer = self.stack.socket(id).and_then(|one| one.remote_endpoint());
            let mut made = Socket::new(options);
            made.role = Role::Connected(Connection::new(id, None));
            sockets.insert(child.socket, made);
            *buffers += options.buffers();
            queues.complete(&work, Status::Ok, 0, peer.map_or(0, argument))?;
        }
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
