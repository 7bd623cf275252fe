//! The operations: each posts one descriptor, and has one event.

use std::ffi::c_int;
use std::net::{Ipv4Addr, SocketAddrV4};

use dusi::{DusiError, EventQueue, Region, Socket, SocketOption, Ual};
use libc::sockaddr_in;

use crate::memory::Dusi_Region;
use crate::ual::{Dusi_Ual, flat};
use crate::{code, refused};

/// 1: small segments are not held back.
pub const DUSI_NO_DELAY: u32 = 1;
/// Milliseconds between probes of a silent peer; 0: none.
pub const DUSI_KEEP_ALIVE: u32 = 2;
/// Milliseconds after which a peer that answers nothing is given up; 0: never.
pub const DUSI_USER_TIMEOUT: u32 = 3;
/// Milliseconds after which a connect fails.
pub const DUSI_CONNECT_TIMEOUT: u32 = 4;
/// Hop limit of the packets.
pub const DUSI_HOP_LIMIT: u32 = 5;
/// Bytes of the send buffer.
pub const DUSI_SEND_BUFFER: u32 = 6;
/// Bytes of the receive buffer.
pub const DUSI_RECEIVE_BUFFER: u32 = 7;
/// Congestion control: 0 none, 1 Reno, 2 CUBIC.
pub const DUSI_CONGESTION: u32 = 8;
/// Own address: the event's `address`.
pub const DUSI_LOCAL_ADDRESS: u32 = 9;
/// The peer's address: the event's `address`.
pub const DUSI_PEER_ADDRESS: u32 = 10;
/// Bytes received that no operation has taken.
pub const DUSI_UNREAD: u32 = 11;
/// Bytes that the peer has not acknowledged.
pub const DUSI_UNACKNOWLEDGED: u32 = 12;
/// 1: sockets of the same user that have set it may listen on the same port.
pub const DUSI_SHARE_PORT: u32 = 13;

const _: () = assert!(DUSI_NO_DELAY == SocketOption::NoDelay as u32);
const _: () = assert!(DUSI_KEEP_ALIVE == SocketOption::KeepAlive as u32);
const _: () = assert!(DUSI_USER_TIMEOUT == SocketOption::UserTimeout as u32);
const _: () = assert!(DUSI_CONNECT_TIMEOUT == SocketOption::ConnectTimeout as u32);
const _: () = assert!(DUSI_HOP_LIMIT == SocketOption::HopLimit as u32);
const _: () = assert!(DUSI_SEND_BUFFER == SocketOption::SendBuffer as u32);
const _: () = assert!(DUSI_RECEIVE_BUFFER == SocketOption::ReceiveBuffer as u32);
const _: () = assert!(DUSI_CONGESTION == SocketOption::Congestion as u32);
const _: () = assert!(DUSI_LOCAL_ADDRESS == SocketOption::LocalAddress as u32);
const _: () = assert!(DUSI_PEER_ADDRESS == SocketOption::PeerAddress as u32);
const _: () = assert!(DUSI_UNREAD == SocketOption::Unread as u32);
const _: () = assert!(DUSI_UNACKNOWLEDGED == SocketOption::Unacknowledged as u32);
const _: () = assert!(DUSI_SHARE_PORT == SocketOption::SharePort as u32);

/// Posts an operation on a socket.
unsafe fn post(
    ual: *mut Dusi_Ual,
    socket: u32,
    event_queue: u16,
    tag: u64,
    call: impl FnOnce(&mut Ual, Socket, (EventQueue, u64)) -> Result<(), DusiError>,
) -> c_int {
    // SAFETY: the caller's pointer, by the contract of the crate.
    let ual = unsafe { Dusi_Ual::of(ual) };
    flat(ual.and_then(|ual| {
        let queue = ual.queue(event_queue)?;
        let socket = Socket::of_handle(socket);
        Ok(code(call(&mut ual.ual, socket, (queue, tag))))
    }))
}

