//! The data path of one connection: posted sends and receives against smoltcp's buffers.

use dti::layout::{Operation, Status};
use dti::ring::RingError;
use smoltcp::socket::tcp::{self, State};

use crate::application::Queues;
use crate::engine::Statistics;
use crate::sockets::Connection;
use crate::stack::Stack;
use crate::stack::in_place::Stream;

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

/// Gives smoltcp places for bytes that stay where they are.
fn place(
    socket: &mut tcp::Socket<'_>,
    stream: &mut Stream,
    (offset, wanted): (usize, usize),
) -> usize {
    let moved = socket.send(|room| {
        let part = wanted.min(room.len());
        (part, part)
    });
    let moved = moved.unwrap_or(0);
    stream.placed(offset, moved);
    moved
}

fn transmit(
    socket: &mut tcp::Socket<'_>,
    stream: &mut Stream,
    queues: &mut Queues,
    connection: &mut Connection,
    statistics: &mut Statistics,
) -> Result<(), RingError> {
    while let Some(work) = connection.transmits.front().copied() {
        let (status, length) = if work.operation == Operation::Shutdown as u16 {
            socket.close();
            (Status::Ok, 0)
        } else if !socket.may_send() {
            (Status::Reset, connection.taken as u32)
        } else if work.operation == Operation::TransmitInPlace as u16 {
            let wanted = work.length as usize - connection.taken;
            let offset = work.offset as usize + connection.taken;
            let moved = place(socket, stream, (offset, wanted));
            connection.taken += moved;
            statistics.in_place += moved as u64;
            if moved < wanted {
                if moved > 0 {
                    continue;
                }
                return Ok(());
            }
            connection.sent.push_back((work, stream.given()));
            connection.transmits.pop_front();
            connection.taken = 0;
            continue;
        } else {
            let wanted = work.length as usize - connection.taken;
            let offset = work.offset as usize + connection.taken;
            let moved = socket.send(|room| {
                // Only whole words before the end, so that the next part starts at a word.
                let part = if wanted <= room.len() {
                    wanted
                } else {
                    room.len() & !7
                };
                queues.read(offset, &mut room[..part]);
                (part, part)
            });
            let moved = moved.unwrap_or(0);
            stream.copied(moved);
            connection.taken += moved;
            statistics.sent += moved as u64;
            if connection.taken < work.length as usize {
                if moved > 0 {
                    continue;
                }
                // A ring's end shorter than a word: carry the word over it.
                let mut word = [0; 8];
                let part = wanted.min(8);
                if socket.send_capacity() - socket.send_queue() < part {
                    return Ok(());
                }
                queues.read(offset, &mut word[..part]);
                let moved = socket.send_slice(&word[..part]).unwrap_or(0);
                stream.copied(moved);
                connection.taken += moved;
                statistics.sent += moved as u64;
                continue;
            }
            (Status::Ok, work.length)
        };
        connection.transmits.pop_front();
        connection.taken = 0;
        if status == Status::Ok && !connection.sent.is_empty() {
            // In order: what was posted before completes before.
            connection.sent.push_back((work, 0));
            continue;
        }
        queues.complete(&work, status, length, 0)?;
    }
    Ok(())
}

fn receive(
    socket: &mut tcp::Socket<'_>,
    queues: &mut Queues,
    connection: &mut Connection,
    statistics: &mut Statistics,
) -> Result<(), RingError> {
    while let Some(work) = connection.receives.front().copied() {
        let taken = if socket.can_recv() {
            let taken = socket.recv(|bytes| {
                let part = bytes.len().min(work.length as usize);
                queues.write(work.offset as usize, &bytes[..part]);
                (part, part)
            });
            taken.map_err(|_| Status::Reset)
        } else if socket.may_recv() {
            return Ok(());
        } else {
            // The end of the stream, or a reset: smoltcp's error tells them apart.
            match socket.recv(|_| (0, ())) {
                Err(tcp::RecvError::Finished) => Ok(0),
                _ => Err(Status::Reset),
            }
        };
        connection.receives.pop_front();
        let (status, length) = match taken {
            Ok(length) => (Status::Ok, length),
            Err(status) => (status, 0),
        };
        statistics.received += length as u64;
        queues.complete(&work, status, length as u32, 0)?;
    }
    Ok(())
}
