//! The data path of one connection: posted sends and receives against smoltcp's buffers.

use dti::layout::{Operation, Status};
use dti::ring::RingError;
use smoltcp::socket::tcp::{self, State};

use crate::application::Queues;
use crate::engine::Statistics;
use crate::sockets::Connection;
use crate::stack::Stack;

/// Moves posted operations on as far as they go.
pub(crate) fn advance(
    stack: &mut Stack,
    queues: &mut Queues,
    connection: &mut Connection,
    statistics: &mut Statistics,
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
    let Some(socket) = stack.socket(connection.id) else {
        return Ok(());
    };
    transmit(socket, queues, connection, statistics)?;
    receive(socket, queues, connection, statistics)
}

fn transmit(
    socket: &mut tcp::Socket<'_>,
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
                connection.taken += moved;
                statistics.sent += moved as u64;
                continue;
            }
            (Status::Ok, work.length)
        };
        connection.transmits.pop_front();
        connection.taken = 0;
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
