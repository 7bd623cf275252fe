//! Attaching, and what wakes an application.

use std::ffi::{CStr, OsStr, c_char, c_int};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use dusi::{EventQueue, Sizes, Ual};

use crate::refused;

/// In place of an event queue: the one that the socket's queue is bound to.
pub const DUSI_BOUND: u16 = 0xFFFE;

const _: () = assert!(DUSI_BOUND == dti::layout::BOUND);

/// An attachment to an engine.
pub struct Dusi_Ual {
    pub(crate) ual: Ual,
    pub(crate) queues: Vec<EventQueue>,
}

/// How large the queues are; work and events are powers of two.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Dusi_Sizes {
    /// Operations that may be posted and not taken.
    pub work: u32,
    /// Operations that may be under way, by event queue.
    pub events: u32,
    /// Bytes of memory to register.
    pub pool: u32,
    /// Sockets.
    pub sockets: u32,
    /// Event queues; 0 for the usual number.
    pub queues: u32,
    /// Operations that each queue of a socket holds, a power of two; 0 for the usual number.
    pub depth: u32,
    /// Buffers of the anonymous pool; 0 for the usual number.
    pub anonymous: u32,
    /// Sockets that the engine may name, for `Dusi_Accept_All`.
    pub chosen: u32,
}

impl Dusi_Ual {
    /// The attachment of a pointer.
    pub(crate) unsafe fn of<'a>(ual: *mut Self) -> Result<&'a mut Self, c_int> {
        // SAFETY: the contract of the crate: null, or an open attachment that no other thread uses.
        unsafe { ual.as_mut() }.ok_or(-libc::EINVAL)
    }

    /// An event queue by its number.
    pub(crate) fn queue(&self, number: u16) -> Result<EventQueue, c_int> {
        if number == DUSI_BOUND {
            return Ok(EventQueue::BOUND);
        }
        let found = self.queues.get(usize::from(number)).copied();
        found.ok_or(-libc::EINVAL)
    }
}

/// What an inner function gives, or its error.
pub(crate) fn flat(result: Result<c_int, c_int>) -> c_int {
    result.unwrap_or_else(|error| error)
}

fn of_c(sizes: &Dusi_Sizes) -> Sizes {
    let usual = Sizes::default();
    let or = |asked, usual| if asked == 0 { usual } else { asked };
    Sizes {
        work: sizes.work,
        events: sizes.events,
        pool: sizes.pool,
        sockets: sizes.sockets,
        queues: or(sizes.queues, usual.queues),
        depth: or(sizes.depth, usual.depth),
        anonymous: or(sizes.anonymous, usual.anonymous),
        chosen: sizes.chosen,
    }
}

/// Attaches to the engine that listens at `path`. Without `sizes` the usual ones are taken.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Dusi_Open_Ual(
    path: *const c_char,
    sizes: *const Dusi_Sizes,
    ual: *mut *mut Dusi_Ual,
) -> c_int {
    if path.is_null() || ual.is_null() {
        return -libc::EINVAL;
    }
    // SAFETY: the contract of the crate: null, or sizes.
    let sizes = match unsafe { sizes.as_ref() } {
        None => Sizes::default(),
        Some(sizes) => of_c(sizes),
    };
    // SAFETY: the contract of the crate: not null, so a string with an end.
    let path = unsafe { CStr::from_ptr(path) };
    match Ual::connect(Path::new(OsStr::from_bytes(path.to_bytes())), sizes) {
        Ok(made) => {
            let made = Box::new(Dusi_Ual {
                ual: made,
                queues: Vec::new(),
            });
            // SAFETY: the contract of the crate: not null, so room for a pointer.
            unsafe { ual.write(Box::into_raw(made)) };
            0
        }
        Err(error) => refused(&error),
    }
}

/// Ends an attachment: all that it had goes back to the engine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Dusi_Close_Ual(ual: *mut Dusi_Ual) {
    if !ual.is_null() {
        // SAFETY: the contract of the crate: made by `Dusi_Open_Ual`, and not used afterwards.
        drop(unsafe { Box::from_raw(ual) });
    }
}

/// Makes an event queue; its number, from 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Dusi_Create_EvQ(ual: *mut Dusi_Ual) -> c_int {
    // SAFETY: the caller's pointer, by the contract of the crate.
    let ual = match unsafe { Dusi_Ual::of(ual) } {
        Ok(ual) => ual,
        Err(error) => return error,
    };
    match ual.ual.create_event_queue() {
        Ok(queue) => {
            ual.queues.push(queue);
            c_int::from(queue.number())
        }
        Err(error) => refused(&error),
    }
}

/// A descriptor for poll and epoll: readable when an armed event queue has got an event, and when
/// the engine has ended. It is the attachment's; do not read or close it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Dusi_Descriptor(ual: *mut Dusi_Ual) -> c_int {
    // SAFETY: the caller's pointer, by the contract of the crate.
    let ual = unsafe { Dusi_Ual::of(ual) };
    flat(ual.map(|ual| ual.ual.as_fd().as_raw_fd()))
}

/// Sends this process a signal, too, whenever the descriptor becomes readable; 0 for none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Dusi_Set_Signal(ual: *mut Dusi_Ual, signal: c_int) -> c_int {
    // SAFETY: the caller's pointer, by the contract of the crate.
    let file = match unsafe { Dusi_Ual::of(ual) } {
        Ok(ual) => ual.ual.as_fd().as_raw_fd(),
        Err(error) => return error,
    };
    let failed = || {
        -std::io::Error::last_os_error()
            .raw_os_error()
            .unwrap_or(libc::EINVAL)
    };
    // SAFETY: calls without pointers, on a descriptor that is open.
    unsafe {
        let flags = libc::fcntl(file, libc::F_GETFL);
        let own = libc::fcntl(file, libc::F_SETOWN, libc::getpid());
        if flags < 0 || own < 0 || libc::fcntl(file, F_SETSIG, signal) < 0 {
            return failed();
        }
        let wanted = if signal == 0 {
            flags & !libc::O_ASYNC
        } else {
            flags | libc::O_ASYNC
        };
        if libc::fcntl(file, libc::F_SETFL, wanted) < 0 {
            return failed();
        }
    }
    0
}

/// `fcntl`'s number on Linux.
const F_SETSIG: c_int = 10;

/// Arms an event queue. 1 if it has no event, so that the caller may sleep; 0 if it has one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Dusi_Arm(ual: *mut Dusi_Ual, event_queue: u16) -> c_int {
    // SAFETY: the caller's pointer, by the contract of the crate.
    let ual = unsafe { Dusi_Ual::of(ual) };
    flat(ual.and_then(|ual| {
        let queue = ual.queue(event_queue)?;
        let armed = ual.ual.arm(&[queue]);
        armed.map(c_int::from).map_err(|error| refused(&error))
    }))
}

/// The caller is awake. 0, or an error if the engine has ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Dusi_Disarm(ual: *mut Dusi_Ual, event_queue: u16) -> c_int {
    // SAFETY: the caller's pointer, by the contract of the crate.
    let ual = unsafe { Dusi_Ual::of(ual) };
    flat(ual.and_then(|ual| {
        let queue = ual.queue(event_queue)?;
        let lives = ual.ual.disarm(&[queue]);
        if lives {
            Ok(0)
        } else {
            Err(-libc::ECONNABORTED)
        }
    }))
}
