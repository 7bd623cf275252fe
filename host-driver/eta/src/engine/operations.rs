//! The start of each operation of Table I.

use std::collections::VecDeque;

use dti::layout::{
    ANONYMOUS, Descriptor, LAST, MULTISHOT, Operation, SocketOption, Status, WHOLE, engine_of,
    number_of,
};
use dti::ring::RingError;
use host_driver::stack::Wire;
use host_driver::stack::flows::in_place::Payload as _;
use host_driver::stack::flows::{ConnectError, Id, Options, Owner};
use smoltcp::socket::tcp;

use super::accept::{address, argument};
use super::{Application, Engine};
use crate::options;
use crate::sockets::{Connection, Role, Socket};

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
        let engine = self.settings.number;
        let application = self.applications.get_mut(owner.application as usize);
        let Application {
            queues,
            sockets,
            buffers,
            quota,
            peer,
            ..
        } = application
            .and_then(Option::as_mut)
            .ok_or(Status::BadHandle)?;
        let own =
            |handle: u32| engine_of(handle) == engine && number_of(handle) < queues.sizes.sockets;
        match operation {
            Operation::Register => {
                if queues.regions.used().0 >= quota.regions {
                    return Err(Status::Quota);
                }
                return queues.regions.register(&work).and(DONE);
            }
            Operation::Deregister => {
                let ended = queues.regions.deregister(&work)?;
                if let Some(card) = ended.and_then(|memory| memory.card().cloned()) {
                    self.leaving.push((self.wire.queued(), card));
                }
                return DONE;
            }
            Operation::Release => return queues.anonymous.release(work.argument).and(DONE),
            Operation::Doorbell => return Err(Status::Invalid),
            Operation::Socket => {
                if !own(work.socket) || sockets.contains_key(&work.socket) {
                    return Err(Status::BadHandle);
                }
                let binding = [work.argument as u16, (work.argument >> 16) as u16];
                queues.bind(work.socket, binding)?;
                sockets.insert(work.socket, Socket::new(Options::default()));
                return DONE;
            }
            Operation::Accept if work.operation & MULTISHOT == 0 => {
                let child = work.argument as u32;
                let taken = sockets.get(&child).is_some_and(|one| !one.is_fresh());
                if !own(child) || taken {
                    return Err(Status::BadHandle);
                }
            }
            Operation::Receive => {
                let anonymous = work.argument as u32 == ANONYMOUS;
                let wrong = if anonymous { WHOLE } else { MULTISHOT };
                if work.operation & wrong != 0 {
                    return Err(Status::Invalid);
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
                let shared = socket.shares.then_some(peer.user);
                if !self.stack.ports().bind(wanted, shared) {
                    return Err(Status::PortInUse);
                }
                socket.port = Some(wanted);
                DONE
            }
            (Operation::Listen, role @ Role::Fresh) => {
                let port = socket.port.ok_or(Status::BadState)?;
                let backlog = work.length.clamp(1, quota.half_open.max(1)) as usize;
                let ports = self.stack.ports();
                ports.listen(port, owner, socket.options, backlog);
                *role = Role::Listening(Default::default());
                DONE
            }
            (Operation::Accept, Role::Listening(accepts)) => {
                accepts.push_back(work);
                Ok(Begun::UnderWay)
            }
            (Operation::Connect, role @ Role::Fresh) => {
                let needed = socket.options.buffers();
                if *buffers + needed > quota.buffers {
                    return Err(Status::Quota);
                }
                let to = address(work.argument);
                let options = &socket.options;
                queues.anonymous.promise(options.receive_buffer)?;
                let begun = self.stack.connect(owner, options, socket.port, to);
                let id = begun.map_err(|error| {
                    queues.anonymous.keep(options.receive_buffer);
                    status(error)
                })?;
                *buffers += needed;
                *role = Role::Connected(Connection::new(id, Some(work)));
                Ok(Begun::UnderWay)
            }
            (Operation::Transmit | Operation::TransmitInPlace, Role::Connected(connection)) => {
                if connection.ended {
                    return Err(Status::Ended);
                }
                queues.regions.begin(&work, false)?;
                if operation == Operation::TransmitInPlace
                    && let Some((memory, _)) = queues.regions.place(&work, 0)
                {
                    memory.show(&mut self.wire);
                }
                connection.ended = work.operation & LAST != 0;
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
                if work.argument as u32 != ANONYMOUS {
                    queues.regions.begin(&work, true)?;
                }
                connection.receives.push_back(work);
                self.stack.make_ready(connection.id);
                Ok(Begun::UnderWay)
            }
            (Operation::SetOption, _) => {
                let option = SocketOption::from_number((work.argument >> 32) as u32);
                let option = option.ok_or(Status::Invalid)?;
                let fresh = matches!(socket.role, Role::Fresh);
                let value = work.argument as u32;
                if option == SocketOption::SharePort {
                    if value > 1 {
                        return Err(Status::Invalid);
                    }
                    if !fresh || socket.port.is_some() {
                        return Err(Status::BadState);
                    }
                    socket.shares = value == 1;
                    return DONE;
                }
                options::set(&mut socket.options, option, value, fresh)?;
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
                if option == SocketOption::SharePort {
                    return Ok(Begun::Complete(socket.shares.into()));
                }
                let set = options::get(&socket.options, option).map(u64::from);
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
        match application.queues.close_behind(&work) {
            Ok(false) => {}
            Ok(true) => return Ok(()),
            Err(status) => return application.queues.refuse(&work, status),
        }
        let Some(mut socket) = application.sockets.remove(&work.socket) else {
            return application.queues.refuse(&work, Status::BadHandle);
        };
        for (cancelled, length) in socket.pending() {
            application
                .queues
                .complete(&cancelled, Status::Cancelled, length, 0)?;
        }
        application.queues.unbind(work.socket);
        let place = number_of(work.socket);
        if place >= application.queues.sizes.sockets {
            application.chosen.push(place);
        }
        if matches!(socket.role, Role::Connected(_)) {
            application.give_back(&socket.options);
        }
        application.queues.complete(&work, Status::Ok, 0, 0)?;
        let owner = Owner {
            application: number as u32,
            socket: work.socket,
        };
        self.release(owner, socket);
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
        let (mut partly, mut failed) = (None, None);
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
                if connection.filled > 0
                    && let Some(one) = connection.receives.pop_front_if(|one| one.tag == tag)
                {
                    let length = std::mem::take(&mut connection.filled) as u32;
                    partly = Some((one, length));
                }
                extract(&mut connection.receives, &mut cancelled, |one| {
                    one.tag == tag
                });
                if let Some(connect) = connection.connecting.take_if(|one| one.tag == tag) {
                    cancelled.push(connect);
                    self.stack.abandon(connection.id);
                    failed = Some(socket.options);
                    cancelled.extend(connection.transmits.drain(..));
                    cancelled.extend(connection.receives.drain(..));
                    socket.role = Role::Fresh;
                }
            }
        }
        let cancelled = cancelled.into_iter().map(|one| (one, 0));
        let cancelled: Vec<_> = partly.into_iter().chain(cancelled).collect();
        for (one, length) in &cancelled {
            queues.complete(one, Status::Cancelled, *length, 0)?;
        }
        queues.complete(&work, Status::Ok, cancelled.len() as u32, 0)?;
        if let Some(options) = failed {
            application.give_back(&options);
        }
        Ok(())
    }
}

impl Application {
    /// A connection's buffers are used no more.
    fn give_back(&mut self, options: &Options) {
        self.buffers = self.buffers.saturating_sub(options.buffers());
        self.queues.anonymous.keep(options.receive_buffer);
    }
}

/// Why a connect was refused, in the interface's words.
fn status(error: ConnectError) -> Status {
    match error {
        ConnectError::Invalid => Status::Invalid,
        ConnectError::Unreachable => Status::Unreachable,
        ConnectError::PortInUse => Status::PortInUse,
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

fn socket_id(role: &Role) -> Option<Id> {
    match role {
        Role::Connected(connection) => Some(connection.id),
        _ => None,
    }
}