/// Posts an operation on a socket that moves payload of a region.
unsafe fn post_with(
    ual: *mut Dusi_Ual,
    socket: u32,
    region: *const Dusi_Region,
    event_queue: u16,
    tag: u64,
    call: impl FnOnce(&mut Ual, Socket, &Region, (EventQueue, u64)) -> Result<(), DusiError>,
) -> c_int {
    // SAFETY: the contract of the crate: null, or a region that was not ended.
    let Some(region) = (unsafe { region.as_ref() }) else {
        return -libc::EINVAL;
    };
    // SAFETY: the caller's pointer, by the contract of the crate.
    unsafe {
        post(ual, socket, event_queue, tag, |ual, on, done| {
            call(ual, on, &region.0, done)
        })
    }
}

/// An IPv4 address of the caller's.
unsafe fn address(given: *const sockaddr_in) -> Result<SocketAddrV4, c_int> {
    // SAFETY: the contract of the crate: null, or an address.
    let given = unsafe { given.as_ref() }.ok_or(-libc::EINVAL)?;
    if c_int::from(given.sin_family) != libc::AF_INET {
        return Err(-libc::EAFNOSUPPORT);
    }
    let ip = Ipv4Addr::from(u32::from_be(given.sin_addr.s_addr));
    Ok(SocketAddrV4::new(ip, u16::from_be(given.sin_port)))
}

/// Makes a socket whose queues are bound to the event queue of this call, and writes its handle;
/// operations on it may be posted at once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Dusi_Socket(
    ual: *mut Dusi_Ual,
    event_queue: u16,
    tag: u64,
    socket: *mut u32,
) -> c_int {
    // SAFETY: the caller's pointers, by the contract of the crate.
    unsafe { Dusi_Socket_Bound(ual, event_queue, event_queue, event_queue, tag, socket) }
}

/// Makes a socket whose transmit queue and receive queue are bound to event queues, the same or
/// not, and writes its handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Dusi_Socket_Bound(
    ual: *mut Dusi_Ual,
    transmit_queue: u16,
    receive_queue: u16,
    event_queue: u16,
    tag: u64,
    socket: *mut u32,
) -> c_int {
    if socket.is_null() {
        return -libc::EINVAL;
    }
    // SAFETY: the caller's pointer, by the contract of the crate.
    let ual = unsafe { Dusi_Ual::of(ual) };
    flat(ual.and_then(|ual| {
        let queue = ual.queue(event_queue)?;
        let bound = (ual.queue(transmit_queue)?, ual.queue(receive_queue)?);
        let made = ual.ual.socket_bound(bound, (queue, tag));
        let made = made.map_err(|error| refused(&error))?;
        // SAFETY: the contract of the crate: not null, so room for a handle.
        unsafe { socket.write(made.handle()) };
        Ok(0)
    }))
}

/// Gives a socket its local port. The engine has one address: the one given must be `INADDR_ANY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Dusi_Bind(
    ual: *mut Dusi_Ual,
    socket: u32,
    local: *const sockaddr_in,
    event_queue: u16,
    tag: u64,
) -> c_int {
    // SAFETY: the caller's pointer, by the contract of the crate.
    let local = match unsafe { address(local) } {
        Ok(local) if local.ip().is_unspecified() => local,
        Ok(_) => return -libc::EADDRNOTAVAIL,
        Err(error) => return error,
    };
    // SAFETY: as above.
    unsafe {
        post(ual, socket, event_queue, tag, |ual, on, done| {
            ual.bind(on, local.port(), done)
        })
    }
}

/// Listens; at most `backlog` connections wait.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Dusi_Listen(
    ual: *mut Dusi_Ual,
    socket: u32,
    backlog: u32,
    event_queue: u16,
    tag: u64,
) -> c_int {
    // SAFETY: the caller's pointer, by the contract of the crate.
    unsafe {
        post(ual, socket, event_queue, tag, |ual, on, done| {
            ual.listen(on, backlog, done)
        })
    }
}

