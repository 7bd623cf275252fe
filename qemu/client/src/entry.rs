//! The entry points that QEMU calls.
//!
//! A panic never reaches QEMU: the card is marked as failed, and every later call returns at once.

use crate::card::{Card, Memory};
use crate::ffi::{ABI, ClientHandle, ClientOps, Config, HostOps, Nature};
use crate::host::Qemu;
use crate::turns::{Later, Turns};
use rustix::fd::{AsFd, BorrowedFd, RawFd};
use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::slice;
use std::time::Duration;

/// What a [`ClientHandle`] points to.
struct Shared {
    turns: Turns<Card<Qemu>>,
    /// The card's, which never changes.
    descriptor: RawFd,
}

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
        unsafe { fill(message, bytes, text) };
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
            let descriptor = card.descriptor();
            let turns = Turns::new(card);
            Box::into_raw(Box::new(Shared { turns, descriptor })).cast()
        }
        Ok(Err(error)) => fail(&error.to_string()),
        Err(_) => fail("the vfio-user client has failed"),
    }
}

/// Puts a line of text into a C buffer.
///
/// # Safety
/// `message` must be valid for writing `bytes` bytes.
unsafe fn fill(message: *mut c_char, bytes: usize, text: &str) {
    let len = text.len().min(bytes.saturating_sub(1));
    if bytes > 0 {
        // SAFETY: len + 1 bytes fit into `bytes`.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr(), message.cast(), len);
            message.add(len).write(0);
        }
    }
}

/// # Safety
/// `handle` must come from [`tigon2_client_open`] and not be closed as long as the result
/// is used.
unsafe fn shared<'a>(handle: ClientHandle) -> &'a Shared {
    // SAFETY: it was made by `Box::into_raw`; all access is by shared reference.
    unsafe { &*handle.cast::<Shared>() }
}

/// Runs `f` on the card; if that fails, the card is given up.
fn guarded<R>(card: &mut Card<Qemu>, otherwise: R, f: impl FnOnce(&mut Card<Qemu>) -> R) -> R {
    // Caught inside of the lock, so the lock is never poisoned.
    catch_unwind(AssertUnwindSafe(|| f(card))).unwrap_or_else(|_| {
        card.give_up("the vfio-user client has failed");
        otherwise
    })
}

impl Shared {
    /// Runs `f` on the card now; `otherwise` if that cannot be.
    fn now<R: Copy>(&self, otherwise: R, f: impl FnOnce(&mut Card<Qemu>) -> R) -> R {
        let done = self.turns.now(|card| guarded(card, otherwise, f));
        done.unwrap_or_else(|| {
            // Reported by the access further out.
            self.turns
                .note(Box::new(|card| card.report_turns("got no answer")));
            otherwise
        })
    }

    /// Runs `f` on the card; from within another access, `later` at the end of that, which
    /// counts as done.
    fn in_turn(
        &self,
        f: impl FnOnce(&mut Card<Qemu>) -> bool,
        later: impl FnOnce() -> Later<Card<Qemu>>,
    ) -> bool {
        let later = || -> Later<Card<Qemu>> {
            let later = later();
            Box::new(move |card| {
                card.report_turns("had to wait for it");
                guarded(card, (), later);
            })
        };
        let done = self.turns.in_turn(|card| guarded(card, false, f), later);
        done.unwrap_or(true)
    }
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

/// Defines the C functions of [`ClientOps`]. Each gets what the handle points to, and is
/// QEMU's to call with arguments as `client.h` says.
macro_rules! callbacks {
    ($($name:ident($shared:ident $(, $argument:ident: $type:ty)*) $(-> $result:ty)? $body:block)*) => {
        $(unsafe extern "C" fn $name(handle: ClientHandle $(, $argument: $type)*) $(-> $result)? {
            // SAFETY: QEMU passes the handle that it got, until it closes it.
            let $shared = unsafe { shared(handle) };
            $body
        })*
    };
}

callbacks! {
    descriptor(shared) -> c_int { shared.descriptor }

    serve(shared) {
        // From within an access: what is left is noticed at its end.
        shared.turns.if_free(|card| guarded(card, (), Card::serve));
    }

    config_read(shared, offset: u32, data: *mut c_void, len: u32) -> bool {
        // SAFETY: QEMU's own buffer of `len` bytes.
        shared.now(false, |card| card.config_read(offset, unsafe { bytes_mut(data, len) }))
    }

    config_write(shared, offset: u32, data: *const c_void, len: u32) {
        // SAFETY: QEMU's own buffer of `len` bytes.
        let data = unsafe { bytes(data, len) };
        let write = |card: &mut Card<Qemu>| { card.config_write(offset, data); true };
        shared.in_turn(write, || {
            let data = data.to_vec();
            Box::new(move |card| card.config_write(offset, &data))
        });
    }

    bar_read(shared, offset: u64, data: *mut c_void, len: u32, unmask: bool) -> bool {
        // SAFETY: QEMU's own buffer of `len` bytes.
        shared.now(false, |card| card.bar_read(offset, unsafe { bytes_mut(data, len) }, unmask))
    }

    bar_write(shared, offset: u64, data: *const c_void, len: u32, unmask: bool) {
        // SAFETY: QEMU's own buffer of `len` bytes.
        let data = unsafe { bytes(data, len) };
        let write = |card: &mut Card<Qemu>| { card.bar_write(offset, data, unmask); true };
        shared.in_turn(write, || {
            let data = data.to_vec();
            Box::new(move |card| card.bar_write(offset, &data, unmask))
        });
    }

    map(shared, address: u64, size: u64, writable: bool, fd: c_int, offset: u64) -> bool {
        // SAFETY: not negative, so it is an open file of QEMU's.
        let file = (fd >= 0).then(|| (unsafe { BorrowedFd::borrow_raw(fd) }, offset));
        let map = |card: &mut Card<Qemu>| card.map(&Memory { address, size, writable, file });
        shared.in_turn(map, || {
            // A file that cannot be kept open until then: by messages, which is slower.
            let kept = file.and_then(|(fd, offset)| Some((fd.try_clone_to_owned().ok()?, offset)));
            Box::new(move |card| {
                let file = kept.as_ref().map(|(fd, offset)| (fd.as_fd(), *offset));
                card.map(&Memory { address, size, writable, file });
            })
        })
    }

    unmap(shared, address: u64, size: u64) -> bool {
        let unmap = move |card: &mut Card<Qemu>| card.unmap(address, size);
        shared.in_turn(unmap, || Box::new(move |card| { unmap(card); }))
    }

    connect(shared, eventfd: c_int) -> bool {
        // SAFETY: QEMU's eventfd, which it keeps open.
        shared.now(false, |card| card.connect_pin(unsafe { BorrowedFd::borrow_raw(eventfd) }))
    }

    reset(shared) -> bool {
        shared.in_turn(Card::reset, || Box::new(|card| { card.reset(); }))
    }

    counts(shared, text: *mut c_char, bytes: usize) {
        // SAFETY: QEMU's own buffer of `bytes` bytes.
        unsafe { fill(text, bytes, &shared.turns.counts().to_string()) };
    }
}

/// Ends the connection. The handle is of no use afterwards.
unsafe extern "C" fn close(handle: ClientHandle) {
    // SAFETY: made by `Box::into_raw`, and QEMU gives it back once.
    let shared = unsafe { Box::from_raw(handle.cast::<Shared>()) };
    let card = shared.turns.into_inner();
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
    counts,
};
