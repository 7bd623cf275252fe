//! The start of each operation of Table I.

use std::collections::VecDeque;

use dti::layout::{Descriptor, Operation, SocketOption, Status};
use dti::ring::RingError;
use host_driver::stack::Wire;
use smoltcp::socket::tcp;

use super::accept::{address, argument};
use super::{Application, Engine};
use crate::application::Queues;
use crate::sockets::{Connection, Role, Socket};
use crate::stack::in_place::Payload;
use crate::stack::options::Options;
use crate::stack::{Listening, Owner};

/// Connections that may wait at one listening socket.
const LARGEST_BACKLOG: u32 = 4096;

/// How an operation began.
enum Begun {
    /// It is complete, with an argument for its event.
    Complete(u64),
    /// Its event comes later.
    UnderWay,
}

const DONE: Result<Begun, Status> = Ok(Begun::Complete(0));

impl<W: Wire> Engine<W> {
    /// Starts an operation.
    pub(super) fn start(&mut self, number: usize, work: Descriptor) -> Result<(), RingError> {
        let owner = Owner {
            application: number as u32,
            socket: work.socket,
        };
        let begun = match Operation::from_number(work.operation) {
            None => Err(Status::Invalid),
            Some(Operation::Close) => return self.close(number, work),
            Some(Operation::Cancel) => return self.cancel(number, work),
            Some(operation) => self.begin(owner, operation, work),
        };
        let Some(Some(application)) = self.applications.get_mut(number) else {
            return Ok(());
        };
        match begun {
            Ok(Begun::Complete(value)) => {
                application.queues.complete(&work, Status::Ok, 0, value)?
            }
            Ok(Begun::UnderWay) => {}
            Err(status) => application.queues.refuse(&work, status)?,
        }
        match Operation::from_number(work.operation) {
            Some(Operation::Accept) => self.accept(owner),
            _ => Ok(()),
        }
    }

    fn begin(
        &mut self,
        owner: Owner,
        operation: Operation,
        work: Descriptor,
    ) -> Result<Begun, Status> {
        let application = self.applications.get_mut(owner.application as usize);
        let application = application.and_then(Option::as_mut);
        let Application {
            queues,
            sockets,
            buffers,
            payload,
            ..
        } = application.ok_or(Status::BadHandle)?;
        match operation {
            Operation::Register => return queues.register(&work).and(DONE),
            Operation::Deregister => return queues.deregister(&work).and(DONE),
            Operation::Socket => {
                if work.socket >= queues.sizes.sockets || sockets.contains_key(&work.socket) {
                    return Err(Status::BadHandle);
                }
                sockets.insert(work.socket, Socket::new(Options::default()));
                return DONE;
            }
            Operation::Accept => {
                let child = work.argument as u32;
                let taken = sockets.get(&child).is_some_and(|one| !one.is_fresh());
                if child >= queues.sizes.sockets || taken {
                    return Err(Status::BadHandle);
                }
            }
            _ => {}
        }
        let socket = sockets.get_mut(&work.socket).ok_or(Status::BadHandle)?;
        match (operation, &mut socket.role) {
            (Operation::Bind, Role::Fresh) if socket.port.is_none() => {
                let wanted = u16::try_from(work.argument).map_err(|_| Status::Invalid)?;
                if wanted == 0 {
                    return Err(Status::Invalid);
                }
                if !self.stack.ports().bind(wanted) {
                    return Err(Status::PortInUse);
                }
                socket.port = Some(wanted);
                DONE
            }
            (Operation::Listen, role @ Role::Fresh) => {
                let port = socket.port.ok_or(Status::BadState)?;
                let backlog = work.length.clamp(1, LARGEST_BACKLOG) as usize;
                let listening = Listening::new(owner, socket.options, backlog);
                self.stack.ports().listen(port, listening);
                *role = Role::Listening(Default::default());
                DONE
            }
            (Operation::Accept, Role::Listening(accepts)) => {
                accepts.push_back(work);
                Ok(Begun::UnderWay)
            }
            (Operation::Connect, role @ Role::Fresh) => {
                let needed = socket.options.buffers();
                if *buffers + needed > self.settings.buffers {
                    return Err(Status::Quota);
                }
                let peer = address(work.argument);
                let options = &socket.options;
                let id = self.stack.connect(owner, options, socket.port, peer)?;
                *buffers += needed;
                *role = Role::Connected(Connection::new(id, Some(work)));
                Ok(Begun::UnderWay)
            }
            (Operation::Transmit, Role::Connected(connection)) => {
                if connection.ended {
                    return Err(Status::Ended);
                }
                connection.transmits.push_back(queues.locate(work)?);
                self.stack.make_ready(connection.id);
                Ok(Begun::UnderWay)
            }
            (Operation::TransmitInPlace, Role::Connected(connection)) => {
                if connection.ended {
                    return Err(Status::Ended);
                }
                let work = queues.locate(work)?;
                let payload = payload.get_or_insert_with(|| of_application(&mut self.wire, queues));
                self.stack.set_payload(connection.id, payload.clone());
                connection.transmits.push_back(work);
                self.stack.make_ready(connection.id);
                Ok(Begun::UnderWay)
            }
            (Operation::Shutdown, Role::Connected(connection)) => {
                if connection.ended {
                    return Err(Status::Ended);
                }
                connection.ended = true;
                connection.transmits.push_back(work);
                self.stack.make_ready(connection.id);
                Ok(Begun::UnderWay)
            }
            (Operation::Receive, Role::Connected(connection)) => {
                connection.receives.push_back(queues.locate(work)?);
                self.stack.make_ready(connection.id);
                Ok(Begun::UnderWay)
            }
            (Operation::SetOption, _) => {
                let option = SocketOption::from_number((work.argument >> 32) as u32);
                let option = option.ok_or(Status::Invalid)?;
                let fresh = matches!(socket.role, Role::Fresh);
                socket.options.set(option, work.argument as u32, fresh)?;
                if let Role::Connected(connection) = &socket.role {
                    let id = connection.id;
                    if let Some(tcp) = self.stack.socket(id) {
                        socket.options.apply(tcp);
                    }
                    self.stack.make_ready(id);
                }
                DONE
            }
            (Operation::GetOption, _) => {
                let option = SocketOption::from_number((work.argument >> 32) as u32);
                let option = option.ok_or(Status::Invalid)?;
                let set = socket.options.get(option).map(u64::from);
                let id = socket_id(&socket.role);
                let value = set.or_else(|| ask(self.stack.socket(id?)?, option));
                value.map(Begun::Complete).ok_or(Status::BadState)
            }
            _ => Err(Status::BadState),
        }
    }

