//! What QEMU calls.
//!
//! A panic never reaches QEMU: the card is given up, and every later call returns at
//! once.

use crate::card::{Card, Memory};
use crate::ffi::{ABI, ClientHandle, ClientOps, Config, HostOps, Nature};
use crate::host::Qemu;
use rustix::fd::BorrowedFd;
use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::slice;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// What a [`ClientHandle`] points to. QEMU's big lock keeps callers apart; the lock here
/// makes sure that a call from within a call is refused.
type Shared = Mutex<Card<Qemu>>;

/// Connects to a card for QEMU's device, as `client.h` describes.
///
/// # Safety
/// The arguments must be what `client.h` says: `host` and `config` valid for reading,
/// `ops` and `nature` for writing, `message` for writing `bytes` bytes. They are not
/// used after the return, the functions in `host` are.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tigon2_client_open(
    host: *const HostOps,
    config: *const Config,
    ops: *mut ClientOps,
    nature: *mut Nature,
    message: *mut c_char,
    bytes: usize,
) -> ClientHandle {
    let fail = |text: &str| {
        // SAFETY: `message` is what `client.h` says.
        unsafe { tell(message, bytes, text) };
        std::ptr::null_mut()
    };
    // SAFETY: every version of the interface starts with these two numbers.
    let (abi, size) = unsafe { ((*host).abi, (*host).bytes) };
    if abi != ABI || size as usize != size_of::<HostOps>() {
        return fail(&format!(
            "the vfio-user client is for ABI {ABI}, this device for ABI {abi}"
        ));
    }
    // SAFETY: the version is right, so the whole structure is there, and QEMU keeps its
    // functions callable.
    let qemu = unsafe { Qemu::new(*host) };
    // SAFETY: `config` is what `client.h` says; its string ends with a zero.
    let (path, timeout) = unsafe {
        let socket = CStr::from_ptr((*config).socket);
        (OsStr::from_bytes(socket.to_bytes()), (*config).timeout_ms)
    };
    let timeout = Duration::from_millis(timeout.into());
    let opened = catch_unwind(|| Card::connect(Path::new(path), timeout, qemu));
    match opened {
        Ok(Ok((card, what))) => {
            // SAFETY: both may be written, says `client.h`.
            unsafe {
                ops.write(OPS);
                nature.write(what);
            }
            Box::into_raw(Box::new(Shared::new(card))).cast()
        }
        Ok(Err(error)) => fail(&error.to_string()),
        Err(_) => fail("the vfio-user client has failed"),
    }
}

/// Puts a line of text into a C buffer.
///
/// # Safety
/// `message` must be valid for writing `bytes` bytes.
unsafe fn tell(message: *mut c_char, bytes: usize, text: &str) {
    let len = text.len().min(bytes.saturating_sub(1));
    if bytes > 0 {
        // SAFETY: len + 1 bytes fit into `bytes`.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr(), message.cast(), len);
            message.add(len).write(0);
        }
    }
}

/// Runs `f` on the card; `otherwise` if the card is busy or `f` fails.
///
/// # Safety
/// `handle` must come from [`tigon2_client_open`] and not be closed.
unsafe fn guarded<R>(
    handle: ClientHandle,
    otherwise: R,
    f: impl FnOnce(&mut Card<Qemu>) -> R,
) -> R {
    // SAFETY: it was made by `Box::into_raw`; all access is by shared reference.
    let shared = unsafe { &*handle.cast::<Shared>() };
    let Ok(mut card) = shared.try_lock() else {
        return otherwise;
    };
    // Caught inside of the lock, so the lock is never poisoned.
    catch_unwind(AssertUnwindSafe(|| f(&mut card))).unwrap_or_else(|_| {
        card.give_up("the vfio-user client has failed");
        otherwise
    })
}

/// # Safety
/// `data` must be valid for reading `len` bytes for as long as the result is used.
unsafe fn bytes<'a>(data: *const c_void, len: u32) -> &'a [u8] {
    // SAFETY: the caller's promise.
    unsafe { slice::from_raw_parts(data.cast(), len as usize) }
}

/// # Safety
/// `data` must be valid for writing `len` bytes, and used by nobody else, for as long as
/// the result is used.
unsafe fn bytes_mut<'a>(data: *mut c_void, len: u32) -> &'a mut [u8] {
    // SAFETY: the caller's promise; QEMU hands over initialized memory.
    unsafe { slice::from_raw_parts_mut(data.cast(), len as usize) }
}

/// Defines the C functions of [`ClientOps`]. Each gets the card that the handle points
/// to, and is QEMU's to call with arguments as `client.h` says.
macro_rules! callbacks {
    ($($name:ident($card:ident $(, $argument:ident: $type:ty)*) -> $result:ty [$otherwise:expr] $body:block)*) => {
        $(unsafe extern "C" fn $name(handle: ClientHandle $(, $argument: $type)*) -> $result {
            let body = |$card: &mut Card<Qemu>| $body;
            // SAFETY: QEMU passes the handle that it got, until it closes it.
            unsafe { guarded(handle, $otherwise, body) }
        })*
    };
}

callbacks! {
    descriptor(card) -> c_int [-1] { card.descriptor() }

    serve(card) -> () [()] { card.serve() }

    config_read(card, offset: u32, data: *mut c_void, len: u32) -> bool [false] {
        // SAFETY: QEMU's own buffer of `len` bytes.
        card.config_read(offset, unsafe { bytes_mut(data, len) })
    }

    config_write(card, offset: u32, data: *const c_void, len: u32) -> () [()] {
        // SAFETY: QEMU's own buffer of `len` bytes.
        card.config_write(offset, unsafe { bytes(data, len) })
    }

    bar_read(card, offset: u64, data: *mut c_void, len: u32, unmask: bool) -> bool [false] {
        // SAFETY: QEMU's own buffer of `len` bytes.
        card.bar_read(offset, unsafe { bytes_mut(data, len) }, unmask)
    }

    bar_write(card, offset: u64, data: *const c_void, len: u32, unmask: bool) -> () [()] {
        // SAFETY: QEMU's own buffer of `len` bytes.
        card.bar_write(offset, unsafe { bytes(data, len) }, unmask)
    }

    map(card, address: u64, size: u64, writable: bool, fd: c_int, offset: u64) -> bool [false] {
        // SAFETY: not negative, so it is an open file of QEMU's.
        let file = (fd >= 0).then(|| (unsafe { BorrowedFd::borrow_raw(fd) }, offset));
        card.map(&Memory { address, size, writable, file })
    }

    unmap(card, address: u64, size: u64) -> bool [false] { card.unmap(address, size) }

    connect(card, eventfd: c_int) -> bool [false] {
        // SAFETY: QEMU's eventfd, which it keeps open.
        card.connect_pin(unsafe { BorrowedFd::borrow_raw(eventfd) })
    }

    reset(card) -> bool [false] { card.reset() }
}

/// Ends the connection. The handle is of no use afterwards.
unsafe extern "C" fn close(handle: ClientHandle) {
    // SAFETY: made by `Box::into_raw`, and QEMU gives it back once.
    let shared = unsafe { Box::from_raw(handle.cast::<Shared>()) };
    let card = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
    // What a panic leaves behind is the process's end to clean up.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(card)));
}

const OPS: ClientOps = ClientOps {
    abi: ABI,
    bytes: size_of::<ClientOps>() as u32,
    close,
    descriptor,
    serve,
    config_read,
    config_write,
    bar_read,
    bar_write,
    map,
    unmap,
    connect,
    reset,
};