/// Takes the next connection of the listening `parent` as the socket `child`, made before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Dusi_Accept(
    ual: *mut Dusi_Ual,
    parent: u32,
    child: u32,
    event_queue: u16,
    tag: u64,
) -> c_int {
    let child = Socket::of_handle(child);
    // SAFETY: the caller's pointer, by the contract of the crate.
    unsafe {
        post(ual, parent, event_queue, tag, |ual, on, done| {
            ual.accept_as(on, child, done)
        })
    }
}

/// Takes all connections of the listening `parent` that come, each as a socket of the engine's
/// choice, while the events say that there will be more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Dusi_Accept_All(
    ual: *mut Dusi_Ual,
    parent: u32,
    event_queue: u16,
    tag: u64,
) -> c_int {
    // SAFETY: the caller's pointer, by the contract of the crate.
    unsafe { post(ual, parent, event_queue, tag, Ual::accept_all) }
}

/// Connects.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Dusi_Connect(
    ual: *mut Dusi_Ual,
    socket: u32,
    peer: *const sockaddr_in,
    event_queue: u16,
    tag: u64,
) -> c_int {
    // SAFETY: the caller's pointer, by the contract of the crate.
    let peer = match unsafe { address(peer) } {
        Ok(peer) => peer,
        Err(error) => return error,
    };
    // SAFETY: as above.
    unsafe {
        post(ual, socket, event_queue, tag, |ual, on, done| {
            ual.connect_to(on, peer, done)
        })
    }
}

/// Sends bytes of a region, which stay as they are until the event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Dusi_Send(
    ual: *mut Dusi_Ual,
    socket: u32,
    region: *const Dusi_Region,
    protection_tag: u32,
    offset: usize,
    length: usize,
    event_queue: u16,
    tag: u64,
) -> c_int {
    // SAFETY: the caller's pointers, by the contract of the crate.
    unsafe {
        post_with(
            ual,
            socket,
            region,
            event_queue,
            tag,
            |ual, on, from, done| {
                ual.transmit_showing(on, from, protection_tag, (offset, length), done)
            },
        )
    }
}

/// As `Dusi_Send`, without a copy: its event comes when the peer has acknowledged the bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Dusi_Send_In_Place(
    ual: *mut Dusi_Ual,
    socket: u32,
    region: *const Dusi_Region,
    protection_tag: u32,
    offset: usize,
    length: usize,
    event_queue: u16,
    tag: u64,
) -> c_int {
    // SAFETY: the caller's pointers, by the contract of the crate.
    unsafe {
        post_with(
            ual,
            socket,
            region,
            event_queue,
            tag,
            |ual, on, from, done| {
                ual.transmit_in_place_showing(on, from, protection_tag, (offset, length), done)
            },
        )
    }
}

/// Receives what there is into a region; the end of the stream is 0 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Dusi_Recv(
    ual: *mut Dusi_Ual,
    socket: u32,
    region: *const Dusi_Region,
    protection_tag: u32,
    offset: usize,
    length: usize,
    event_queue: u16,
    tag: u64,
) -> c_int {
    // SAFETY: the caller's pointers, by the contract of the crate.
    unsafe {
        post_with(
            ual,
            socket,
            region,
            event_queue,
            tag,
            |ual, on, to, done| ual.receive_showing(on, to, protection_tag, (offset, length), done),
        )
    }
}

/// Receives a whole range of a region; fewer bytes only at the end of the stream.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Dusi_Recv_Whole(
    ual: *mut Dusi_Ual,
    socket: u32,
    region: *const Dusi_Region,
    offset: usize,
    length: usize,
    event_queue: u16,
    tag: u64,
) -> c_int {
    // SAFETY: the caller's pointers, by the contract of the crate.
    unsafe {
        post_with(
            ual,
            socket,
            region,
            event_queue,
            tag,
            |ual, on, to, done| ual.receive_whole(on, to, (offset, length), done),
        )
    }
}

