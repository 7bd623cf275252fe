//! Registered memory.

use std::ffi::{c_int, c_void};
use std::os::fd::BorrowedFd;

use dusi::{Buffer, Busy, Region};

use crate::ual::{Dusi_Ual, flat};
use crate::{code, refused};

/// A registered region.
pub struct Dusi_Region(pub(crate) Region);

/// Registers memory for payload, with a protection tag that operations must show.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Dusi_Register_Memory(
    ual: *mut Dusi_Ual,
    bytes: usize,
    protection_tag: u32,
    region: *mut *mut Dusi_Region,
) -> c_int {
    if region.is_null() {
        return -libc::EINVAL;
    }
    // SAFETY: the caller's pointer, by the contract of the crate.
    let ual = unsafe { Dusi_Ual::of(ual) };
    flat(ual.and_then(|ual| {
        let made = ual.ual.register_with_tag(bytes, protection_tag);
        let made = made.map_err(|error| refused(&error))?;
        // SAFETY: the contract of the crate: not null, so room for a pointer.
        unsafe { region.write(Box::into_raw(Box::new(Dusi_Region(made)))) };
        Ok(0)
    }))
}

/// Ends a region; `-EBUSY`, and it stays, if an operation uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Dusi_Deregister_Memory(
    ual: *mut Dusi_Ual,
    region: *mut Dusi_Region,
) -> c_int {
    if region.is_null() {
        return -libc::EINVAL;
    }
    // SAFETY: the caller's pointer, by the contract of the crate.
    let ual = match unsafe { Dusi_Ual::of(ual) } {
        Ok(ual) => ual,
        Err(error) => return error,
    };
    // SAFETY: the contract of the crate: made by `Dusi_Register_Memory`, and not used after this
    // has returned 0.
    let owned = unsafe { region.read() };
    match ual.ual.deregister(owned.0) {
        Ok(()) => {
            // SAFETY: as above; what it held was moved out, and the box has nothing to drop.
            drop(unsafe { Box::from_raw(region.cast::<std::mem::MaybeUninit<Dusi_Region>>()) });
            0
        }
        Err(Busy(back)) => {
            // SAFETY: as above; the region goes back to where it was.
            unsafe { region.write(Dusi_Region(back)) };
            -libc::EBUSY
        }
    }
}

/// Registers bytes of the application's own memory file, a memfd that is sealed against shrinking
/// and growing, from an offset on that is a multiple of 8. The region may be used once the event
/// has come.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Dusi_Register_File(
    ual: *mut Dusi_Ual,
    file: c_int,
    offset: u32,
    length: u32,
    protection_tag: u32,
    event_queue: u16,
    tag: u64,
    region: *mut *mut Dusi_Region,
) -> c_int {
    if region.is_null() || file < 0 {
        return -libc::EINVAL;
    }
    // SAFETY: the caller's pointer, by the contract of the crate.
    let ual = unsafe { Dusi_Ual::of(ual) };
    flat(ual.and_then(|ual| {
        let done = (ual.queue(event_queue)?, tag);
        // SAFETY: the contract of the crate: an open descriptor, for as long as the call lasts.
        let file = unsafe { BorrowedFd::borrow_raw(file) };
        let range = (offset, length);
        let made = ual.ual.register_file(file, range, protection_tag, done);
        let made = made.map_err(|error| refused(&error))?;
        // SAFETY: the contract of the crate: not null, so room for a pointer.
        unsafe { region.write(Box::into_raw(Box::new(Dusi_Region(made)))) };
        Ok(0)
    }))
}

/// Gives a buffer of the anonymous pool back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Dusi_Release(
    ual: *mut Dusi_Ual,
    buffer: u32,
    event_queue: u16,
    tag: u64,
) -> c_int {
    // SAFETY: the caller's pointer, by the contract of the crate.
    let ual = unsafe { Dusi_Ual::of(ual) };
    flat(ual.and_then(|ual| {
        let done = (ual.queue(event_queue)?, tag);
        Ok(code(
            ual.ual.release_with(Buffer::of_number(buffer, 0), done),
        ))
    }))
}

/// Reads received bytes of a buffer of the anonymous pool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Dusi_Read_Buffer(
    ual: *mut Dusi_Ual,
    buffer: u32,
    bytes: *mut c_void,
    length: u32,
) -> c_int {
    // SAFETY: the caller's pointer, by the contract of the crate.
    let ual = unsafe { Dusi_Ual::of(ual) };
    flat(ual.and_then(|ual| {
        if bytes.is_null() || length as usize > dti::layout::ANONYMOUS_BYTES {
            return Err(-libc::EINVAL);
        }
        // SAFETY: the contract of the crate: room for `length` bytes; they are initialised here.
        let bytes = unsafe {
            bytes.cast::<u8>().write_bytes(0, length as usize);
            std::slice::from_raw_parts_mut(bytes.cast::<u8>(), length as usize)
        };
        let buffer = Buffer::of_number(buffer, length);
        Ok(code(ual.ual.read_buffer(buffer, bytes)))
    }))
}

/// Writes bytes into a region, from an offset on that is a multiple of 8.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Dusi_Write(
    ual: *mut Dusi_Ual,
    region: *const Dusi_Region,
    offset: usize,
    bytes: *const c_void,
    length: usize,
) -> c_int {
    // SAFETY: the caller's pointers, by the contract of the crate.
    let (ual, region) = unsafe { (Dusi_Ual::of(ual), region.as_ref()) };
    let (Ok(ual), Some(region), false) = (ual, region, bytes.is_null()) else {
        return -libc::EINVAL;
    };
    // SAFETY: the contract of the crate: `length` bytes stand there.
    let bytes = unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), length) };
    code(ual.ual.write_part(&region.0, offset, bytes))
}

/// Reads bytes of a region, from an offset on that is a multiple of 8.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Dusi_Read(
    ual: *mut Dusi_Ual,
    region: *const Dusi_Region,
    offset: usize,
    bytes: *mut c_void,
    length: usize,
) -> c_int {
    // SAFETY: the caller's pointers, by the contract of the crate.
    let (ual, region) = unsafe { (Dusi_Ual::of(ual), region.as_ref()) };
    let (Ok(ual), Some(region), false) = (ual, region, bytes.is_null()) else {
        return -libc::EINVAL;
    };
    // The region's length is checked before a slice of the caller's is made.
    if offset
        .checked_add(length)
        .is_none_or(|end| end > region.0.len())
    {
        return -libc::ERANGE;
    }
    // SAFETY: the contract of the crate: room for `length` bytes; they are initialised here.
    let bytes = unsafe {
        bytes.cast::<u8>().write_bytes(0, length);
        std::slice::from_raw_parts_mut(bytes.cast::<u8>(), length)
    };
    code(ual.ual.read_part(&region.0, offset, bytes))
}
