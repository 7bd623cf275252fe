//! The data path of one connection: posted sends and receives against smoltcp's buffers.

use std::sync::Arc;

use dti::layout::{
    ANONYMOUS, ANONYMOUS_BYTES, Descriptor, LAST, MULTISHOT, Operation, Status, WHOLE,
};
use dti::ring::RingError;
use host_driver::stack::flows::Stack;
use host_driver::stack::flows::in_place::{self, Stream};
use smoltcp::socket::tcp::{self, State};

use crate::queues::Queues;
use crate::sockets::Connection;
use crate::statistics::Statistics;

/// What a receive found.
enum Found {
    /// So many bytes that were taken.
    Bytes(usize),
    /// Nothing yet.
    Nothing,
    /// The end of the stream.
    End,
    /// A reset.
    Reset,
}

/// Moves posted operations on as far as they go.
pub(crate) fn advance(
    stack: &mut Stack,
    queues: &mut Queues,
    connection: &mut Connection,
    statistics: &mut Statistics,
    returned: u64,
) -> Result<(), RingError> {
    if let Some(work) = connection.connecting {
        let late = stack.is_late(connection.id);
        let Some(socket) = stack.socket(connection.id) else {
            return Ok(());
        };
        let status = match socket.state() {
            State::SynSent | State::SynReceived if late => {
                socket.abort();
                Status::TimedOut
            }
            State::SynSent | State::SynReceived => return Ok(()),
            State::Closed => Status::Refused,
            _ => Status::Ok,
        };
        connection.connecting = None;
        stack.limit(connection.id, None);
        queues.complete(&work, status, 0, 0)?;
    }
    let Some((socket, stream)) = stack.sending(connection.id) else {
        return Ok(());
    };
    transmit(socket, stream, queues, connection, statistics)?;
    let held = acknowledge(socket, stream, queues, connection, returned)?;
    receive(socket, queues, connection, statistics)?;
    if held {
        stack.hold(connection.id);
    }
    Ok(())
}

/// Completes what the peer has acknowledged; true if the wire may still read some of it.
fn acknowledge(
    socket: &tcp::Socket<'_>,
    stream: &mut Stream,
    queues: &mut Queues,
    connection: &mut Connection,
    returned: u64,
) -> Result<bool, RingError> {
    if connection.sent.is_empty() {
        return Ok(false);
    }
    let done = stream.acknowledged(socket.send_queue());
    while let Some((work, end)) = connection.sent.front().copied() {
        let status = if end <= done {
            if returned < stream.mark() {
                return Ok(true);
            }
            Status::Ok
        } else if socket.state() == State::Closed {
            Status::Reset
        } else {
            return Ok(false);
        };
        connection.sent.pop_front();
        let length = if status == Status::Ok { work.length } else { 0 };
        queues.complete(&work, status, length, 0)?;
    }
    Ok(false)
}

/// How far a send went.
enum Sent {
    /// All of it is smoltcp's.
    Whole,
    /// There is no room.
    Part,
}

/// Gives smoltcp places for bytes that stay where they are.
fn place(
    socket: &mut tcp::Socket<'_>,
    stream: &mut Stream,
    queues: &Queues,
    work: &Descriptor,
    taken: &mut usize,
) -> Sent {
    while *taken < work.length as usize {
        let wanted = work.length as usize - *taken;
        let moved = socket.send(|room| {
            let part = wanted.min(room.len());
            (part, part)
        });
        let moved = moved.unwrap_or(0);
        if moved == 0 {
            return Sent::Part;
        }
        if let Some((memory, start)) = queues.regions.place(work, *taken) {
            let memory: Arc<dyn in_place::Payload> = memory.clone();
            stream.placed(&memory, start, moved);
        }
        *taken += moved;
    }
    Sent::Whole
}

/// Copies bytes to smoltcp.
fn copy(
    socket: &mut tcp::Socket<'_>,
    stream: &mut Stream,
    queues: &Queues,
    work: &Descriptor,
    taken: &mut usize,
) -> Sent {
    while *taken < work.length as usize {
        let (wanted, done) = (work.length as usize - *taken, *taken);
        let moved = socket.send(|room| {
            let part = wanted.min(room.len());
            queues.regions.read(work, done, &mut room[..part]);
            (part, part)
        });
        let moved = moved.unwrap_or(0);
        if moved == 0 {
            return Sent::Part;
        }
        stream.copied(moved);
        *taken += moved;
    }
    Sent::Whole
}