/// Sends bytes of a region, and ends the sending direction behind them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Dusi_Send_Last(
    ual: *mut Dusi_Ual,
    socket: u32,
    region: *const Dusi_Region,
    offset: usize,
    length: usize,
    event_queue: u16,
    tag: u64,
) -> c_int {
    // SAFETY: the caller's pointers, by the contract of the crate.
    unsafe {
        post_with(
            ual,
            socket,
            region,
            event_queue,
            tag,
            |ual, on, from, done| ual.transmit_last(on, from, (offset, length), done),
        )
    }
}

/// Receives what there is into a buffer of the anonymous pool: the event's `buffer`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Dusi_Recv_Anonymous(
    ual: *mut Dusi_Ual,
    socket: u32,
    event_queue: u16,
    tag: u64,
) -> c_int {
    // SAFETY: the caller's pointer, by the contract of the crate.
    unsafe { post(ual, socket, event_queue, tag, Ual::receive_anonymous) }
}

/// Receives all that comes, into one buffer of the anonymous pool after another, while the events
/// say that there will be more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Dusi_Recv_All(
    ual: *mut Dusi_Ual,
    socket: u32,
    event_queue: u16,
    tag: u64,
) -> c_int {
    // SAFETY: the caller's pointer, by the contract of the crate.
    unsafe { post(ual, socket, event_queue, tag, Ual::receive_all) }
}

/// Ends the sending direction after what was posted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Dusi_Shutdown(
    ual: *mut Dusi_Ual,
    socket: u32,
    event_queue: u16,
    tag: u64,
) -> c_int {
    // SAFETY: the caller's pointer, by the contract of the crate.
    unsafe { post(ual, socket, event_queue, tag, Ual::shutdown) }
}

/// Frees a socket: its operations are cancelled, and a connection that is not shut down is reset.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Dusi_Close(
    ual: *mut Dusi_Ual,
    socket: u32,
    event_queue: u16,
    tag: u64,
) -> c_int {
    // SAFETY: the caller's pointer, by the contract of the crate.
    unsafe { post(ual, socket, event_queue, tag, Ual::close) }
}

/// Cancels the operations of a socket that were posted with the tag `cancelled`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Dusi_Cancel(
    ual: *mut Dusi_Ual,
    socket: u32,
    cancelled: u64,
    event_queue: u16,
    tag: u64,
) -> c_int {
    // SAFETY: the caller's pointer, by the contract of the crate.
    unsafe {
        post(ual, socket, event_queue, tag, |ual, on, done| {
            ual.cancel(on, cancelled, done)
        })
    }
}

fn option(number: u32) -> Result<SocketOption, c_int> {
    SocketOption::from_number(number).ok_or(-libc::ENOPROTOOPT)
}

/// Sets an option.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Dusi_Set_Socket_Ops(
    ual: *mut Dusi_Ual,
    socket: u32,
    number: u32,
    value: u32,
    event_queue: u16,
    tag: u64,
) -> c_int {
    let option = match option(number) {
        Ok(option) => option,
        Err(error) => return error,
    };
    // SAFETY: the caller's pointer, by the contract of the crate.
    unsafe {
        post(ual, socket, event_queue, tag, |ual, on, done| {
            ual.set_option(on, option, value, done)
        })
    }
}

/// Asks for an option: the event's `value`, or `address`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Dusi_Get_Socket_Ops(
    ual: *mut Dusi_Ual,
    socket: u32,
    number: u32,
    event_queue: u16,
    tag: u64,
) -> c_int {
    let option = match option(number) {
        Ok(option) => option,
        Err(error) => return error,
    };
    // SAFETY: the caller's pointer, by the contract of the crate.
    unsafe {
        post(ual, socket, event_queue, tag, |ual, on, done| {
            ual.get_option(on, option, done)
        })
    }
}
