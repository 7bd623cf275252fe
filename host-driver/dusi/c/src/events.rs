//! Events.

use std::ffi::{c_int, c_void};
use std::net::SocketAddrV4;
use std::time::Duration;

use dusi::Event;
use libc::sockaddr_in;

use crate::ual::{Dusi_Ual, flat};
use crate::{errno, refused};

/// The end of an operation.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Dusi_Event {
    /// The tag of the call.
    pub tag: u64,
    /// 0, or an errno.
    pub error: i32,
    /// The socket; of an accept, the listening one.
    pub socket: u32,
    /// Of an accept, the connection.
    pub child: u32,
    /// Bytes sent or received; of a cancel, the operations cancelled.
    pub length: u32,
    /// Of a receive into the anonymous pool, the buffer; else `UINT32_MAX`.
    pub buffer: u32,
    /// 1: the operation is still posted, and more events of it will come.
    pub more: u32,
    /// Of a question for an option, its value.
    pub value: u64,
    /// Of an accept, and of a question for an address.
    pub address: sockaddr_in,
}

fn event(event: &Event) -> Dusi_Event {
    Dusi_Event {
        tag: event.tag,
        error: errno(event.status),
        socket: event.socket.handle(),
        child: event.child.map_or(u32::MAX, |child| child.handle()),
        length: event.length as u32,
        buffer: event.buffer.map_or(u32::MAX, |buffer| buffer.number()),
        more: event.more.into(),
        value: event.value,
        address: socket_address(event.peer.unwrap_or(event.address())),
    }
}

fn socket_address(address: SocketAddrV4) -> sockaddr_in {
    sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: address.port().to_be(),
        sin_addr: libc::in_addr {
            s_addr: u32::from(*address.ip()).to_be(),
        },
        sin_zero: [0; 8],
    }
}

/// A time-out in milliseconds; negative: for ever.
fn timeout(milliseconds: c_int) -> Duration {
    u64::try_from(milliseconds).map_or(Duration::MAX, Duration::from_millis)
}

/// Writes all events that there are, at most `room`, and gives their number. If there is none, it
/// waits for the first one, at most so many milliseconds, or for ever if they are negative.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Dusi_Wait_All(
    ual: *mut Dusi_Ual,
    event_queue: u16,
    events: *mut Dusi_Event,
    room: u32,
    milliseconds: c_int,
) -> c_int {
    if events.is_null() {
        return -libc::EINVAL;
    }
    // SAFETY: the caller's pointer, by the contract of the crate.
    let ual = unsafe { Dusi_Ual::of(ual) };
    flat(ual.and_then(|ual| {
        let queue = ual.queue(event_queue)?;
        let waited = ual.ual.wait_any(&[queue], timeout(milliseconds));
        waited.map_err(|error| refused(&error))?;
        let mut count = 0;
        while count < room.min(c_int::MAX as u32) {
            let Some(next) = ual.ual.done(queue).map_err(|error| refused(&error))? else {
                break;
            };
            // SAFETY: the contract of the crate: `events` has room for `room`, and `count` is less.
            unsafe { events.add(count as usize).write(event(&next)) };
            count += 1;
        }
        Ok(count as c_int)
    }))
}

/// As `Dusi_Wait_All`, and calls a function for each event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Dusi_Wait_Call(
    ual: *mut Dusi_Ual,
    event_queue: u16,
    call: Option<unsafe extern "C" fn(context: *mut c_void, event: *const Dusi_Event)>,
    context: *mut c_void,
    milliseconds: c_int,
) -> c_int {
    let Some(call) = call else {
        return -libc::EINVAL;
    };
    // SAFETY: the caller's pointer, by the contract of the crate.
    let found = unsafe { Dusi_Ual::of(ual) }.and_then(|ual| {
        let queue = ual.queue(event_queue)?;
        let events = ual.ual.wait_all(queue, timeout(milliseconds));
        events.map_err(|error| refused(&error))
    });
    // The function may use the attachment: no reference to it is held here.
    flat(found.map(|events| {
        for next in &events {
            // SAFETY: the contract of the crate: the function may be called with this context.
            unsafe { call(context, &event(next)) };
        }
        events.len() as c_int
    }))
}

/// The number of events that wait.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Dusi_EvQ_Num_Events(ual: *mut Dusi_Ual, event_queue: u16) -> c_int {
    // SAFETY: the caller's pointer, by the contract of the crate.
    let ual = unsafe { Dusi_Ual::of(ual) };
    flat(ual.and_then(|ual| {
        let queue = ual.queue(event_queue)?;
        let count = ual.ual.number_of_events(queue);
        count
            .map(|count| count as c_int)
            .map_err(|error| refused(&error))
    }))
}

/// Writes the oldest event, if there is one: 1, else 0. It never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Dusi_Done(
    ual: *mut Dusi_Ual,
    event_queue: u16,
    out: *mut Dusi_Event,
) -> c_int {
    if out.is_null() {
        return -libc::EINVAL;
    }
    // SAFETY: the caller's pointer, by the contract of the crate.
    let ual = unsafe { Dusi_Ual::of(ual) };
    flat(ual.and_then(|ual| {
        let queue = ual.queue(event_queue)?;
        match ual.ual.done(queue).map_err(|error| refused(&error))? {
            None => Ok(0),
            Some(next) => {
                // SAFETY: the contract of the crate: not null, so room for an event.
                unsafe { out.write(event(&next)) };
                Ok(1)
            }
        }
    }))
}