fn transmit(
    socket: &mut tcp::Socket<'_>,
    stream: &mut Stream,
    queues: &mut Queues,
    connection: &mut Connection,
    statistics: &mut Statistics,
) -> Result<(), RingError> {
    while let Some(work) = connection.transmits.front().copied() {
        let operation = Operation::from_number(work.operation);
        let mut in_place = false;
        let (status, length) = if operation == Some(Operation::Shutdown) {
            socket.close();
            (Status::Ok, 0)
        } else if !socket.may_send() {
            (Status::Reset, connection.taken as u32)
        } else {
            let before = connection.taken;
            in_place = operation == Some(Operation::TransmitInPlace);
            let (give, count): (fn(_, _, _, _, _) -> Sent, _) = if in_place {
                (place, &mut statistics.in_place)
            } else {
                (copy, &mut statistics.sent)
            };
            let sent = give(socket, stream, queues, &work, &mut connection.taken);
            *count += (connection.taken - before) as u64;
            if matches!(sent, Sent::Part) {
                return Ok(());
            }
            if work.operation & LAST != 0 {
                socket.close();
            }
            (Status::Ok, work.length)
        };
        connection.transmits.pop_front();
        connection.taken = 0;
        if in_place {
            connection.sent.push_back((work, stream.given()));
        } else if status == Status::Ok && !connection.sent.is_empty() {
            // In order: what was posted before completes before.
            connection.sent.push_back((work, 0));
        } else {
            queues.complete(&work, status, length, 0)?;
        }
    }
    Ok(())
}

/// Takes at most so many bytes of what there is.
fn take(socket: &mut tcp::Socket<'_>, take: impl FnOnce(&[u8]) -> usize) -> Found {
    if socket.can_recv() {
        let taken = socket.recv(|bytes| {
            let part = take(bytes);
            (part, part)
        });
        return taken.map_or(Found::Reset, Found::Bytes);
    }
    if socket.may_recv() {
        return Found::Nothing;
    }
    // The end of the stream, or a reset: smoltcp's error tells them apart.
    match socket.recv(|_| (0, ())) {
        Err(tcp::RecvError::Finished) => Found::End,
        _ => Found::Reset,
    }
}

fn receive(
    socket: &mut tcp::Socket<'_>,
    queues: &mut Queues,
    connection: &mut Connection,
    statistics: &mut Statistics,
) -> Result<(), RingError> {
    while let Some(work) = connection.receives.front().copied() {
        if work.argument as u32 == ANONYMOUS {
            if !receive_anonymous(socket, queues, connection, &work, statistics)? {
                return Ok(());
            }
            continue;
        }
        let filled = connection.filled;
        let wanted = work.length as usize - filled;
        let whole = work.operation & WHOLE != 0;
        let found = take(socket, |bytes| {
            let mut part = bytes.len().min(wanted);
            if whole && part < wanted {
                // The next part starts at a word.
                part &= !7;
            }
            queues.regions.write(&work, filled, &bytes[..part]);
            part
        });
        let found = match found {
            Found::Bytes(0) if whole && wanted > 0 => {
                carry(socket, queues, &work, filled, wanted.min(8))
            }
            found => found,
        };
        let (status, length) = match found {
            Found::Bytes(count) => {
                statistics.received += count as u64;
                if whole && count < wanted {
                    connection.filled += count;
                    continue;
                }
                (Status::Ok, filled + count)
            }
            Found::Nothing => return Ok(()),
            Found::End => (Status::Ok, filled),
            Found::Reset => (Status::Reset, filled),
        };
        connection.receives.pop_front();
        connection.filled = 0;
        queues.complete(&work, status, length as u32, 0)?;
    }
    Ok(())
}

/// Takes a word that stands at both ends of smoltcp's ring, or the last bytes of the stream.
fn carry(
    socket: &mut tcp::Socket<'_>,
    queues: &Queues,
    work: &Descriptor,
    filled: usize,
    wanted: usize,
) -> Found {
    let ends = !socket.may_recv() || matches!(socket.state(), State::CloseWait);
    if socket.recv_queue() < wanted && !ends {
        return Found::Nothing;
    }
    let mut word = [0; 8];
    match socket.recv_slice(&mut word[..wanted]) {
        Ok(count) => {
            queues.regions.write(work, filled, &word[..count]);
            Found::Bytes(count)
        }
        Err(_) => Found::Reset,
    }
}

/// Receives into a buffer of the anonymous pool; false if it has to wait.
fn receive_anonymous(
    socket: &mut tcp::Socket<'_>,
    queues: &mut Queues,
    connection: &mut Connection,
    work: &Descriptor,
    statistics: &mut Statistics,
) -> Result<bool, RingError> {
    if socket.can_recv() && !queues.anonymous.has_free() {
        queues.anonymous.starve(connection.id);
        return Ok(false);
    }
    let most = match work.length as usize {
        0 => ANONYMOUS_BYTES,
        length => length.min(ANONYMOUS_BYTES),
    };
    let mut buffer = None;
    let found = take(socket, |bytes| {
        let part = bytes.len().min(most);
        buffer = queues.anonymous.lend(&bytes[..part]);
        part
    });
    let (status, length) = match found {
        Found::Bytes(count) => (Status::Ok, count),
        Found::Nothing => return Ok(false),
        Found::End => (Status::Ok, 0),
        Found::Reset => (Status::Reset, 0),
    };
    statistics.received += length as u64;
    let child = buffer.unwrap_or(ANONYMOUS);
    if length > 0 && work.operation & MULTISHOT != 0 {
        if !queues.complete_one(work, child, length as u32, work.argument)? {
            connection.receives.pop_front();
        }
        return Ok(true);
    }
    connection.receives.pop_front();
    queues.complete_as(work, child, status, length as u32, 0)?;
    Ok(true)
}