    fn close(&mut self, number: usize, work: Descriptor) -> Result<(), RingError> {
        let Some(Some(application)) = self.applications.get_mut(number) else {
            return Ok(());
        };
        let Some(mut socket) = application.sockets.remove(&work.socket) else {
            return application.queues.refuse(&work, Status::BadHandle);
        };
        for cancelled in socket.pending() {
            application
                .queues
                .complete(&cancelled, Status::Cancelled, 0, 0)?;
        }
        application.queues.complete(&work, Status::Ok, 0, 0)?;
        if matches!(socket.role, Role::Connected(_)) {
            let buffers = socket.options.buffers();
            application.buffers = application.buffers.saturating_sub(buffers);
        }
        self.release(socket);
        Ok(())
    }

    /// Cancels a socket's operations with a tag. A send of which a part has gone stays, as the
    /// stream would have a hole; so does a shutdown.
    fn cancel(&mut self, number: usize, work: Descriptor) -> Result<(), RingError> {
        let Some(Some(application)) = self.applications.get_mut(number) else {
            return Ok(());
        };
        let queues = &mut application.queues;
        let Some(socket) = application.sockets.get_mut(&work.socket) else {
            return queues.refuse(&work, Status::BadHandle);
        };
        let tag = work.argument;
        let mut cancelled = Vec::new();
        match &mut socket.role {
            Role::Fresh => {}
            Role::Listening(accepts) => {
                extract(accepts, &mut cancelled, |one| one.tag == tag);
            }
            Role::Connected(connection) => {
                let begun = (connection.taken > 0).then(|| connection.transmits.pop_front());
                extract(&mut connection.transmits, &mut cancelled, |one| {
                    one.tag == tag && one.operation != Operation::Shutdown as u16
                });
                if let Some(begun) = begun.flatten() {
                    connection.transmits.push_front(begun);
                }
                extract(&mut connection.receives, &mut cancelled, |one| {
                    one.tag == tag
                });
                if let Some(connect) = connection.connecting.take_if(|one| one.tag == tag) {
                    cancelled.push(connect);
                    self.stack.abandon(connection.id);
                    let buffers = socket.options.buffers();
                    application.buffers = application.buffers.saturating_sub(buffers);
                    cancelled.extend(connection.transmits.drain(..));
                    cancelled.extend(connection.receives.drain(..));
                    socket.role = Role::Fresh;
                }
            }
        }
        for one in &cancelled {
            queues.complete(one, Status::Cancelled, 0, 0)?;
        }
        queues.complete(&work, Status::Ok, cancelled.len() as u32, 0)
    }
}

/// An application's memory, as frames are made of it. A wire that cannot read it gets copies.
fn of_application(wire: &mut impl Wire, queues: &Queues) -> Payload {
    let file = queues.memory.file().try_clone_to_owned();
    let card = file.ok().and_then(|file| wire.map(file).ok().flatten());
    Payload {
        memory: queues.memory.clone(),
        pool: queues.sizes.pool_start() * 8,
        card,
    }
}

/// What the stack knows of a connection.
fn ask(socket: &tcp::Socket<'_>, option: SocketOption) -> Option<u64> {
    match option {
        SocketOption::LocalAddress => socket.local_endpoint().map(argument),
        SocketOption::PeerAddress => socket.remote_endpoint().map(argument),
        SocketOption::Unread => Some(socket.recv_queue() as u64),
        SocketOption::Unacknowledged => Some(socket.send_queue() as u64),
        _ => None,
    }
}

/// Moves the descriptors that are meant out of a queue.
fn extract(
    queue: &mut VecDeque<Descriptor>,
    out: &mut Vec<Descriptor>,
    meant: impl Fn(&Descriptor) -> bool,
) {
    queue.retain(|one| {
        let taken = meant(one);
        if taken {
            out.push(*one);
        }
        !taken
    });
}

fn socket_id(role: &Role) -> Option<crate::stack::Id> {
    match role {
        Role::Connected(connection) => Some(connection.id),
        _ => None,
    }
}
